"""looprig, a stand-in of it: what each of its answers to an answer comes to, and who won by what its journal tells."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action, Outcome
from core.policy import Key
from core.runs import Run, RunStatus
from core.store.keys import Keys
from tests.conftest import ANA
from tests.interop.conftest import eventually
from tests.interop.looprig_served import Case, Found, served
from tests.interop.looprig_standin import Json, Looprig, ask_user, form, permission, refused

pytestmark = pytest.mark.usefixtures("looprig_at_once")

NAME = form({"name": "name", "kind": "text"}, {"name": "sure", "kind": "confirm"})
SCOPE = ask_user("Which scope?", "Focused", "Broad")
BOTH = pytest.mark.parametrize("dialect", ["serve", "factory"])


def lost_while(happens: Any) -> Any:
    """The connection is lost before anything of the answer is done, and something happens meanwhile."""

    def meanwhile() -> None:
        happens()
        raise ConnectionResetError

    return meanwhile


# both


@BOTH
async def test_who_comes_second_is_lost_and_says_who_was_first(case: Case, dialect: str) -> None:
    run = await case.ends(dialect, RunStatus.LOST, faults={"POST gates": [case.resolved("Deny")]})
    assert run.error == "It was answered elsewhere (Deny)."
    assert case.session.heard == []


@BOTH
async def test_a_reply_that_is_lost_is_not_answered_twice_and_counts(case: Case, dialect: str) -> None:
    await case.ends(dialect, RunStatus.RESUMED, faults={"POST gates": ["lose the reply"]})
    assert len(case.session.heard) == 1


@BOTH
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (web.HTTPUnauthorized, "unauthorized"),
        (web.HTTPForbidden, "not_authorized"),
        (web.HTTPNotFound, "session_not_found"),
        (web.HTTPTooManyRequests, "slow_down"),
        (web.HTTPServiceUnavailable, "unavailable"),
        (web.HTTPInternalServerError, "internal"),
    ],
)
async def test_a_server_that_cannot_take_it_now_is_asked_again(
    case: Case, dialect: str, status: type[web.HTTPException], code: str
) -> None:
    await case.ends(dialect, RunStatus.RESUMED, faults={"POST gates": [refused(status, code)]})
    assert len(case.session.heard) == 1


@BOTH
async def test_an_answer_that_is_sent_elsewhere_was_not_taken(case: Case, dialect: str) -> None:
    login = web.HTTPFound(case.looprig.at(dialect) + "/v1/sessions")
    await case.ends(dialect, RunStatus.RESUMED, faults={"POST gates": [login]})
    assert (case.looprig.times("POST gates", case.session), len(case.session.heard)) == (2, 1)


@BOTH
async def test_an_approval_of_other_arguments_than_were_shown_is_a_denial(
    engine: ResumeEngine, redis: Redis, looprig: Looprig, found: Found, dialect: str
) -> None:
    session = looprig.session()
    session.open(permission())
    async with served(engine, looprig, dialect):
        [run] = await found()
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    key = Keys(int(run.id[4:6])).run(run.id)
    stored = json.loads(await redis.hget(key, "0:doc") or "")
    await redis.hset(key, "0:doc", json.dumps({**stored, "args": {"request": "Delete /"}}))
    async with served(engine, looprig, dialect):
        await eventually(lambda: bool(session.heard))
    assert session.heard[0][1] == "Deny"


# serve


async def test_serve_not_found_means_read_the_outcome(case: Case) -> None:
    run = await case.ends("serve", RunStatus.LOST, faults={"POST gates": [case.resolved("Approve")]})
    assert (run.error, case.session.heard) == ("It was answered elsewhere (Approve).", [])


async def test_serve_not_ready_means_read_the_outcome_and_try_again_if_there_is_none(case: Case) -> None:
    not_ready = refused(web.HTTPConflict, "gate_not_ready")
    await case.ends("serve", RunStatus.RESUMED, faults={"POST gates": [not_ready]})
    assert case.session.heard == [(case.gate_id, "Approve", {})]


async def test_a_gate_that_a_restored_session_has_no_more_is_lost_when_it_is_answered(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        [run] = await found()
    session.crash()
    session.restore()
    await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values={"answer": "Otto"})
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
    case: Case, gate: Json, ours: Json, theirs: Json, status: RunStatus | None
) -> None:
    action = "answer" if gate["kind"] == "harness.ask_user" else "accept"
    theirs_instead = lost_while(case.resolved(action, values=theirs))
    run = await case.ends(
        "serve",
        status or RunStatus.LOST,
        gate,
        action=Action.ACCEPT,
        faults={"POST gates": [theirs_instead]},
        **ours,
    )
    assert ("does not tell" in (run.error or "")) is (status is None)
    assert case.session.heard == []


async def test_an_answer_whose_replies_were_lost_until_it_was_a_dead_letter_counts_when_it_is_put_back(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.resumes.MAX_TRIES", 1)
    run = await case.ends("serve", RunStatus.FAILED, faults={"POST gates": ["lose the reply"]})
    await case.engine.dead_letters.requeue(run.id, by=Key(key="ci"), via="api")
    async with served(case.engine, case.looprig, "serve"):
        await case.found(1, RunStatus.RESUMED)
    assert len(case.session.heard) == 1


@pytest.mark.parametrize("source", ["policy", "classifier"])
async def test_after_a_lost_reply_what_looprig_answered_itself_is_never_taken_for_ours(
    case: Case, source: str
) -> None:
    itself = lost_while(case.resolved("Approve", source))
    run = await case.ends("serve", RunStatus.LOST, faults={"POST gates": [itself]})
    assert "looprig's own" in (run.error or "")


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
    [(web.HTTPConflict, "gate_not_resumable"), (web.HTTPUnprocessableEntity, "runtime_unavailable")],
)
async def test_factory_that_has_no_process_for_it_is_asked_again(
    case: Case, status: type[web.HTTPException], code: str
) -> None:
    await case.ends("factory", RunStatus.RESUMED, faults={"POST gates": [refused(status, code)]})
    assert len(case.session.heard) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(web.HTTPConflict, "command_rejected"), (web.HTTPBadRequest, "invalid_request")],
)
async def test_factory_that_will_never_take_it_has_people_decide_again(
    case: Case, status: type[web.HTTPException], code: str
) -> None:
    run = await case.ends("factory", RunStatus.FAILED, faults={"POST gates": [refused(status, code)]})
    assert code in (run.error or "")


async def test_factory_rejects_a_command_by_its_status(case: Case) -> None:
    def offers_less() -> None:
        case.session.gates[case.gate_id]["prompt"]["controls"] = [{"action": "Deny", "label": "Deny"}]

    run = await case.ends("factory", RunStatus.FAILED, meanwhile=offers_less)
    assert run.error == "looprig rejected the answer (gate_action_invalid)."


async def test_factory_says_expired_and_that_is_lost(case: Case) -> None:
    expired = refused(web.HTTPConflict, "gate_expired")
    run = await case.ends("factory", RunStatus.LOST, faults={"POST gates": [expired]})
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
    case: Case, cause: str, action: str, source: str, word: str
) -> None:
    case.session.before_it_applies = case.resolved(action, source, cause=cause)
    run = await case.ends("factory", RunStatus.LOST)
    assert word in (run.error or "")
    assert case.session.heard == []


async def test_factory_without_causes_in_its_journal_proves_nothing(case: Case) -> None:
    case.session.names_causes = False
    run = await case.ends("factory", RunStatus.LOST)
    assert "does not name" in (run.error or "")


async def test_factory_s_journal_is_read_from_where_the_gate_opened_to_its_end(case: Case) -> None:
    for _ in range(300):
        case.session.append("StepDone")
    after = [lambda: [case.session.append("StepDone") for _ in range(450)]]
    await case.ends("factory", RunStatus.RESUMED, faults={"POST gates": after})
    assert case.looprig.times("GET journal", case.session) == 3


async def test_factory_s_command_is_waited_for_and_then_over_tries(case: Case) -> None:
    case.session.slow = 3
    await case.ends("factory", RunStatus.RESUMED)
    assert (case.looprig.times("POST gates", case.session), len(case.session.heard)) == (1, 1)
    case.session.slow = 30
    case.session.open(permission())
    async with served(case.engine, case.looprig, "factory"):
        [run] = await case.found()
        await case.engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await case.found(2, RunStatus.RESUMED)
    assert len(case.session.heard) == 2


# the text behind an `other`


@BOTH
async def test_the_text_behind_other_is_sent_although_the_reply_to_the_answer_was_lost(
    case: Case, dialect: str
) -> None:
    lost: dict[str, list[Any]] = {"POST gates": ["lose the reply"]}
    other = {"answer": "other", "text": "Half"}
    await case.ends(dialect, RunStatus.RESUMED, SCOPE, action=Action.ACCEPT, faults=lost, **other)
    assert (len(case.session.heard), case.session.said) == (1, ["Half"])


@pytest.mark.parametrize(
    ("dialect", "fault", "said", "word"),
    [
        ("serve", refused(web.HTTPServiceUnavailable, "fault"), ["Half"], None),
        ("serve", web.HTTPFound("/elsewhere"), ["Half"], None),
        ("serve", refused(web.HTTPBadRequest, "fault"), [], "not the text"),
        ("serve", refused(web.HTTPInternalServerError, "fault"), [], "nobody can tell"),
        ("serve", "lose the reply", ["Half"], "nobody can tell"),
        # Factory has an id for it, so that it is said once however often it is sent
        ("factory", refused(web.HTTPServiceUnavailable, "fault"), ["Half"], None),
        ("factory", refused(web.HTTPBadRequest, "fault"), [], "not the text"),
        ("factory", refused(web.HTTPInternalServerError, "fault"), ["Half"], None),
        ("factory", "lose the reply", ["Half"], None),
    ],
)
async def test_the_text_behind_other_is_sent_again_or_people_hear_that_it_may_lack(
    case: Case, dialect: str, fault: Any, said: list[str], word: str | None
) -> None:
    status, faults = RunStatus.LOST if word else RunStatus.RESUMED, {"POST input": [fault]}
    other = {"answer": "other", "text": "Half"}
    run = await case.ends(dialect, status, SCOPE, action=Action.ACCEPT, faults=faults, **other)
    assert (len(case.session.heard), case.session.said) == (1, said)
    assert (word or "") in json.dumps(run.error)


async def test_factory_that_rejects_the_text_has_taken_the_answer(case: Case) -> None:
    def refuses_text() -> None:
        case.session.takes_input = False

    other = {"answer": "other", "text": "Half"}
    run = await case.ends(
        "factory", RunStatus.LOST, SCOPE, action=Action.ACCEPT, meanwhile=refuses_text, **other
    )
    assert run.error == "looprig took the answer, and rejected the text behind it (runtime_unavailable)."
