"""The agenda: leases, coalescing, backoff, wake-up at once, and a stop that leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core import agenda, bell
from core.agenda import FIRST_BACKOFF_MS, LAST_BACKOFF_MS, LEASE_MS, UNKNOWN_MS, TryAgain, Worker, backoff_ms
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.errors import StoreUnavailable
from core.gates import Action
from core.lookout import look
from core.policy import Key
from core.runs import Run
from core.store.keys import Keys, leases
from tests.conftest import ANA, now_ms
from tests.runs import FOCUSED, run_request
from tests.stores import engine_on

CI = Key(key="ci")
NewEngine = Callable[[], ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


class Log:
    """A handler that writes down what it was called with, and does what it is told."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.calls: list[tuple[str, int]] = []
        self._errors = list(errors)
        self.called = asyncio.Event()

    async def __call__(self, member: str, tries: int) -> None:
        self.calls.append((member, tries))
        self.called.set()
        error = self._errors.pop(0) if self._errors else None
        if error:
            raise error


class Held(Log):
    """A handler that does not end before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.done = 0
        self.at_once = 0
        self.most = 0

    async def __call__(self, member: str, tries: int) -> None:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await super().__call__(member, tries)
            await self.go.wait()
        finally:
            self.at_once -= 1
        self.done += 1


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  # what is waited for is a plain number
        await asyncio.sleep(0.001)


def worker(engine: ResumeEngine, parallel: int = 50, **handlers: agenda.Handler) -> Worker:
    return Worker(engine.store, engine.bell, handlers, parallel=parallel)


async def due(redis: Redis, *members: str, partition: int = 0, at: int | None = None) -> None:
    when = now_ms() if at is None else at
    await redis.zadd(Keys(partition).agenda, dict.fromkeys(members, when))


async def left(redis: Redis, partition: int = 0) -> list[str]:
    return [str(member) for member in await redis.zrange(Keys(partition).agenda, 0, -1)]


async def opened(engine: ResumeEngine, **more: object) -> Run:
    run, _ = await engine.suspend(run_request(**more), owner="ci")
    return run


# leases


async def test_a_member_is_worked_on_by_one_worker_at_a_time(new_engine: NewEngine, redis: Redis) -> None:
    log = Log()
    for partition in range(4):
        await due(redis, *(f"a:{partition}-{n}" for n in range(20)), partition=partition)
    await asyncio.gather(*(worker(new_engine(), a=log).run_once() for _ in range(3)))
    assert len(log.calls) == len(set(log.calls)) == 80
    assert [await left(redis, partition) for partition in range(4)] == [[]] * 4
    assert [await redis.exists(leases(Keys(partition).agenda)) for partition in range(4)] == [0] * 4


async def test_a_dead_worker_s_lease_runs_out(
    new_engine: NewEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    dead, alive, log = new_engine(), new_engine(), Log()
    await due(redis, "a:1")
    [claim] = await dead.store.queues.claim(Keys(0).agenda, 0, lease_ms=LEASE_MS, limit=10, token="dead")
    assert claim.member == "a:1"
    clock.tick((LEASE_MS - 1) / 1000)
    assert await worker(alive, a=log).run_once() == 0
    clock.tick(0.001)
    assert await worker(alive, a=log).run_once() == 1
    assert log.calls == [("1", 2)]


async def test_who_lost_the_lease_can_neither_finish_nor_delay_the_work(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    await due(redis, "a:1")
    await engine.store.queues.claim(Keys(0).agenda, 0, lease_ms=1000, limit=10, token="slow")
    clock.tick(1)
    await engine.store.queues.claim(Keys(0).agenda, 0, lease_ms=1000, limit=10, token="fast")
    ends = await redis.zscore(Keys(0).agenda, "a:1")
    await engine.store.queues.finish(Keys(0).agenda, "slow", {"a:1": None})
    await engine.store.queues.finish(Keys(0).agenda, "slow", {"a:1": now_ms() + 3_600_000})
    assert await redis.zscore(Keys(0).agenda, "a:1") == ends
    await engine.store.queues.finish(Keys(0).agenda, "fast", {"a:1": None})
    assert await left(redis) == []


async def test_what_changes_while_it_is_worked_on_is_done_once_more_and_once_only(
    new_engine: NewEngine, redis: Redis
) -> None:
    engine, held = new_engine(), Held()
    run = await opened(engine)
    working = asyncio.create_task(worker(engine, card=held).run_once())
    await held.called.wait()
    other = new_engine()
    for number in range(10):
        await other.draft(run.gates[0].id, ANA, {"0": [number % 2]})
    assert await worker(other, card=held).run_once() == 0
    assert len(held.calls) == 1
    held.go.set()
    assert await working == 2
    assert held.calls == [(run.id, 1), (run.id, 1)]


async def test_a_change_during_a_failure_waits_for_the_backoff(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await opened(engine)

    async def handler(member: str, tries: int) -> None:
        if tries == 1:
            await engine.draft(run.gates[0].id, ANA, [0])
            raise TryAgain(5000)
        log.calls.append((member, tries))

    log = Log()
    assert await worker(engine, card=handler).run_once() == 1
    clock.tick(4.999)
    assert await worker(engine, card=handler).run_once() == 0
    clock.tick(0.001)
    assert await worker(engine, card=handler).run_once() == 1
    assert log.calls == [(run.id, 2)]


# backoff


def test_the_backoff_grows_is_bounded_and_has_jitter() -> None:
    longest = 0
    for tries in range(1, 200):
        waits = {backoff_ms(tries) for _ in range(30)}
        expected = min(FIRST_BACKOFF_MS * 2 ** (tries - 1), LAST_BACKOFF_MS)
        assert expected >= longest
        longest = expected
        assert expected // 2 <= min(waits) < max(waits) <= expected
    assert longest == LAST_BACKOFF_MS


@pytest.mark.parametrize("error", [RuntimeError("broken"), StoreUnavailable(), TryAgain()])
async def test_what_fails_is_tried_again_later_and_later(
    engine: ResumeEngine,
    redis: Redis,
    clock: FrozenDateTimeFactory,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    monkeypatch.setattr(agenda, "backoff_ms", lambda tries: 100 * tries)
    log = Log(error, error)
    await due(redis, "a:1")
    for tries, wait_ms in ((1, 0), (2, 100), (3, 200)):
        if wait_ms:
            clock.tick((wait_ms - 1) / 1000)
            assert await worker(engine, a=log).run_once() == 0
            clock.tick(0.001)
        assert await worker(engine, a=log).run_once() == 1
        assert log.calls[-1] == ("1", tries)
    assert await left(redis) == []
    await due(redis, "a:1")
    await worker(engine, a=log).run_once()
    assert log.calls[-1] == ("1", 1)  # done is forgotten


async def test_a_handler_says_when_to_try_again(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    log = Log(TryAgain(in_ms=60_000))
    await due(redis, "a:1")
    assert await worker(engine, a=log).run_once() == 1
    assert await redis.zscore(Keys(0).agenda, "a:1") == now_ms() + 60_000
    clock.tick(60)
    assert await worker(engine, a=log).run_once() == 1
    assert await left(redis) == []


async def test_a_broken_handler_does_not_stop_the_others(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    broken, sound = Log(*[RuntimeError("broken")] * 5), Log()
    await due(redis, *(f"broken:{n}" for n in range(5)), *(f"sound:{n}" for n in range(5)))
    assert await worker(engine, broken=broken, sound=sound).run_once() == 10
    assert sorted(sound.calls) == [(str(n), 1) for n in range(5)]
    assert len(await left(redis)) == 5


async def test_a_broken_partition_does_not_stop_the_others(engine: ResumeEngine, redis: Redis) -> None:
    log = Log()
    await redis.set(Keys(0).agenda, "no sorted set")
    await due(redis, "a:1", partition=1)
    running = worker(engine, a=log)
    running.start()
    async with asyncio.timeout(10):
        await log.called.wait()
    await running.stop(1)
    assert log.calls == [("1", 1)]


# what nobody here knows


async def test_an_unknown_member_is_left_to_those_who_know_it_and_not_counted(
    new_engine: NewEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    old, new, log = new_engine(), new_engine(), Log()
    await due(redis, "remind:1", "no colon")
    for _ in range(3):
        assert await worker(old, a=log).run_once() == 2
        assert await worker(old, a=log).run_once() == 0
        clock.tick(UNKNOWN_MS / 1000)
    assert sorted(await left(redis)) == ["no colon", "remind:1"]
    await worker(new, remind=log).run_once()
    assert log.calls == [("1", 1)]
    assert await left(redis) == ["no colon"]


# waking up


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set each time a worker has nothing to do and begins to wait for a ring."""
    waits = asyncio.Event()

    async def heard(ring: asyncio.Event, seconds: float) -> bool:
        waits.set()
        return await bell.heard(ring, seconds)

    monkeypatch.setattr(agenda, "heard", heard)
    return waits


