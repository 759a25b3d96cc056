"""The wire of looprig: `pkg/serve` (protocol `looprig.serve`, version 1), and Factory's gates and commands."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from pydantic import SecretStr
from yarl import URL

from core.hosts.sse import frames

CALL_S: Final = 15.0
SILENCE_S: Final = 60.0
"""A stream pings every 20 s; three of them missed and it is dead."""
PAGE: Final = 1000
NOT_NOW: Final = ("gate_not_resumable", "runtime_unavailable")
"""What Factory says while a session cannot be taken up."""

Json = dict[str, Any]


class LooprigError(Exception):
    """The server did not answer, or not as it should. The message is ours and shows no URL."""


class Unreached(LooprigError):
    """Nothing of the call got there."""


class Answered(LooprigError):
    """The server's own error: its HTTP status and its code, such as `gate_not_found`.

    ``untaken``: nothing was done, and the same call may do later: the server says so, the right to it lacks, or the
    session is not live for now. ``passing``: the same call may do later, whatever this one did.
    """

    def __init__(self, status: int, code: str, *, retryable: bool = False) -> None:
        self.status = status
        self.code = code
        self.untaken = retryable or status in (401, 403, 404, 429, 503) or code in NOT_NOW
        self.passing = self.untaken or status >= 500
        super().__init__(f"it answered {status} {code}")


@dataclass(frozen=True, slots=True)
class Command:
    """What became of a command: accepted, pending, applied or rejected, and the code of an error."""

    status: str
    error: str


class LooprigClient:
    """One server. Close it in the end."""

    def __init__(self, url: str, api_key: SecretStr | None = None) -> None:
        self._base = URL(url) / "v1"
        headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=CALL_S))

    async def close(self) -> None:
        await self._session.close()

    async def sessions(self) -> list[str]:
        """The ids of all sessions."""
        found: list[str] = []
        while True:
            body = await self._call("GET", ["sessions"], query={"skip": str(len(found)), "limit": "100"})
            items = body if isinstance(body, list) else body.get("sessions") or []
            ids = [item if isinstance(item, str) else str(item.get("session_id")) for item in items]
            found += [session_id for session_id in ids if session_id not in found]
            if len(ids) < 100:
                return found

    async def journal(self, session_id: str, from_seq: int = 0) -> AsyncGenerator[tuple[int, Json]]:
        """The session's events from that number on, to where the journal ends now."""
        while True:
            query = {"from_journal_seq": str(from_seq), "limit": str(PAGE)}
            body = await self._call("GET", ["sessions", session_id, "journal"], query=query)
            for item in body.get("events") or []:
                yield int(item["journal_seq"]), item["event"]
            from_seq = int(body.get("next_journal_seq", from_seq))
            if body.get("done", True):
                return

    @contextlib.asynccontextmanager
    async def events(self, session_id: str) -> AsyncGenerator[AsyncIterator[tuple[int, Json]]]:
        """The session's enduring events as they happen, from when the stream is open."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CALL_S, sock_read=SILENCE_S)
        url = self._url(["sessions", session_id, "events"])
        try:
            async with self._session.get(url, timeout=timeout) as answer:
                if answer.status != 200:
                    _read(answer.status, await answer.read())
                yield _enduring(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise LooprigError(f"its stream broke off ({type(error).__name__})") from error

    async def respond(self, session_id: str, gate_id: str, action: str, values: Json) -> None:
        """Answer a gate (`pkg/serve`). A return means that it is in the journal. Raises Answered or LooprigError."""
        body = {"action": action, "values": values}
        await self._call("POST", ["sessions", session_id, "gates", gate_id], body=body)

    async def input(self, session_id: str, text: str) -> None:
        """Say something to the session."""
        body = {"blocks": [{"type": "text", "text": text}]}
        await self._call("POST", ["sessions", session_id, "input"], body=body)

    # Factory

    async def gates(self, session_id: str) -> list[Json]:
        """The open gates of a session."""
        found: list[Json] = []
        cursor = ""
        while True:
            query = {"cursor": cursor} if cursor else {}
            body = await self._call("GET", ["sessions", session_id, "gates"], query=query)
            found += body.get("gates") or []
            if not (cursor := body.get("next_cursor") or ""):
                return found

    async def command(
        self, session_id: str, gate_id: str, command_id: str, event_id: str, action: str, values: Json
    ) -> Command:
        """Answer a gate under a command's id: the same id and bytes again are the same command."""
        body = {
            "version": 1,
            "command_id": command_id,
            "session_id": session_id,
            "gate_id": gate_id,
            "action": action,
            "values": values,
            "expected_open_event_id": event_id,
        }
        return _command(await self._call("POST", ["sessions", session_id, "gates", gate_id], body=body))

    async def command_status(self, session_id: str, command_id: str) -> Command:
        """What became of a command."""
        return _command(await self._call("GET", ["sessions", session_id, "commands", command_id]))

    def _url(self, path: list[str]) -> URL:
        url = self._base
        for part in path:
            url = url / part
        return url

    async def _call(
        self, method: str, path: list[str], *, query: dict[str, str] | None = None, body: Any = None
    ) -> Any:
        url = self._url(path).with_query(query or {})
        try:
            async with self._session.request(method, url, json=body) as answer:
                return _read(answer.status, await answer.read())
        except aiohttp.ClientConnectorError as error:
            raise Unreached(f"it cannot be reached ({type(error).__name__})") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LooprigError(f"it did not answer ({type(error).__name__})") from error


async def _enduring(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[int, Json]]:
    async for frame in frames(answer.content):
        if frame.event == "enduring":
            yield int(frame.id), json.loads(frame.data)["event"]


def _command(body: Json) -> Command:
    error = body.get("error") or {}
    return Command(
        str(body.get("status", "")), str(error.get("code", "") if isinstance(error, dict) else error)
    )


def _read(status: int, body: bytes) -> Any:
    try:
        parsed = json.loads(body or b"{}")
    except ValueError:
        raise LooprigError(f"it answered {status} without JSON") from None
    if 200 <= status < 300:
        return parsed
    error = parsed.get("error") if isinstance(parsed, dict) else None
    said = error if isinstance(error, dict) else {}
    raise Answered(status, str(said.get("code", "")), retryable=bool(said.get("retryable")))
