"""The wire of looprig's Factory: gates that are listed, and commands with ids of the caller's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final

from core.hosts.looprig.client import Json, Listed, LooprigClient, as_known, listed

PAGE: Final = 200
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Command:
    """What became of a command: accepted, pending, applied or rejected, and the code of an error.

    Applied is said of an answer that came second, too.
    """

    status: str
    error: str

    @property
    def ended(self) -> bool:
        return self.status not in ("accepted", "pending")


class FactoryClient(LooprigClient):
    """A Factory. The same command again, by its id and bytes, is the same command."""

    async def sessions(self) -> list[Listed]:
        found: dict[str, Listed] = {}
        cursor = ""
        while True:
            query = {"limit": str(PAGE)} | ({"cursor": cursor} if cursor else {})
            body = await self._call("GET", ["sessions"], query=query)
            with as_known():
                fresh = {line.id: line for line in map(listed, body["sessions"]) if line.id not in found}
                cursor = str(body.get("next_cursor") or "")
            found |= fresh
            if not cursor or not fresh:
                return list(found.values())

    async def journal(self, session_id: str, from_seq: int = 0) -> AsyncGenerator[tuple[int, Json]]:
        # without a position Factory begins near the end
        position = {"from_seq": str(from_seq)}
        while True:
            query = {**position, "limit": str(PAGE)}
            body = await self._call("GET", ["sessions", session_id, "journal"], query=query)
            with as_known():
                events = [(int(item["journal_seq"]), item["body"]) for item in body["events"]]
                last, position = position, {"cursor": str(body.get("next_cursor") or "")}
            for seq, event in events:
                if isinstance(event, dict):
                    yield seq, event
            # a page without events may have further ones behind it
            if not position["cursor"] or position == last:
                return

    async def gates(self, session_id: str) -> list[Json]:
        """The open gates of a session: 16 at most, in one page."""
        body = await self._call("GET", ["sessions", session_id, "gates"])
        with as_known():
            return [dict(item) for item in body["gates"]]

    async def respond(
        self, session_id: str, gate_id: str, command_id: str, event_id: str, action: str, values: Json
    ) -> Command:
        """Answer a gate, as it was opened by that event."""
        answer = {"gate_id": gate_id, "action": action, "values": values, "expected_open_event_id": event_id}
        return await self._command(session_id, ["gates", gate_id], command_id, answer)

    async def input(self, session_id: str, command_id: str, text: str) -> Command:
        """Say something to the session."""
        blocks = [{"type": "text", "text": text}]
        return await self._command(session_id, ["input"], command_id, {"blocks": blocks})

    async def status(self, session_id: str, command_id: str) -> Command:
        """What became of a command."""
        return _command(await self._call("GET", ["sessions", session_id, "commands", command_id]))

    async def _command(self, session_id: str, path: list[str], command_id: str, members: Json) -> Command:
        body = {"version": VERSION, "command_id": command_id, "session_id": session_id, **members}
        return _command(await self._call("POST", ["sessions", session_id, *path], body=body))


def _command(body: Any) -> Command:
    with as_known():
        return Command(str(body["status"]), str((body.get("error") or {}).get("code", "")))
