"""The invariants of the engine, one by one, on a real server and several engines at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from core import approvals
from core.embedded import EmbeddedServer
from core.engine import Answer, ResumeEngine
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    AskgateError,
    CannotVerify,
    CoverageMismatch,
    Expired,
    InvalidDecision,
    LeaseLost,
    NotAllowed,
    NotFound,
    NotWaiting,
    SelfApproval,
    StoreUnavailable,
)
from core.gates import Action, Outcome
from core.policy import Key, Person
from core.resumes import Resume
from core.runs import Run
from core.store.keys import Keys, leases
from tests.conftest import ANA, BEN, CHO
from tests.runs import FOCUSED, approval, ask, question_call, run_request
from tests.stores import engine_on, events

CI = Key(key="ci")
DOORS = [("slack", ANA), ("api", CI)]
ANYBODY = {"responders": ["anyone"], "approvers": ["U1", "U2", "U3", "key:ci"]}
NewEngine = Callable[[], ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    """The engines' wall clock, standing still until it is moved."""
    with freeze_time("2026-03-01T12:00:00Z", real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


@pytest.fixture
async def two_engines(new_engine: NewEngine) -> list[ResumeEngine]:
    return [new_engine(), new_engine()]


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **{"policy": ANYBODY, **more}), owner="ci")
    return run


async def claimed(engine: ResumeEngine, host: str = "api", lease_s: float = 30) -> Resume:
    [resume] = await engine.resumes.claim(host, limit=10, wait_s=0, lease_s=lease_s)
    return resume


async def nothing_due(engine: ResumeEngine, host: str = "api") -> bool:
    return await engine.resumes.claim(host, limit=10, wait_s=0, lease_s=30) == []


async def names(engine: ResumeEngine, run: Run) -> list[str]:
    return [event["event"] for event in await events(engine, run.id)]


async def outcome_of(call: Coroutine[Any, Any, Any]) -> str:
    try:
        await call
    except AskgateError as error:
        return error.slug
    return "done"


async def results_of(engine: ResumeEngine, run: Run) -> dict[str, dict[str, Any]]:
    results = (await engine.run(run.id)).results()
    assert results is not None
    return results


# 1: settled once


async def test_invariant_01_fifty_deciders_on_three_engines_have_one_winner(new_engine: NewEngine) -> None:
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
        "run_01_01JZ0000000000000000000000",
        "gate_01_01JZ0000000000000000000000_0\n",
        "",
        "gate_01_\u0000_0",
    ],
)
async def test_invariant_02_ids_of_another_store_are_not_found(engine: ResumeEngine, gate: str) -> None:
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


# 3: durable before acknowledged


async def test_invariant_03_with_the_server_gone_every_call_says_so_and_nothing_is_half_done(
    tmp_path: Path,
) -> None:
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        settled, waiting = await opened(engine), await opened(engine, [question_call()], [approval()])
        await engine.decide(settled.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        server.kill()
        for call in (
            engine.decide(waiting.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED),
            engine.draft(waiting.gates[0].id, ANA, [1]),
            engine.cancel(waiting.id, None, by=CI, via="api"),
            opened(engine),
            engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30),
            engine.store.ping(),
        ):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await call
            assert time.monotonic() - began < 3
        await server.start()
        assert await engine.run(waiting.id) == waiting
        assert await names(engine, waiting) == ["run.opened", "gate.opened", "gate.opened"]
        assert (await claimed(engine)).run.id == settled.id
        found = [gate.id async for _, _, gate in engine.gates(only_open=False)]
        assert sorted(found) == sorted(gate.id for run in (settled, waiting) for gate in run.gates)


