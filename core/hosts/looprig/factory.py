"""looprig's Factory as a host: its list of open gates is polled, and each answer is a command with an id of its own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

import structlog

from core.clock import Clock
from core.hosts.base import APPLIED, Present, Reply, Seen, Wait, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig.answering import Json, Said, same_answer
from core.hosts.looprig.client import Answered, Listed, LooprigError, Unreached, as_known
from core.hosts.looprig.dialect import GLANCE_S, Dialect, folded
from core.hosts.looprig.factory_client import Command, FactoryClient
from core.hosts.looprig.fold import Closed
from core.resumes import Resume

log = structlog.get_logger(__name__)

AT_ONCE: Final = 8
"""How many sessions are read at a time."""
ENDED: Final = "stopped"
QUIET_MS: Final = 3_600_000
REREAD_S: Final = 60.0
"""How often a session is read that has nothing open, and has ended or had nothing happen for QUIET_MS.

The list tells no more: that a gate opened changes neither the state nor the time there."""
DONE_S: Final = 10.0
"""How long to wait for a command to be applied; after that it is asked for again, under the same id."""
WAITING: Final = ("resident", "suspended")
"""What may be answered, now or when its session is taken up again."""
GONE: Final = "It was answered elsewhere, or its time is over."
UNNAMED: Final = "It was answered so; looprig's journal does not name by whose command."


class FactoryHost(Dialect[FactoryClient]):
    """One Factory. See `core.hosts.base.Host`."""

    def __init__(self, config: LooprigConfig, clock: Clock) -> None:
        super().__init__(config, clock, FactoryClient(config.url, config.api_key))
        self._rests: dict[Listed, float] = {}
        self._away: set[str] = set()

    # watching

    async def watch(self) -> AsyncIterator[Seen]:
        """Read the open gates of every session, again and again. Raises LooprigError if none can be read."""
        self._rests = {}
        while True:
            sessions = await self._due()
            unread: list[LooprigError] = []
            for first in range(0, len(sessions), AT_ONCE):
                batch = sessions[first : first + AT_ONCE]
                for found in await asyncio.gather(*map(self._looked, batch)):
                    if isinstance(found, LooprigError):
                        unread.append(found)
                        continue
                    for seen in found:
                        yield seen
            if unread and len(unread) == len(sessions):
                raise unread[-1]
            await asyncio.sleep(self._config.poll_s)

    async def _due(self) -> list[Listed]:
        """The sessions that are to be read now, those where something happened last first."""
        sessions, now = await self._client.sessions(), time.monotonic()
        self._rests = {line: self._rests[line] for line in sessions if line in self._rests}
        return [line for line in sessions if self._rests.get(line, now) <= now]

    def _quiet(self, line: Listed) -> bool:
        active_ms = _ms(line.active_at)
        return line.state == ENDED or (active_ms is not None and active_ms < self._clock.now_ms() - QUIET_MS)

    async def _looked(self, line: Listed) -> list[Seen] | LooprigError:
        """What a session waits for. One that cannot be read does not hide the others. Raises Unreached."""
        session_id, asked_ms = line.id, self._clock.now_ms()
        try:
            with as_known():
                found = await self._client.gates(session_id)
                waits = [self._wait(session_id, item) for item in found if item["answerability"] in WAITING]
                # also those that cannot be answered for now: their cards stay
                ids = frozenset(f"{session_id}/{item['gate_id']}" for item in found if _lasts(item))
        except Unreached:
            raise
        except LooprigError as error:
            if session_id not in self._away:
                self._away.add(session_id)
                log.warning("looprig.session_away", session=session_id, error=str(error))
            return error
        self._away.discard(session_id)
        self._rests.pop(line, None)
        if not found and self._quiet(line):
            self._rests[line] = time.monotonic() + REREAD_S
        return [*waits, Present(ids, asked_ms, _why_gone, f"{session_id}/")]

    def _wait(self, session_id: str, item: Json) -> Wait:
        gate = {"id": item["gate_id"], "kind": item["kind"], "prompt": item["prompt"]}
        facts = {
            "session_id": session_id,
            "gate": gate,
            "event_id": item["opened_event_id"],
            "opened_seq": int(item["opened_journal_seq"]),
            "deadline_ms": _ms(item["deadline"]),
            "request": None,
        }
        return Wait(f"{session_id}/{gate['id']}", facts)

    # resuming

    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Send the command; the same id and bytes again are the same command, so a lost reply costs nothing."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        command_id = f"askgate:{resume.key}"
        try:
            command = await self._client.respond(
                session_id, gate_id, command_id, facts["event_id"], said.action, said.values
            )
            command = await self._done(session_id, command_id, command)
        except Answered as error:
            if error.code not in ("gate_resolved", "gate_expired"):
                raise
            closed = await self._closed(facts)
            return _outcome(facts["gate"], said, closed, command_id) if closed else Reply(Word.LOST, GONE)
        if command.status == "rejected":
            return Reply(Word.REFUSED, f"looprig rejected the answer ({_why(command)}).")
        if command.status != "applied":
            return Reply(Word.RETRYABLE, "the answer has not been applied yet")
        closed = await self._closed(facts)
        if closed is None:
            return Reply(Word.RETRYABLE, "the journal does not say yet what became of it")
        return _outcome(facts["gate"], said, closed, command_id)

    async def _add(self, resume: Resume, session_id: str, text: str) -> Reply:
        """A command of its own, so that one whose reply is lost is sent again."""
        command_id = f"askgate:{resume.key}:text"
        try:
            command = await self._client.input(session_id, command_id, text)
            command = await self._done(session_id, command_id, command)
        except Answered as error:
            if error.passing:
                raise
            return Reply(Word.LOST, f"looprig took the answer, and not the text behind it: {error}.")
        if command.status == "rejected":
            why = _why(command)
            return Reply(Word.LOST, f"looprig took the answer, and rejected the text behind it ({why}).")
        if command.status != "applied":
            return Reply(Word.RETRYABLE, "the text behind the answer has not been applied yet")
        return APPLIED

    async def _done(self, session_id: str, command_id: str, command: Command) -> Command:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DONE_S):
                while not command.ended:
                    await asyncio.sleep(GLANCE_S)
                    command = await self._client.status(session_id, command_id)
        return command

    async def _closed(self, facts: Json) -> Closed | None:
        """How a gate ended, by the journal."""
        return (await folded(self._client, facts)).closed.get(facts["gate"]["id"])


def _outcome(gate: Json, said: Said, closed: Closed, command_id: str) -> Reply:
    """Who won is who is named in the journal: "applied" is also said of a command that came second."""
    if closed.command_id == command_id:
        return APPLIED
    if closed.command_id or closed.source != "user" or same_answer(gate["kind"], said, closed) is False:
        return Reply(Word.LOST, closed.sentence)
    return Reply(Word.UNKNOWN, UNNAMED)


def _why(command: Command) -> str:
    return command.error or "it does not say why"


def _lasts(item: Json) -> bool:
    return item["answerability"] not in ("submitted", "expired")


async def _why_gone(_id: str) -> str:
    return GONE


def _ms(text: object) -> int | None:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None
