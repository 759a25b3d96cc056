"""looprig, a stand-in of it: what its four kinds of gates ask of people, and the words that go back."""

from __future__ import annotations

import asyncio

import pytest

from core.engine import ResumeEngine
from core.errors import InvalidDecision
from core.gates import Action, Kind
from core.runs import RunStatus
from tests.conftest import ANA
from tests.interop.conftest import PATIENCE_S, eventually
from tests.interop.looprig_served import Case, Found, served
from tests.interop.looprig_standin import Json, Looprig, Session, ask_user, form, open_url, permission

pytestmark = pytest.mark.usefixtures("looprig_at_once")

REQUEST = {
    "tool_name": "bash",
    "summary": "Removes the log",
    "command": "rm /tmp/old.log",
    "working_directory": "/tmp",
    "requirements": [{"kind": "exec", "candidates": [{"description": "rm in /tmp"}]}],
}


@pytest.fixture(params=["serve", "factory"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_permissions_take_the_exact_words(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    for action, word in (
        (Action.APPROVE, "Approve"),
        (Action.APPROVE_ALWAYS, "Approve always for this workspace"),
        (Action.DENY, "Deny"),
    ):
        gate_id = session.open(permission(), REQUEST)
        async with served(engine, looprig, dialect):
            [run] = await found()
            await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
            await eventually(lambda: bool(session.heard))
            assert session.heard.pop() == (gate_id, word, {})
            await eventually(lambda: not session.gates)


async def test_a_permission_shows_what_the_call_is_and_what_always_saves(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    async with served(engine, looprig, "serve"):
        session.open(permission(), REQUEST)
        [run] = await found()
    [gate] = run.gates
    assert (gate.doc.tool_name, gate.doc.reason, gate.doc.saves) == (
        "bash",
        "Removes the log",
        ("rm in /tmp",),
    )
    assert isinstance(gate.doc.args, dict)
    assert gate.doc.args["command"] == "rm /tmp/old.log"


async def test_a_permission_whose_request_is_not_told_shows_its_prompt(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    body = "Delete it\nApprove always saves:\n- rm in /tmp\n- ls in /tmp"
    looprig.session().open(permission(body=body))
    async with served(engine, looprig, "serve"):
        [run] = await found()
    [gate] = run.gates
    assert gate.doc.args == {"request": body}
    assert gate.doc.saves == ("rm in /tmp", "ls in /tmp")


async def test_a_question_is_answered_by_a_choice_by_text_or_by_something_else(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    for gate, values, heard, said in (
        (ask_user("Which scope?", "Focused", "Broad"), {"answer": "Broad"}, "Broad", []),
        (
            ask_user("Which scope?", "Focused", "Broad"),
            {"answer": "other", "text": "Half"},
            "other",
            ["Half"],
        ),
        (ask_user("Its name?"), {"answer": "Otto"}, "Otto", []),
    ):
        session.open(gate)
        async with served(engine, looprig, dialect):
            [run] = await found()
            assert run.gates[0].doc.offered == (Action.ACCEPT,)
            await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values=values)
            await eventually(lambda: bool(session.heard))
            _, action, sent = session.heard.pop()
            assert (action, sent) == ("answer", {"answer": heard})
            await eventually(lambda said=said: session.said == said)
            session.said.clear()
            await eventually(lambda: not session.gates)


async def test_a_form_is_checked_before_it_is_sent_for_a_bad_answer_spends_the_gate(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    fields: list[Json] = [
        {"name": "version", "kind": "text", "required": True},
        {"name": "where", "kind": "select", "options": [{"value": "eu"}, {"value": "us", "label": "US"}]},
        {"name": "sure", "kind": "confirm", "required": True},
    ]
    session = looprig.session()
    session.open(form(*fields))
    async with served(engine, looprig, dialect):
        [run] = await found()
        [gate] = run.gates
        for wrong in ({"version": "1", "sure": "yes"}, {"version": "x" * 4097, "sure": True}, {"sure": True}):
            with pytest.raises(InvalidDecision):
                await engine.decide(gate.id, Action.ACCEPT, by=ANA, via="slack", values=wrong)
        right = {"version": "1.2", "where": "us", "sure": False}
        await engine.decide(gate.id, Action.ACCEPT, by=ANA, via="slack", values=right)
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1:] == ("accept", right)


async def test_silence_is_said_as_far_as_looprig_has_a_word_for_it(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    named = {
        session.open(form({"name": "a", "kind": "text"})): "cancel",
        session.open(open_url("https://example.com")): "decline",
        session.open(permission()): "Deny",
    }
    asked = session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        for run in await found(4):
            await engine.undeliverable(run.id, "is_archived")
        await eventually(lambda: len(session.heard) == 3)
        [failed] = await found(1, RunStatus.FAILED)
    assert {gate_id: action for gate_id, action, _ in session.heard} == named
    assert (failed.doc.external_id or "").endswith(asked)
    assert "waits on" in (failed.error or "")


async def test_looprig_s_own_policy_is_the_deadline_and_answers_by_itself(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.open(permission(timeout_s=300))
    async with served(engine, looprig, "serve", timeout_s=86400):
        [run] = await found()
    assert 290_000 <= run.gates[0].deadline - run.doc.created_at <= 300_000


@pytest.mark.parametrize(
    "gate",
    [
        {
            "kind": "harness.plan",
            "prompt": {"title": "Plan", "controls": [{"action": "decline", "label": "No"}]},
        },
        form({"name": "a", "kind": "slider"}),
        form({"name": "a", "kind": "multi_select", "options": [{"value": "x", "label": "X"}]}),
        form({"name": "a", "kind": "text"}, controls=("decline",)),
    ],
)
async def test_what_cannot_be_put_faithfully_is_a_notice_to_dismiss(
    engine: ResumeEngine, looprig: Looprig, found: Found, gate: Json
) -> None:
    session: Session = looprig.session()
    session.open(gate)
    async with served(engine, looprig, "serve"):
        [run] = await found()
        assert run.gates[0].doc.tool_name == "dismiss_request"
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1] in ("cancel", "decline")


async def test_where_a_link_leads_is_its_origin_alone(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    session.open(open_url("https://example.com"))
    async with served(engine, looprig, dialect):
        [run] = await found()
        [gate] = run.gates
        assert gate.doc.link
        assert (gate.doc.kind, gate.doc.link.url, gate.doc.link.origin) == (
            Kind.LINK,
            None,
            "https://example.com",
        )
        await engine.decide(gate.id, Action.ACCEPT, by=ANA, via="slack")
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1:] == ("accept", {})


async def test_always_is_not_offered_where_it_takes_two(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    looprig.session().open(permission())
    async with served(engine, looprig, dialect, approvers=["U1", "U2"], quorum=2):
        [run] = await found()
    assert run.gates[0].doc.offered == (Action.APPROVE, Action.DENY)


async def test_a_deadline_of_our_own_is_said_to_looprig(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    session.open(permission(timeout_s=3600))
    async with served(engine, looprig, dialect, timeout_s=1):
        await found()
        async with asyncio.timeout(PATIENCE_S):
            while not session.heard:  # the server's clock is a real one
                async for _, run, _ in engine.gates(only_open=True):
                    await engine.expire(run.id)
                await asyncio.sleep(0.1)
    assert session.heard[0][1] == "Deny"


async def test_a_tool_by_the_name_of_our_notice_gets_what_people_decided(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    for action, word in ((Action.APPROVE, "Approve"), (Action.DENY, "Deny")):
        session.open(permission(), {**REQUEST, "tool_name": "dismiss_request"})
        async with served(engine, looprig, "serve"):
            [run] = await found()
            await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
            await eventually(lambda: not session.gates)
        assert session.heard.pop()[1] == word


@pytest.mark.parametrize(
    ("written", "heard", "said"),
    [("#3", "way 3", []), ("way 65", "way 65", []), ("#66", "other", ["#66"]), ("Half", "other", ["Half"])],
)
async def test_a_question_of_more_choices_than_a_menu_has_is_answered_in_writing(
    case: Case, dialect: str, written: str, heard: str, said: list[str]
) -> None:
    ways = [f"way {number}" for number in range(1, 66)]
    run = await case.ends(
        dialect, RunStatus.RESUMED, ask_user("Which way?", *ways), action=Action.ACCEPT, answer=written
    )
    assert run.gates[0].doc.form
    assert "Which way?\n#1 way 1\n" in run.gates[0].doc.form.body
    assert case.session.heard == [(case.gate_id, "answer", {"answer": heard})]
    assert case.session.said == said


async def test_a_permission_whose_always_saves_more_than_can_be_shown_is_approved_once(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    saved = [f"rm in /tmp/{number}" for number in range(33)]
    body = "\n".join(["Delete them", "Approve always saves:", *(f"- {item}" for item in saved)])
    candidates = [{"description": item} for item in saved]
    session = looprig.session()
    session.open(permission(body=body), {**REQUEST, "requirements": [{"candidates": candidates}]})
    async with served(engine, looprig, dialect):
        [run] = await found()
        assert run.gates[0].doc.offered == (Action.APPROVE, Action.DENY)
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1] == "Approve"


@pytest.mark.parametrize("action", [Action.DECLINE, Action.CANCEL])
async def test_a_form_is_declined_or_cancelled_as_was_chosen(
    case: Case, dialect: str, action: Action
) -> None:
    await case.ends(dialect, RunStatus.RESUMED, form({"name": "a", "kind": "text"}), action=action)
    assert case.session.heard[0][1:] == (str(action), {})


async def test_a_notice_that_is_rejected_leaves_the_gate_open(case: Case, dialect: str) -> None:
    run = await case.ends(
        dialect,
        RunStatus.FAILED,
        form({"name": "a", "kind": "text"}, controls=("decline",)),
        action=Action.DENY,
    )
    assert (run.error, case.session.heard) == ("It was left open in looprig.", [])


async def test_a_notice_that_nobody_looks_at_dismisses_the_gate(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    session.open(form({"name": "a", "kind": "text"}, controls=("decline",)))
    async with served(engine, looprig, dialect):
        [run] = await found()
        await engine.undeliverable(run.id, "is_archived")
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1] == "decline"
