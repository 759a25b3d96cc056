"""The example of the Claude Agent SDK, with the real one before a stand-in for Claude Code's program."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.engine import ResumeEngine
from core.gates import Action, Gate
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.examples import Program, example
from tests.interop.upstream import environment

# without the program that the wheel has in it, which is large and wants a model
REQUIREMENTS = ["claude-agent-sdk>=0.2", "--no-binary", "claude-agent-sdk"]


@pytest.fixture
async def program(engine: ResumeEngine, tmp_path: Path) -> AsyncIterator[Program]:
    root = environment("claude-agent", 11, REQUIREMENTS)
    async with example(engine, root, "scripted_claude_agent.py", tmp_path) as program:
        yield program


def about(runs: list[Run], words: str) -> Gate:
    [found] = [gate for run in runs for gate in run.gates if words in gate.doc.model_dump_json()]
    return found


async def decide(engine: ResumeEngine, runs: list[Run]) -> None:
    """Answer and decline; approve with other arguments, not at all, and for always."""
    both = {"answers": {"Which scopes?": ["Focused", "Broad"]}, "response": "Broad after noon"}
    edited = {"override_args": {"version": "1.4", "target": "staging"}}
    await engine.decide(about(runs, "Which scopes?").id, Action.ANSWER, by=ANA, via="slack", values=both)
    await engine.decide(about(runs, "Which next?").id, Action.DECLINE, by=ANA, via="slack")
    await engine.decide(about(runs, "prod").id, Action.APPROVE, by=ANA, via="slack", values=edited)
    await engine.decide(about(runs, "backup").id, Action.DENY, by=ANA, via="slack", comment="not there")
    await engine.decide(about(runs, "dev").id, Action.APPROVE_ALWAYS, by=ANA, via="slack")


async def test_a_session_that_is_resumed_finds_what_people_decided_and_uses_it_once(
    engine: ResumeEngine, program: Program
) -> None:
    program.faults["runs"] = ["lost"]
    runs = await program.until_all_wait(5, "Deploy 1.4")
    await decide(engine, runs)
    async with program.running() as process:
        again = await program.waiting(process)
        assert again.id not in [run.id for run in runs], "the same call later is asked anew"
        await engine.decide(again.gates[0].id, Action.DENY, by=ANA, via="slack", comment="once is enough")
        await program.ended(process)
    assert sorted(program.deployments) == ["1.4 dev", "1.4 staging"]
    assert {(await engine.run(run.id)).status for run in (*runs, again)} == {RunStatus.RESUMED}
    heard = program.heard
    assert heard["q1"]["updatedInput"]["answers"] == {"Which scopes?": "Focused, Broad"}
    assert heard["q1"]["updatedInput"]["questions"][0]["question"] == "Which scopes?"
    assert heard["q1"]["updatedInput"]["response"] == "Broad after noon"
    assert heard["q2"]["behavior"] == "deny"
    assert heard["q2"]["message"].startswith("The user declined to answer")
    assert heard["d1"]["updatedInput"] == {"version": "1.4", "target": "staging"}
    assert "updatedPermissions" not in heard["d1"], "nobody approved it for always"
    assert heard["d2"] == {"behavior": "deny", "message": "not there"}
    assert heard["d3"]["updatedPermissions"][0]["rules"] == [{"toolName": "deploy", "ruleContent": "dev"}]
    assert heard["d4"] == {"behavior": "deny", "message": "once is enough"}
    begun, resumed = (line.split() for line in (program.folder / "sessions").read_text().splitlines())
    assert (begun[0], resumed) == ("begin", ["resume", begun[1]])


@pytest.mark.slow
async def test_the_same_call_twice_at_once_has_a_decision_each(
    engine: ResumeEngine, program: Program
) -> None:
    async with program.running("Deploy 1.4", TWINS="1") as process:
        first, second = await program.all_waiting(process, 2)
        await engine.decide(first.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await engine.decide(second.gates[0].id, Action.DENY, by=ANA, via="slack", comment="once is enough")
        [after] = [
            run for run in await program.all_waiting(process, 1) if run.id not in (first.id, second.id)
        ]
        await engine.decide(after.gates[0].id, Action.DENY, by=ANA, via="slack", comment="no more")
        await program.ended(process)
    assert sorted(program.heard[key]["behavior"] for key in ("d1", "d2")) == ["allow", "deny"]
    assert program.deployments == ["1.4 backup"]


@pytest.mark.slow
async def test_an_odd_question_is_asked_if_it_can_be_and_else_the_agent_reads_why_not(
    engine: ResumeEngine, program: Program
) -> None:
    async with program.running("Deploy 1.4", ODD="1") as process:
        run = await program.waiting(process)
        values = {"answers": {"Which one?": "Two"}}
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=values)
        [after] = [found for found in await program.all_waiting(process, 1) if found.id != run.id]
        await engine.decide(after.gates[0].id, Action.DENY, by=ANA, via="slack", comment="no more")
        await program.ended(process)
    assert program.heard["q1"]["updatedInput"]["answers"] == {"Which one?": "Two"}
    assert program.heard["q2"]["behavior"] == "deny"
    assert "People could not be asked" in program.heard["q2"]["message"]
    assert "options" in program.heard["q2"]["message"]
