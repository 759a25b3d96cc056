"""Engines on any server, and a connection that loses replies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from core.bell import Bell
from core.clock import Clock, WallClock
from core.engine import ResumeEngine
from core.parsing import Wait
from core.record import Record
from core.runs import Run
from core.store.connect import fast_client, listening_client
from core.store.store import Store
from tests.conftest import HOME, Members

PATIENCE_S = 30


@contextlib.asynccontextmanager
async def engine_on(
    url: str,
    wait: Wait | None = None,
    *,
    record: Record | None = None,
    clock: Clock | None = None,
    **more: Any,
) -> AsyncIterator[ResumeEngine]:
    """An engine on the server at a URL, as one more process would have it."""
    client = fast_client(url)
    bell = Bell(listening_client(url))
    bell.start()
    try:
        store = Store(client, partitions=4, clock=clock or WallClock(), record=record, wait=wait)
        yield ResumeEngine(store, bell, admins=("U9",), home=HOME, directory=Members(), **more)
    finally:
        await bell.stop()
        await client.aclose()


async def events(engine: ResumeEngine, run_id: str) -> list[dict[str, Any]]:
    """A run's audit events, oldest first."""
    return [json.loads(line) async for _, line in engine.store.audit.of_run(run_id)]


async def until(engine: ResumeEngine, run: Run, true: Callable[[Run], bool]) -> Run:
    """A run, when something is true of it."""
    with engine.bell.heard(f"run:{run.id}") as rung:
        async with asyncio.timeout(PATIENCE_S):
            while not true(run := await engine.run(run.id)):
                await rung.wait()
                rung.clear()
    return run


class Lossy:
    """Stands before a server's unix socket and can lose a reply: the work is done, and the caller hears nothing.

    It can lose a request as well, which looks the same to the caller: nothing is done.
    """

    def __init__(self, server: str, folder: Path) -> None:
        self._server = server
        self._path = folder / "lossy.sock"
        self._word = b""
        self._times = 0
        self._requests_too = False
        self.lost = 0

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._path))}?db=0"

    def lose(self, word: str, times: int = 1, *, requests: bool = False) -> None:
        """Lose the replies to the next requests in which ``word`` stands (or these themselves), and the connections."""
        self._word, self._times, self._requests_too = word.encode(), times, requests

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Lossy]:
        server = await asyncio.start_unix_server(self._connected, self._path)
        try:
            yield self
        finally:
            server.close()

    async def _connected(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        replies, to_server = await asyncio.open_unix_connection(self._server)
        losing = asyncio.Event()
        pumps = {
            asyncio.create_task(self._requests(caller, to_server, losing)),
            asyncio.create_task(self._replies(replies, to_caller, losing)),
        }
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            to_caller.close()
            to_server.close()

    async def _requests(
        self, caller: asyncio.StreamReader, server: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await caller.read(1 << 20):
            if self._times and self._word in data:
                self._times -= 1
                if self._requests_too:
                    self.lost += 1
                    return
                losing.set()
            server.write(data)
            await server.drain()

    async def _replies(
        self, server: asyncio.StreamReader, caller: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await server.read(1 << 20):
            if losing.is_set():
                self.lost += 1
                return
            caller.write(data)
            await caller.drain()
