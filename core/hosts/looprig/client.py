"""What the wires of both dialects of looprig share: how a call is made, and what it is when that fails."""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from pydantic import SecretStr
from yarl import URL

from core.hosts.base import HostAway

CALL_S: Final = 15.0
NOT_NOW: Final = ("gate_not_resumable", "runtime_unavailable")
"""What Factory says while a session cannot be taken up."""

CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

Json = dict[str, Any]


class LooprigError(HostAway):
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
        super().__init__(f"it answered {status} {code}".rstrip())


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the list of sessions, as the server has it: one that differs tells that something happened there."""

    id: str
    state: str
    active_at: str


class LooprigClient(ABC):
    """One server. Close it in the end."""

    def __init__(self, url: str, api_key: SecretStr | None = None) -> None:
        self._base = URL(url) / "v1"
        self._headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(total=CALL_S)
        )

    async def close(self) -> None:
        await self._session.close()

    @abstractmethod
    async def sessions(self) -> list[Listed]:
        """All sessions, live or not, those where something happened last first."""

    @abstractmethod
    def journal(self, session_id: str, from_seq: int = 0) -> AsyncGenerator[tuple[int, Json]]:
        """The session's events from that number on, to where the journal ends now."""

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
            # a POST that is sent elsewhere may become a GET there, whose 200 would pass for "taken"
            async with self._session.request(method, url, json=body, allow_redirects=False) as answer:
                return read(answer.status, await answer.read())
        except aiohttp.ClientConnectorError as error:
            raise Unreached(f"it cannot be reached ({type(error).__name__})") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LooprigError(f"it did not answer ({type(error).__name__})") from error


def listed(item: Json) -> Listed:
    """A line of either dialect's list."""
    return Listed(item["session_id"], str(item.get("state") or ""), str(item.get("last_active_at") or ""))


@contextlib.contextmanager
def as_known() -> Iterator[None]:
    """Around what reads a reply. Raises LooprigError for one that is not as it should be."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LooprigError("its reply is not one of looprig in this dialect") from error


def read(status: int, body: bytes) -> Any:
    """The JSON of a reply. Raises Answered, Unreached for one that leads elsewhere, or LooprigError."""
    if 300 <= status < 400:
        raise Unreached(f"it answered {status}, so the url is not the server's own")
    try:
        parsed = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise LooprigError(f"it answered {status} without JSON") from None
    if 200 <= status < 300:
        return parsed
    error = parsed.get("error") if isinstance(parsed, dict) else None
    said = error if isinstance(error, dict) else {}
    code = str(said.get("code", ""))
    # it is logged and shown, so it is a word and nothing else
    raise Answered(status, code if CODE.fullmatch(code) else "", retryable=bool(said.get("retryable")))