async def test_another_engine_s_commit_wakes_an_idle_worker_at_once(
    new_engine: NewEngine, idle: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agenda, "MAX_IDLE_S", 3600.0)
    here, there, log = new_engine(), new_engine(), Log()
    await here.bell.listening.wait()
    running = worker(here, card=log)
    running.start()
    async with asyncio.timeout(10):
        await idle.wait()
        run = await opened(there)
        await log.called.wait()
        for call in (
            there.draft(run.gates[0].id, ANA, [0]),
            there.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED),
        ):
            log.called.clear()
            idle.clear()
            await idle.wait()
            await call
            await log.called.wait()
    await running.stop(1)
    assert log.calls == [(run.id, 1)] * 3


async def test_an_idle_worker_asks_for_all_partitions_at_once_and_runs_no_script(
    engine: ResumeEngine, redis: Redis
) -> None:
    async def reads() -> int:
        return int((await redis.info("stats"))["total_reads_processed"])

    run = await opened(engine)
    await worker(engine, card=Log()).run_once()
    await redis.config_resetstat()
    before = await reads()
    seen = await look(engine.store, engine.store.queues.agenda)
    assert (seen.firsts, seen.due, seen.complete) == ((), [], True)
    seen = await look(engine.store, lambda partition: Keys(partition).expiries)
    assert (seen.due, seen.complete) == ([], True)
    assert seen.firsts == ((int(run.id[4:6]), run.gates[0].deadline),)
    assert await reads() == before + 2 + 1  # the last is for this line
    await worker(engine).run_once()
    assert "cmdstat_evalsha" not in await redis.info("commandstats")


