"""Retention: what was settled long ago is deleted whole, in steps, by the agenda; what waits is never touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core import retention
from core.agenda import TryAgain, Worker
from core.engine import ResumeEngine
from core.errors import LeaseLost, NotFound
from core.policy import Key
from core.retention import EVERY_MS, Retention
from core.runs import Run
from core.store.keys import Keys, leases
from tests.conftest import now_ms
from tests.runs import approval, question_call, run_request
from tests.stores import events

CI = Key(key="ci")
NewEngine = Callable[[], ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


def worker(engine: ResumeEngine, *, runs_days: int = 30, audit_days: int = 400) -> tuple[Worker, Retention]:
    """A worker as the service has it, as far as this goes."""
    kept = Retention(engine.store, runs_days=runs_days, audit_days=audit_days)
    return Worker(engine.store, engine.bell, {"trim": kept.trim}), kept


async def trimmed(engine: ResumeEngine, **days: int) -> None:
    """Let a worker do all that is due."""
    doing, kept = worker(engine, **days)
    await kept.keep_due()
    await doing.run_once()


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def resumed(engine: ResumeEngine, run: Run) -> None:
    await engine.cancel(run.id, None, by=CI, via="api")
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    await engine.resumes.ack(run.id, resume.lease, by=CI)


async def names(redis: Redis) -> set[str]:
    return {str(key) async for key in redis.scan_iter("ag:*")}


def keys_of(run: Run) -> Keys:
    return Keys(int(run.id[4:6]))


async def test_a_settled_run_is_kept_for_its_time_and_then_deleted_whole(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, [question_call("a"), question_call("b")], [approval()], state="opaque")
    clock.tick(timedelta(hours=1))
    await resumed(engine, run)
    clock.tick(timedelta(days=30))
    await trimmed(engine)
    assert (await engine.run(run.id)).status == "resumed"
    told = await events(engine, run.id)

    clock.tick(0.001)
    clock.tick(timedelta(milliseconds=EVERY_MS))
    await trimmed(engine)
    with pytest.raises(NotFound):
        await engine.run(run.id)
    keys = keys_of(run)
    assert await names(redis) == {
        keys.audit,
        *(Keys(partition).agenda for partition in range(4)),
        *(leases(Keys(partition).agenda) for partition in range(4)),
        *(await names(redis) & {Keys(partition).audit_head for partition in range(4)}),
    }
    assert await redis.zrange(keys.agenda, 0, -1) == [f"trim:{keys.partition}"]
    assert [gate async for gate in engine.gates(only_open=False)] == []
    # what happened to it is in the audit, and the host took it up: nothing was lost
    assert await events(engine, run.id) == told
    assert [e["event"] for e in told][-1] == "run.resumed"


async def test_a_run_that_nobody_took_up_is_deleted_too_and_the_audit_says_so(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    clock.tick(timedelta(days=30, milliseconds=1))
    await trimmed(engine)
    last = (await events(engine, run.id))[-1]
    assert (last["event"], last["by"], last["from"], last["reason"]) == (
        "run.lost",
        None,
        "clock",
        "retention",
    )
    assert await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30) == []
    keys = keys_of(run)
    assert await redis.exists(keys.queue("api"), leases(keys.queue("api")), keys.trail(run.id)) == 0
    await engine.store.audit.verify(keys.partition)


async def test_a_run_that_a_host_has_in_hand_stays_until_its_lease_ends(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    slow, quick = await opened(engine), await opened(engine)
    for run in (slow, quick):
        await engine.cancel(run.id, None, by=CI, via="api")
    clock.tick(timedelta(days=30))
    held = {r.run.id: r for r in await engine.resumes.claim("api", limit=2, wait_s=0, lease_s=3600)}
    clock.tick(1)
    await trimmed(engine)
    assert (await engine.resumes.ack(quick.id, held[quick.id].lease, by=CI)).status == "resumed"
    clock.tick(timedelta(hours=1, seconds=1))
    await trimmed(engine)
    for run in (slow, quick):
        with pytest.raises(NotFound):
            await engine.run(run.id)
    assert [e["event"] for e in await events(engine, slow.id)][-2:] == ["run.claimed", "run.lost"]
    assert [e["event"] for e in await events(engine, quick.id)][-1] == "run.resumed"
    with pytest.raises((NotFound, LeaseLost)):
        await engine.resumes.ack(slow.id, held[slow.id].lease, by=CI)


async def test_what_waits_is_never_deleted_and_counts_from_when_it_was_settled(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, timeout_s=30 * 86_400)
    clock.tick(timedelta(days=29, hours=23))
    await trimmed(engine, runs_days=1)
    assert (await engine.run(run.id)).status == "waiting"
    clock.tick(timedelta(hours=2))
    await trimmed(engine, runs_days=1)  # the worker finds it expired first
    assert (await engine.run(run.id)).status == "settled"
    clock.tick(timedelta(hours=25))
    await trimmed(engine, runs_days=1)
    with pytest.raises(NotFound):
        await engine.run(run.id)


async def test_a_run_given_back_again_and_again_counts_from_when_it_was_settled(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    for _ in range(2):
        clock.tick(timedelta(hours=12))
        [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
        await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=3600)
    clock.tick(1)
    await trimmed(engine, runs_days=1)
    with pytest.raises(NotFound):
        await engine.run(run.id)


async def test_old_events_are_deleted_and_the_chain_goes_on(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    for _ in range(3):
        for _ in range(6):
            await resumed(engine, await opened(engine))
        clock.tick(timedelta(days=200))
    before = [event async for event in engine.store.audit.events()]
    await trimmed(engine)
    after = [event async for event in engine.store.audit.events()]
    assert after == before[-len(after) :]
    assert len(before) - len(after) == 6 * 6
    for partition in range(4):
        chain = await engine.store.audit.verify(partition)
        assert chain.count == sum(event.position.partition == partition for event in after)


async def test_a_kept_run_whose_first_events_were_deleted_is_told_from_there(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, timeout_s=20 * 86_400)
    clock.tick(timedelta(days=10))
    await engine.cancel(run.id, None, by=CI, via="api")
    await trimmed(engine, audit_days=5)
    assert [e["event"] for e in await events(engine, run.id)] == ["gate.settled", "run.settled"]


async def test_more_than_one_step_is_done_at_once_and_in_bounded_steps(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STEP", 3)
    runs = [await opened(engine) for _ in range(20)]
    for run in runs:
        await engine.cancel(run.id, None, by=CI, via="api")
    clock.tick(timedelta(days=31))
    kept = Retention(engine.store, runs_days=30, audit_days=400)
    full = max(range(4), key=lambda p: sum(int(run.id[4:6]) == p for run in runs))
    count = sum(int(run.id[4:6]) == full for run in runs)
    assert count > 3
    with pytest.raises(TryAgain) as again:
        await kept.trim(str(full))
    assert again.value.in_ms == 0
    assert len([e async for e in engine.gates(only_open=False)]) == 17
    await trimmed(engine)
    assert [e async for e in engine.gates(only_open=False)] == []
    with pytest.raises(TryAgain) as again:
        await kept.trim(str(full))
    assert again.value.in_ms == EVERY_MS


async def test_runs_that_hosts_have_in_hand_do_not_hold_up_the_others(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "STEP", 2)
    held = [await opened(engine) for _ in range(12)]
    for run in held:
        await engine.cancel(run.id, None, by=CI, via="api")
    clock.tick(1)
    others = [await opened(engine, host="other") for _ in range(12)]
    for run in others:
        await engine.cancel(run.id, None, by=CI, via="api")
    clock.tick(timedelta(days=31))
    assert len(await engine.resumes.claim("api", limit=100, wait_s=0, lease_s=3600)) == 12
    await trimmed(engine)
    left = {run.id async for _, run, _ in engine.gates(only_open=False)}
    assert left == {run.id for run in held}


async def test_the_agenda_has_one_member_a_partition_however_many_workers_start(
    new_engine: NewEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    for _ in range(3):
        await Retention(new_engine().store, runs_days=30, audit_days=400).keep_due()
    for partition in range(4):
        assert await redis.zrange(Keys(partition).agenda, 0, -1) == [f"trim:{partition}"]
    engine = new_engine()
    doing, kept = worker(engine)
    assert await doing.run_once() == 4
    due = [await engine.store.queues.next_due(Keys(partition).agenda) for partition in range(4)]
    assert due == [now_ms() + EVERY_MS] * 4
    # a worker that starts meanwhile changes nothing
    await kept.keep_due()
    assert [await engine.store.queues.next_due(Keys(partition).agenda) for partition in range(4)] == due
    clock.tick(EVERY_MS / 1000)
    assert await doing.run_once() == 4


async def test_a_run_whose_hash_is_gone_leaves_the_index(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    keys = keys_of(run)
    await redis.delete(keys.run(run.id))
    clock.tick(timedelta(days=31))
    await trimmed(engine)
    assert await redis.exists(keys.settled, keys.trail(run.id)) == 0


async def test_no_event_of_a_deleted_run_is_written_any_more(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)
    await resumed(engine, run)
    clock.tick(timedelta(days=31))
    await trimmed(engine)
    told = await events(engine, run.id)
    await engine.store.refuse(run, run.gates[0].id, by=CI.model_dump(), via="api", reason="expired")
    await engine.store.set_cards(run, [], event="card.posted")
    assert await events(engine, run.id) == told
    assert json.dumps(told).count("run.lost") == 0
