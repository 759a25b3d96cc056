"""The example of a13n Harness, with the real Harness: its processes die, and nothing is lost, or done twice."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from core.api import PREFIX, build_api
from core.engine import ResumeEngine
from core.gates import Action, Gate
from core.policy import Key
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.upstream import environment

pytestmark = pytest.mark.timeout(600)
"""The first one makes the environment of the real system."""

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "a13n_harness"
SECRET = "host-secret-0123456789"
FOCUSED = {"answers": {"Which scope?": "Focused"}}
PATIENCE_S = 180


class Program:
    """`host.py`, a process for each command."""

    def __init__(self, python: Path, url: str, folder: Path) -> None:
        self._python = python
        self.deployed = folder / "deployed"
        self.memory = folder / "host.db"
        self._env = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parent),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DEPLOYED": str(self.deployed),
            "HOST_MEMORY": str(self.memory),
            "ASKGATE_URL": url,
            "ASKGATE_KEY": SECRET,
            "ASKGATE_CHANNEL": "C1",
            "ASKGATE_APPROVERS": "U1",
        }

    async def run(self, *command: str, **more: str) -> tuple[int, str]:
        """Exit code and what it said."""
        process = await asyncio.create_subprocess_exec(
            str(self._python),
            str(EXAMPLE / "host.py"),
            "--agent",
            "harness_agent",
            *command,
            env={**self._env, **more},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
        return process.returncode or 0, said.decode()

    async def ok(self, *command: str, **more: str) -> str:
        code, said = await self.run(*command, **more)
        assert code == 0, said
        return said

    def heard(self, conversation: str) -> Any:
        """What the model heard from its tools, which the agent said last (`host.py show`, without its start-up)."""
        with sqlite3.connect(self.memory) as memory:
            [said] = memory.execute("SELECT said FROM conversation WHERE id = ?", [conversation]).fetchone()
        return json.loads(said)

    @property
    def deployments(self) -> list[str]:
        return self.deployed.read_text().split() if self.deployed.exists() else []


@pytest.fixture
async def program(engine: ResumeEngine, tmp_path: Path) -> AsyncIterator[Program]:
    root = environment("a13n-harness", 13, ["a13n-harness>=0.21"])
    app = web.Application()
    app.add_subapp(PREFIX, build_api(engine, {"agent": SecretStr(SECRET)}))
    async with TestServer(app) as server:
        yield Program(root / "bin" / "python", str(server.make_url("")).rstrip("/"), tmp_path)


async def waiting(engine: ResumeEngine) -> Run:
    [run] = {run.id: run async for _, run, _ in engine.gates(only_open=True)}.values()
    return run


def gate(run: Run, call_id: str) -> Gate:
    [found] = [gate for gate in run.gates if gate.doc.tool_call_id == call_id]
    return found


async def decide(engine: ResumeEngine, run: Run, target: str | None = None) -> None:
    await engine.decide(gate(run, "q1").id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    values = {"override_args": {"target": target}} if target else None
    await engine.decide(gate(run, "d1").id, Action.APPROVE, by=ANA, via="slack", values=values)


@pytest.mark.slow
async def test_another_process_takes_up_what_people_decided_with_the_arguments_as_they_left_them(
    engine: ResumeEngine, program: Program
) -> None:
    await program.ok("say", "one", "ask, then twice")
    run = await waiting(engine)
    assert (run.doc.host, run.doc.external_id, run.doc.owner) == ("a13n-harness", "one", "agent")
    await decide(engine, run, target="staging")
    await program.ok("work", "--once")
    assert program.deployments == ["staging"]
    assert (await engine.run(run.id)).status is RunStatus.RESUMED
    second = await waiting(engine)
    await engine.decide(gate(second, "d2").id, Action.DENY, by=ANA, via="slack", comment="enough")
    await program.ok("work", "--once")
    heard = dict(zip(("q1", "d1", "d2"), program.heard("one"), strict=True))
    assert json.loads(heard["q1"][0].replace("'", '"')) == FOCUSED
    assert (heard["d1"], heard["d2"]) == (["deployed to staging", "success"], ["enough", "denied"])


async def test_a_process_that_dies_in_an_approved_tool_has_it_run_once(
    engine: ResumeEngine, program: Program
) -> None:
    await program.ok("say", "one", "ask")
    run = await waiting(engine)
    await decide(engine, run, target="staging")
    code, said = await program.run("work", "--once", DIE="1", HOST_LEASE_S="1")
    assert code == -9, said
    assert (await engine.run(run.id)).status is RunStatus.RESUMING
    await program.ok("work", "--once")
    assert program.deployments == ["staging"]
    asked, deployed = program.heard("one")
    assert asked[1] == "success"
    assert deployed[1] == "denied"
    assert "may have run" in deployed[0]
    assert (await engine.run(run.id)).status is RunStatus.RESUMED


@pytest.mark.slow
async def test_what_askgate_did_not_hear_of_is_told_by_the_next_process_once(
    engine: ResumeEngine, program: Program
) -> None:
    code, said = await program.run("say", "one", "ask", ASKGATE_URL="http://127.0.0.1:9")
    assert (code, "askgate is away" in said) == (1, True)
    assert [run async for run in engine.gates(only_open=True)] == []
    for _ in range(2):
        with sqlite3.connect(program.memory) as memory:  # as if it had died before it noted that it told
            memory.execute("UPDATE wait SET told = 0")
        await engine.resumes.claim("a13n-harness", limit=1, wait_s=0, lease_s=1)
        await program.ok("work", "--once")
    await decide(engine, await waiting(engine))


@pytest.mark.slow
async def test_what_was_done_and_not_acknowledged_is_acknowledged_and_not_done_again(
    engine: ResumeEngine, program: Program
) -> None:
    await program.ok("say", "one", "ask")
    run = await waiting(engine)
    await decide(engine, run)
    await program.ok("work", "--once")
    await engine.dead_letters.relapse(run.id, "as if nobody had heard", by=Key(key="ci"), via="api")
    await engine.dead_letters.requeue(run.id, by=Key(key="ci"), via="api")
    await program.ok("work", "--once")
    assert (await engine.run(run.id)).status is RunStatus.RESUMED
    assert program.deployments == ["prod"]


@pytest.mark.slow
async def test_a_conversation_that_waits_takes_no_turn_and_shows_what_was_said(
    engine: ResumeEngine, program: Program
) -> None:
    await program.ok("say", "one", "ask")
    code, said = await program.run("say", "one", "ask for something else")
    assert (code, "waits for people" in said) == (1, True)
    await decide(engine, await waiting(engine))
    await program.ok("work", "--once")
    assert json.loads(await program.ok("show", "one")) == program.heard("one")
    await program.ok("say", "one", "ask again")
    assert (await waiting(engine)).doc.external_id == "one"


@pytest.mark.slow
async def test_what_cannot_be_put_to_people_is_told_to_the_model_and_holds_up_nothing(
    engine: ResumeEngine, program: Program
) -> None:
    said = await program.ok("say", "one", "ask", ASKGATE_APPROVERS="ben", FAIL="1")
    assert ("approvers" in said, "the run failed" in said) == (True, True)
    await program.ok("say", "two", "ask")
    await engine.cancel((await waiting(engine)).id, "enough", by=Key(key="ci"), via="api")
    assert ["approvers" in text for text, _ in program.heard("one")] == [True, True]
    assert program.deployments == []
    await program.ok("say", "one", "ask")
    assert (await waiting(engine)).doc.external_id == "one"


@pytest.mark.slow
async def test_silence_is_told_to_the_model_and_nothing_runs(engine: ResumeEngine, program: Program) -> None:
    await program.ok("say", "one", "ask")
    run = await waiting(engine)
    await engine.undeliverable(run.id, "is_archived")
    await program.ok("work", "--once")
    asked, deployed = program.heard("one")
    assert asked == ["Undeliverable: is_archived", "failed"]
    assert deployed == ["Undeliverable: is_archived", "denied"]
    assert program.deployments == []


@pytest.mark.slow
async def test_what_another_release_left_and_this_one_cannot_read_is_refused_by_the_names_of_both(
    engine: ResumeEngine, program: Program
) -> None:
    await program.run("say", "one", "ask", ASKGATE_URL="http://127.0.0.1:9")
    with sqlite3.connect(program.memory) as memory:
        [[key, text]] = memory.execute("SELECT key, body FROM wait").fetchall()
        body = json.loads(text)
        state = {**json.loads(body["state"]), "harness": "0.1", "deferred": {"calls": "SELECT secret"}}
        changed = json.dumps({**body, "state": json.dumps(state)})
        memory.execute("UPDATE wait SET body = ? WHERE key = ?", [changed, key])
    await program.ok("work", "--once")
    run = await waiting(engine)
    await decide(engine, run)
    await program.ok("work", "--once")
    failed = await engine.run(run.id)
    assert failed.status is RunStatus.FAILED
    assert "cannot read what a13n-harness 0.1 left" in (failed.error or "")
    assert "secret" not in (failed.error or "")
    assert program.deployments == []
