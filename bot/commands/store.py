"""The store and an engine on it, for commands that need neither Slack nor a running askgate."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import quote

from redis.exceptions import RedisError

from core.bell import Bell
from core.clock import StoreClock
from core.embedded import EmbeddedServer, socket_path
from core.engine import ResumeEngine
from core.policy import Key
from core.record import Record
from core.settings import Settings
from core.store.connect import fast_client, listening_client
from core.store.store import Store

CLI: Final = Key(key="cli")
"""Who decides and cancels from a shell. A policy that lets it decide names `key:cli`."""


@contextlib.asynccontextmanager
async def store_url(settings: Settings) -> AsyncIterator[str]:
    """The URL of the store that `askgate serve` has with these settings.

    An embedded server that runs already is joined; else one runs for as long as this takes.
    Raises EmbeddedError.
    """
    if settings.redis_url:
        yield settings.redis_url.get_secret_value()
        return
    running = f"unix://{quote(str(socket_path(settings.data_dir)))}?db=0"
    if await _answers(running):
        yield running
        return
    async with EmbeddedServer(settings.data_dir) as server:
        yield server.url


async def _answers(url: str) -> bool:
    async with fast_client(url) as client:
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False


@contextlib.asynccontextmanager
async def engine_of(settings: Settings) -> AsyncIterator[ResumeEngine]:
    """An engine on the store of these settings, without Slack. Raises what `store_url` and the store raise."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(store_url(settings))
        client = fast_client(url)
        stack.push_async_callback(client.aclose)
        clock = StoreClock(lambda: store.server_ms())
        record = Record(settings.redaction, keeps_values=settings.audit_values)
        store = Store(
            client, partitions=settings.partitions, clock=clock, record=record, wait=settings.redis_wait
        )
        await clock.anchor()
        await store.check_partitions()
        bell = Bell(listening_client(url))
        stack.push_async_callback(bell.stop)
        yield ResumeEngine(store, bell, admins=settings.admins)
