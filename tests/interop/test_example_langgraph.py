"""The example of LangGraph, with the real library: its processes die, and nothing is lost, or done twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.engine import ResumeEngine
from core.gates import Action, Gate
from core.policy import Key
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.examples import Program, example
from tests.interop.upstream import environment

REQUIREMENTS = ["langchain>=1.5", "langgraph>=1.2", "langgraph-checkpoint-sqlite>=3.1"]


@pytest.fixture
async def program(engine: ResumeEngine, tmp_path: Path) -> AsyncIterator[Program]:
    async with example(
        engine, environment("langgraph", 11, REQUIREMENTS), "scripted_langgraph.py", tmp_path
    ) as it:
        yield it


def about(run: Run, words: str) -> Gate:
    """The gate that asks for this: the middleware does not say the ids of calls."""
    [found] = [gate for gate in run.gates if words in gate.doc.model_dump_json()]
    return found


async def decide(engine: ResumeEngine, run: Run) -> None:
    """Answer and decline; approve with other arguments, as they are, and not at all. The form is filled in if asked."""
    answers = {"answers": {"Which scope?": "Focused"}}
    edited = {"override_args": {"version": "1.4", "target": "staging"}}
    await engine.decide(about(run, "Which scope?").id, Action.ANSWER, by=ANA, via="slack", values=answers)
    await engine.decide(about(run, "Which next?").id, Action.DECLINE, by=ANA, via="slack")
    await engine.decide(about(run, "prod").id, Action.APPROVE, by=ANA, via="slack", values=edited)
    await engine.decide(about(run, "backup").id, Action.DENY, by=ANA, via="slack", comment="not there")
    await engine.decide(about(run, "dev").id, Action.APPROVE, by=ANA, via="slack")


async def fill_in(engine: ResumeEngine, run: Run) -> None:
    form = about(run, "Which change is this?")
    await engine.decide(form.id, Action.ACCEPT, by=ANA, via="slack", values={"number": "CHG-7"})


def check(program: Program) -> None:
    assert sorted(program.deployments) == ["1.4 dev", "1.4 staging"]
    heard = program.heard
    assert json.loads(heard["q1"][0]) == {"answers": {"Which scope?": "Focused"}}
    assert "The user declined to answer" in heard["q2"][0]
    assert heard["d1"][0].endswith("1.4 is on staging")
    assert "not there" in heard["d2"][0]
    assert heard["d3"] == ["1.4 is on dev", "success"]
    assert heard["n1"][0] == "{'number': 'CHG-7'}"
    assert [heard[key][1] for key in ("q1", "q2", "d1", "d2", "n1")] == [
        "success",
        "error",
        "success",
        "error",
        "success",
    ]


async def test_another_process_takes_the_thread_up_and_what_ran_runs_once(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Deploy 1.4")
    await decide(engine, run)
    program.faults["runs"] = ["away", "dies"]  # after a turn that ends with another question
    await program.until_it_dies()
    async with program.running() as process:
        second = await program.waiting(process)
        assert (second.id != run.id, len(second.gates)) == (True, 1)
        await fill_in(engine, second)
        await program.taken_up(process, second)
    assert (await engine.run(run.id)).status is RunStatus.RESUMED
    check(program)


@pytest.mark.slow
async def test_each_call_may_be_an_interrupt_of_its_own(engine: ResumeEngine, program: Program) -> None:
    run = await program.until_it_waits("Deploy 1.4", INTERRUPTS="per_call")
    await decide(engine, run)
    await fill_in(engine, run)
    await program.until_taken_up(run, INTERRUPTS="per_call")
    check(program)


@pytest.mark.slow
async def test_a_thread_whose_process_died_in_an_approved_tool_runs_it_no_second_time(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Deploy 1.4")
    await decide(engine, run)
    async with program.running(DIE="1", LEASE_S="1") as process:
        assert await process.wait() == -9, program.trouble
    before = program.deployments
    assert before
    assert "may have run" in await program.until_refused(run)
    await engine.dead_letters.reopen(run.id, by=Key(key="agent"), via="api")
    await decide(engine, await engine.run(run.id))
    assert "may have run" in await program.until_refused(run)
    assert program.deployments == before


@pytest.mark.slow
async def test_a_model_that_fails_after_the_tools_is_asked_again_and_no_tool_runs_again(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Deploy 1.4", INTERRUPTS="per_call")
    await decide(engine, run)
    await fill_in(engine, run)
    await program.until_taken_up(run, INTERRUPTS="per_call", FAIL="1")
    check(program)


@pytest.mark.slow
async def test_another_tool_is_an_approval_without_edits_where_it_allows_none(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Wipe it", WIPE="1")
    [gate] = run.gates
    assert (gate.doc.kind, gate.doc.tool_name, gate.policy.edits) == ("approval", "wipe", False)
    assert gate.policy.deciders == ("U1",)
    await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack")
    await program.until_taken_up(run, WIPE="1")
    assert program.heard["w1"] == ["/srv is gone", "success"]


@pytest.mark.slow
async def test_silence_is_told_to_the_model_and_nothing_runs(engine: ResumeEngine, program: Program) -> None:
    run = await program.until_it_waits("Deploy 1.4", INTERRUPTS="per_call")
    await engine.undeliverable(run.id, "is_archived")
    await program.until_taken_up(run, INTERRUPTS="per_call")
    assert program.deployments == []
    assert len(program.heard) == 6
    assert all("Undeliverable" in str(heard) for heard in program.heard.values())
