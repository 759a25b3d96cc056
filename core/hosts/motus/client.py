"""The wire of `motus serve`, of 0.4.1 and later: what it is asked, and each of its answers by a name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import aiohttp
from pydantic import SecretStr
from yarl import URL

from core.hosts.base import HostAway

CALL_S: Final = 15.0
LONG_POLL_S: Final = 25.0

Status = Literal["idle", "running", "interrupted", "error"]


class MotusError(HostAway):
    """The server did not answer, or not as it should."""


class Gone(MotusError):
    """There is no such session (any more)."""


class Moved(MotusError):
    """The session is not where this call needs it to be: somebody else was there before. Read it again."""


class Unreadable(MotusError):
    """The server cannot show what this session waits for: its payload is none that it can write as JSON."""


class Refused(MotusError):
    """The server takes the call for malformed."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One thing that a turn waits for. ``type`` is the server's word; ``payload`` the agent's, of any shape."""

    id: str
    type: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Session:
    """One line of the list. ``turns`` grows with each turn that ends."""

    id: str
    status: Status
    turns: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A session as it is. ``response`` is the text of the last reply, which may be missing."""

    status: Status
    interrupts: tuple[Interrupt, ...]
    response: str | None
    error: str | None


class MotusClient:
    """One server. Close it in the end."""

    def __init__(self, url: str, api_key: SecretStr | None = None) -> None:
        self._base = URL(url)
        headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        # After a 500 the server closes a connection that it said it would keep, so none is used twice.
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=CALL_S),
            connector=aiohttp.TCPConnector(force_close=True),
        )

    async def close(self) -> None:
        await self._session.close()

    async def sessions(self) -> list[Session]:
        """Every session that the server has."""
        items = await self._call("GET", "/sessions")
        with _as_known():
            return [Session(str(i["session_id"]), i["status"], int(i["total_messages"] or 0)) for i in items]

    async def read(self, session_id: str, *, wait: bool = False) -> Reading:
        """A session; with ``wait``, when it no longer runs, or after LONG_POLL_S. Raises Gone or Unreadable."""
        query = {"wait": "true", "timeout": f"{LONG_POLL_S:g}"} if wait else {}
        body = await self._call("GET", f"/sessions/{session_id}", query=query)
        with _as_known():
            if body["status"] not in get_args(Status):
                raise ValueError(body["status"])
            response = body.get("response") or {}
            return Reading(
                body["status"],
                tuple(
                    Interrupt(
                        str(item["interrupt_id"]), str(item.get("type") or "unknown"), item.get("payload")
                    )
                    for item in body.get("interrupts") or ()
                ),
                response.get("content"),
                body.get("error"),
            )

    async def create(self, state: list[Any] | None = None) -> str:
        """Make a session, with the messages that it starts from. Returns its id."""
        body = await self._call("POST", "/sessions", body={"state": state} if state else {})
        with _as_known():
            return str(body["session_id"])

    async def delete(self, session_id: str) -> None:
        """End a session and whatever runs in it. Raises Gone."""
        await self._call("DELETE", f"/sessions/{session_id}")

    async def messages(self, session_id: str) -> list[Any]:
        """The messages of the turns that have ended. Raises Gone."""
        found = await self._call("GET", f"/sessions/{session_id}/messages")
        with _as_known():
            return list(found)

    async def send(self, session_id: str, content: str) -> None:
        """Start a turn. Raises Gone, or Moved while a turn is under way."""
        await self._call("POST", f"/sessions/{session_id}/messages", body={"content": content})

    async def resume(self, session_id: str, interrupt_id: str, value: Any) -> None:
        """Answer an interrupt; a return means that the worker's queue has it.

        Raises Gone, Moved (this interrupt is no longer open), Refused, or MotusError when no reply came back: only a
        reading tells then whether it got there.
        """
        body = {"interrupt_id": interrupt_id, "value": value}
        await self._call("POST", f"/sessions/{session_id}/resume", body=body)

    async def workers(self) -> int:
        """How many workers the server was given. (How many of them are at work says nothing of what is queued.)"""
        body = await self._call("GET", "/health")
        with _as_known():
            return int(body["max_workers"])

    async def end(self, session_id: str) -> None:
        """End a session and whatever runs in it, whoever may have done so before."""
        try:
            await self.delete(session_id)
        except Gone:
            return
        except MotusError:
            # the reply may have been lost after the session was ended
            if not await self._is_gone(session_id):
                raise

    async def _is_gone(self, session_id: str) -> bool:
        try:
            await self.read(session_id)
        except Gone:
            return True
        except Unreadable:
            pass
        return False

    async def _call(
        self, method: str, path: str, *, query: dict[str, str] | None = None, body: Any = None
    ) -> Any:
        timeout = aiohttp.ClientTimeout(total=CALL_S + (LONG_POLL_S if query else 0))
        url = self._base.joinpath(path[1:]).with_query(query or {})
        try:
            # a POST that is sent elsewhere may become a GET there, whose 200 would pass for "taken"
            async with self._session.request(
                method, url, json=body, timeout=timeout, allow_redirects=False
            ) as answer:
                return _read(answer.status, await answer.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MotusError(f"it cannot be reached ({type(error).__name__})") from error


@contextlib.contextmanager
def _as_known() -> Iterator[None]:
    """Around what reads a reply. Raises MotusError for one that is not as it should be."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MotusError("its reply is not one of Motus") from error


def _read(status: int, body: bytes) -> Any:
    if status == 204:
        return None
    try:
        parsed = json.loads(body)
    except RecursionError:
        raise Unreadable("what it waits for is nested too deeply to be shown") from None
    except ValueError:
        if status == 500:
            raise Unreadable("the server cannot show what it waits for") from None
        sends_on = ", so the url is not the server's own" if 300 <= status < 400 else ""
        raise MotusError(f"it answered {status} without JSON{sends_on}") from None
    if 200 <= status < 300:
        return parsed
    detail = parsed.get("detail") if isinstance(parsed, dict) else None
    said = detail if isinstance(detail, str) else f"it answered {status}"
    if status == 404 and said in ("Session not found", "Session deleted"):
        raise Gone("The session is gone.")
    if status in (404, 409):
        raise Moved(said)
    if status in (400, 405, 413, 422):
        raise Refused(f"it answered {status}")
    raise MotusError(f"it answered {status}")
