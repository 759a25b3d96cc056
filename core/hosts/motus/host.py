"""A Motus server as a host: found by its list of sessions, woken by long polls, answered interrupt by interrupt."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import structlog

from core.clock import Clock
from core.gates import Outcome
from core.hosts.base import APPLIED, Present, Reply, Seen, Sessions, Wait, Word
from core.hosts.config import MotusConfig
from core.hosts.motus import client as wire
from core.hosts.motus import gates
from core.hosts.motus.client import Gone, MotusClient, MotusError, Refused, Session, Unreadable
from core.hosts.motus.talker import MotusTalker
from core.hosts.motus.turnclock import TurnClock
from core.requests import RunRequest
from core.resumes import Resume

SOON_S, LATE_S = 1.0, 5.0
"""How long to rest between two readings: soon after something changed, later if nothing does."""
MAX_LONG_POLLS: Final = 64
READINGS, REREAD_S = 5, 1.0
"""How often a session is read after the server took no answer, and when again. A worker that has ended is still shown
as waiting for up to 3 s."""

UNREADABLE: Final = "unreadable-"
"""How our id begins of what the server cannot show. Its own ids are UUIDs."""

log = structlog.get_logger(__name__)


class MotusHost:
    """One Motus server. See `core.hosts.base.Host`."""

    def __init__(self, config: MotusConfig, clock: Clock, sessions: Sessions) -> None:
        self.name = config.name
        self._sessions = sessions
        self._config = config
        self._clock = clock
        self._client = MotusClient(config.url, config.api_key)
        self._turns = TurnClock(config.name, config.turn_timeout_s, sessions, clock)
        self.talker = MotusTalker(self._client, config.talk, self._turns) if config.talk else None
        self._woken = asyncio.Event()
        self._long_polls: dict[str, asyncio.Task[None]] = {}

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
            await self._turns.look(sessions, asked_ms)
            waits, unread = await self._waits([s for s in sessions if s.status == "interrupted"])
            for wait in waits:
                yield wait
            ids = frozenset(wait.external_id for wait in waits)
            alive = frozenset(session.id for session in sessions)
            dark = frozenset(wait.session for wait in waits if "hidden" in wait.facts)
            yield Present(ids, asked_ms, partial(_why_gone, alive, dark, unread))
            self._poll([s.id for s in sessions if s.status == "running"])
            rest_s = SOON_S if ids != before else min(rest_s * 1.5, LATE_S)
            before = ids
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._woken.wait()

    async def _waits(self, sessions: list[Session]) -> tuple[list[Wait], frozenset[str]]:
        """What the sessions wait for, and those of them of which the server tells nothing now."""
        found = await asyncio.gather(*map(self._read, sessions))
        waits = [wait for some in found for wait in some or ()]
        return waits, frozenset(s.id for s, some in zip(sessions, found, strict=True) if some is None)

    async def _read(self, session: Session) -> list[Wait] | None:
        """What one session waits for. None: it cannot be read, which is no reason to leave the others."""
        try:
            reading = await self._client.read(session.id)
        except Gone:
            return []
        except Unreadable as error:
            return [_wait(session.id, _unreadable(session.turns), hidden=str(error))]
        except MotusError as error:
            log.warning("host.session_unread", host=self.name, session=session.id, error=str(error))
            return None
        return [_wait(session.id, i.id, type=i.type, payload=i.payload) for i in reading.interrupts]

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
        times = (self._config.timeout_s, self._turns.left_s(wait.facts["session_id"]))
        asked = {**self._config.asked, "timeout_s": min((t for t in times if t is not None), default=None)}
        shown, pending = gates.pending(wait.facts)
        if shown is gates.Shown.NOTICE:
            # whoever asked may end the turn without this, too
            asked["policy"] = self._config.policy.model_copy(update={"self_approval": True})
        return RunRequest(
            **asked,
            external_id=wait.external_id,
            pending=pending,
            state=json.dumps({**wait.facts, "shown": shown}),
        )

    # resuming

    async def resume(self, resume: Resume) -> Reply:
        """Answer the interrupt once. Neither a 404 nor a 409 is worth a second try: a reading tells what happened."""
        try:
            facts = gates.facts_of(resume.state)
        except ValueError as error:
            return Reply(Word.REFUSED, str(error))
        [gate] = resume.run.gates
        # the gate's own word: a result may be void because its arguments are not those that were approved
        if gate.status == Outcome.SUPERSEDED and gate.decision:
            return Reply(Word.LOST, gate.decision.detail)
        results: dict[str, dict[str, dict[str, Any]]] = json.loads(resume.body)
        result = next(result for category in results.values() for result in category.values())
        try:
            if await self._waits_for(facts) is not False:
                return await self._say(facts, result, resume.first)
        except Gone:
            return _moved_on("The Motus session is gone.", resume.first)
        except MotusError as error:
            return Reply(Word.RETRYABLE, str(error))
        finally:
            self._woken.set()
        return _moved_on("The turn no longer waits for this.", resume.first)

    async def _waits_for(self, facts: dict[str, Any]) -> bool | None:
        """Whether the interrupt is open. None: nobody can see, for it may be hidden behind one that is unreadable."""
        try:
            reading = await self._client.read(facts["session_id"])
        except Unreadable:
            if "hidden" not in facts:
                return None
            turns = {session.id: session.turns for session in await self._client.sessions()}
            return str(facts["interrupt_id"]) == _unreadable(turns.get(facts["session_id"], -1))
        return any(interrupt.id == facts["interrupt_id"] for interrupt in reading.interrupts)

    async def _say(self, facts: dict[str, Any], result: dict[str, Any], first: bool) -> Reply:
        session_id = facts["session_id"]
        try:
            value = gates.value(facts, result, self._config.failures)
        except gates.LeaveIt:
            return Reply(Word.REFUSED, "Nothing was sent to Motus: the turn waits on, until it is cancelled.")
        except gates.CancelTurn:
            kept = await self._cancel_turn(session_id)
            return Reply(Word.APPLIED, f"The turn was cancelled; the conversation goes on as session {kept}.")
        try:
            await self._client.resume(session_id, facts["interrupt_id"], value)
        except Gone:
            raise
        except wire.Moved as error:
            return await self._not_taken(facts, first, f"Motus says: {error}.")
        except Refused as error:
            return Reply(Word.REFUSED, f"Motus refused the answer: {error}")
        except MotusError as error:
            return await self._unheard(facts, str(error))
        return APPLIED

    async def _cancel_turn(self, session_id: str) -> str:
        """End the turn and keep the conversation: a session of the same messages takes its place. Returns its id.

        Not under the same id: the turn that dies would mark the session that took its place as failed. It is made
        before the old one is ended, so that no crash loses the conversation; an earlier try may have got so far.
        """
        kept = await self._sessions.moved_to(self.name, session_id)
        if kept is None:
            kept = await self._client.create(await self._client.messages(session_id))
            await self._sessions.moved(self.name, session_id, kept)
        await self._client.end(session_id)
        return kept

    async def _not_taken(self, facts: dict[str, Any], first: bool, said: str) -> Reply:
        """The server did not take the answer: because the turn has moved on, if a reading says so too."""
        for number in range(READINGS):
            if number:
                await asyncio.sleep(REREAD_S)
            if not await self._waits_for(facts):
                return _moved_on(said, first)
        return Reply(Word.RETRYABLE, said)

    async def _unheard(self, facts: dict[str, Any], error: str) -> Reply:
        """Whether the server took the answer was not heard. A reading tells if anybody's was taken, but not whose."""
        with contextlib.suppress(Gone):
            if await self._waits_for(facts) is not False:
                return Reply(Word.RETRYABLE, error)
        return Reply(
            Word.UNKNOWN,
            f"Whether Motus took this answer nobody can tell: {error}, and the turn no longer waits for it.",
        )


