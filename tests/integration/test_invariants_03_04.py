"""Invariants 3 and 4: what was acknowledged is there, and a batch counts whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.embedded import EmbeddedServer
from core.engine import Answer, ResumeEngine
from core.errors import AlreadySettled, CoverageMismatch, InvalidDecision, StoreUnavailable
from core.gates import Action
from tests.conftest import ANA, BEN, CHO
from tests.integration.invariants import CI, NewEngine, claimed, names, nothing_due, opened, results_of
from tests.runs import FOCUSED, approval, question_call
from tests.stores import engine_on

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
    """looprig C42, C46."""
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
