"""looprig's list for a store of gates, C1 to C26 (opening, ending, deciding), where no other test proves it.

The numbers are those of the table in README.md beside this file, which names the test for every line.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from freezegun import freeze_time
from pydantic import ValidationError
from redis.asyncio import Redis

from core.agenda import Worker
from core.answers import Answer
from core.engine import ResumeEngine
from core.errors import AlreadySettled, AskgateError, InvalidDecision, NotFound, StoreUnavailable
from core.escalations import MAX_TIMEOUT_S
from core.gates import Action
from core.store.connect import listening_client
from core.store.keys import BELL
from tests.conftest import ANA, BEN
from tests.integration.conformance import (
    CI,
    REFUSING,
    Call,
    answered,
    handed_out,
    listed,
    names,
    opened,
    refusing,
)
from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import FOCUSED, Json, approval, body, question_call, run_request
from tests.stores import events

# opening


async def test_c01_who_listens_hears_of_a_change_after_it_is_stored_and_never_of_one_that_failed(
    engine: ResumeEngine, redis: Redis, redis_url: str
) -> None:
    """C1: the ring is part of the script that stores, so whoever hears it finds the change."""
    run = await opened(engine)
    async with listening_client(redis_url) as client, client.pubsub() as ear:
        await ear.subscribe(BELL)
        await ear.get_message(timeout=5)
        async with refusing(redis, "too few replicas"):
            with pytest.raises(StoreUnavailable):
                await answered(engine, run)
        assert await ear.get_message(ignore_subscribe_messages=True) is None
        await answered(engine, run)
        heard = await ear.get_message(timeout=5)
        assert heard is not None
        assert run.id in {ring.split()[2] for ring in heard["data"].split("\n") if ring.startswith("run ")}
        assert (await engine.run(run.id)).status == "settled"


@REFUSING
async def test_c03_c05_a_run_whose_opening_failed_is_nowhere(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    """C3, C5: no entry, no listing, no event, nothing due; the same key opens it afterwards."""
    async with refusing(redis, how):
        with pytest.raises(StoreUnavailable):
            await engine.suspend(run_request(), owner="ci", idempotency_key="k")
    assert await redis.keys() == []
    run, made = await engine.suspend(run_request(), owner="ci", idempotency_key="k")
    assert made
    assert await names(engine, run) == ["run.opened", "gate.opened"]


async def test_c04_c16_what_is_listed_is_open_and_written_down(engine: ResumeEngine) -> None:
    """C4, C16: opening and listing are one step, and so are settling and leaving the list."""
    run = await opened(engine, [question_call("q")], [approval("a")])
    assert await listed(engine) == {gate.id for gate in run.gates}
    opened_ids = [event["gate"] for event in await events(engine, run.id) if event["event"] == "gate.opened"]
    assert opened_ids == [gate.id for gate in run.gates]
    await answered(engine, run)
    assert await listed(engine) == {run.gates[1].id}


async def test_c15_a_deadline_past_the_longest_and_unknown_policies_are_refused_at_the_opening() -> None:
    """C15: nothing but a person answers, and nothing waits for more than 30 days."""
    run_request(timeout_s=MAX_TIMEOUT_S)
    for wrong in (
        {"timeout_s": MAX_TIMEOUT_S + 1},
        {"policy": {"on_timeout": "model_decide"}},
        {"policy": {"on_timeout": "respond"}},
        {"response_policy": {"timeout": 5}},
    ):
        with pytest.raises(ValidationError):
            run_request(**wrong)


# ending


async def test_c08_a_cancelled_gate_is_settled_once_with_its_reason_and_nothing_is_handed_out(
    engine: ResumeEngine,
) -> None:
    """C8: its run waits on for what is still pending."""
    run = await opened(engine, [question_call("q"), question_call("r")])
    await engine.cancel(run.id, "not needed", by=CI, via="api", index=0)
    [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
    assert (settled["outcome"], settled["reason"], settled["by"]) == ("cancelled", "not needed", None)
    assert await handed_out(engine) == []
    assert await listed(engine) == {run.gates[1].id}


@REFUSING
async def test_c09_a_cancel_that_cannot_be_written_leaves_the_gate_open(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    run = await opened(engine)
    async with refusing(redis, how):
        with pytest.raises(StoreUnavailable):
            await engine.cancel(run.id, None, by=CI, via="api")
        with pytest.raises(StoreUnavailable):
            await engine.undeliverable(run.id, "gone")
    assert await engine.run(run.id) == run
    assert await listed(engine) == {run.gates[0].id}
    assert (await answered(engine, run)).status == "settled"


async def test_c13_c48_a_deadline_that_comes_after_an_answer_changes_nothing(engine: ResumeEngine) -> None:
    """C13, C48: one settlement, by the person; what is late on its own account is no error."""
    with freeze_time("2026-03-01T12:00:00Z", real_asyncio=True) as clock:
        run = await opened(engine, timeout_s=60)
        await answered(engine, run)
        clock.tick(timedelta(days=40))
        await Worker(engine.store, engine.bell, {}).run_once()
        await engine.expire(run.id)
        assert await engine.undeliverable(run.id, "gone") == 0
        [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
        assert (settled["outcome"], settled["by"]) == ("answered", ANA.model_dump())


# deciding


@pytest.mark.parametrize(("action", "word"), [(Action.APPROVE, "approve"), (Action.DENY, "deny")])
async def test_c17_c21_an_approval_is_settled_once_written_once_and_handed_out_once(
    engine: ResumeEngine, action: Action, word: str
) -> None:
    """C17, C21: with the exact action; the audit has the digest of the arguments and none of the arguments."""
    run = await opened(engine, [], [approval(args={"path": "/tmp/secret-name"})])
    await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
    told = await events(engine, run.id)
    [settled] = [event for event in told if event["event"] == "gate.settled"]
    assert (settled["outcome"], settled["args_digest"]) == (action.outcome, run.gates[0].digest)
    assert "secret-name" not in json.dumps(told)
    [results] = await handed_out(engine)
    assert results["approvals"]["call-2"]["action"] == word
    assert await handed_out(engine) == []


async def test_c18_an_approval_for_always_says_so_to_the_host_and_in_the_audit(engine: ResumeEngine) -> None:
    """C18: one for once does not."""
    for action, always in ((Action.APPROVE_ALWAYS, True), (Action.APPROVE, False)):
        run = await opened(engine, [], [approval(always=["delete_file in /tmp"])])
        await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
        [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
        assert (settled["action"], settled["outcome"]) == (action, "approved")
        [results] = await handed_out(engine)
        assert results["approvals"]["call-2"].get("always", False) is always


@pytest.mark.parametrize("action", ["Approve", "Deny", "", "APPROVE", "approve always", "approve_always"])
async def test_c19_no_other_word_approves(api: Api, engine: ResumeEngine, action: str) -> None:
    """C19: the three words are exact, and "for always" counts only where it is offered."""
    run = await api.open(body([], [approval()], policy=KEY_POLICY))
    gate = run["gates"][0]["id"]
    response = await api.send("POST", f"/gates/{gate}/decide", json={"action": action})
    assert response.status == 422
    assert (await engine.run(run["id"])).gates[0].pending
    assert await handed_out(engine) == []
    assert (await api.decide(gate, "approve"))["status"] == "approved"


@pytest.mark.parametrize(
    "smuggled", [{"source": {"kind": "classifier"}}, {"via": "slack"}, {"scope": "session"}]
)
async def test_c20_c26_nobody_says_where_a_decision_came_from_or_how_far_it_goes(
    api: Api, engine: ResumeEngine, smuggled: Json
) -> None:
    """C20, C26: where it came from is known from the door; a member that nobody knows is refused."""
    run = await api.open(body([], [approval()], policy=KEY_POLICY))
    gate = run["gates"][0]["id"]
    response = await api.send("POST", f"/gates/{gate}/decide", json={"action": "approve", **smuggled})
    assert response.status == 422
    assert (await engine.run(run["id"])).gates[0].pending
    await api.decide(gate, "approve")
    [settled] = [event for event in await events(engine, run["id"]) if event["event"] == "gate.settled"]
    assert (settled["from"], settled["by"]) == ("api", {"key": "ci"})


async def test_c22_a_second_answer_is_told_of_the_first_and_hands_out_nothing(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await answered(engine, run, "Focused")
    with pytest.raises(AlreadySettled) as late:
        await answered(engine, run, "Broad", by=BEN)
    assert late.value.extra["gate"].decision.by == (ANA,)
    [results] = await handed_out(engine)
    assert results["calls"]["question-1"]["value"] == FOCUSED
    assert await handed_out(engine) == []


@REFUSING
async def test_c23_a_decision_that_cannot_be_written_is_none(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    """C23: nothing is handed out, the gate is listed as before, and whoever comes next may decide it."""
    policy = {"approvers": ["U1", "U2", "U3"], "quorum": 2, "edits": True}
    run = await opened(engine, [question_call()], [approval()], policy=policy)
    edited = {"override_args": {"path": "/tmp/new"}}
    calls: list[Call] = [
        lambda: answered(engine, run),
        lambda: engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack"),
        lambda: engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", values=edited),
        lambda: engine.decide(run.gates[1].id, Action.DENY, by=ANA, via="slack"),
        lambda: engine.draft(run.gates[0].id, ANA, [1]),
        lambda: engine.amendments.extend(run.gates[0].id, 60, by=CI, via="api"),
        lambda: engine.amendments.reassign(run.gates[0].id, ["U2"], by=CI, via="api"),
    ]
    async with refusing(redis, how):
        for call in calls:
            with pytest.raises(StoreUnavailable):
                await call()
    assert await engine.run(run.id) == run
    assert await names(engine, run) == ["run.opened", "gate.opened", "gate.opened"]
    assert await listed(engine) == {gate.id for gate in run.gates}
    await answered(engine, run, by=BEN)
    await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack")
    assert len(await handed_out(engine)) == 1


async def test_c24_c36_a_decision_counts_although_nobody_waits_for_it_or_can_take_it(
    engine: ResumeEngine,
) -> None:
    """C24, C36: the host is told when it comes; that it is away is no error of who decided."""
    run = await opened(engine)
    async with asyncio.timeout(5):
        assert (await answered(engine, run)).status == "settled"
    assert await listed(engine) == set()
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=0, error="down")
    assert (await engine.run(run.id)).gates[0].status == "answered"
    assert len(await handed_out(engine)) == 1


async def test_c25_c45_what_is_wrong_changes_nothing_and_does_not_use_up_what_is_right(
    engine: ResumeEngine,
) -> None:
    """C25, C45: ids of nothing, actions that are not offered, another kind's answer, and then the right one."""
    run = await opened(engine, [question_call()], [approval()])
    other = await opened(engine)
    question, tool = (gate.id for gate in run.gates)
    wrong: list[tuple[Call, type[AskgateError]]] = [
        (lambda: engine.decide(tool[:-1] + "7", Action.APPROVE, by=ANA, via="slack"), NotFound),
        (lambda: engine.decide(f"gate_00_{'0' * 26}_0", Action.APPROVE, by=ANA, via="slack"), NotFound),
        (lambda: engine.decide(question, Action.APPROVE, by=ANA, via="slack"), InvalidDecision),
        (lambda: engine.decide(tool, Action.ANSWER, by=ANA, via="slack", values=FOCUSED), InvalidDecision),
        (lambda: engine.decide(tool, Action.APPROVE_ALWAYS, by=ANA, via="slack"), InvalidDecision),
        (lambda: engine.decide(question, Action.ACCEPT, by=ANA, via="slack", values={}), InvalidDecision),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            await call()
    assert (await engine.run(run.id)).gates == run.gates
    assert (await engine.run(other.id)).gates == other.gates
    answers = [Answer(0, Action.ANSWER, FOCUSED), Answer(1, Action.APPROVE)]
    assert (await engine.decide_all(run.id, answers, by=ANA, via="slack")).status == "settled"
