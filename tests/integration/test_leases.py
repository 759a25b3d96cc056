"""A worker's leases: renewed while it lives, gone soon after it died, and nobody works without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from core.agenda import LEASE_MS, Worker
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.leases import Leases
from core.store.connect import fast_client
from core.store.keys import Keys, leases
from core.store.queues import Due
from tests.conftest import now_ms
from tests.stores import engine_on

SHORT_MS = 300
NewEngine = Callable[[], ResumeEngine]


class Work:
    """A handler that goes on for as many seconds as it is told, and counts how it began and ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.began = self.done = self.stopped = 0
        self.started, self.ended = asyncio.Event(), asyncio.Event()

    async def __call__(self, member: str, tries: int) -> None:
        self.began += 1
        self.started.set()
        try:
            await asyncio.sleep(self._seconds)
            self.done += 1
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.ended.set()


async def due(redis: Redis, member: str) -> None:
    await redis.zadd(Keys(0).agenda, {member: now_ms()})


async def claimed(engine: ResumeEngine, token: str, *, lease_ms: int) -> list[Due]:
    return await engine.store.queues.claim(Keys(0).agenda, 0, lease_ms=lease_ms, limit=9, token=token)


def test_the_work_of_a_dead_worker_is_taken_up_within_seconds() -> None:
    assert LEASE_MS <= 10_000


async def test_work_that_outlasts_its_lease_is_done_once_while_its_worker_lives(
    new_engine: NewEngine, redis: Redis
) -> None:
    work, engines = Work(SHORT_MS * 4 / 1000), [new_engine(), new_engine()]
    workers = [Worker(e.store, e.bell, {"a": work}, lease_ms=SHORT_MS) for e in engines]
    await due(redis, "a:1")
    for worker in workers:
        worker.start()
    await asyncio.wait_for(work.ended.wait(), 10)
    for worker in workers:
        await worker.stop(5)
    assert (work.began, work.done, work.stopped) == (1, 1, 0)
    assert await redis.zcard(Keys(0).agenda) == await redis.exists(leases(Keys(0).agenda)) == 0


async def test_who_has_lost_the_lease_is_stopped(engine: ResumeEngine, redis: Redis) -> None:
    work = Work(60)
    worker = Worker(engine.store, engine.bell, {"a": work}, lease_ms=SHORT_MS)
    await due(redis, "a:1")
    worker.start()
    await work.started.wait()
    await redis.hset(leases(Keys(0).agenda), "a:1", '{"tries": 2, "token": "another", "until": 9e15}')
    await redis.zadd(Keys(0).agenda, {"a:1": 9e15})
    await asyncio.wait_for(work.ended.wait(), 10)
    await worker.stop(5)
    assert (work.began, work.done, work.stopped) == (1, 0, 1)
    assert await redis.zscore(Keys(0).agenda, "a:1") == 9e15


async def test_a_renewal_puts_off_the_end_and_tells_what_is_lost(engine: ResumeEngine, redis: Redis) -> None:
    await due(redis, "a:1")
    await due(redis, "a:2")
    held = await claimed(engine, "mine", lease_ms=1000)
    assert len(held) == 2
    assert await engine.store.queues.renew(Keys(0).agenda, held, lease_ms=60_000) == []
    assert await redis.zscore(Keys(0).agenda, "a:1") > now_ms() + 50_000
    await engine.store.queues.finish(Keys(0).agenda, "mine", {"a:1": None})
    lost = await engine.store.queues.renew(Keys(0).agenda, held, lease_ms=90_000)
    assert [due.member for due in lost] == ["a:1"]
    assert await redis.zscore(Keys(0).agenda, "a:1") is None


async def test_what_falls_due_meanwhile_stays_due_over_a_renewal(engine: ResumeEngine, redis: Redis) -> None:
    await due(redis, "a:1")
    held = await claimed(engine, "mine", lease_ms=1000)
    again = now_ms() + 5
    await redis.hset(
        leases(Keys(0).agenda), "a:1", f'{{"tries":1,"token":"mine","until":{again + 900},"again":{again}}}'
    )
    await engine.store.queues.renew(Keys(0).agenda, held, lease_ms=60_000)
    assert await engine.store.queues.finish(Keys(0).agenda, "mine", {"a:1": None}) == 1
    assert await redis.zscore(Keys(0).agenda, "a:1") == again


async def test_what_was_lost_before_anybody_began_is_not_begun(engine: ResumeEngine, redis: Redis) -> None:
    await due(redis, "a:1")
    [mine] = await claimed(engine, "mine", lease_ms=1)
    held = Leases(engine.store, SHORT_MS)
    held.hold([mine])
    assert await claimed(engine, "another", lease_ms=60_000)
    renewing = asyncio.create_task(held.run())
    while held.work(mine):
        held.hold([mine])
        await asyncio.sleep(0.01)
    renewing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await renewing


async def test_work_goes_on_over_a_restart_of_the_store(tmp_path: Path) -> None:
    work = Work(3 * SHORT_MS / 1000)
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        client: Any = fast_client(server.url)
        await due(client, "a:1")
        worker = Worker(engine.store, engine.bell, {"a": work}, lease_ms=SHORT_MS)
        worker.start()
        await work.started.wait()
        server.kill()
        await server.start()
        await asyncio.wait_for(work.ended.wait(), 10)
        await worker.stop(5)
        assert (work.began, work.done) == (1, 1)
        assert await client.zcard(Keys(0).agenda) == 0
        await client.aclose()
