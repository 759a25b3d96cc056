"""The example of Pydantic AI, with the real library: its processes die, and nothing is lost, or done twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.engine import ResumeEngine
from core.gates import Action
from core.runs import Run
from tests.conftest import ANA
from tests.interop.examples import (
    Program,
    dies_in_an_approved_tool,
    example,
    fails_after_an_approved_tool,
    gate,
    hears_of_silence,
)
from tests.interop.upstream import environment


@pytest.fixture
async def program(engine: ResumeEngine, tmp_path: Path) -> AsyncIterator[Program]:
    root = environment("pydantic-ai", 11, ["pydantic-ai-slim>=2.68"])
    async with example(engine, root, "scripted_pydantic_ai.py", tmp_path) as program:
        yield program


async def decide(engine: ResumeEngine, run: Run) -> None:
    """Answer one question and decline the other, approve one deployment with other arguments and deny the other."""
    answers = {"answers": {"Which scope?": "Focused"}}
    edited = {"override_args": {"version": "1.4", "target": "staging"}}
    await engine.decide(gate(run, "q1").id, Action.ANSWER, by=ANA, via="slack", values=answers)
    await engine.decide(gate(run, "q2").id, Action.DECLINE, by=ANA, via="slack")
    await engine.decide(gate(run, "d1").id, Action.APPROVE, by=ANA, via="slack", values=edited)
    await engine.decide(gate(run, "d2").id, Action.DENY, by=ANA, via="slack", comment="not there")


async def test_other_processes_take_up_what_people_decided_and_say_what_came_of_it(
    engine: ResumeEngine, program: Program
) -> None:
    program.faults["runs"] = ["lost"]
    run = await program.until_it_waits("Deploy 1.4")
    await decide(engine, run)
    program.faults["ack"] = ["away", "dies"]  # after its turn
    await program.until_it_dies()
    await program.until_taken_up(run)
    assert program.deployments == ["1.4 staging"]
    assert gate(run, "d1").doc.args_schema, "what approvers edit is checked"
    heard = program.heard
    assert heard["q1"] == [{"answers": {"Which scope?": "Focused"}}, "success"]
    assert heard["q2"][1] == "failed"
    assert heard["q2"][0].startswith("The user declined to answer")
    assert heard["d1"] == ["1.4 is on staging", "success"]
    assert heard["d2"] == ["not there", "denied"]


@pytest.mark.slow
async def test_a_process_that_dies_in_an_approved_tool_has_it_run_once_and_people_decide_again(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Deploy 1.4")
    await decide(engine, run)
    await dies_in_an_approved_tool(engine, program, run)


@pytest.mark.slow
async def test_a_model_that_fails_after_an_approved_tool_has_people_told_that_it_may_have_run(
    engine: ResumeEngine, program: Program
) -> None:
    run = await program.until_it_waits("Deploy 1.4")
    await decide(engine, run)
    await fails_after_an_approved_tool(program, run)


@pytest.mark.slow
async def test_another_tool_is_approved_by_its_own_schema(engine: ResumeEngine, program: Program) -> None:
    run = await program.until_it_waits("Wipe it", WIPE="1")
    edited = {"override_args": {"path": "/tmp/srv"}}
    await engine.decide(gate(run, "w1").id, Action.APPROVE, by=ANA, via="slack", values=edited)
    await program.until_taken_up(run, WIPE="1")
    assert program.heard["w1"] == ["/tmp/srv is gone", "success"]


@pytest.mark.slow
async def test_silence_is_told_to_the_model_and_nothing_runs(engine: ResumeEngine, program: Program) -> None:
    await hears_of_silence(engine, program)
