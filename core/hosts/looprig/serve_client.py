"""The wire of looprig's `pkg/serve` (protocol `looprig.serve`, version 1)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

import aiohttp
from pydantic import SecretStr

from core.hosts.looprig.client import (
    CALL_S,
    Json,
    Listed,
    LooprigClient,
    LooprigError,
    as_known,
    listed,
    read,
)
from core.hosts.sse import frames

SILENCE_S: Final = 60.0
"""A stream pings every 20 s; three of them missed and it is dead."""
PAGE: Final = 1000


class ServeClient(LooprigClient):
    """A `pkg/serve`."""

    def __init__(self, url: str, api_key: SecretStr | None = None) -> None:
        super().__init__(url, api_key)
        # apart from the calls, and without a bound of their own: streams stay open, and calls would wait behind them
        self._streams = aiohttp.ClientSession(headers=self._headers, connector=aiohttp.TCPConnector(limit=0))

    async def close(self) -> None:
        await self._streams.close()
        await super().close()

    async def sessions(self) -> list[Listed]:
        found: dict[str, Listed] = {}
        skip = 0
        while True:
            body = await self._call("GET", ["sessions"], query={"skip": str(skip), "limit": str(PAGE)})
            with as_known():
                fresh = {line.id: line for line in map(listed, body["sessions"]) if line.id not in found}
                ended, skip = bool(body["done"]), int(body["next_skip"])
            found |= fresh
            if ended or not fresh:
                return list(found.values())

    async def journal(self, session_id: str, from_seq: int = 0) -> AsyncGenerator[tuple[int, Json]]:
        while True:
            query = {"from_journal_seq": str(from_seq), "limit": str(PAGE)}
            body = await self._call("GET", ["sessions", session_id, "journal"], query=query)
            with as_known():
                events = [(int(item["journal_seq"]), item.get("event")) for item in body["events"]]
                ended, last_seq, from_seq = bool(body["done"]), from_seq, int(body["next_journal_seq"])
            for seq, event in events:
                if isinstance(event, dict):  # an item may come without one
                    yield seq, event
            if ended or from_seq <= last_seq:
                return

    @contextlib.asynccontextmanager
    async def events(self, session_id: str) -> AsyncGenerator[AsyncIterator[tuple[int, Json]]]:
        """The session's enduring events as they happen, from when the stream is open. Answered if it is not live."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE_S)
        url = self._url(["sessions", session_id, "events"])
        try:
            async with asyncio.timeout(CALL_S):
                answer = await self._streams.get(url, timeout=timeout, allow_redirects=False)
            async with answer:
                if answer.status != 200:
                    read(answer.status, await answer.read())
                yield _enduring(answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise LooprigError(f"its stream broke off ({type(error).__name__})") from error

    async def respond(self, session_id: str, gate_id: str, action: str, values: Json) -> None:
        """Answer a gate. A return means that it is in the journal. Raises Answered or LooprigError."""
        body = {"action": action, "values": values}
        await self._call("POST", ["sessions", session_id, "gates", gate_id], body=body)

    async def input(self, session_id: str, text: str) -> None:
        """Say something to the session, once more each time."""
        body = {"blocks": [{"type": "text", "text": text}]}
        await self._call("POST", ["sessions", session_id, "input"], body=body)


async def _enduring(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[int, Json]]:
    async for frame in frames(answer.content):
        if frame.event == "enduring":
            event = json.loads(frame.data).get("event")
            if isinstance(event, dict):
                yield int(frame.id), event
