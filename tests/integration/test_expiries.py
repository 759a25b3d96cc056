"""Expiries: what nobody decided in time becomes visible soon after, all of it, once, whatever else is to be done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core import bell, sweeper
from core.agenda import Worker
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.gates import Action
from core.policy import Key
from core.runs import Run
from core.store.connect import fast_client
from core.store.keys import Keys
from core.sweeper import MAX_IDLE_S, PAGE, PUT_OFF_MS, STEP
from tests.conftest import ANA, now_ms
from tests.runs import FOCUSED, approval, question_call, run_request
from tests.stores import engine_on, events

CI = Key(key="ci")
NewEngine = Callable[[], ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


async def card(_run_id: str, _tries: int) -> None:
    """A handler that has nothing to draw on."""


def worker(engine: ResumeEngine) -> Worker:
    return Worker(engine.store, engine.bell, {"card": card})


async def opened(engine: ResumeEngine, *args: object, **more: object) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


def keys_of(run: Run) -> Keys:
    return Keys(int(run.id[4:6]))


async def waiting(redis: Redis) -> dict[Any, Any]:
    """When each run expires, as it is noted."""
    rows: list[Any] = [await redis.zrange(Keys(p).expiries, 0, -1, withscores=True) for p in range(4)]
    return {key: score for row in rows for key, score in row}


async def together(engine: ResumeEngine, count: int, **more: object) -> list[Run]:
    """So many runs of one partition."""
    runs: dict[str, list[Run]] = {}
    while max(map(len, runs.values()), default=0) < count:
        run = await opened(engine, **more)
        runs.setdefault(run.id[:6], []).append(run)
    return max(runs.values(), key=len)


async def test_a_day_passes_and_the_run_expires(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run, answered = await opened(engine, timeout_s=86_400), await opened(engine)
    await engine.decide(answered.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert await waiting(redis) == {run.id: run.gates[0].deadline}
    sweeping = worker(engine)
    await sweeping.run_once()
    clock.tick(86_399.999)
    assert await sweeping.run_once() == 0
    clock.tick(0.001)
    assert await sweeping.run_once() == 2  # the expiry, and the card that it changes
    run = await engine.run(run.id)
    assert (run.status, run.gates[0].status) == ("settled", "expired")
    assert (await engine.run(answered.id)).gates[0].status == "answered"
    assert await waiting(redis) == {}
    assert [await redis.zcard(Keys(partition).agenda) for partition in range(4)] == [0] * 4


async def test_each_gate_expires_at_its_own_deadline(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, [question_call(f"q{n}") for n in range(3)], timeout_s=60)
    for gate, seconds in zip(run.gates, (20, 0, 40), strict=True):
        if seconds:
            await engine.amendments.extend(gate.id, seconds, by=CI, via="api")
    for settled in (1, 2, 3):
        clock.tick(60 if settled == 1 else 20)
        await worker(engine).run_once()
        run = await engine.run(run.id)
        assert sum(gate.status == "expired" for gate in run.gates) == settled
        assert await waiting(redis) == (
            {run.id: run.gates[0 if settled == 1 else 2].deadline} if run.open else {}
        )


async def test_more_runs_than_a_step_and_a_page_expire_with_all_that_belongs_to_them(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    """Of several hosts, in different indexes, with one gate or more, with and without a card."""
    shapes: list[dict[str, object]] = [
        {"host": "api"},
        {"host": "other", "policy": {"responders": ["U1", "U2"]}},
        {"host": "api", "place": None, "policy": {"responders": ["key:ci"]}},
        {"host": "third", "calls": [question_call("a"), question_call("b")], "approvals": [approval()]},
    ]
    runs = [await opened(engine, **shapes[n % 4], timeout_s=60) for n in range(4 * (PAGE + STEP + 3))]
    late = await opened(engine, timeout_s=61)
    clock.tick(60)
    assert await worker(engine).run_once() >= len(runs)
    assert await waiting(redis) == {late.id: late.gates[0].deadline}
    for number, run in enumerate(runs):
        keys, expired = keys_of(run), await engine.run(run.id)
        assert (expired.status, {gate.status for gate in expired.gates}) == ("settled", {"expired"})
        assert await redis.zscore(keys.queue(run.doc.host), run.id) == now_ms()
        assert await redis.zscore(keys.settled, run.id) == now_ms()
        assert expired.rev == run.rev + 1
        if number % 17 == 0:
            told = [event["event"] for event in await events(engine, run.id)]
            assert told[1 + len(run.gates) :] == ["gate.settled"] * len(run.gates) + ["run.settled"]
    for partition in range(4):
        await engine.store.audit.verify(partition)
        listed = [k async for k in redis.scan_iter(f"{Keys(partition).open}*")]
        assert {run for key in listed for run in await redis.zrange(key, 0, -1)} <= {late.id}


async def test_several_workers_expire_each_run_once(
    new_engine: NewEngine, clock: FrozenDateTimeFactory
) -> None:
    engines = [new_engine() for _ in range(3)]
    runs = [await opened(engines[0], timeout_s=60) for _ in range(60)]
    clock.tick(60)
    await asyncio.gather(*(worker(engine).run_once() for engine in engines))
    for run in runs:
        told = [event["event"] for event in await events(engines[0], run.id)]
        assert told == ["run.opened", "gate.opened", "gate.settled", "run.settled"]


async def test_a_clock_that_goes_back_does_not_lose_the_expiry(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine, timeout_s=60)
    clock.tick(60)
    assert await engine.store.expiries.due(keys_of(run).partition, 10) == [run.id]
    clock.tick(-5)
    assert await engine.expire(run.id) == 0
    assert await waiting(redis) == {run.id: run.gates[0].deadline}
    clock.tick(5)
    assert await worker(engine).run_once() >= 1
    assert (await engine.run(run.id)).gates[0].status == "expired"


async def test_what_is_gone_and_what_is_no_run_is_forgotten(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    gone, there = await together(engine, 2, timeout_s=60)
    keys = keys_of(gone)
    await redis.delete(keys.run(gone.id))
    await redis.zadd(keys.expiries, {"no id at all": 0})
    clock.tick(60)
    await worker(engine).run_once()
    assert await waiting(redis) == {}
    assert not await redis.exists(keys.run(gone.id))
    assert not (await engine.run(there.id)).open


async def test_a_run_that_cannot_be_expired_is_put_off_and_holds_up_nobody(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    runs = await together(engine, STEP, timeout_s=60)
    broken, key = runs[0], keys_of(runs[0]).run(runs[0].id)
    await redis.hset(key, "0:deadline", "never")
    clock.tick(60)
    await worker(engine).run_once()
    assert not any([(await engine.run(run.id)).open for run in runs[1:]])
    assert await waiting(redis) == {broken.id: now_ms() + PUT_OFF_MS}
    await redis.hset(key, "0:deadline", str(broken.gates[0].deadline))
    clock.tick(PUT_OFF_MS / 1000)
    await worker(engine).run_once()
    assert not (await engine.run(broken.id)).open


async def test_a_running_worker_expires_on_time_while_its_slots_are_taken_and_rings(
    new_engine: NewEngine, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engine.POLL_S", 3600.0)
    here, there, busy = new_engine(), new_engine(), asyncio.Event()

    async def stuck(_run_id: str, _tries: int) -> None:
        busy.set()
        await asyncio.Event().wait()

    running = Worker(here.store, here.bell, {"card": stuck}, parallel=1)
    running.start()
    await there.bell.listening.wait()
    async with asyncio.timeout(20):
        runs = await asyncio.gather(*(opened(there, timeout_s=1) for _ in range(12)))
        await busy.wait()
        waits = [there.wait(run.id, 60) for run in runs]
        assert {run.gates[0].status for run in await asyncio.gather(*waits)} == {"expired"}
    await running.stop(0.01)


async def test_while_the_store_takes_no_writes_the_worker_is_behind_and_does_not_hurry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: asyncio.Queue[tuple[int, float]] = asyncio.Queue()

    async def heard(stopping: asyncio.Event, seconds: float) -> bool:
        rests.put_nowait((running.behind_ms, seconds))
        return await bell.heard(stopping, min(seconds, 0.05))

    monkeypatch.setattr(sweeper, "heard", heard)
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine, asyncio.timeout(20):
        client = fast_client(server.url)
        run = await opened(engine, place=None, policy={"responders": ["key:ci"]}, timeout_s=1)
        await client.config_set("min-replicas-to-write", 1)
        running = worker(engine)
        running.start()
        behind = 0
        while behind < 200:
            behind, rest = await rests.get()
            assert rest == MAX_IDLE_S or behind == 0
        assert (await engine.run(run.id)).gates[0].pending
        await client.config_set("min-replicas-to-write", 0)
        while behind:
            behind, _ = await rests.get()
        assert (await engine.wait(run.id, 10)).gates[0].status == "expired"
        await running.stop(1)
        await client.aclose()