async def test_invariant_03_a_server_that_hangs_is_given_up_within_three_seconds(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        run = await opened(engine)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
            assert time.monotonic() - began < 3
        finally:
            os.kill(server.pid, signal.SIGCONT)
        run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        assert (await names(engine, run)).count("gate.settled") == 1


async def test_invariant_03_a_server_that_is_full_takes_all_of_a_step_or_nothing(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        run = await opened(engine)
        async with Redis.from_url(server.url) as admin:
            await admin.config_set("maxmemory", "1")
            for call in (
                engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED),
                opened(engine),
            ):
                with pytest.raises(StoreUnavailable):
                    await call
            await admin.config_set("maxmemory", "0")
        assert await engine.run(run.id) == run
        assert len([gate async for gate in engine.gates(only_open=False)]) == 1
        assert await names(engine, run) == ["run.opened", "gate.opened"]


async def test_invariant_03_a_server_that_became_a_replica_is_left_for_the_one_that_leads(
    tmp_path: Path,
) -> None:
    async with EmbeddedServer(tmp_path / "a") as old, EmbeddedServer(tmp_path / "b") as leader:
        name = tmp_path / "name.sock"
        name.symlink_to(tmp_path / "a" / "server.sock")
        async with engine_on(f"unix://{name}?db=0") as engine, Redis.from_url(old.url) as admin:
            await opened(engine)
            await admin.replicaof("127.0.0.1", 1)
            with pytest.raises(StoreUnavailable):
                await opened(engine)
            name.unlink()
            name.symlink_to(tmp_path / "b" / "server.sock")
            run = await opened(engine)
        async with engine_on(leader.url) as engine:
            assert (await engine.run(run.id)).id == run.id


# 4: all or nothing


async def test_invariant_04_questions_of_the_same_text_keep_their_own_answers(
    new_engine: NewEngine,
) -> None:
    engines = [new_engine(), new_engine()]
    calls = [question_call(f"question-{n}") for n in range(3)]
    run = await opened(engines[0], calls, [approval("call-a"), approval("call-b")])
    picks = {2: "Broad", 0: "Focused", 1: "Neither"}
    assert await nothing_due(engines[0])
    for number, label in picks.items():
        values = {"answers": {"Which scope should be used?": label}}
        await engines[number % 2].decide(
            run.gates[number].id, Action.ANSWER, by=ANA, via="slack", values=values
        )
        assert await nothing_due(engines[1])
    await engines[1].decide(run.gates[4].id, Action.DENY, by=BEN, via="slack", comment="b is in use")
    assert await nothing_due(engines[0])
    assert (await engines[0].run(run.id)).results() is None
    await engines[0].decide(run.gates[3].id, Action.APPROVE, by=CHO, via="slack")
    results = json.loads((await claimed(engines[1])).body)
    assert {i: r["value"]["answers"]["Which scope should be used?"] for i, r in results["calls"].items()} == {
        f"question-{number}": label for number, label in picks.items()
    }
    assert results["approvals"]["call-a"]["action"] == "approve"
    assert results["approvals"]["call-a"]["by"] == [CHO.model_dump()]
    assert results["approvals"]["call-b"] == results["approvals"]["call-b"] | {
        "action": "deny",
        "reason": "b is in use",
        "by": [BEN.model_dump()],
    }


async def test_invariant_04_a_run_of_128_gates_resumes_with_128_results(engine: ResumeEngine) -> None:
    calls = [question_call(f"q{n}") for n in range(64)]
    run = await opened(engine, calls, [approval(f"a{n}") for n in range(64)], state="x" * 2**20)
    assert len(run.gates) == 128
    answers = [Answer(n, Action.ANSWER, FOCUSED) for n in range(64)]
    answers += [Answer(n, Action.APPROVE) for n in range(64, 127)]
    run = await engine.decide_all(run.id, answers, by=ANA, via="slack")
    assert run.status == "waiting"
    assert await nothing_due(engine)
    await engine.decide(run.gates[127].id, Action.DENY, by=ANA, via="slack")
    resume = await claimed(engine)
    assert resume.state == "x" * 2**20
    results = json.loads(resume.body)
    assert list(results["calls"]) == [f"q{n}" for n in range(64)]
    assert [r["action"] for r in results["approvals"].values()] == ["approve"] * 63 + ["deny"]


async def test_invariant_04_one_bad_answer_of_many_stores_none(engine: ResumeEngine) -> None:
    run = await opened(engine, [question_call()], [approval("a"), approval("b")])
    answers = [
        Answer(0, Action.ANSWER, FOCUSED),
        Answer(1, Action.APPROVE),
        Answer(2, Action.ANSWER, FOCUSED),
    ]
    with pytest.raises(InvalidDecision):
        await engine.decide_all(run.id, answers, by=ANA, via="slack")
    assert await engine.run(run.id) == run
    await engine.decide(run.gates[2].id, Action.DENY, by=BEN, via="slack")
    answers[2] = Answer(2, Action.APPROVE)
    with pytest.raises(AlreadySettled):
        await engine.decide_all(run.id, answers, by=ANA, via="slack")
    assert [gate.status for gate in (await engine.run(run.id)).gates] == ["pending", "pending", "denied"]


async def test_invariant_04_a_batch_covers_everything_in_its_own_category_or_nothing_is_stored(
    engine: ResumeEngine,
) -> None:
    run = await opened(engine, [question_call("q")], [approval("a")])
    returned, approve = {"status": "returned", "value": FOCUSED}, {"action": "approve"}
    wrong_batches: list[tuple[dict[str, Any], list[str], list[str]]] = [
        ({"calls": {"q": returned}, "approvals": {}}, ["approvals.a"], []),
        (
            {"calls": {"a": returned}, "approvals": {"q": approve}},
            ["approvals.a", "calls.q"],
            ["approvals.q", "calls.a"],
        ),
        ({"calls": {"q": returned, "r": returned}, "approvals": {"a": approve}}, [], ["calls.r"]),
    ]
    for batch, missing, unexpected in wrong_batches:
        with pytest.raises(CoverageMismatch) as refused:
            await engine.answer_batch(run.id, batch, by=CI, via="api")
        assert refused.value.extra == {"missing": missing, "unexpected": unexpected}
    with pytest.raises(InvalidDecision) as wrong:
        await engine.answer_batch(
            run.id,
            {
                "calls": {"q": {"status": "returned", "value": {"answers": {"?": "x"}}}},
                "approvals": {"a": approve},
            },
            by=CI,
            via="api",
        )
    assert wrong.value.errors[0]["loc"] == ["calls", "q", "value", "answers", "?"]
    assert wrong.value.detail.startswith('calls.q.value.answers["?"]: ')
    assert await engine.run(run.id) == run
    run = await engine.answer_batch(
        run.id, {"calls": {"q": returned}, "approvals": {"a": approve}}, by=CI, via="api"
    )
    assert run.status == "settled"


async def test_invariant_04_on_expiry_the_real_answers_stay(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, [question_call("q"), question_call("r")], [approval("a")], timeout_s=60)
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    clock.tick(60)
    await engine.expire(run.id)
    results = await results_of(engine, run)
    assert results["calls"]["q"]["value"] == FOCUSED
    assert [results["calls"]["r"]["outcome"], results["approvals"]["a"]["outcome"]] == ["expired", "expired"]


# 5: resumed once in effect


async def test_invariant_05_a_retry_has_the_same_bytes_and_the_same_key(
    new_engine: NewEngine, clock: FrozenDateTimeFactory
) -> None:
    engine = new_engine()
    run = await opened(engine, [question_call()], [approval()], state="opaque")
    await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack", comment="not «this» 🧨")
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    first = await claimed(engine)
    assert await nothing_due(engine)
    await engine.resumes.nack(run.id, first.lease, by=CI, retry_in_s=5, error="busy")
    assert await nothing_due(engine)
    clock.tick(5)
    second = await claimed(engine, lease_s=10)
    clock.tick(9.999)
    assert await nothing_due(new_engine())
    clock.tick(0.001)
    third = await claimed(new_engine())  # the second never came back
    assert first.body == second.body == third.body
    assert first.key == second.key == third.key
    assert [first.tries, second.tries, third.tries] == [1, 2, 3]
    assert len({first.lease, second.lease, third.lease}) == 3
    assert third.lease_until == round(time.time() * 1000) + 30_000
    assert {first.state, second.state, third.state} == {"opaque"}
    with pytest.raises(LeaseLost):
        await engine.resumes.ack(run.id, second.lease, by=CI)
    run = await engine.resumes.ack(run.id, third.lease, by=CI)
    assert run.status == "resumed"
    assert (await names(engine, run)).count("run.resumed") == 1


async def test_invariant_05_three_engines_claim_each_run_once(new_engine: NewEngine) -> None:
    engines = [new_engine() for _ in range(3)]
    runs = [await opened(engines[n % 3]) for n in range(24)]
    await asyncio.gather(*(engines[0].cancel(run.id, None, by=CI, via="api") for run in runs))
    claims = [engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) for engine in engines * 3]
    had = [resume.run.id for batch in await asyncio.gather(*claims) for resume in batch]
    assert sorted(had) == sorted(run.id for run in runs)


