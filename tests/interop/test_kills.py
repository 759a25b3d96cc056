"""askgate killed before real hosts: what they wait for is answered, and once."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.engine import ResumeEngine
from tests.interop import kills_talk
from tests.interop.a13n_server import A13n
from tests.interop.conftest import Motus
from tests.interop.kills import kill
from tests.interop.looprig_standin import Looprig
from tests.interop.victims import OfA13n, OfLooprig, OfMotus

pytestmark = pytest.mark.timeout(900)

SEED, TIMES = 7, 20


async def test_two_kills_before_a13n_lose_nothing_and_answer_nothing_twice(
    redis: Redis, redis_url: str, a13n: A13n, tmp_path: Path
) -> None:
    await kill(redis_url, OfA13n(a13n), seed=SEED, times=2, folder=tmp_path, moments=100)


@pytest.mark.slow
async def test_twenty_kills_before_a13n(redis: Redis, redis_url: str, a13n: A13n, tmp_path: Path) -> None:
    await kill(redis_url, OfA13n(a13n), seed=SEED + 1, times=TIMES, folder=tmp_path)


async def test_a_kill_before_motus_loses_nothing_and_answers_nothing_twice(
    redis: Redis, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    await kill(redis_url, OfMotus(motus), seed=SEED, times=1, folder=tmp_path, moments=250)


@pytest.mark.slow
async def test_twenty_kills_before_motus(redis: Redis, redis_url: str, motus: Motus, tmp_path: Path) -> None:
    await kill(redis_url, OfMotus(motus), seed=SEED + 1, times=TIMES, folder=tmp_path)


@pytest.mark.parametrize(("dialect", "seed"), [("serve", SEED), ("factory", SEED + 1)])
async def test_a_kill_before_looprig_loses_nothing_and_answers_nothing_twice(
    redis: Redis, redis_url: str, looprig: Looprig, tmp_path: Path, dialect: str, seed: int
) -> None:
    await kill(redis_url, OfLooprig(looprig, dialect), seed=seed, times=1, folder=tmp_path, moments=400)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["serve", "factory"])
async def test_twenty_kills_before_looprig(
    redis: Redis, redis_url: str, looprig: Looprig, tmp_path: Path, dialect: str
) -> None:
    await kill(redis_url, OfLooprig(looprig, dialect), seed=SEED, times=TIMES, folder=tmp_path)


async def test_two_kills_in_a_conversation_lose_nothing_and_say_nothing_twice(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as thread:
        for points in (kills_talk.SAYING, kills_talk.ASKING):
            await kills_talk.kill(thread, seed=SEED, times=1, points=points)


@pytest.mark.slow
async def test_twenty_kills_in_a_conversation(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as thread:
        await kills_talk.kill(thread, seed=SEED, times=TIMES)
