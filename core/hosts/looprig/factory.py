"""looprig's Factory as a host: its list of open gates is polled, and each answer is a command with an id of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

import structlog

from core.hosts.base import APPLIED, Present, Reply, Seen, Wait, Word
from core.hosts.looprig.answering import Json, Said, same_answer
from core.hosts.looprig.client import Answered, Command
from core.hosts.looprig.dialect import GLANCE_S, Dialect, folded
from core.hosts.looprig.fold import Closed
from core.resumes import Resume

log = structlog.get_logger(__name__)

DONE_S: Final = 10.0
"""How long to wait for a command to be applied; after that it is asked for again, under the same id."""
WAITING: Final = ("resident", "suspended")
"""What may be answered, now or when its session is taken up again."""
GONE: Final = "It was answered elsewhere, or its time is over."
UNNAMED: Final = "It was answered so; looprig's journal does not name by whose command."


class FactoryHost(Dialect):
    """One Factory. See `core.hosts.base.Host`."""

    async def watch(self) -> AsyncIterator[Seen]:
        """Read the open gates of every session, again and again. Raises LooprigError."""
        while True:
            asked_ms = self._clock.now_ms()
            sessions = await self._client.sessions()
            for session_id in sessions:
                try:
                    found = await self._client.gates(session_id)
                except Answered as error:
                    # one session that cannot be read does not hide those behind it
                    log.warning("looprig.session_away", session=session_id, error=str(error))
                    continue
                waits = [
                    self._wait(session_id, item) for item in found if item.get("answerability") in WAITING
                ]
                for wait in waits:
                    yield wait
                # also those that cannot be answered for now: their cards stay
                ids = frozenset(f"{session_id}/{item['gate_id']}" for item in found if _lasts(item))
                yield Present(ids, asked_ms, _why_gone, f"{session_id}/")
            await asyncio.sleep(self._config.poll_s)

    def _wait(self, session_id: str, item: Json) -> Wait:
        gate = {"id": item["gate_id"], "kind": item.get("kind"), "prompt": item.get("prompt")}
        facts = {
            "session_id": session_id,
            "gate": gate,
            "event_id": item.get("opened_event_id"),
            "deadline_ms": _ms(item.get("deadline")),
            "request": None,
        }
        return Wait(f"{session_id}/{gate['id']}", facts)

    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Send the command; the same id and bytes again are the same command, so a lost reply costs nothing."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        command_id = f"askgate:{resume.key}"
        try:
            command = await self._client.command(
                session_id, gate_id, command_id, facts["event_id"], said.action, said.values
            )
            command = await self._done(session_id, command_id, command)
        except Answered as error:
            if error.code not in ("gate_resolved", "gate_expired"):
                raise
            closed = await self._closed(session_id, gate_id)
            return _outcome(facts["gate"], said, closed, command_id) if closed else Reply(Word.LOST, GONE)
        if command.status == "rejected":
            why = command.error or "it does not say why"
            return Reply(Word.REFUSED, f"looprig rejected the answer ({why}).")
        if command.status != "applied":
            return Reply(Word.RETRYABLE, "the answer has not been applied yet")
        closed = await self._closed(session_id, gate_id)
        if closed is None:
            return Reply(Word.RETRYABLE, "the journal does not say yet what became of it")
        return _outcome(facts["gate"], said, closed, command_id)

    async def _done(self, session_id: str, command_id: str, command: Command) -> Command:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DONE_S):
                while command.status in ("accepted", "pending"):
                    await asyncio.sleep(GLANCE_S)
                    command = await self._client.command_status(session_id, command_id)
        return command

    async def _closed(self, session_id: str, gate_id: str) -> Closed | None:
        """How a gate ended, by the journal."""
        return (await folded(self._client, session_id)).closed.get(gate_id)


def _outcome(gate: Json, said: Said, closed: Closed, command_id: str) -> Reply:
    """Who won is who is named in the journal: "applied" is also said of a command that came second."""
    if closed.command_id == command_id:
        return APPLIED
    if closed.command_id or closed.source != "user" or same_answer(gate["kind"], said, closed) is False:
        return Reply(Word.LOST, closed.sentence)
    return Reply(Word.UNKNOWN, UNNAMED)


def _lasts(item: Json) -> bool:
    return item.get("answerability") not in ("submitted", "expired")


async def _why_gone(_id: str) -> str:
    return GONE


def _ms(text: object) -> int | None:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None
