"""Motus, the real one: what it waits for is opened once, answered once, and closed when somebody else was first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from core.engine import ResumeEngine
from core.gates import Action, Kind, Outcome
from core.hosts.motus.client import Gone, MotusClient
from core.runs import RunStatus
from tests.conftest import ANA
from tests.interop.conftest import PATIENCE_S, Motus, served

Json = dict[str, Any]
Found = Callable[..., Any]

APPROVAL = {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}
OUR_NAME = {**APPROVAL, "tool_name": "cancel_turn"}
"""A tool of the agent's that is called as our own notice is."""
SCOPE: Json = {
    "question": " Which scope? ",
    "header": "Implementation scope",
    "multiSelect": False,
    "options": [
        {"label": "Focused ", "description": "One file", "markdown": None},
        {"label": "Broad, with tests", "description": "All of it", "markdown": None},
    ],
}
PARTS: Json = {**SCOPE, "question": "Which parts?", "header": "Parts", "multiSelect": True}
QUESTIONS = {"type": "user_input", "questions": [SCOPE, PARTS]}


async def test_an_approval_reaches_the_agent_as_a_real_boolean(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[OUR_NAME, APPROVAL])
    async with served(engine, motus):
        for action, tool in ((Action.APPROVE, "cancel_turn"), (Action.DENY, "delete_file")):
            [run] = await found()
            [gate] = run.gates
            assert (gate.doc.kind, gate.doc.tool_name, gate.doc.args) == (
                Kind.APPROVAL,
                tool,
                APPROVAL["tool_args"],
            )
            comment = None if action is Action.APPROVE else "wrong file"
            await engine.decide(gate.id, action, by=ANA, via="slack", comment=comment)
            await found(1 if action is Action.APPROVE else 2, RunStatus.RESUMED)
        assert await motus.heard(session) == [
            {"approved": True},
            {"approved": False, "reason": "wrong file"},
        ]


async def test_answers_are_keyed_by_the_agent_s_exact_texts(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[QUESTIONS])
    async with served(engine, motus):
        [run] = await found()
        [gate] = run.gates
        assert gate.doc.kind is Kind.QUESTION
        values = {"answers": {"Which scope?": "Focused", "Which parts?": ["Focused", "Broad, with tests"]}}
        await engine.decide(gate.id, Action.ANSWER, by=ANA, via="slack", values=values)
        [said] = await motus.heard(session)
    assert said["answers"] == {" Which scope? ": "Focused ", "Which parts?": "Focused , Broad, with tests"}
    assert said["selections"] == {
        " Which scope? ": ["Focused "],
        "Which parts?": ["Focused ", "Broad, with tests"],
    }


