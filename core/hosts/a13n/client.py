"""The wire of an a13n Service, of 0.0.94 and later: what it is asked, and each of its refusals by a name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from pydantic import SecretStr
from yarl import URL

from core.hosts.base import HostAway

CALL_S: Final = 15.0
PAGE: Final = 100
_AWAY: Final = frozenset({401, 403, 408, 425, 429})
"""Beside 5xx: a key may be renewed, and a limit passes."""

Json = dict[str, Any]


class A13nAway(HostAway):
    """The Service cannot be asked now."""


class A13nRefused(Exception):
    """The Service refuses a call for good. ``code`` and ``reason`` are its own words, ``details`` too."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        details = error.get("details")
        self.status = status
        self.code = str(error.get("code") or status)
        self.details: Mapping[str, Any] = details if isinstance(details, Mapping) else {}
        self.reason = str(self.details.get("reason") or "")
        super().__init__(f"{self.reason or self.code} ({status}): {error.get('message') or 'no message'}")


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it is. ``pending`` is there while it waits; ``failure`` is why it failed or was cancelled."""

    id: str
    status: str
    thread_id: str
    session_id: str
    agent_id: str
    pending: Json | None
    failure: str | None

    @property
    def waits(self) -> bool:
        return self.status == "waiting"


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread. ``head``: its latest run that completed or waits; ``current``: what goes on; ``last``: what ended."""

    id: str
    head: str | None
    current: str | None
    last: str | None
    archived: bool

    @property
    def idle_head(self) -> str | None:
        """The run that a resume would be for, if it waits."""
        return None if self.archived or self.current else self.head


class A13nClient:
    """One Service. Close it in the end. Every method raises A13nAway, and A13nRefused for what it refuses for good."""

    def __init__(self, url: str, api_key: SecretStr) -> None:
        self._base = URL(url) / "api" / "v1"
        headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"}
        self._session = aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=CALL_S))

    async def close(self) -> None:
        await self._session.close()

    async def run(self, run_id: str) -> Run:
        found = await self._call("GET", f"runs/{run_id}")
        failure = found.get("failure") or {}
        return Run(
            id=str(found["id"]),
            status=str(found["status"]),
            thread_id=str(found["thread_id"]),
            session_id=str(found["session_id"]),
            agent_id=str(found["agent_id"]),
            pending=found.get("pending"),
            failure=failure.get("message") or failure.get("code"),
        )

    async def thread(self, thread_id: str) -> Thread:
        return _thread(await self._call("GET", f"threads/{thread_id}"))

    async def threads(self, session_id: str) -> list[Thread]:
        """All threads of a session: forks and children too."""
        return [_thread(item) async for item in self._pages("threads", {"session_id": session_id})]

    async def waiting_sessions(self) -> AsyncIterator[tuple[str, str]]:
        """The sessions whose latest run waits, and that run: not those in which something else began later."""
        async for item in self._pages("sessions", {"status": "waiting"}):
            yield str(item["id"]), str(item["last_run_id"])

    async def agent_name(self, agent_id: str) -> str:
        return str((await self._call("GET", f"agents/{agent_id}"))["name"])

    async def resume(self, run_id: str, body: bytes, key: str) -> Run:
        """Answer a run that waits; the same body under the same key again gets the same successor."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        found = await self._call("POST", f"runs/{run_id}/resume", body=body, headers=headers)
        return Run(
            str(found["id"]),
            str(found["status"]),
            str(found["thread_id"]),
            "",
            str(found["agent_id"]),
            None,
            None,
        )

    async def _pages(self, path: str, query: dict[str, str]) -> AsyncIterator[Json]:
        cursor: str | None = None
        while True:
            more = {"cursor": cursor} if cursor else {}
            page = await self._call("GET", path, query={**query, "limit": str(PAGE), **more})
            for item in page["items"]:
                yield item
            cursor = page.get("next_cursor")
            if not cursor:
                return

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        url = self._base.joinpath(path).with_query(query or {})
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                return _read(answer.status, await answer.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise A13nAway(f"it cannot be reached ({type(error).__name__})") from error


def _read(status: int, body: bytes) -> Json:
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if 200 <= status < 300 and isinstance(parsed, dict):
        return parsed
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if status >= 500 or status in _AWAY or not isinstance(error, dict):
        code = f", {error['code']}" if isinstance(error, dict) and "code" in error else ""
        raise A13nAway(f"it answered {status}{code}")
    raise A13nRefused(status, error)


def _thread(item: Json) -> Thread:
    return Thread(
        id=str(item["id"]),
        head=item.get("head_run_id"),
        current=item.get("current_run_id"),
        last=item.get("last_run_id"),
        archived=bool(item.get("archived_at")),
    )
