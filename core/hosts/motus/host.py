"""A Motus server as a host: found by its list of sessions, woken by long polls, answered interrupt by interrupt."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Final

from core.clock import Clock
from core.hosts.base import APPLIED, Moved, Present, Reply, Seen, Wait, Word
from core.hosts.config import MotusConfig
from core.hosts.motus import client as wire
from core.hosts.motus import gates
from core.hosts.motus.client import Gone, MotusClient, MotusError, Refused, Session, Unreadable
from core.hosts.motus.talker import MotusTalker
from core.requests import RunRequest
from core.resumes import Resume

SOON_S, LATE_S = 1.0, 5.0
"""How long to rest between two readings: soon after something changed, later if nothing does."""
MAX_LONG_POLLS: Final = 64
MARGIN_S: Final = 5
"""A deadline is that much before the server's own, so that the explicit failure gets there in time."""


class MotusHost:
    """One Motus server. See `core.hosts.base.Host`."""

    def __init__(self, config: MotusConfig, clock: Clock, moved: Moved) -> None:
        self.name = config.name
        self._moved = moved
        self._config = config
        self._clock = clock
        self._client = MotusClient(config.url, config.api_key)
        self.talker = MotusTalker(self._client, config.talk) if config.talk else None
        self._woken = asyncio.Event()
        self._long_polls: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[tuple[str, int], int] = {}
        self._since: dict[str, int] = {}

    async def close(self) -> None:
        for task in self._long_polls.values():
            task.cancel()
        await asyncio.gather(*self._long_polls.values(), return_exceptions=True)
        await self._client.close()

    # watching

    async def watch(self) -> AsyncIterator[Seen]:
        """Read what waits, again and again. Raises MotusError when the server cannot be read."""
        rest_s, before = SOON_S, None
        while True:
            self._woken.clear()
            asked_ms = self._clock.now_ms()
            sessions = await self._client.sessions()
            self._time(sessions, asked_ms)
            waits, dark = await self._waits([s for s in sessions if s.status == "interrupted"])
            for wait in waits:
                yield wait
            ids = frozenset(wait.external_id for wait in waits)
            alive = frozenset(session.id for session in sessions)
            yield Present(ids, asked_ms, partial(_why_gone, alive, dark))
            self._poll([s.id for s in sessions if s.status == "running"])
            rest_s = SOON_S if ids != before else min(rest_s * 1.5, LATE_S)
            before = ids
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._woken.wait()

    def _time(self, sessions: Iterable[Session], now_ms: int) -> None:
        """Note since when each turn is known to run: the server's clock began then at the latest."""
        # by the number of its messages too, for one turn may follow another between two looks
        busy = {(s.id, s.turns) for s in sessions if s.status in ("running", "interrupted")}
        self._turns = {turn: self._turns.get(turn, now_ms) for turn in busy}
        self._since = {session_id: since_ms for (session_id, _), since_ms in self._turns.items()}

    async def _waits(self, sessions: list[Session]) -> tuple[list[Wait], frozenset[str]]:
        """What the sessions wait for, and those of them that cannot be read now."""
        found = await asyncio.gather(*map(self._read, sessions))
        waits = [wait for some in found for wait in some]
        dark = frozenset(w.facts["session_id"] for w in waits if w.facts["type"] == gates.UNREADABLE)
        return waits, dark

    async def _read(self, session: Session) -> list[Wait]:
        try:
            reading = await self._client.read(session.id)
        except Gone:
            return []
        except Unreadable as error:
            return [self._wait(session.id, _unreadable(session.turns), gates.UNREADABLE, str(error))]
        return [self._wait(session.id, i.id, i.type, i.payload) for i in reading.interrupts]

    def _wait(self, session_id: str, interrupt_id: str, kind: str, payload: Any) -> Wait:
        facts = {"session_id": session_id, "interrupt_id": interrupt_id, "type": kind, "payload": payload}
        return Wait(f"{session_id}/{interrupt_id}", facts, session_id)

    def _poll(self, running: list[str]) -> None:
        """Have the server tell at once when a turn that runs comes to wait for something."""
        for session_id in running[:MAX_LONG_POLLS]:
            if session_id not in self._long_polls:
                task = asyncio.create_task(self._long_poll(session_id), name=f"motus {session_id}")
                self._long_polls[session_id] = task

    async def _long_poll(self, session_id: str) -> None:
        try:
            await self._client.read(session_id, wait=True)
        except MotusError:
            return  # the reading that this should have hastened says what is the matter
        finally:
            del self._long_polls[session_id]
        self._woken.set()

    # describing

    def describe(self, wait: Wait) -> RunRequest:
        """One interrupt, one run with one gate."""
        asked = {**self._config.asked, "timeout_s": self._timeout_s(wait.facts["session_id"])}
        return RunRequest(
            **asked,
            external_id=wait.external_id,
            pending=gates.pending(wait.facts),
            state=json.dumps(wait.facts),
        )

    def _timeout_s(self, session_id: str) -> int | None:
        """No more than what is left of the server's own time, which runs while people think."""
        own, turn_s = self._config.timeout_s, self._config.turn_timeout_s
        if turn_s is None:
            return own
        now_ms = self._clock.now_ms()
        left = turn_s - MARGIN_S - (now_ms - self._since.get(session_id, now_ms)) // 1000
        return max(1, min(left, own) if own else left)

    # resuming

    async def resume(self, resume: Resume) -> Reply:
        """Answer the interrupt once. Neither a 404 nor a 409 is worth a second try: a reading tells what happened."""
        try:
            facts = gates.facts_of(resume.state)
        except ValueError as error:
            return Reply(Word.REFUSED, str(error))
        results: dict[str, dict[str, dict[str, Any]]] = json.loads(resume.body)
        result = next(result for category in results.values() for result in category.values())
        moved_on = Word.LOST if resume.tries == 1 else Word.UNKNOWN
        if result["outcome"] == "superseded":
            return Reply(Word.LOST, result.get("message") or result.get("reason"))
        try:
            if not await self._still_waits(facts):
                return Reply(moved_on, "The turn no longer waits for this.")
            reply = await self._say(facts, result)
        except Gone:
            return Reply(moved_on, "The Motus session is gone.")
        except MotusError as error:
            return Reply(Word.RETRYABLE, str(error))
        finally:
            self._woken.set()
        return reply

    async def _still_waits(self, facts: dict[str, Any]) -> bool:
        """Whether the interrupt is open. One that is hidden behind an unreadable one may be: its POST will tell."""
        try:
            reading = await self._client.read(facts["session_id"])
        except Unreadable:
            if facts["type"] != gates.UNREADABLE:
                return True
            turns = {session.id: session.turns for session in await self._client.sessions()}
            return str(facts["interrupt_id"]) == _unreadable(turns.get(facts["session_id"], -1))
        return any(interrupt.id == facts["interrupt_id"] for interrupt in reading.interrupts)

    async def _say(self, facts: dict[str, Any], result: dict[str, Any]) -> Reply:
        session_id = facts["session_id"]
        try:
            value = gates.value(facts, result, self._config.failures)
        except gates.LeaveIt:
            return APPLIED
        except gates.CancelTurn:
            kept = await self._client.cancel_turn(session_id, partial(self._moved, self.name, session_id))
            return Reply(Word.APPLIED, f"The turn was cancelled; the conversation goes on as session {kept}.")
        try:
            await self._client.resume(session_id, facts["interrupt_id"], value)
        except wire.Moved as error:
            return Reply(Word.LOST, f"Motus says: {error}")
        except Refused as error:
            return Reply(Word.REFUSED, f"Motus refused the answer: {error}")
        return APPLIED


def _unreadable(turns: int) -> str:
    # by the number of its messages, for a later turn may be unreadable too
    return f"{gates.UNREADABLE}-{turns}"


async def _why_gone(alive: frozenset[str], dark: frozenset[str], external_id: str) -> str | None:
    session_id, _, interrupt_id = external_id.partition("/")
    if session_id in dark and not interrupt_id.startswith(gates.UNREADABLE):
        return None  # nobody can tell
    if session_id in alive:
        return "It was answered elsewhere, or the turn ended."
    return "The Motus session was deleted, or the server was restarted."