async def test_questions_of_other_shapes_become_a_form(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    asked = ["What is its name?", {"question": "Which of these?", "options": list("abcdef")}]
    session = await motus.turn(in_turn=[{"type": "user_input", "questions": asked}])
    async with served(engine, motus):
        [run] = await found()
        [gate] = run.gates
        assert gate.doc.kind is Kind.FORM
        values = {"q0": "Otto, the 1st", "q1_other": "none of them"}
        await engine.decide(gate.id, Action.ACCEPT, by=ANA, via="slack", values=values)
        [said] = await motus.heard(session)
    assert said["answers"] == {"What is its name?": "Otto, the 1st", "Which of these?": "none of them"}


async def test_a_shape_that_nobody_knows_is_shown_and_answered_as_it_is(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(at_once=[{"type": "user_input"}, {"type": "color_picker", "palette": [1]}])
    async with served(engine, motus):
        first, second = sorted(await found(2), key=lambda run: run.gates[0].doc.tool_name)
        assert {first.gates[0].doc.kind, second.gates[0].doc.kind} == {Kind.CUSTOM}
        await engine.decide(first.gates[0].id, Action.ANSWER, by=ANA, via="slack", values={"hex": "#fff"})
        await engine.decide(second.gates[0].id, Action.ANSWER, by=ANA, via="slack", values="as you like")
        heard = await motus.heard(session)
    assert heard == [{"answers": {}, "response": "as you like"}, {"hex": "#fff"}]


async def test_silence_is_an_explicit_failure_for_each_of_them(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(at_once=[APPROVAL, QUESTIONS, {"type": "color_picker"}])
    async with served(engine, motus, failures={"color_picker": {"hex": None}}):
        for run in await found(3):
            await engine.undeliverable(run.id, "is_archived")
        approved, answered, picked = await motus.heard(session)
    assert approved == {"approved": False, "reason": "Undeliverable: is_archived"}
    assert answered == {"answers": {}, "status": "undeliverable", "error": "Undeliverable: is_archived"}
    assert picked == {"hex": None}


async def test_an_expiry_is_timed_out_and_stays_inside_the_server_s_own_time(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[QUESTIONS])
    async with served(engine, motus, timeout_s=3600, turn_timeout_s=7):
        [run] = await found()
        assert 1000 <= run.gates[0].deadline - run.doc.created_at <= 2000
        [said] = await motus.heard(session)
    assert (said["status"], said["answers"]) == ("timed_out", {})
    assert said["error"].startswith("No answer within ")


async def test_a_custom_failure_that_is_not_configured_cancels_the_turn_and_keeps_the_conversation(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.client.create()
    await motus.client.send(session, '{"say": "before"}')
    before = await motus.client.messages(session) if await motus.ended(session) else []
    await motus.client.send(session, '{"in_turn": [{"type": "color_picker"}]}')
    async with served(engine, motus):
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    [kept] = await motus.client.sessions()
    assert kept.id != session
    assert await motus.client.messages(kept.id) == before
    with pytest.raises(Gone):
        await motus.client.read(session)


async def test_what_comes_late_is_one_card_more(engine: ResumeEngine, motus: Motus, found: Found) -> None:
    session = await motus.turn(first=APPROVAL, late=QUESTIONS, after_s=0.5)
    async with served(engine, motus):
        first, _second = sorted(await found(2), key=lambda run: run.doc.created_at)
        assert first.gates[0].doc.kind is Kind.APPROVAL
        await engine.decide(first.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        [left] = await found(1)
        await engine.decide(left.gates[0].id, Action.DECLINE, by=ANA, via="slack", comment="no idea")
        approved, answered = await motus.heard(session)
    assert approved == {"approved": True}
    assert answered["status"] == "declined"
    assert answered["error"] == "The user declined to answer: no idea"


async def test_what_somebody_else_answered_is_superseded_and_not_answered_again(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus):
        [run] = await found()
        [interrupt] = (await motus.interrupted(session)).interrupts
        await motus.client.resume(session, interrupt.id, {"approved": False})
        [run] = await found(1, RunStatus.LOST)
        assert run.gates[0].status == Outcome.SUPERSEDED
        assert "answered elsewhere" in (run.gates[0].decision.detail or "")
    assert await motus.heard(session) == [{"approved": False}]


async def test_an_answer_that_comes_second_is_lost_and_says_so(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus):
        [run] = await found()
    # nobody watches while two answer
    [interrupt] = (await motus.interrupted(session)).interrupts
    await motus.client.resume(session, interrupt.id, {"approved": False})
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    async with served(engine, motus):
        [run] = await found(1, RunStatus.LOST)
    assert await motus.heard(session) == [{"approved": False}]


async def test_a_deleted_session_closes_what_it_waited_for(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(at_once=[APPROVAL, APPROVAL])
    async with served(engine, motus):
        await found(2)
        await motus.client.delete(session)
        runs = await found(2, RunStatus.LOST)
    assert all("deleted" in run.gates[0].decision.detail for run in runs)


async def test_several_desks_open_and_answer_once(engine: ResumeEngine, motus: Motus, found: Found) -> None:
    sessions = [await motus.turn(in_turn=[APPROVAL]) for _ in range(4)]
    async with served(engine, motus), served(engine, motus), served(engine, motus):
        for run in await found(4):
            await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(4, RunStatus.RESUMED)
    for session in sessions:
        assert await motus.heard(session) == [{"approved": True}]


async def test_a_wait_that_was_opened_under_other_settings_is_not_opened_twice(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus):
        [run] = await found()
    async with served(engine, motus, channel="C2", approvers=["U2"]):
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    assert await motus.heard(session) == [{"approved": True}]


async def test_what_the_server_cannot_show_is_reported_with_an_offer_to_cancel(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(at_once=[{"type": 7}])
    async with served(engine, motus):
        [run] = await found()
        [gate] = run.gates
        assert (gate.doc.kind, gate.doc.tool_name) == (Kind.APPROVAL, "cancel_turn")
        assert "cannot be answered here" in (gate.doc.reason or "")
        await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    [kept] = await motus.client.sessions()
    assert (kept.id == session, kept.status) == (False, "idle")


async def test_a_server_that_is_away_is_a_problem_with_a_name(engine: ResumeEngine) -> None:
    async with served(engine, Motus("http://127.0.0.1:9", MotusClient("http://127.0.0.1:9"))) as desk:
        async with asyncio.timeout(PATIENCE_S):
            while desk.problem is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert desk.problem == "it cannot be reached (ClientConnectorError)"


async def test_an_unreadable_interrupt_closes_no_other_and_late_clicks_end_no_turn_that_went_on(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(first=APPROVAL, late={"type": 7}, after_s=1.0)
    async with served(engine, motus):
        await found()
        good, dark = sorted(await found(2), key=lambda run: run.doc.created_at)
        assert dark.gates[0].doc.tool_name == "cancel_turn"
        await engine.decide(good.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
        await engine.decide(dark.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(2, RunStatus.RESUMED)
    assert [s.id for s in await motus.client.sessions()] != [session]


async def test_a_shape_shown_as_it_is_takes_any_object(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    session = await motus.turn(in_turn=[{"type": "user_input", "questions": [7]}])
    async with served(engine, motus):
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values={"q0": 1})
        assert await motus.heard(session) == [{"q0": 1}]
