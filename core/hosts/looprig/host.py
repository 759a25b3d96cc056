"""A looprig server as a host: each session's events are followed without a gap, and its gates answered one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import structlog

from core.clock import Clock
from core.hosts.base import APPLIED, Gone, Present, Reply, Seen, Wait, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig import gates
from core.hosts.looprig.answering import Json, Said, same_answer
from core.hosts.looprig.client import Answered, LooprigClient, LooprigError
from core.hosts.looprig.dialect import Dialect, folded
from core.hosts.looprig.fold import Fold, OpenGate
from core.resumes import Resume

log = structlog.get_logger(__name__)

REJOIN_S: Final = 2.0
REQUEST_S: Final = 1.0
"""How long a permission is held back for the event that says what the call is, which follows it."""


class Follower:
    """Follows one session: opens the stream, then pages the journal, then goes on from where that ended."""

    def __init__(
        self, session_id: str, client: LooprigClient, clock: Clock, out: asyncio.Queue[Seen]
    ) -> None:
        self.session_id = session_id
        self._client = client
        self._clock = clock
        self._out = out
        self._seen: set[str] = set()
        self._holding: set[asyncio.Task[None]] = set()
        self.fold = Fold()

    async def run(self) -> None:
        """Follow it until the task is cancelled."""
        while True:
            try:
                await self._join()
            except LooprigError as error:
                log.warning("looprig.session_away", session=self.session_id, error=str(error))
            except Exception as error:  # noqa: BLE001  # an event that cannot be read must not end the following
                log.error("looprig.session_unreadable", session=self.session_id, error=type(error).__name__)
            await asyncio.sleep(REJOIN_S)

    async def _join(self) -> None:
        asked_ms = self._clock.now_ms()
        async with self._client.events(self.session_id) as events:
            self.fold = fold = await folded(self._client, self.session_id)
            self._tell()
            ids = frozenset(self._external(gate_id) for gate_id in fold.open)
            self._out.put_nowait(Present(ids, asked_ms, self._why_missing, f"{self.session_id}/"))
            async for seq, event in events:
                fold.add(seq, event)
                self._tell()

    def _tell(self) -> None:
        """Say what opened and what closed since the last time."""
        for gate_id in self._seen - self.fold.open.keys():
            self._out.put_nowait(Gone(self._external(gate_id), self._why_gone(self._external(gate_id))))
        for gate in self.fold.open.values():
            if gate.id not in self._seen:
                if (
                    gate.gate.get("kind") == "harness.permission"
                    and gate.execution_id not in self.fold.requests
                ):
                    self._hold(gate)
                else:
                    self._out.put_nowait(self._wait(gate))
            elif gate.execution_id in self.fold.requests:
                self._out.put_nowait(self._wait(gate))
        self._seen = set(self.fold.open)

    def _hold(self, gate: OpenGate) -> None:
        async def later() -> None:
            await asyncio.sleep(REQUEST_S)
            if gate.id in self.fold.open:
                self._out.put_nowait(self._wait(gate))

        task = asyncio.create_task(later())
        self._holding.add(task)
        task.add_done_callback(self._holding.discard)

    def _wait(self, gate: OpenGate) -> Wait:
        facts = {
            "session_id": self.session_id,
            "gate": gate.gate,
            "event_id": gate.event_id,
            "deadline_ms": gates.policy_deadline(gate.gate, gate.opened_ms or self._clock.now_ms()),
            "request": self.fold.requests.get(gate.execution_id),
        }
        return Wait(self._external(gate.id), facts)

    def _external(self, gate_id: str) -> str:
        return f"{self.session_id}/{gate_id}"

    async def _why_missing(self, external_id: str) -> str:
        return self._why_gone(external_id)

    def _why_gone(self, external_id: str) -> str:
        closed = self.fold.closed.get(external_id.removeprefix(f"{self.session_id}/"))
        return closed.sentence if closed else "looprig no longer waits for this."


class LooprigHost(Dialect):
    """One looprig server (`pkg/serve`). See `core.hosts.base.Host`."""

    def __init__(self, config: LooprigConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._followers: dict[str, tuple[Follower, asyncio.Task[None]]] = {}
        self._out: asyncio.Queue[Seen] = asyncio.Queue()

    async def close(self) -> None:
        tasks = [task for _, task in self._followers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().close()

    # watching

    async def watch(self) -> AsyncIterator[Seen]:
        """Follow every session, and look now and then for further ones. Raises LooprigError."""
        # afresh, so that what was told and could not be dealt with is told again
        await self._follow([])
        self._out = asyncio.Queue()
        while True:
            await self._follow(await self._client.sessions())
            until = asyncio.get_running_loop().time() + self._config.poll_s
            while (left := until - asyncio.get_running_loop().time()) > 0:
                try:
                    async with asyncio.timeout(left):
                        seen = await self._out.get()
                except TimeoutError:
                    break
                yield seen

    async def _follow(self, session_ids: list[str]) -> None:
        for session_id in session_ids:
            if session_id not in self._followers:
                follower = Follower(session_id, self._client, self._clock, self._out)
                task = asyncio.create_task(follower.run(), name=f"looprig {session_id}")
                self._followers[session_id] = follower, task
        for session_id in self._followers.keys() - set(session_ids):
            # not live there: its gates may come back when it is restored, so their cards stay
            _, task = self._followers.pop(session_id)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # resuming

    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Answer the gate once. Not found and not ready both mean: read what became of it."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        fold = await folded(self._client, session_id)
        if gate_id in fold.open:
            try:
                await self._client.respond(session_id, gate_id, said.action, said.values)
            except Answered as error:
                if error.code not in ("gate_not_found", "gate_not_ready"):
                    raise
                fold = await self._settled(session_id, gate_id)
            else:
                return APPLIED
        return _outcome(resume, fold, facts["gate"], said)


def _outcome(resume: Resume, fold: Fold, gate: Json, said: Said) -> Reply:
    """What became of a gate that was not open for the answer. An earlier try may have closed it, and been cut off."""
    if gate["id"] in fold.open:
        return Reply(Word.RETRYABLE, "somebody else is answering it")
    closed = fold.closed.get(gate["id"])
    if closed is None:
        return Reply(Word.UNKNOWN, "looprig no longer waits for this.")
    if resume.tries == 1 or closed.source != "user":
        return Reply(Word.LOST, closed.sentence)
    match same_answer(gate["kind"], said, closed):
        case True:  # or by somebody who said the same, which is the same to the agent
            return APPLIED
        case False:
            return Reply(Word.LOST, closed.sentence)
        case None:
            return Reply(Word.UNKNOWN, "It was answered; whether with this, looprig's journal does not tell.")
