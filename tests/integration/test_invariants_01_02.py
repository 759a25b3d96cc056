"""Invariants 1 and 2: a gate settles once, and every decision is checked at the door."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.engine import Answer, ResumeEngine
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    AskgateError,
    CannotVerify,
    Expired,
    InvalidDecision,
    NotAllowed,
    NotFound,
    NotWaiting,
    SelfApproval,
)
from core.gates import Action
from core.policy import Key, Person
from core.runs import Run
from core.store.keys import Keys
from tests.conftest import ANA, BEN, CHO
from tests.integration.invariants import CI, DOORS, NewEngine, names, opened, outcome_of, results_of
from tests.runs import FOCUSED, approval, question_call
from tests.stores import events

# 1: settled once


async def test_invariant_01_fifty_deciders_on_three_engines_have_one_winner(new_engine: NewEngine) -> None:
    """looprig C51."""
    engines = [new_engine() for _ in range(3)]
    run = await opened(engines[0])
    people = [ANA, BEN, CHO]

    def decide(number: int) -> Coroutine[Any, Any, Run]:
        values = {"answers": {"Which scope should be used?": f"Answer {number}"}}
        return engines[number % 3].decide(
            run.gates[0].id, Action.ANSWER, by=people[number % 3], via="slack", values=values
        )

    said = await asyncio.gather(*map(decide, range(50)), return_exceptions=True)
    [winner] = [number for number, result in enumerate(said) if isinstance(result, Run)]
    losers = [result for result in said if isinstance(result, AlreadySettled)]
    assert len(losers) == 49
    # each of them is told who was first
    assert {loser.extra["gate"].decision.by for loser in losers} == {(people[winner % 3],)}
    told = await events(engines[0], run.id)
    [settled] = [event for event in told if event["event"] == "gate.settled"]
    assert settled["by"] == people[winner % 3].model_dump()
    assert [event["reason"] for event in told if event["event"] == "gate.refused"] == ["already-settled"] * 49
    assert sum(event["event"] == "run.settled" for event in told) == 1
    value = (await results_of(engines[1], run))["calls"]["question-1"]["value"]
    assert value == {"answers": {"Which scope should be used?": f"Answer {winner}"}}


async def test_invariant_01_an_answer_and_a_cancel_at_once_settle_once(new_engine: NewEngine) -> None:
    """looprig C47."""
    one, two = new_engine(), new_engine()
    seen = set()
    for number in range(20):
        run = await opened(one)
        calls = [
            outcome_of(one.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)),
            outcome_of(two.cancel(run.id, "over", by=CI, via="api")),
        ]
        said = sorted(await asyncio.gather(*(calls if number % 2 else reversed(calls))))
        assert said in (["done", "not-waiting"], ["already-settled", "done"])
        assert (await names(one, run)).count("gate.settled") == 1
        [gate] = (await one.run(run.id)).gates
        assert gate.decision is not None
        assert gate.status == gate.decision.outcome
        seen.add(gate.status)
    assert seen <= {"answered", "cancelled"}


@pytest.mark.parametrize(("before_ms", "outcome"), [(1, "answered"), (0, "expired")])
async def test_invariant_01_an_answer_and_the_expiry_at_the_deadline_settle_once(
    new_engine: NewEngine, clock: FrozenDateTimeFactory, before_ms: int, outcome: str
) -> None:
    """looprig C13."""
    one, two = new_engine(), new_engine()
    run = await opened(one, timeout_s=60)
    clock.tick(timedelta(seconds=60, milliseconds=-before_ms))
    await asyncio.gather(
        two.expire(run.id),
        outcome_of(one.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)),
        two.expire(run.id),
    )
    assert (await one.run(run.id)).gates[0].status == outcome
    assert (await names(one, run)).count("gate.settled") == 1


async def test_invariant_01_two_answers_for_one_gate_in_one_call_are_none(engine: ResumeEngine) -> None:
    run = await opened(engine)
    twice = [Answer(0, Action.ANSWER, FOCUSED), Answer(0, Action.DECLINE)]
    for answers in ([], twice):
        with pytest.raises(ValueError, match="one answer for each"):
            await engine.decide_all(run.id, answers, by=ANA, via="slack")
    assert await engine.run(run.id) == run


async def test_invariant_01_a_settled_gate_takes_no_draft_and_no_cancel(engine: ResumeEngine) -> None:
    """looprig C48."""
    run = await opened(engine)
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    with pytest.raises(AlreadySettled):
        await engine.draft(run.gates[0].id, BEN, {"0": [1]})
    with pytest.raises(NotWaiting, match="the run is settled"):
        await engine.cancel(run.id, None, by=CI, via="api")
    assert await engine.undeliverable(run.id, "gone") == 0
    await engine.expire(run.id)
    assert (await engine.run(run.id)).gates == run.gates


# 2: checked at the door


@pytest.mark.parametrize(("via", "who"), DOORS)
async def test_invariant_02_a_late_click_is_refused_without_a_sweeper_and_settles_as_expired(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, via: str, who: Person | Key
) -> None:
    run = await opened(engine, [question_call()], [approval()], timeout_s=60)
    clock.tick(60)
    with pytest.raises(Expired, match=r"2026-03-01T12:01:00\.000Z"):
        await engine.decide(run.gates[1].id, Action.APPROVE, by=who, via=via)
    run = await engine.run(run.id)
    assert run.status == "settled"
    assert [gate.status for gate in run.gates] == ["expired", "expired"]
    told = await events(engine, run.id)
    assert [e["by"] for e in told if e["event"] == "gate.settled"] == [None, None]
    assert [e["reason"] for e in told if e["event"] == "gate.refused"] == ["expired"]


async def test_invariant_02_every_way_in_knows_the_deadline(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    runs = [await opened(engine, timeout_s=60) for _ in range(3)]
    clock.tick(60)
    batch = {"calls": {"question-1": {"status": "returned", "value": FOCUSED}}, "approvals": {}}
    assert await outcome_of(engine.answer_batch(runs[0].id, batch, by=CI, via="api")) == "expired"
    assert await outcome_of(engine.draft(runs[1].gates[0].id, ANA, [1])) == "expired"
    assert await outcome_of(engine.cancel(runs[2].id, "late", by=CI, via="api")) == "not-waiting"
    for run in runs:
        assert (await engine.run(run.id)).gates[0].status == "expired"


async def test_invariant_02_a_clock_that_goes_back_opens_nothing_again(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    """looprig C40."""
    run = await opened(engine, timeout_s=60)
    clock.tick(61)
    await engine.expire(run.id)
    clock.tick(-3600)
    with pytest.raises(Expired):
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    positions = [position async for position, _ in engine.store.audit.of_run(run.id)]
    assert positions == sorted(positions)
    assert [e["event"] for e in await events(engine, run.id)][-1] == "gate.refused"


WRONG: list[tuple[str, int, dict[str, Any], type[AskgateError]]] = [
    ("another kind's action", 0, {"action": Action.APPROVE}, InvalidDecision),
    ("another kind's action", 1, {"action": Action.ANSWER, "values": FOCUSED}, InvalidDecision),
    ("no values", 0, {"action": Action.ANSWER}, InvalidDecision),
    ("an unknown question", 0, {"action": Action.ANSWER, "values": {"answers": {"?": "x"}}}, InvalidDecision),
    ("values that are none", 0, {"action": Action.ANSWER, "values": [1]}, InvalidDecision),
    ("values with an approval", 1, {"action": Action.APPROVE, "values": True}, InvalidDecision),
    ("values with a decline", 0, {"action": Action.DECLINE, "values": FOCUSED}, InvalidDecision),
    ("a long comment", 1, {"action": Action.DENY, "comment": "x" * 4097}, InvalidDecision),
    ("half a character", 1, {"action": Action.DENY, "comment": "\ud83d"}, InvalidDecision),
    ("half a character", 0, {"action": Action.ANSWER, "values": {"response": "\ud83d"}}, InvalidDecision),
    ("other arguments", 1, {"action": Action.APPROVE, "digest": "0" * 64}, ArgumentsChanged),
    ("no arguments", 1, {"action": Action.APPROVE, "digest": ""}, ArgumentsChanged),
]


@pytest.mark.parametrize(("via", "who"), DOORS)
@pytest.mark.parametrize(("index", "wrong", "error"), [pytest.param(*row[1:], id=row[0]) for row in WRONG])
async def test_invariant_02_what_breaks_a_rule_is_refused_whichever_way_it_came(
    engine: ResumeEngine, index: int, wrong: dict[str, Any], error: type[AskgateError], via: str, who: Any
) -> None:
    run = await opened(engine, [question_call()], [approval()])
    with pytest.raises(error) as refused:
        await engine.decide(run.gates[index].id, by=who, via=via, **wrong)
    assert (await engine.run(run.id)).gates == run.gates
    last = (await events(engine, run.id))[-1]
    assert (last["event"], last["gate"], last["from"]) == ("gate.refused", run.gates[index].id, via)
    assert (last["reason"], last["by"]) == (refused.value.slug, who.model_dump())


@pytest.mark.parametrize(
    ("who", "error"),
    [
        (Person(team="T1", user="U8"), NotAllowed),
        (Person(team="T2", user="U1"), NotAllowed),
        (Key(key="other"), NotAllowed),
        (CHO, SelfApproval),
    ],
)
async def test_invariant_02_who_may_not_decide_is_refused_and_written_down(
    engine: ResumeEngine, who: Person | Key, error: type[NotAllowed]
) -> None:
    run = await opened(engine, [], [approval()], requester=CHO.model_dump())
    with pytest.raises(error):
        await engine.decide(run.gates[0].id, Action.APPROVE, by=who, via="slack")
    assert await engine.run(run.id) == run
    last = (await events(engine, run.id))[-1]
    assert (last["event"], last["reason"]) == ("gate.refused", error.slug)


async def test_invariant_02_a_group_that_cannot_be_looked_up_refuses(engine: ResumeEngine) -> None:
    run = await opened(engine, [], [approval()], policy={"approvers": ["S404"]})
    with pytest.raises(CannotVerify):
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    assert (await engine.run(run.id)).gates[0].pending


@pytest.mark.parametrize(
    "gate",
    [
        "gate_99_01JZ0000000000000000000000_0",
        "gate_01_01JZ0000000000000000000000_0",
        "gate_1_01JZ0000000000000000000000_0",
        "gate_01_ZZZZ0000000000000000000000_0",
        "run_01_01JZ0000000000000000000000",
        "gate_01_01JZ0000000000000000000000_0\n",
        "",
        "gate_01_\u0000_0",
    ],
)
async def test_invariant_02_ids_of_another_store_are_not_found(engine: ResumeEngine, gate: str) -> None:
    """looprig C25."""
    with pytest.raises(NotFound):
        await engine.decide(gate, Action.DECLINE, by=ANA, via="slack")
    with pytest.raises(NotFound):
        await engine.run(gate)
    with pytest.raises(NotFound):
        await engine.resumes.ack(gate, "lease_x", by=CI)


async def test_invariant_02_a_gate_past_the_run_s_last_is_not_found(engine: ResumeEngine) -> None:
    run = await opened(engine)
    with pytest.raises(NotFound):
        await engine.decide(run.gates[0].id[:-1] + "1", Action.DECLINE, by=ANA, via="slack")


async def test_invariant_02_whoever_is_late_is_told_who_was_first_whoever_they_are(
    engine: ResumeEngine,
) -> None:
    run = await opened(engine, [], [approval()], policy={"approvers": ["U1", "S404"]})
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    for who in (BEN, ANA, Person(team="T2", user="U8")):
        with pytest.raises(AlreadySettled) as late:
            await engine.decide(run.gates[0].id, Action.DENY, by=who, via="slack")
        assert late.value.extra["gate"].decision.by == (ANA,)


async def test_invariant_02_hundreds_of_refusals_do_not_make_a_run_heavier(
    engine: ResumeEngine, redis: Redis
) -> None:
    run = await opened(engine)
    key = Keys(int(run.id[4:6])).run(run.id)
    size = await redis.memory_usage(key)
    for _ in range(30):
        refusals = (
            outcome_of(engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="api")) for _ in range(10)
        )
        assert set(await asyncio.gather(*refusals)) == {"invalid"}
    assert await redis.memory_usage(key) == size
    assert (await names(engine, run)).count("gate.refused") == 300
