"""looprig, a stand-in of it: its four kinds of gates by both dialects, without a gap and without a second answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from core.engine import ResumeEngine
from core.errors import InvalidDecision, StoreUnavailable
from core.gates import Action, Kind, Outcome
from core.hosts.config import LooprigConfig
from core.hosts.desk import Desk
from core.hosts.opening import adapter
from core.runs import RunStatus
from tests.conftest import ANA
from tests.interop.conftest import PATIENCE_S
from tests.interop.looprig_standin import Looprig, Session, ask_user, form, open_url, permission, refused

Json = dict[str, Any]
Found = Callable[..., Any]

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


@contextlib.asynccontextmanager
async def served(engine: ResumeEngine, looprig: Looprig, dialect: str, **more: Any) -> AsyncIterator[Desk]:
    block = {"url": looprig.url, "api_key": looprig.token, "dialect": dialect, "poll_s": 0.1}
    config = LooprigConfig.model_validate(
        {"name": "looprig.test", "channel": "C1", "approvers": ["U1"], **block, **more}
    )
    desk = Desk(engine, adapter(config, engine.store.clock, engine.talks))
    desk.start()
    try:
        yield desk
    finally:
        await desk.stop(5)


async def eventually(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not check():  # noqa: ASYNC110  # the server's state has no event to wait for
            await asyncio.sleep(0.02)


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


async def test_what_was_answered_elsewhere_is_superseded_and_says_by_whom(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    ends = {
        "own review": lambda gate_id: session.resolve(gate_id, "Approve", "classifier"),
        "own policy": lambda gate_id: session.resolve(gate_id, "Deny", "policy"),
        "elsewhere": lambda gate_id: session.resolve(gate_id, "Deny"),
        "could not be": lambda gate_id: session.resolve(gate_id, "", reason="restore_unavailable"),
        "turn ended": lambda _: session.append("TurnInterrupted", turn_id="turn-1"),
    }
    async with served(engine, looprig, "serve"):
        for number, (word, end) in enumerate(ends.items(), 1):
            gate_id = session.open(permission())
            await found()
            end(gate_id)
            runs = await found(number, RunStatus.LOST)
            details = [run.gates[0].decision.detail for run in runs if run.gates[0].decision]
            assert any(word in (detail or "") for detail in details)
            assert all(run.gates[0].status == Outcome.SUPERSEDED for run in runs)


async def test_a_stream_that_breaks_loses_nothing(
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.looprig.host.REJOIN_S", 0.05)
    session = looprig.session()
    first = session.open(permission())
    async with served(engine, looprig, "serve"):
        await found(1)
        session.break_streams()
        session.resolve(first, "Deny")
        session.open(ask_user("Its name?"))
        await found(1, RunStatus.LOST)
        [run] = await found(1)
        assert run.gates[0].doc.kind is Kind.FORM


async def test_many_events_before_the_join_are_read_page_by_page(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    for _ in range(5):
        session.resolve(session.open(permission()), "Approve")
    session.open(permission())
    async with served(engine, looprig, "serve"):
        await found(1)


async def test_who_comes_second_is_lost_and_says_who_was_first(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    gate_id = session.open(permission())
    async with served(engine, looprig, dialect):
        [run] = await found()
    session.resolve(gate_id, "Deny")
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    async with served(engine, looprig, dialect):
        [run] = await found(1, RunStatus.LOST)
    assert run.error == "It was answered elsewhere (Deny)."
    assert session.heard == []


async def test_a_reply_that_is_lost_is_not_answered_twice_and_counts(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_RETRY_S", 0.1)
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, dialect):
        [run] = await found()
        looprig.faults["POST gates"] = ["lose the reply"]
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    assert len(session.heard) == 1


async def test_a_server_that_cannot_take_it_now_is_asked_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_RETRY_S", 0.1)
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, dialect):
        [run] = await found()
        looprig.faults["POST gates"] = [refused(web.HTTPServiceUnavailable, "unavailable", retryable=True)]
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    assert len(session.heard) == 1


@pytest.mark.parametrize(
    "gate",
    [
        {
            "kind": "harness.plan",
            "prompt": {"title": "Plan", "controls": [{"action": "decline", "label": "No"}]},
        },
        form({"name": "a", "kind": "slider"}),
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


@pytest.mark.parametrize("which", ["adopt", "supersede"])
async def test_what_a_store_that_was_away_could_not_take_is_told_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_REST_S", 0.05)
    away = [StoreUnavailable()]
    real = getattr(ResumeEngine, which)

    async def once(self: ResumeEngine, *args: Any, **more: Any) -> Any:
        if away:
            raise away.pop()
        return await real(self, *args, **more)

    monkeypatch.setattr(ResumeEngine, which, once)
    session = looprig.session()
    gate_id = session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        await found(1)
        session.resolve(gate_id, "answer")
        await found(1, RunStatus.LOST)
    assert not away


async def test_always_is_not_offered_where_it_takes_two(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    looprig.session().open(permission())
    async with served(engine, looprig, dialect, approvers=["U1", "U2"], quorum=2):
        [run] = await found()
    assert run.gates[0].doc.offered == (Action.APPROVE, Action.DENY)


async def test_what_cannot_be_described_is_told_once_and_hides_nothing_else(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    session.open(form({"name": "a", "kind": "text", "label": "x" * 8192}, controls=("accept",)))
    session.gates[next(iter(session.gates))]["prompt"]["title"] = "x" * (1 << 20)  # more than a state holds
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, dialect):
        [run] = await found()
    assert "Its name?" in run.gates[0].doc.model_dump_json()


async def test_the_text_behind_other_is_sent_although_the_reply_to_the_answer_was_lost(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_RETRY_S", 0.1)
    session = looprig.session()
    session.open(ask_user("Which scope?", "Focused", "Broad"))
    async with served(engine, looprig, dialect):
        [run] = await found()
        looprig.faults["POST gates"] = ["lose the reply"]
        values = {"answer": "other", "text": "Half"}
        await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values=values)
        await found(1, RunStatus.RESUMED)
    assert (len(session.heard), session.said) == (1, ["Half"])


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
