"""Fixtures for every layer: a real embedded server, and engines on it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import freezegun
import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.bell import Bell
from core.clock import WallClock
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.policy import CannotVerify, Person
from core.store.connect import fast_client, listening_client
from core.store.store import Store
from tests.tls import Authority

# cryptography remembers the class of the first moment that it signs: let that be the real one
with tempfile.TemporaryDirectory() as _folder:
    Authority(Path(_folder))

# pydantic builds its schemas with the real datetime class; freezing it midway breaks every later model.
# hypothesis measures how long it takes to find the shortest failure, a schema's check how long it may take itself, and
# pytest how long a test took.
freezegun.configure(extend_ignore_list=["pydantic", "hypothesis", "core.schemas", "_pytest.timing"])

HOME = "T1"
ANA = Person(team=HOME, user="U1")
BEN = Person(team=HOME, user="U2")
CHO = Person(team=HOME, user="U3")
ROOM_BYTES = 2 * 1024**3
LOOPBACK = ip_network("127.0.0.0/8")


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are processors: a good part of the time tests wait for servers and browsers."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    crash = parser.getgroup("crash", "the crash matrix")
    crash.addoption(
        "--crash-seed", type=int, default=1, help="which kills are sampled (another number, other kills)"
    )
    crash.addoption("--crash-kill", action="append", default=[], help="only this one, as a failure names it")


class Members:
    """A directory for tests: who is in which channel and group. An unknown one cannot be verified."""

    def __init__(self) -> None:
        self.channels: dict[str, set[str]] = {"C1": {"U1", "U2", "U3"}}
        self.groups: dict[str, set[str]] = {}
        self.deactivated: set[str] = set()

    async def in_channel(self, channel: str, person: Person) -> bool:
        return person.user in self._look_up(self.channels, channel)

    async def in_group(self, group: str, person: Person) -> bool:
        return person.user in self._look_up(self.groups, group)

    async def is_active(self, person: Person) -> bool:
        return person.user not in self.deactivated

    def _look_up(self, table: dict[str, set[str]], name: str) -> set[str]:
        if name not in table:
            raise CannotVerify
        return table[name]


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One embedded server for the whole session; each test flushes it first."""
    import asyncio

    folder = _in_memory() or tmp_path_factory.mktemp("redis")
    server = EmbeddedServer(folder)
    asyncio.run(server.start())
    yield server.url
    asyncio.run(server.stop())
    shutil.rmtree(folder, ignore_errors=True)


def _in_memory() -> Path | None:
    """A folder that no disk holds up: each write of the server waits for it, and others write to a disk too.

    None where there is no such thing, or little room. What outlives a server is tested with folders on a disk.
    """
    memory = Path("/dev/shm")  # the folder in it has a name of its own
    if not memory.is_dir() or shutil.disk_usage(memory).free < ROOM_BYTES:
        return None
    return Path(tempfile.mkdtemp(prefix="askgate-", dir=memory))


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = fast_client(redis_url)
    await client.flushall()
    yield client
    await client.aclose()


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    """The engines' wall clock, standing still until it is moved."""
    with freeze_time("2026-03-01T12:00:00Z", real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


@pytest.fixture
async def new_engine(redis_url: str, redis: Redis) -> AsyncIterator[Callable[..., ResumeEngine]]:
    """Makes engines on the one store, as replicas are: each with its own clients and its own bell."""
    async with AsyncExitStack() as stack:

        def make(**more: Any) -> ResumeEngine:
            client = fast_client(redis_url)
            bell = Bell(listening_client(redis_url))
            bell.start()
            stack.push_async_callback(client.aclose)
            stack.push_async_callback(bell.stop)
            store = Store(client, partitions=4, clock=WallClock())
            return ResumeEngine(store, bell, admins=("U9",), home=HOME, directory=Members(), **more)

        yield make


@pytest.fixture
async def engine(new_engine: Callable[[], ResumeEngine]) -> ResumeEngine:
    return new_engine()


def now_ms() -> int:
    return int(time.time() * 1000)
