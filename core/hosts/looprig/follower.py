"""Following a session of `pkg/serve`: its events are had without a gap, as long as it is live."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass, field
from typing import Final

import structlog

from core.clock import Clock
from core.hosts.base import Gone, Present, Seen, Wait
from core.hosts.looprig import gates
from core.hosts.looprig.client import Answered, Listed, LooprigError
from core.hosts.looprig.fold import Fold, OpenGate
from core.hosts.looprig.serve_client import ServeClient

log = structlog.get_logger(__name__)

JOINED: Final = 8
"""How many sessions are joined at a time: each reads its journal."""
FOLLOWED: Final = 500
"""How many sessions have a stream, which is a connection that stays open. More are read again and again."""
REJOIN_S: Final = 2.0
REST_S: Final = 300.0
"""How long a session is left alone at most that is not live, while nothing is told of it."""
REQUEST_S: Final = 1.0
"""How long a permission is held back for the event that says what the call is, which follows it."""
ENDED: Final = "stopped"
"""The state of a session in which nothing opens any more, until its state is another one."""


@dataclass(frozen=True, slots=True)
class Room:
    """What the followers of a server share."""

    joining: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(JOINED))
    following: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FOLLOWED))


class Follower:
    """Follows one session: opens the stream, then pages the journal, then goes on from where that ended.

    The list has sessions that are not live, and they may never be again, so those are asked more and more seldom, or
    when the list tells of them something else than before.
    """

    def __init__(
        self,
        listed: Listed,
        client: ServeClient,
        clock: Clock,
        out: asyncio.Queue[Seen],
        room: Room,
        poll_s: float,
    ) -> None:
        self.session_id = listed.id
        self.live = True
        self._listed = listed
        self._stirred = asyncio.Event()
        self._client = client
        self._clock = clock
        self._out = out
        self._room = room
        self._poll_s = poll_s
        self._fold = Fold()
        self._told: set[str] = set()
        self._held: dict[str, asyncio.Task[None]] = {}
        self._said = ""

    def note(self, listed: Listed) -> None:
        """What the list has of it now."""
        if listed != self._listed:
            self._listed = listed
            self._stirred.set()

    async def run(self) -> None:
        """Follow it until the task is cancelled."""
        try:
            rest_s = 0.0
            while True:
                self._stirred.clear()
                rest_s = await self._round(rest_s)
                await self._rest(rest_s)
        finally:
            for task in self._held.values():
                task.cancel()

    async def _rest(self, rest_s: float) -> None:
        least_s = min(rest_s, REJOIN_S)
        await asyncio.sleep(least_s)
        spread_s = rest_s * random.uniform(0.8, 1.2)  # noqa: S311  # jitter is no secret
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(spread_s - least_s):
                await self._stirred.wait()

    async def _round(self, rest_s: float) -> float:
        """Join it, and follow it if there is room. Returns how long to rest; ``rest_s`` is how long it last was."""
        began = 0.0
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with self._room.joining:
                    asked_ms = self._clock.now_ms()
                    events = await stack.enter_async_context(self._client.events(self.session_id))
                    began, self.live = time.monotonic(), True
                    await self._catch_up(asked_ms)
                self._said = ""
                if self._room.following.locked():
                    return self._poll_s
                async with self._room.following:
                    async for seq, event in events:
                        self._fold.add(seq, event)
                        self._tell()
        except LooprigError as error:
            self.live = not (isinstance(error, Answered) and error.status == 404)
            self._say_once("looprig.session_away" if self.live else "looprig.session_not_live", str(error))
        except Exception as error:  # noqa: BLE001  # an event that cannot be read must not end the following
            self._say_once("looprig.session_unreadable", type(error).__name__)
        if began and time.monotonic() - began > rest_s:
            return REJOIN_S
        return REST_S if self._listed.state == ENDED else min(max(2 * rest_s, REJOIN_S), REST_S)

    def _say_once(self, what: str, why: str) -> None:
        """Log what is wrong if it is not what was wrong before."""
        if self._said != what:
            self._said = what
            level = log.info if what == "looprig.session_not_live" else log.warning
            level(what, session=self.session_id, error=why)

    async def _catch_up(self, asked_ms: int) -> None:
        """Read what the journal has since the last time, and say all that is open."""
        async for seq, event in self._client.journal(self.session_id, self._fold.next_seq):
            self._fold.add(seq, event)
        self._tell()
        ids = frozenset(self._external(gate_id) for gate_id in self._fold.open)
        self._out.put_nowait(Present(ids, asked_ms, self._why_missing, f"{self.session_id}/"))

    def _tell(self) -> None:
        """Say what opened and what closed since the last time."""
        for gate_id in self._told - self._fold.open.keys():
            self._out.put_nowait(Gone(self._external(gate_id), self._why_gone(self._external(gate_id))))
        self._told &= self._fold.open.keys()
        for gate in self._fold.open.values():
            if gate.gate.get("kind") != "harness.permission" or gate.execution_id in self._fold.requests:
                self._tell_of(gate)
            elif gate.id not in self._held:
                self._held[gate.id] = asyncio.create_task(self._tell_later(gate))
        for gate_id in self._held.keys() - self._fold.open.keys():
            self._held.pop(gate_id).cancel()

    async def _tell_later(self, gate: OpenGate) -> None:
        await asyncio.sleep(REQUEST_S)
        self._tell_of(gate)

    def _tell_of(self, gate: OpenGate) -> None:
        if gate.id not in self._told:
            self._told.add(gate.id)
            self._out.put_nowait(self._wait(gate))

    def _wait(self, gate: OpenGate) -> Wait:
        facts = {
            "session_id": self.session_id,
            "gate": gate.gate,
            "opened_seq": gate.seq,
            "deadline_ms": gates.policy_deadline(gate.gate, gate.opened_ms or self._clock.now_ms()),
            "request": self._fold.requests.get(gate.execution_id),
        }
        return Wait(self._external(gate.id), facts)

    def _external(self, gate_id: str) -> str:
        return f"{self.session_id}/{gate_id}"

    async def _why_missing(self, external_id: str) -> str:
        return self._why_gone(external_id)

    def _why_gone(self, external_id: str) -> str:
        closed = self._fold.closed.get(external_id.removeprefix(f"{self.session_id}/"))
        return closed.sentence if closed else "looprig no longer waits for this."
