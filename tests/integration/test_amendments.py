"""Extend, reassign, delegate, escalate: who may, what changes, what is written down."""

from __future__ import annotations

from datetime import timedelta

import pytest
from freezegun import freeze_time

from core.agenda import Worker
from core.engine import ResumeEngine
from core.errors import AlreadySettled, Expired, Invalid, NobodyMayDecide, NotAllowed
from core.gates import Action
from core.policy import Key, Person
from tests.conftest import ANA, BEN, CHO, HOME
from tests.runs import FOCUSED, approval, question_call, run_request
from tests.stores import events

ADMIN = Person(team=HOME, user="U9")
START = "2026-01-05T09:00:00Z"


def worker(engine: ResumeEngine) -> Worker:
    return Worker(engine.store, engine.bell, {"escalate": engine.escalate})


async def test_an_admin_puts_a_deadline_off_and_the_old_one_passes_without_effect(
    engine: ResumeEngine,
) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run, _ = await engine.suspend(run_request(timeout_s=60), owner="ci")
        gate = run.gates[0]
        later = await engine.amendments.extend(gate.id, 3600, by=ADMIN, via="slack")
        assert later.gates[0].deadline == gate.deadline + 3_600_000
        clock.tick(timedelta(seconds=120))
        await worker(engine).run_once()
        run = await engine.decide(gate.id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        assert run.status == "settled"
        [event] = [e for e in await events(engine, run.id) if e["event"] == "gate.extended"]
        assert event["by"] == {"team": HOME, "user": "U9"}


async def test_the_extended_deadline_passes_too(engine: ResumeEngine) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run, _ = await engine.suspend(run_request(timeout_s=60), owner="ci")
        await engine.amendments.extend(run.gates[0].id, 60, by=ADMIN, via="slack")
        clock.tick(timedelta(seconds=121))
        await worker(engine).run_once()
        run = await engine.run(run.id)
        results = run.results()
        assert results is not None
        assert results["calls"]["question-1"]["message"] == "No answer within 120 s."


async def test_nobody_else_extends_and_nobody_past_thirty_days(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(timeout_s=60), owner="ci")
    gate = run.gates[0].id
    with pytest.raises(NotAllowed):
        await engine.amendments.extend(gate, 60, by=ANA, via="slack")
    for seconds in (30 * 86400, 0, -5):
        with pytest.raises(Invalid, match="30 days"):
            await engine.amendments.extend(gate, seconds, by=ADMIN, via="slack")
    await engine.amendments.extend(gate, 30 * 86400 - 60, by=Key(key="cli"), via="api")


async def test_what_is_settled_or_expired_cannot_be_amended(engine: ResumeEngine) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run, _ = await engine.suspend(run_request(timeout_s=60), owner="ci")
        clock.tick(timedelta(seconds=61))
        with pytest.raises(Expired):
            await engine.amendments.extend(run.gates[0].id, 60, by=ADMIN, via="slack")
        other, _ = await engine.suspend(run_request(), owner="ci")
        await engine.decide(other.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        with pytest.raises(AlreadySettled):
            await engine.amendments.reassign(other.gates[0].id, ["U2"], by=ADMIN, via="slack")


async def test_a_reassigned_gate_is_decided_by_the_others(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(None, [approval()], policy={"approvers": ["U1"]}), owner="ci")
    gate = run.gates[0].id
    run = await engine.amendments.reassign(gate, ["U2"], by=ADMIN, via="slack")
    assert run.gates[0].policy.deciders == ("U2",)
    with pytest.raises(NotAllowed):
        await engine.decide(gate, Action.APPROVE, by=ANA, via="slack")
    run = await engine.decide(gate, Action.APPROVE, by=BEN, via="slack")
    assert run.status == "settled"


async def test_a_gate_is_not_reassigned_to_nobody(engine: ResumeEngine) -> None:
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    run, _ = await engine.suspend(run_request(None, [approval()], policy=policy), owner="ci")
    for deciders in ([], ["U3"]):
        with pytest.raises(NobodyMayDecide):
            await engine.amendments.reassign(run.gates[0].id, deciders, by=ADMIN, via="slack")
    with pytest.raises(NotAllowed):
        await engine.amendments.reassign(run.gates[0].id, ["U2", "U3"], by=ANA, via="slack")


async def test_a_named_decider_delegates_and_is_one_no_more(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(None, [approval()], policy={"approvers": ["U1"]}), owner="ci")
    gate = run.gates[0].id
    with pytest.raises(NotAllowed):
        await engine.amendments.delegate(gate, CHO, by=BEN, via="slack")
    await engine.amendments.delegate(gate, CHO, by=ANA, via="slack")
    with pytest.raises(NotAllowed):
        await engine.decide(gate, Action.APPROVE, by=ANA, via="slack")
    run = await engine.decide(gate, Action.APPROVE, by=CHO, via="slack")
    [event] = [e for e in await events(engine, run.id) if e["event"] == "gate.reassigned"]
    assert (event["reason"], event["deciders"]) == ("delegated", ["T1:U3"])


@pytest.mark.parametrize("how", ["delegated", "reassigned"])
async def test_who_hands_the_decision_over_has_no_vote_any_longer(engine: ResumeEngine, how: str) -> None:
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    run, _ = await engine.suspend(run_request(None, [approval()], policy=policy), owner="ci")
    gate = run.gates[0].id
    await engine.decide(gate, Action.APPROVE, by=BEN, via="slack")
    if how == "delegated":
        await engine.amendments.delegate(gate, CHO, by=BEN, via="slack")
    else:
        await engine.amendments.reassign(gate, ["U1", "U3"], by=ADMIN, via="slack")
    run = await engine.decide(gate, Action.APPROVE, by=CHO, via="slack")
    assert run.gates[0].pending
    assert [vote.by for vote in run.gates[0].votes] == [CHO]
    run = await engine.decide(gate, Action.APPROVE, by=ANA, via="slack")
    assert run.gates[0].decision is not None
    assert run.gates[0].decision.by == (CHO, ANA)
    [event] = [e for e in await events(engine, run.id) if e["event"] == "gate.reassigned"]
    assert event["void"] == [BEN.model_dump()]


async def test_votes_of_who_may_still_decide_outlast_a_reassignment(engine: ResumeEngine) -> None:
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    run, _ = await engine.suspend(run_request(None, [approval()], policy=policy), owner="ci")
    gate = run.gates[0].id
    await engine.decide(gate, Action.APPROVE, by=ANA, via="slack")
    await engine.amendments.reassign(gate, ["U1", "U3"], by=ADMIN, via="slack")
    run = await engine.decide(gate, Action.APPROVE, by=CHO, via="slack")
    assert run.gates[0].decision is not None
    assert run.gates[0].decision.by == (ANA, CHO)


async def test_an_escalation_adds_approvers_in_its_time_and_only_once(engine: ResumeEngine) -> None:
    escalate = {"after_s": 600, "place": {"channel": "C2"}, "approvers": ["U3"]}
    with freeze_time(START, real_asyncio=True) as clock:
        run, _ = await engine.suspend(
            run_request([question_call()], [approval()], policy={"approvers": ["U1"]}, escalate=escalate),
            owner="ci",
        )
        gate = run.gates[1].id
        await worker(engine).run_once()
        with pytest.raises(NotAllowed):
            await engine.decide(gate, Action.APPROVE, by=CHO, via="slack")
        clock.tick(timedelta(seconds=601))
        await worker(engine).run_once()
        run = await engine.run(run.id)
        assert run.escalated
        assert run.gates[1].policy.deciders == ("U1", "U3")
        assert run.gates[0].policy.deciders == ("channel",)
        await engine.escalate(run.id)
        escalated = [e for e in await events(engine, run.id) if e["event"] == "gate.escalated"]
        assert [e["gate"] for e in escalated] == [gate]
        assert escalated[0]["by"] is None
        run = await engine.decide(gate, Action.APPROVE, by=CHO, via="slack")
        assert run.gates[1].status == "approved"


async def test_what_is_settled_is_not_escalated(engine: ResumeEngine) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run, _ = await engine.suspend(
            run_request(escalate={"after_s": 600, "place": {"channel": "C2"}}), owner="ci"
        )
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        clock.tick(timedelta(seconds=601))
        await worker(engine).run_once()
        assert not (await engine.run(run.id)).escalated
