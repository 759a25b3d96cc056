"""Invariant 5: a run is resumed once in effect."""

from __future__ import annotations

import asyncio
import time

import pytest
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.errors import LeaseLost
from core.gates import Action
from core.runs import Run
from core.store.keys import Keys, leases
from tests.conftest import ANA, BEN
from tests.integration.invariants import CI, NewEngine, claimed, names, nothing_due, opened
from tests.runs import FOCUSED, approval, question_call


async def test_invariant_05_a_retry_has_the_same_bytes_and_the_same_key(
    new_engine: NewEngine, clock: FrozenDateTimeFactory
) -> None:
    """looprig C56."""
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
    """looprig C42."""
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
    """looprig C56."""
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    run = await engine.run(run.id)
    partition = int(run.id[4:6])
    queue = engine.store.queues.of(partition, "api")
    [slow] = await engine.store.queues.claim(queue, partition, lease_ms=1000, limit=1, token="slow")
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
    [claim] = await engine.store.queues.claim(
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
