"""A workspace with people in it, askgate's real processes, and a caller of its HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.embedded import EmbeddedServer
from tests.acceptance.world import World, world_in

MODES = ("http", "socket")


@pytest.fixture(params=MODES)
async def world(
    request: pytest.FixtureRequest, redis_url: str, redis: Redis, tmp_path: Path
) -> AsyncIterator[World]:
    """Ana, Ben and Cho in #ops with one askgate process, over signed HTTP and again over Socket Mode."""
    async with world_in(request.param, redis_url, tmp_path) as found:
        await found.start()
        yield found


@pytest.fixture
async def http_world(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    """As `world`, over HTTP alone."""
    async with world_in("http", redis_url, tmp_path) as found:
        await found.start()
        yield found


@pytest.fixture(params=MODES)
async def empty_world(
    request: pytest.FixtureRequest, redis_url: str, redis: Redis, tmp_path: Path
) -> AsyncIterator[World]:
    """As `world`, with no askgate process yet."""
    async with world_in(request.param, redis_url, tmp_path) as found:
        yield found


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A server of the test's own, to be killed."""
    async with EmbeddedServer(tmp_path / "own") as found:
        yield found


@pytest.fixture(params=MODES)
async def shaky_world(
    request: pytest.FixtureRequest, server: EmbeddedServer, tmp_path: Path
) -> AsyncIterator[World]:
    """As `world`, on the store of `server`."""
    async with world_in(request.param, server.url, tmp_path) as found:
        await found.start()
        yield found


@pytest.fixture
async def shaky_http_world(server: EmbeddedServer, tmp_path: Path) -> AsyncIterator[World]:
    """As `shaky_world`, over HTTP alone."""
    async with world_in("http", server.url, tmp_path) as found:
        await found.start()
        yield found