async def test_invariant_05_an_ack_counts_once_and_ends_the_lease(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    resume = await claimed(engine)
    with pytest.raises(LeaseLost):
        await engine.resumes.ack(run.id, "lease_of_somebody_else", by=CI)
    acked = await engine.resumes.ack(run.id, resume.lease, by=CI)
    assert await engine.resumes.ack(run.id, resume.lease, by=CI) == acked
    with pytest.raises(LeaseLost):
        await engine.resumes.nack(run.id, resume.lease, by=CI)
    assert (await engine.run(run.id)).status == "resumed"
    assert (await names(engine, run)).count("run.resumed") == 1
    assert await nothing_due(engine)


async def test_invariant_05_a_nack_counts_once_and_takes_the_lease_back(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    first = await claimed(engine)
    nacked = await engine.resumes.nack(run.id, first.lease, by=CI, retry_in_s=0, error="down")
    assert (nacked.status, nacked.error) == ("settled", "down")
    assert await engine.resumes.nack(run.id, first.lease, by=CI, retry_in_s=0, error="down") == nacked
    with pytest.raises(LeaseLost):
        await engine.resumes.ack(run.id, first.lease, by=CI)
    second = await claimed(engine)
    assert second.tries == 2
    await engine.resumes.nack(
        run.id, first.lease, by=CI
    )  # a repeat that comes late takes nothing from anybody
    assert (await engine.resumes.ack(run.id, second.lease, by=CI)).status == "resumed"


async def test_invariant_05_a_late_ack_counts_while_nobody_else_has_the_run(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    resume = await claimed(engine, lease_s=10)
    clock.tick(3600)
    assert (await engine.resumes.ack(run.id, resume.lease, by=CI)).status == "resumed"
    assert await nothing_due(engine)


async def test_invariant_05_each_host_gets_its_own_runs(engine: ResumeEngine) -> None:
    runs = {host: await opened(engine, host=host) for host in ("api", "a13n", "my.host-1_x")}
    for run in runs.values():
        await engine.cancel(run.id, None, by=CI, via="api")
    for host, run in runs.items():
        assert (await claimed(engine, host)).run.id == run.id
        assert await nothing_due(engine, host)
    assert await nothing_due(engine, "other")


async def test_invariant_05_a_claimer_that_lost_its_lease_before_it_began_gets_nothing(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    run = await engine.run(run.id)
    partition = int(run.id[4:6])
    queue = engine.store.queue(partition, "api")
    [slow] = await engine.store.claim(queue, partition, lease_ms=1000, limit=1, token="slow")
    clock.tick(1)
    fast = await claimed(engine)
    assert await engine.store.handovers.start(run, slow.token, "{}") is None
    await engine.resumes.ack(run.id, fast.lease, by=CI)
    assert await engine.store.handovers.start(run, slow.token, "{}") is None
    assert (await engine.run(run.id)).status == "resumed"


async def test_invariant_05_a_deleted_run_leaves_the_queue_and_holds_up_nobody(
    engine: ResumeEngine, redis: Redis
) -> None:
    runs = [await opened(engine) for _ in range(3)]
    for run in runs:
        await engine.cancel(run.id, None, by=CI, via="api")
    gone, broken, sound = runs
    partition = Keys(int(gone.id[4:6]))
    await redis.delete(partition.run(gone.id))
    await redis.zadd(Keys(0).queue("api"), {"no id at all": 0})
    await redis.hset(Keys(int(broken.id[4:6])).run(broken.id), "0:decision", "{}")
    assert (await claimed(engine)).run.id == sound.id
    left = [key for p in range(4) for key in await redis.zrange(Keys(p).queue("api"), 0, -1)]
    assert sorted(left) == sorted([broken.id, sound.id])
    assert not await redis.hexists(leases(partition.queue("api")), gone.id)
    assert not await redis.exists(partition.run(gone.id))
    # gone between the read and the start: nothing of it comes back
    [claim] = await engine.store.claim(
        await _queued(redis, gone), partition.partition, lease_ms=1000, limit=1, token="t"
    )
    assert await engine.store.handovers.start(gone, claim.token, "{}") is None
    assert not await redis.exists(partition.run(gone.id))
    assert not await redis.zscore(partition.queue("api"), gone.id)


async def _queued(redis: Redis, run: Run) -> str:
    queue = Keys(int(run.id[4:6])).queue("api")
    await redis.zadd(queue, {run.id: 0})
    return queue


async def test_invariant_05_a_partition_that_is_always_full_does_not_starve_the_others(
    engine: ResumeEngine,
) -> None:
    runs = [await opened(engine) for _ in range(12)]
    for run in runs:
        await engine.cancel(run.id, None, by=CI, via="api")
    had = set()
    for _ in range(4):
        [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
        had.add(resume.run.id[4:6])
        await engine.resumes.nack(resume.run.id, resume.lease, by=CI, retry_in_s=0)
    assert had == {run.id[4:6] for run in runs}


# 4 to 6 together: whatever happens in whatever order, the store agrees with itself

EVENTS = [
    "answer",
    "approve",
    "deny",
    "decline",
    "draft",
    "cancel",
    "undeliverable",
    "expire",
    "wait",
    "claim",
    "ack",
    "nack",
]


class History:
    """Does things to one run of two calls and an approval, and checks after each that all parts of the store agree."""

    def __init__(self, engines: list[ResumeEngine], redis: Redis, clock: FrozenDateTimeFactory) -> None:
        self.engines, self.redis, self.clock = engines, redis, clock
        self.lease = "none"
        self.bodies: set[tuple[str, str]] = set()
        self.decisions: dict[int, object] = {}

    async def open(self) -> None:
        calls = [question_call("q"), question_call("r")]
        self.run = await opened(self.engines[0], calls, [approval("a")], timeout_s=60)
        self.keys = Keys(int(self.run.id[4:6]))

    async def do(self, event: str, index: int) -> None:
        engine, gate = self.engines[index % 2], self.run.gates[index].id
        values = FOCUSED if event == "answer" else None
        call: Coroutine[Any, Any, Any]
        match event:
            case "answer" | "approve" | "deny" | "decline":
                call = engine.decide(gate, Action(event), by=ANA, via="slack", values=values)
            case "draft":
                call = engine.draft(gate, ANA, [index])
            case "cancel":
                call = engine.cancel(self.run.id, None, by=CI, via="api", index=index)
            case "undeliverable":
                call = engine.undeliverable(self.run.id, "gone")
            case "expire":
                call = engine.expire(self.run.id)
            case "claim":
                call = self.claim(engine)
            case "ack":
                call = engine.resumes.ack(self.run.id, self.lease, by=CI)
            case "nack":
                call = engine.resumes.nack(self.run.id, self.lease, by=CI, retry_in_s=5)
            case _:
                self.clock.tick(25)
                return
        await outcome_of(call)

    async def claim(self, engine: ResumeEngine) -> None:
        for resume in await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=20):
            self.lease = resume.lease
            self.bodies.add((resume.body, resume.key))

    async def check(self) -> None:
        run = await self.engines[0].run(self.run.id)
        fields = await self.redis.hgetall(self.keys.run(run.id))
        pending = {gate.id for gate in run.gates if gate.pending}
        assert fields["open"] == str(len(pending))
        for index in (self.keys.open, self.keys.index("host:api")):
            assert await self.redis.zrange(index, 0, -1) == [run.id] * bool(pending)
        assert (run.status == "waiting") == run.open == (run.results() is None)
        deadlines = [gate.deadline for gate in run.gates if gate.pending]
        assert await self.redis.zscore(self.keys.expiries, run.id) == min(deadlines, default=None)
        queued = await self.redis.zscore(self.keys.queue("api"), run.id) is not None
        assert queued == (run.status in ("settled", "resuming"))
        assert len(self.bodies) <= 1
        for gate in run.gates:  # settled once, and for good
            if gate.decision is not None:
                assert self.decisions.setdefault(gate.doc.index, gate.decision) == gate.decision
                assert gate.status == gate.decision.outcome
                assert (gate.decision.by == ()) == (gate.status in NOBODY)
            else:
                assert gate.pending
                assert gate.doc.index not in self.decisions
        told = await events(self.engines[1], run.id)
        settled = [event["gate"] for event in told if event["event"] == "gate.settled"]
        assert sorted(settled) == sorted(gate.id for gate in run.gates if not gate.pending)
        assert sum(event["event"] == "run.settled" for event in told) == (not run.open)
        assert sum(event["event"] == "run.resumed" for event in told) == (run.status == "resumed")


NOBODY = {"expired", "cancelled", "undeliverable"}


@given(history=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 2)), max_size=14))
@example(
    [
        ("answer", 0),
        ("cancel", 1),
        ("deny", 2),
        ("claim", 0),
        ("nack", 0),
        ("wait", 0),
        ("claim", 1),
        ("ack", 1),
    ]
)
@example(
    [
        ("answer", 0),
        ("wait", 0),
        ("wait", 0),
        ("wait", 0),
        ("decline", 1),
        ("claim", 0),
        ("wait", 0),
        ("claim", 1),
    ]
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_invariant_04_to_06_any_history_leaves_a_store_that_agrees_with_itself(
    two_engines: list[ResumeEngine],
    redis: Redis,
    clock: FrozenDateTimeFactory,
    history: list[tuple[str, int]],
) -> None:
    await redis.flushall()
    told = History(two_engines, redis, clock)
    await told.open()
    await told.check()
    for event, index in history:
        await told.do(event, index)
        await told.check()


# 6: silence is a failure


async def silent(engine: ResumeEngine, clock: FrozenDateTimeFactory, outcome: str) -> Run:
    """A run that nobody answered, with drafts and a vote that never became decisions."""
    policy = ANYBODY | {"quorum": 2, "reject_quorum": 2}
    run = await opened(engine, [question_call("q")], [approval("a")], timeout_s=60, policy=policy)
    await engine.draft(run.gates[0].id, ANA, {"0": [0]})
    await engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", comment="fine by me")
    match outcome:
        case "expired":
            clock.tick(60)
            await engine.expire(run.id)
        case "cancelled":
            await engine.cancel(run.id, "no longer needed", by=CI, via="api")
        case "undeliverable":
            assert await engine.undeliverable(run.id, "channel_not_found") == 2
    return await engine.run(run.id)


@pytest.mark.parametrize(
    ("outcome", "call", "denial"),
    [
        ("expired", "No answer within 60 s.", "No decision within 60 s."),
        ("cancelled", "Cancelled: no longer needed", "Cancelled: no longer needed"),
        ("undeliverable", "Undeliverable: channel_not_found", "Undeliverable: channel_not_found"),
    ],
)
async def test_invariant_06_silence_has_its_own_word_and_names_nobody(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, outcome: str, call: str, denial: str
) -> None:
    run = await silent(engine, clock, outcome)
    resume = await claimed(engine)
    results = json.loads(resume.body)
    at = results["calls"]["q"].pop("decided_at")
    assert at == ("2026-03-01T12:01:00.000Z" if outcome == "expired" else "2026-03-01T12:00:00.000Z")
    assert results["calls"] == {"q": {"status": "failed", "message": call, "outcome": outcome, "by": []}}
    assert results["approvals"]["a"] == {
        "action": "deny",
        "reason": denial,
        "args_digest": run.gates[1].doc.args_digest,
        "outcome": outcome,
        "by": [],
        "decided_at": at,
    }
    settled = [e for e in await events(engine, run.id) if e["event"] == "gate.settled"]
    assert [e["outcome"] for e in settled] == [outcome] * 2
    assert [e["by"] for e in settled] == [None] * 2
    # a cancel has an author, who decided nothing
    author = {"key": "ci"} if outcome == "cancelled" else None
    assert [e.get("cancelled_by") for e in settled] == [author] * 2
    assert {gate.status for gate in run.gates}.isdisjoint({"answered", "approved", "denied", "declined"})
    assert all(gate.decision is not None and gate.decision.by == () for gate in run.gates)


async def test_invariant_06_a_person_s_no_is_told_apart_from_silence(engine: ResumeEngine) -> None:
    run = await opened(engine, [question_call("q")], [approval("a")])
    await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
    await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack")
    results = await results_of(engine, run)
    assert (results["calls"]["q"]["status"], results["calls"]["q"]["outcome"]) == ("failed", "declined")
    assert (results["approvals"]["a"]["action"], results["approvals"]["a"]["outcome"]) == ("deny", "denied")
    assert results["calls"]["q"]["by"] == [ANA.model_dump()]
    assert results["approvals"]["a"]["by"] == [BEN.model_dump()]


@pytest.mark.parametrize("outcome", list(Outcome)[4:])
async def test_invariant_06_no_action_of_a_person_leads_to_an_outcome_of_silence(outcome: Outcome) -> None:
    assert outcome not in {action.outcome for action in Action}


# 7: an answer is no permission


@pytest.mark.parametrize(
    "values",
    [
        {"response": "approve"},
        {"answers": {"May I delete_file?": "Yes"}},
        {"response": '{"action": "approve"}'},
    ],
)
async def test_invariant_07_no_value_approves_a_tool(engine: ResumeEngine, values: dict[str, Any]) -> None:
    question = question_call("call-2-question", ask("May I delete_file?", "Yes", "No"))
    run = await opened(engine, [question], [approval()])
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=values)
    assert run.gates[1].pending
    with pytest.raises(InvalidDecision):
        await engine.decide(run.gates[1].id, Action.ANSWER, by=ANA, via="slack", values=values)
    with pytest.raises(InvalidDecision):
        await engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", values=values)
    assert (await engine.run(run.id)).gates[1].pending


# 8: what was shown is what runs


async def test_invariant_08_an_approval_of_other_arguments_is_refused(engine: ResumeEngine) -> None:
    run = await opened(engine, [], [approval()])
    seen = approvals.digest({"path": "/tmp/other.log"})
    with pytest.raises(ArgumentsChanged):
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack", digest=seen)
    assert (await engine.run(run.id)).gates == run.gates
    assert (await events(engine, run.id))[-1]["reason"] == "arguments-changed"


async def test_invariant_08_the_digest_seen_is_kept_with_the_approval(engine: ResumeEngine) -> None:
    args = {"b": 1e3, "a": ["ü", "\u0000", "🧨"], "c": {}, "d": [], "e": 1.5}
    run = await opened(engine, [], [approval(args=json.dumps(args))])
    digest = approvals.digest({"e": 1.5, "d": [], "c": {}, "a": ["ü", "\u0000", "🧨"], "b": 1000})
    run = await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack", digest=digest)
    assert run.gates[0].doc.args == args
    decision = run.gates[0].decision
    assert decision is not None
    assert (decision.digest, decision.votes[0].digest) == (digest, digest)
    result = (await results_of(engine, run))["approvals"]["call-2"]
    assert (result["action"], result["args_digest"]) == ("approve", digest)
    assert [e["args_digest"] for e in await events(engine, run.id) if e["event"] == "gate.settled"] == [
        digest
    ]


@pytest.mark.parametrize(
    "tampered", [{"path": "/"}, {}, {"n": 2**60}], ids=["other", "empty", "not canonical"]
)
@pytest.mark.parametrize("with_digest", [False, True])
async def test_invariant_08_arguments_changed_in_the_store_do_not_run(
    engine: ResumeEngine, redis: Redis, tampered: dict[str, Any], with_digest: bool
) -> None:
    run = await opened(engine, [], [approval()])
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    key = Keys(int(run.id[4:6])).run(run.id)
    stored = json.loads(await redis.hget(key, "0:doc") or "")
    stored["args"] = tampered
    if with_digest:
        stored["args_digest"] = approvals.digest({"path": "/"})
    await redis.hset(key, "0:doc", json.dumps(stored))
    result = json.loads((await claimed(engine)).body)["approvals"]["call-2"]
    assert result["action"] == "deny"
    assert result["outcome"] == "superseded"
    assert result["by"] == []
    assert "not those that were approved" in result["reason"]


async def test_invariant_08_what_was_frozen_for_the_host_cannot_be_changed(
    engine: ResumeEngine, redis: Redis
) -> None:
    run = await opened(engine, [], [approval()])
    await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack")
    first = await claimed(engine)
    await engine.resumes.nack(run.id, first.lease, by=CI, retry_in_s=0)
    key = Keys(int(run.id[4:6])).run(run.id)
    decision = json.loads(await redis.hget(key, "0:decision") or "")
    await redis.hset(key, "0:decision", json.dumps(decision | {"outcome": "approved"}))
    assert (await claimed(engine)).body == first.body
