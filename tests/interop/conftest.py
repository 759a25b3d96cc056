"""Real hosts, and askgate's desk before each of them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import shutil
import socket
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agenda import Worker
from core.engine import ResumeEngine
from core.hosts.config import HostConfig, MotusConfig
from core.hosts.desk import Desk
from core.hosts.desks import Desks
from core.hosts.motus.client import Gone, MotusClient, Reading
from core.runs import Run, RunStatus
from tests.interop.a13n_server import A13n, Running, a13n_service
from tests.interop.looprig_served import Case
from tests.interop.looprig_standin import Looprig
from tests.interop.upstream import environment, serving

Json = dict[str, Any]
PATIENCE_S = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def eventually(there: Callable[[], Any]) -> None:
    """Return when something is so. ``there`` tells, or is a coroutine that does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = there()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.02)


class Motus:
    """A real `motus serve`, and one who uses it as any client does."""

    def __init__(self, url: str, client: MotusClient) -> None:
        self.url = url
        self.client = client

    async def turn(self, **wanted: Any) -> str:
        """Begin a turn in a session of its own. Returns the session's id."""
        session_id = await self.client.create()
        await self.client.send(session_id, json.dumps(wanted))
        return session_id

    async def interrupted(self, session_id: str, count: int = 1) -> Reading:
        """The session, when it waits for so many things."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                reading = await self.client.read(session_id, wait=True)
                if len(reading.interrupts) >= count:
                    return reading
                await asyncio.sleep(0.05)

    async def ended(self, session_id: str) -> Reading:
        """The session, when its turn is over."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                reading = await self.client.read(session_id, wait=True)
                if reading.status not in ("running", "interrupted"):
                    return reading
                await asyncio.sleep(0.05)

    async def heard(self, session_id: str) -> list[Any]:
        """What the agent's interrupts came back with."""
        reading = await self.ended(session_id)
        assert reading.status == "idle", reading.error
        return list(json.loads(reading.response or "null"))


def warm_up(url: str) -> None:
    """The first turn of a server starts its workers, and until they have imported everything it answers nobody."""

    def call(path: str, body: Json | None = None, method: str | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}{path}", data, kind, method=method)
        with urllib.request.urlopen(request, timeout=3 * PATIENCE_S) as answer:
            return dict(json.loads(answer.read() or "{}"))

    session = call("/sessions", {})["session_id"]
    call(f"/sessions/{session}/messages", {"content": '{"say": "ready"}'})
    while call(f"/sessions/{session}?wait=true&timeout=25")["status"] == "running":
        continue
    call(f"/sessions/{session}", method="DELETE")


@pytest.fixture(scope="session")
def motus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One real server for all tests: it takes it long to start, and each turn has a process of its own anyway."""
    root, folder = environment("motus", 12, ["lithosai-motus>=0.4.3"]), tmp_path_factory.mktemp("motus")
    shutil.copy(Path(__file__).with_name("motus_agents.py"), folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(root / "bin" / "motus"), "serve", "start", "motus_agents:agent"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", "6"]
    with serving(command, f"{url}/health", folder=folder, env={"PYTHONPATH": str(folder)}):
        warm_up(url)
        yield url


@pytest.fixture
async def motus(motus_url: str) -> AsyncIterator[Motus]:
    client = MotusClient(motus_url)
    yield Motus(motus_url, client)
    for session in await client.sessions():
        with contextlib.suppress(Gone):
            await client.delete(session.id)
    await client.close()


@contextlib.asynccontextmanager
async def desk_before(engine: ResumeEngine, config: HostConfig) -> AsyncIterator[Desk]:
    """A desk before a host, as a worker has it; what was resumed is followed."""
    desks = Desks(engine, [config])
    worker = Worker(engine.store, engine.bell, {"follow": desks.follow})
    worker.start()
    desks.start()
    try:
        desk = desks.get(config.name)
        assert desk
        yield desk
    finally:
        await worker.stop(5)
        await desks.stop(5)


@contextlib.asynccontextmanager
async def served(engine: ResumeEngine, motus: Motus, **more: Any) -> AsyncIterator[Desk]:
    """A desk before the server, as a worker has it."""
    config = MotusConfig.model_validate(
        {"name": "motus.test", "url": motus.url, "channel": "C1", "approvers": ["U1"], **more}
    )
    async with desk_before(engine, config) as desk:
        yield desk


@pytest.fixture(scope="session")
def a13n_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One real Service for all tests."""
    with a13n_service(tmp_path_factory.mktemp("a13n")) as running:
        yield running


@pytest.fixture
def a13n(a13n_running: Running) -> Iterator[A13n]:
    """The Service, with nothing in it that an earlier test left waiting."""
    a13n = A13n(a13n_running)
    yield a13n
    a13n.leave_nothing()


@pytest.fixture
def found(engine: ResumeEngine) -> Callable[..., Any]:
    """The runs of a host, when there are so many that fit."""

    async def find(count: int = 1, status: RunStatus | None = RunStatus.WAITING) -> list[Run]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                runs: dict[str, Run] = {}
                async for _, run, _ in engine.gates(only_open=False):
                    if status is None or run.status is status:
                        runs[run.id] = run
                if len(runs) >= count:
                    assert len(runs) == count
                    return list(runs.values())
                await asyncio.sleep(0.05)

    return find


@pytest.fixture
async def looprig() -> AsyncIterator[Looprig]:
    """The stand-in, on a port of its own."""
    server = Looprig()
    await server.server.start_server()
    yield server
    await server.server.close()


@pytest.fixture
def case(engine: ResumeEngine, looprig: Looprig, found: Callable[..., Any]) -> Case:
    return Case(engine, looprig, found, looprig.session())


@pytest.fixture
def looprig_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the adapter waits for takes long."""
    monkeypatch.setattr("core.hosts.desk.FIRST_RETRY_S", 0.05)
    monkeypatch.setattr("core.resumes.POLL_S", 0.1)
    monkeypatch.setattr("core.hosts.looprig.follower.REQUEST_S", 0.05)
    monkeypatch.setattr("core.hosts.looprig.follower.REJOIN_S", 0.05)
    monkeypatch.setattr("core.hosts.looprig.dialect.OUTCOME_S", 0.2)
    monkeypatch.setattr("core.hosts.looprig.factory.DONE_S", 0.3)
    for module in ("dialect", "factory"):
        monkeypatch.setattr(f"core.hosts.looprig.{module}.GLANCE_S", 0.02)
