"""The programs of `docs/examples`, as processes that are killed and started again, before a real HTTP API."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from core.api import PREFIX, build_api
from core.engine import ResumeEngine
from core.gates import Action, Gate
from core.policy import Key
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.upstream import CACHE

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SECRET = "host-secret-0123456789"
PATIENCE_S = 120


class Program:
    """One example, with the model that a file of the tests gives it. It deploys by writing a line to a file.

    ``faults``: by the last word of a call's path what happens to such calls, one after the other: askgate is `away` for
    it, the reply is `lost`, or the program `dies` in it. ``calls``: the paths of all calls so far.
    """

    def __init__(self, engine: ResumeEngine, python: Path, script: str, url: str, folder: Path) -> None:
        self._engine = engine
        self._command = [str(python), str(Path(__file__).with_name(script))]
        self.folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self.faults: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self._log = folder / "said"
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "HOME": str(folder),
            "PYTHONPATH": str(EXAMPLES),
            "PYTHONPYCACHEPREFIX": str(CACHE / "compiled"),  # nothing beside the examples; compiled once
            "ASKGATE_URL": url,
            "ASKGATE_KEY": SECRET,
            "ASKGATE_CHANNEL": "C1",
            "ASKGATE_APPROVERS": "U1",
        }

    @contextlib.asynccontextmanager
    async def running(self, *command: str, **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """A process of it, which is killed in the end (SIGKILL) if it has not ended by itself."""
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *command,
                env={**self._env, **more},
                cwd=self.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._process = process
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()

    async def until_it_waits(self, *command: str, **more: str) -> Run:
        """Start it, and kill it when people have been asked. Returns what they were asked."""
        return (await self.until_all_wait(1, *command, **more))[0]

    async def until_all_wait(self, count: int, *command: str, **more: str) -> list[Run]:
        """The same, for so many at once."""
        async with self.running(*command, **more) as process:
            runs = await self.all_waiting(process, count)
            assert process.returncode is None, "it should be there to be killed"
        assert process.returncode == -signal.SIGKILL
        return runs

    async def until_it_dies(self, **more: str) -> None:
        """Start it, and wait until one of its ``faults`` kills it."""
        async with self.running(LEASE_S="1", **more) as process:
            assert await process.wait() == -signal.SIGKILL, self.trouble
        assert not any(self.faults.values())

    async def until_taken_up(self, run: Run, **more: str) -> None:
        """Start it, and kill it when it has taken the run up."""
        async with self.running(**more) as process:
            await self.taken_up(process, run)

    async def taken_up(self, process: asyncio.subprocess.Process, run: Run) -> None:
        await self._ended(process, run, RunStatus.RESUMED)
        assert process.stdout
        self._heard = (await process.stdout.readline()).decode()

    async def until_refused(self, run: Run, **more: str) -> str:
        """Start it, and kill it when it has refused the run. Returns why."""
        async with self.running(**more) as process:
            return (await self._ended(process, run, RunStatus.FAILED)).error or ""

    async def _ended(self, process: asyncio.subprocess.Process, run: Run, status: RunStatus) -> Run:
        async with asyncio.timeout(PATIENCE_S):
            while (found := await self._engine.run(run.id)).status is not status:
                assert process.returncode is None, self.trouble
                await asyncio.sleep(0.02)
            return found

    async def waiting(self, process: asyncio.subprocess.Process) -> Run:
        return (await self.all_waiting(process, 1))[0]

    async def all_waiting(self, process: asyncio.subprocess.Process, count: int) -> list[Run]:
        """So many runs, when they wait."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                runs = {run.id: run async for _, run, _ in self._engine.gates(only_open=True)}
                if len(runs) >= count:
                    assert len(runs) == count
                    return list(runs.values())
                assert process.returncode is None, self.trouble
                await asyncio.sleep(0.02)

    async def ended(self, process: asyncio.subprocess.Process) -> None:
        """Wait until it ends by itself, and well."""
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
        assert process.returncode == 0, self.trouble
        self._heard = said.decode()

    async def befall(
        self, path: str, handled: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Have happen to a call what its faults say. Raises HTTPServiceUnavailable."""
        self.calls.append(path)
        faults = self.faults.get(path.rpartition("/")[2])
        if not faults:
            return await handled()
        match faults.pop(0):
            case "dies":
                assert self._process
                os.killpg(self._process.pid, signal.SIGKILL)
            case "lost":
                await handled()
        raise web.HTTPServiceUnavailable

    @property
    def trouble(self) -> str:
        return self._log.read_text()

    @property
    def heard(self) -> Any:
        """What the model heard from its tools, which it said last."""
        return json.loads(self._heard)

    @property
    def deployments(self) -> list[str]:
        deployed = self.folder / "deployed"
        return deployed.read_text().splitlines() if deployed.exists() else []


@contextlib.asynccontextmanager
async def example(
    engine: ResumeEngine, environment: Path, script: str, folder: Path
) -> AsyncIterator[Program]:
    @web.middleware
    async def befalling(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        return await program.befall(request.path, lambda: handler(request))

    app = web.Application(middlewares=[befalling])
    app.add_subapp(PREFIX, build_api(engine, {"agent": SecretStr(SECRET)}))
    async with TestServer(app) as server:
        url = str(server.make_url("")).rstrip("/")
        program = Program(engine, environment / "bin" / "python", script, url, folder)
        yield program


def gate(run: Run, call_id: str) -> Gate:
    [found] = [gate for gate in run.gates if gate.doc.tool_call_id == call_id]
    return found


async def dies_in_an_approved_tool(engine: ResumeEngine, program: Program, run: Run) -> None:
    """A decided run, whose process is killed in the tool `d1`: that runs no second time, and people decide again."""
    async with program.running(DIE="1", LEASE_S="1") as process:
        assert await process.wait() == -9, program.trouble
    assert "may have run" in await program.until_refused(run)
    await engine.dead_letters.reopen(run.id, by=Key(key="agent"), via="api")
    for item in run.gates:
        word = Action.DECLINE if item.doc.kind == "question" else Action.DENY
        await engine.decide(item.id, word, by=ANA, via="slack", comment="it has run")
    await program.until_taken_up(run)
    assert program.deployments == ["1.4 staging"]
    assert "it has run" in program.heard["d1"]


async def fails_after_an_approved_tool(program: Program, run: Run) -> None:
    """A decided run, whose model fails when the tools have run: people read that they may have."""
    refused = await program.until_refused(run, FAIL="1")
    assert ("may have run" in refused, "overloaded" in refused) == (True, True)
    assert program.deployments == ["1.4 staging"]


async def hears_of_silence(engine: ResumeEngine, program: Program) -> None:
    """What could be shown to nobody is told to the model as that, and nothing runs."""
    run = await program.until_it_waits("Deploy 1.4")
    await engine.undeliverable(run.id, "is_archived")
    await program.until_taken_up(run)
    assert program.deployments == []
    assert all("Undeliverable" in str(heard) for heard in program.heard.values())