async def test_a_change_during_the_work_wakes_the_worker_at_its_end(
    new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agenda, "MAX_IDLE_S", 3600.0)
    engine, held = new_engine(), Held()
    running = worker(engine, card=held)
    running.start()
    run = await opened(engine)
    async with asyncio.timeout(10):
        await held.called.wait()
        held.called.clear()
        await engine.draft(run.gates[0].id, ANA, [0])
        held.go.set()
        await held.called.wait()
    await running.stop(1)
    assert held.done == 2


async def test_a_worker_outlives_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agenda, "MAX_IDLE_S", 0.02)
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        log = Log()
        running = worker(engine, card=log)
        running.start()
        server.kill()
        with pytest.raises(StoreUnavailable):
            await engine.store.ping()
        await server.start()
        run = await opened(engine)
        async with asyncio.timeout(10):
            await log.called.wait()
        await running.stop(1)
        assert log.calls[0] == (run.id, 1)


async def test_how_far_the_worker_is_behind_is_told_also_under_load(
    engine: ResumeEngine, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agenda, "MAX_IDLE_S", 0.02)
    behind: list[int] = []
    done = asyncio.Event()

    async def handler(member: str, _tries: int) -> None:
        behind.append(running.behind_ms)
        if len(behind) == 12:
            done.set()

    running = worker(engine, parallel=4, a=handler)
    await due(redis, *(f"a:{n}" for n in range(12)), at=now_ms() - 5000)
    running.start()
    async with asyncio.timeout(10):
        await done.wait()
        await until(lambda: running.behind_ms == 0)
    await running.stop(1)
    assert max(behind) >= 5000


async def test_no_more_is_worked_on_at_once_than_allowed(engine: ResumeEngine, redis: Redis) -> None:
    held = Held()
    running = worker(engine, parallel=3, a=held)
    for partition in range(4):
        await due(redis, *(f"a:{partition}-{n}" for n in range(5)), partition=partition)
    running.start()
    async with asyncio.timeout(10):
        await until(lambda: held.at_once == 3)
        held.go.set()
        await until(lambda: held.done == 20)
    await running.stop(1)
    assert held.most == 3
    assert sorted(held.calls) == sorted((f"{p}-{n}", 1) for p in range(4) for n in range(5))


# stopping


async def test_a_stop_lets_the_work_end(engine: ResumeEngine, redis: Redis) -> None:
    held = Held()
    running = worker(engine, a=held)
    await due(redis, "a:1")
    running.start()
    await held.called.wait()
    stopping = asyncio.create_task(running.stop(30))
    await due(redis, "a:2")
    engine.bell.ring("due")
    held.go.set()
    async with asyncio.timeout(10):
        await stopping
    assert held.done == 1
    assert await left(redis) == ["a:2"]  # and takes nothing more


async def test_a_stop_cancels_what_does_not_end_in_time_and_its_lease_runs_out(
    new_engine: NewEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    engine, held, log = new_engine(), Held(), Log()
    running = worker(engine, a=held)
    await due(redis, "a:1")
    running.start()
    await held.called.wait()
    async with asyncio.timeout(10):
        await running.stop(0.01)
    assert (held.at_once, held.done) == (0, 0)
    assert await worker(new_engine(), a=log).run_once() == 0
    clock.tick(LEASE_MS / 1000)
    assert await worker(new_engine(), a=log).run_once() == 1
    assert log.calls == [("1", 2)]


async def test_a_stop_with_every_slot_taken_gives_back_what_was_not_begun(
    new_engine: NewEngine, redis: Redis
) -> None:
    engine, held, log = new_engine(), Held(), Log()
    running = worker(engine, parallel=1, a=held)
    for partition in range(4):
        await due(redis, f"a:{partition}", partition=partition)
    running.start()
    await held.called.wait()
    async with asyncio.timeout(10):
        await running.stop(0.01)
    [(begun, _)] = held.calls
    await worker(new_engine(), a=log).run_once()
    assert sorted(log.calls) == [(str(n), 1) for n in range(4) if str(n) != begun]


async def test_a_worker_that_was_never_started_can_be_stopped(engine: ResumeEngine) -> None:
    await worker(engine).stop(0)
