"""The example of MCP elicitation, with the real client and a real server over stdio."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.engine import ResumeEngine
from core.gates import Action
from core.runs import RunStatus
from tests.conftest import ANA
from tests.interop.examples import PATIENCE_S, Program, example
from tests.interop.upstream import environment

RELEASE = ("legacy", "release", '{"version": "1.4"}')
CONFIRM = ("legacy", "confirm", "{}")
DEPLOY = ("auto", "deploy", '{"version": "1.4"}')


@pytest.fixture
async def program(engine: ResumeEngine, tmp_path: Path) -> AsyncIterator[Program]:
    async with example(engine, environment("mcp", 11, ["mcp>=2.3"]), "scripted_mcp.py", tmp_path) as program:
        yield program


async def decide(engine: ResumeEngine, run_id: str, action: Action, **values: object) -> None:
    [gate] = (await engine.run(run_id)).gates
    await engine.decide(gate.id, action, by=ANA, via="slack", values=values or None)


async def test_a_command_that_is_given_again_finds_what_people_filled_in(
    engine: ResumeEngine, program: Program
) -> None:
    program.faults["runs"] = ["lost"]
    form = await program.until_it_waits(*RELEASE)
    await decide(engine, form.id, Action.ACCEPT, target="staging", machines=2)
    async with program.running(*RELEASE) as process:
        link = await program.waiting(process)
        assert link.gates[0].doc.kind == "link"
        assert program.deployments == []
        await decide(engine, link.id, Action.ACCEPT)
        await program.ended(process)
    assert program.heard == ["accept", {"target": "staging", "machines": 2}, "accept"]
    assert program.deployments == ["1.4 staging"]
    assert [(await engine.run(run.id)).status for run in (form, link)] == [RunStatus.RESUMED] * 2


@pytest.mark.slow
@pytest.mark.parametrize("action", [Action.DECLINE, Action.CANCEL])
async def test_what_is_declined_or_cancelled_arrives_as_that(
    engine: ResumeEngine, program: Program, action: Action
) -> None:
    async with program.running(*RELEASE) as process:
        form = await program.waiting(process)
        await decide(engine, form.id, Action.ACCEPT, target="prod")
        link = await program.waiting(process)
        await decide(engine, link.id, action)
        await program.ended(process)
    assert program.heard == ["accept", {"target": "prod", "machines": 1}, action.value]
    async with program.running(*RELEASE) as process:
        form = await program.waiting(process)
        await decide(engine, form.id, action)
        await program.ended(process)
    assert program.heard == [action.value]
    assert program.deployments == []


@pytest.mark.slow
async def test_protocols_without_questions_in_a_call_are_served_too(
    engine: ResumeEngine, program: Program
) -> None:
    form = await program.until_it_waits(*DEPLOY)
    await decide(engine, form.id, Action.ACCEPT, target="prod")
    async with program.running(*DEPLOY) as process:
        await program.ended(process)
    assert (program.heard, program.deployments) == (["accept"], ["1.4 prod"])


@pytest.mark.slow
async def test_what_is_asked_withdrawn_and_asked_again_has_one_card(
    engine: ResumeEngine, program: Program
) -> None:
    async with program.running(*CONFIRM) as process:
        run = await program.waiting(process)
        async with asyncio.timeout(PATIENCE_S):
            while sum(path.endswith(run.id) for path in program.calls) < 2:  # noqa: ASYNC110  # joined again
                await asyncio.sleep(0.02)
        await decide(engine, run.id, Action.ACCEPT)
        await program.ended(process)
    assert program.heard == ["accept"]
    assert len({run.id async for _, run, _ in engine.gates(only_open=False)}) == 1


@pytest.mark.slow
async def test_a_card_that_askgate_no_longer_has_is_asked_anew(
    engine: ResumeEngine, program: Program
) -> None:
    form = await program.until_it_waits(*DEPLOY)
    with sqlite3.connect(program.folder / "memory.db") as memory:
        memory.execute("UPDATE wait SET run = ?", [form.id[:-1] + ("1" if form.id[-1] == "0" else "0")])
    async with program.running(*DEPLOY) as process:
        runs = await program.all_waiting(process, 2)
        [again] = [run for run in runs if run.id != form.id]
        await decide(engine, again.id, Action.ACCEPT, target="prod")
        await program.ended(process)
    assert program.heard == ["accept"]


@pytest.mark.slow
async def test_silence_is_a_cancel(engine: ResumeEngine, program: Program) -> None:
    async with program.running(*RELEASE) as process:
        form = await program.waiting(process)
        await engine.undeliverable(form.id, "is_archived")
        await program.ended(process)
    assert (program.heard, program.deployments) == (["cancel"], [])
