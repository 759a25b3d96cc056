"""looprig's Factory as a host: its list of open gates is polled, and each answer is a command with an id of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

import structlog

from core.clock import Clock
from core.hosts.base import APPLIED, Present, Reply, Seen, Wait, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig.answering import Json, Said, answered, describe, folded, follow_up
from core.hosts.looprig.client import Answered, Command, LooprigClient
from core.hosts.looprig.fold import Closed
from core.requests import RunRequest
from core.resumes import Resume

log = structlog.get_logger(__name__)

OUTCOME_S: Final = 10.0
"""How long to wait for a command to be applied; after that it is asked for again, under the same id."""
WAITING: Final = ("resident", "suspended")
"""What may be answered, now or when its session is taken up again."""


class FactoryHost:
    """One Factory. See `core.hosts.base.Host`."""

    def __init__(self, config: LooprigConfig, clock: Clock) -> None:
        self.name = config.name
        self._config = config
        self._clock = clock
        self._client = LooprigClient(config.url, config.api_key)

    async def close(self) -> None:
        await self._client.close()

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

    def describe(self, wait: Wait) -> RunRequest:
        return describe(self._config, wait, self._clock.now_ms())

    async def resume(self, resume: Resume) -> Reply:
        return await answered(resume, self._say)

    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Send the command; the same id and bytes again are the same command, so a lost reply costs nothing."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        command_id = f"askgate:{resume.key}"
        try:
            command = await self._client.command(
                session_id, gate_id, command_id, facts["event_id"], said.action, said.values
            )
        except Answered as error:
            if error.code in ("gate_resolved", "gate_expired"):
                closed = await self._closed(session_id, gate_id)
                if closed and closed.command_id == command_id:
                    await follow_up(self._client, session_id, said.text)
                    return APPLIED
                return Reply(
                    Word.LOST,
                    closed.sentence if closed else "It was answered elsewhere, or its time is over.",
                )
            if error.code == "gate_not_resumable":
                return Reply(Word.RETRYABLE, "the session cannot be taken up now")
            raise
        command = await self._done(session_id, command_id, command)
        if command.status == "rejected":
            return Reply(
                Word.REFUSED, f"looprig rejected the answer ({command.error or 'it does not say why'})."
            )
        if command.status != "applied":
            return Reply(Word.RETRYABLE, "the answer has not been applied yet")
        # applied is also said of a command that came second: who won is who is named in the journal
        closed = await self._closed(session_id, gate_id)
        if closed is None:
            return Reply(Word.RETRYABLE, "the journal does not say yet what became of it")
        if closed.command_id != command_id:
            return Reply(Word.LOST, closed.sentence)
        await follow_up(self._client, session_id, said.text)
        return APPLIED

    async def _done(self, session_id: str, command_id: str, command: Command) -> Command:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTCOME_S):
                while command.status in ("accepted", "pending"):
                    await asyncio.sleep(0.2)
                    command = await self._client.command_status(session_id, command_id)
        return command

    async def _closed(self, session_id: str, gate_id: str) -> Closed | None:
        """How a gate ended, by the journal: who won is who is named there."""
        return (await folded(self._client, session_id)).closed.get(gate_id)


def _lasts(item: Json) -> bool:
    return item.get("answerability") not in ("submitted", "expired")


async def _why_gone(_id: str) -> str:
    return "It was answered elsewhere, or its time is over."


def _ms(text: object) -> int | None:
    try:
        return int(datetime.fromisoformat(str(text)).timestamp() * 1000)
    except ValueError:
        return None