def _moved_on(why: str, first: bool) -> Reply:
    """The turn has moved on. Unless this is the ``first`` try, it may have been by one of ours whose reply was lost."""
    if first:
        return Reply(Word.LOST, why)
    return Reply(
        Word.UNKNOWN, f"{why} An earlier try may have got there: whose answer counted nobody can tell."
    )


def _wait(session_id: str, interrupt_id: str, **said: Any) -> Wait:
    facts = {"session_id": session_id, "interrupt_id": interrupt_id, **said}
    return Wait(f"{session_id}/{interrupt_id}", facts, session_id)


def _unreadable(turns: int) -> str:
    # by the number of its messages, for a later turn may be unreadable too
    return f"{UNREADABLE}{turns}"


async def _why_gone(
    alive: frozenset[str], dark: frozenset[str], unread: frozenset[str], external_id: str
) -> str | None:
    """Why something is not among what waits. ``dark``: the sessions that wait for something that cannot be shown."""
    session_id, _, interrupt_id = external_id.partition("/")
    if session_id in unread or (session_id in dark and not interrupt_id.startswith(UNREADABLE)):
        return None  # nobody can tell
    if session_id in alive:
        return "It was answered elsewhere, or the turn ended."
    return "The Motus session was deleted, or the server was restarted."
