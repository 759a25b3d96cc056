"""looprig, a stand-in of it: what each of its answers to an answer comes to, and who won by what its journal tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from core.engine import ResumeEngine
from core.gates import Action, Outcome
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.conftest import eventually
from tests.interop.looprig_standin import Looprig, Session, ask_user, form, permission, refused
from tests.interop.test_looprig import served

Json = dict[str, Any]
Found = Callable[..., Any]
NAME = form({"name": "name", "kind": "text"}, {"name": "sure", "kind": "confirm"})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_RETRY_S", 0.05)
    monkeypatch.setattr("core.resumes.POLL_S", 0.1)
    monkeypatch.setattr("core.hosts.looprig.dialect.OUTCOME_S", 0.2)
    monkeypatch.setattr("core.hosts.looprig.factory.DONE_S", 0.3)
    for module in ("dialect", "factory"):
        monkeypatch.setattr(f"core.hosts.looprig.{module}.GLANCE_S", 0.02)


def lost_while_somebody_answers(
    session: Session, gate_id: str, action: str, **values: Any
) -> Callable[[], None]:
    """The connection is lost before anything of the answer is done, and somebody else answers meanwhile."""

    def meanwhile() -> None:
        session.resolve(gate_id, action, values=values)
        raise ConnectionResetError

    return meanwhile


async def decided(engine: ResumeEngine, run: Run, action: Action = Action.APPROVE, **values: Any) -> None:
    await engine.decide(run.gates[0].id, action, by=ANA, via="slack", values=values or None)


# serve


async def test_serve_not_found_means_read_the_outcome(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    gate_id = session.open(permission())
    async with served(engine, looprig, "serve"):
        [run] = await found()
        looprig.faults["POST gates"] = [lambda: session.resolve(gate_id, "Approve", "classifier")]
        await decided(engine, run)
        [run] = await found(1, RunStatus.LOST)
    assert (run.error, session.heard) == ("looprig's own review answered it (Approve).", [])


async def test_serve_not_ready_means_read_the_outcome_and_try_again_if_there_is_none(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    gate_id = session.open(permission())
    async with served(engine, looprig, "serve"):
        [run] = await found()
        looprig.faults["POST gates"] = [refused(web.HTTPConflict, "gate_not_ready")]
        await decided(engine, run)
        await found(1, RunStatus.RESUMED)
    assert session.heard == [(gate_id, "Approve", {})]


async def test_a_gate_that_a_restored_session_has_no_more_is_lost_when_it_is_answered(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    gate_id = session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        [run] = await found()
    session.resolve(gate_id, "", reason="restore_unavailable")
    await decided(engine, run, Action.ACCEPT, answer="Otto")
    async with served(engine, looprig, "serve"):
        [run] = await found(1, RunStatus.LOST)
    assert run.error == "The session was restored, and this could not be."


@pytest.mark.parametrize(
    ("gate", "ours", "theirs", "status"),
    [
        (ask_user("Its name?"), {"answer": "Otto"}, {"answer": "Otto"}, RunStatus.RESUMED),
        (ask_user("Its name?"), {"answer": "Otto"}, {"answer": "Anna"}, RunStatus.LOST),
        (ask_user("Its name?"), {"answer": "é" * 99}, {"answer": "é" * 99 + "!"}, None),
        (ask_user("Its name?"), {"answer": "x" * 99}, {"answer": "y" * 99}, RunStatus.LOST),
        (NAME, {"name": "Otto", "sure": True}, {"name": "Otto", "sure": True}, RunStatus.RESUMED),
        (NAME, {"name": "Otto", "sure": True}, {"name": "Otto", "sure": False}, RunStatus.LOST),
        (NAME, {"name": "Otto"}, {}, None),
    ],
)
async def test_after_a_lost_reply_the_same_action_with_other_values_is_never_taken_for_ours(
    engine: ResumeEngine,
    looprig: Looprig,
    found: Found,
    gate: Json,
    ours: Json,
    theirs: Json,
    status: RunStatus | None,
) -> None:
    session = looprig.session()
    gate_id = session.open(gate)
    action = "answer" if gate["kind"] == "harness.ask_user" else "accept"
    async with served(engine, looprig, "serve"):
        [run] = await found()
        looprig.faults["POST gates"] = [lost_while_somebody_answers(session, gate_id, action, **theirs)]
        await decided(engine, run, Action.ACCEPT, **ours)
        [run] = await found(1, status or RunStatus.LOST)
    assert ("does not tell" in (run.error or "")) is (status is None)
    assert session.heard == []


@pytest.mark.parametrize(("source", "status"), [("policy", RunStatus.RESUMED), ("user", RunStatus.LOST)])
async def test_when_looprig_s_own_time_is_over_its_policy_answers_and_nothing_is_sent(
    engine: ResumeEngine, looprig: Looprig, found: Found, source: str, status: RunStatus
) -> None:
    session = looprig.session()
    gate_id = session.open(permission(timeout_s=2), {"tool_name": "bash", "command": "ls"})
    async with served(engine, looprig, "serve"):
        [run] = await found()
    await eventually(lambda: _expired(engine, run))
    session.resolve(gate_id, "Deny", source)
    async with served(engine, looprig, "serve"):
        await found(1, status)
    assert session.heard == []


async def test_a_policy_whose_timer_a_restored_session_lost_does_not_leave_the_agent_waiting(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    gate_id = session.open(permission(timeout_s=2), {"tool_name": "bash", "command": "ls"})
    async with served(engine, looprig, "serve"):
        [run] = await found()
        await eventually(lambda: _expired(engine, run))
        await found(1, RunStatus.RESUMED)
    assert session.heard == [(gate_id, "Deny", {})]


async def _expired(engine: ResumeEngine, run: Run) -> bool:
    await engine.expire(run.id)
    return (await engine.run(run.id)).gates[0].status == Outcome.EXPIRED


# Factory


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (web.HTTPConflict, "gate_not_resumable"),
        (web.HTTPUnprocessableEntity, "runtime_unavailable"),
        (web.HTTPServiceUnavailable, "unavailable"),
        (web.HTTPNotFound, "session_not_found"),
    ],
)
async def test_factory_that_cannot_take_it_now_is_asked_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, status: type[web.HTTPException], code: str
) -> None:
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        looprig.faults["POST gates"] = [refused(status, code)]
        await decided(engine, run)
        await found(1, RunStatus.RESUMED)
    assert len(session.heard) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(web.HTTPConflict, "command_rejected"), (web.HTTPBadRequest, "invalid_request")],
)
async def test_factory_that_will_never_take_it_has_people_decide_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, status: type[web.HTTPException], code: str
) -> None:
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        looprig.faults["POST gates"] = [refused(status, code)]
        await decided(engine, run)
        [run] = await found(1, RunStatus.FAILED)
    assert code in (run.error or "")


async def test_factory_rejects_a_command_by_its_status(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    gate_id = session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        session.gates[gate_id]["prompt"]["controls"] = [{"action": "Deny", "label": "Deny"}]
        await decided(engine, run)
        [run] = await found(1, RunStatus.FAILED)
    assert run.error == "looprig rejected the answer (gate_action_invalid)."


async def test_factory_says_expired_and_that_is_lost(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        looprig.faults["POST gates"] = [refused(web.HTTPConflict, "gate_expired")]
        await decided(engine, run)
        [run] = await found(1, RunStatus.LOST)
    assert "its time is over" in (run.error or "")


@pytest.mark.parametrize(
    ("cause", "action", "source", "word"),
    [
        ("another's", "Approve", "user", "answered elsewhere"),
        ("", "Approve", "user", "does not name"),
        ("", "Deny", "user", "answered elsewhere"),
        ("", "Approve", "classifier", "own review"),
    ],
)
async def test_factory_calls_a_command_that_came_second_applied_and_the_cause_tells(
    engine: ResumeEngine, looprig: Looprig, found: Found, cause: str, action: str, source: str, word: str
) -> None:
    session = looprig.session()
    gate_id = session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        session.before_it_applies = lambda: session.resolve(gate_id, action, source, cause=cause)
        await decided(engine, run)
        [run] = await found(1, RunStatus.LOST)
    assert word in (run.error or "")
    assert session.heard == []


async def test_factory_without_causes_in_its_journal_proves_nothing(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.names_causes = False
    session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        await decided(engine, run)
        [run] = await found(1, RunStatus.LOST)
    assert "does not name" in (run.error or "")


async def test_factory_s_pending_command_is_waited_for_over_tries(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.slow = 30
    session.open(permission())
    async with served(engine, looprig, "factory"):
        [run] = await found()
        await decided(engine, run)
        await found(1, RunStatus.RESUMED)
    assert len(session.heard) == 1


async def test_factory_s_answerability_is_kept_to(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    suspended = session.open({**permission(), "answerability": "suspended"})
    session.open({**permission(), "answerability": "unavailable"})
    async with served(engine, looprig, "factory"):
        [run] = await found()
        assert (run.doc.external_id or "").endswith(suspended)
        session.gates[suspended]["answerability"] = "unavailable"
        marker = session.open(ask_user("Has it been read since?"))
        assert {r.id for r in await found(2)} > {run.id}, "its card stays"
        session.gates[suspended]["answerability"] = "expired"
        [lost] = await found(1, RunStatus.LOST)
    assert (lost.id, marker in session.gates) == (run.id, True)


# the text behind an `other`


@pytest.mark.parametrize("dialect", ["serve", "factory"])
@pytest.mark.parametrize(
    ("fault", "said", "word"),
    [
        (web.HTTPServiceUnavailable, ["Half"], None),
        (web.HTTPBadRequest, [], "not the text"),
        (web.HTTPInternalServerError, [], "nobody can tell"),
        (None, ["Half"], "nobody can tell"),
    ],
)
async def test_the_text_behind_other_is_sent_again_or_people_hear_that_it_may_lack(
    engine: ResumeEngine,
    looprig: Looprig,
    found: Found,
    dialect: str,
    fault: Any,
    said: Json,
    word: str | None,
) -> None:
    session = looprig.session()
    session.open(ask_user("Which scope?", "Focused", "Broad"))
    async with served(engine, looprig, dialect):
        [run] = await found()
        looprig.faults["POST input"] = [refused(fault, "fault") if fault else "lose the reply"]
        await decided(engine, run, Action.ACCEPT, answer="other", text="Half")
        [run] = await found(1, RunStatus.LOST if word else RunStatus.RESUMED)
    assert (len(session.heard), session.said) == (1, said)
    assert (word or "") in json.dumps(run.error)
