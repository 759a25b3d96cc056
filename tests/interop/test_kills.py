"""askgate killed before real hosts: what they wait for is answered, and once."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.engine import ResumeEngine
from tests.interop import kills_talk
from tests.interop.a13n_server import A13n
from tests.interop.conftest import Motus
from tests.interop.kills import before, kill
from tests.interop.looprig_standin import Looprig
from tests.interop.victims import OfA13n, OfLooprig, OfMotus

pytestmark = pytest.mark.timeout(900)

TIMES = 20


async def test_two_kills_before_a13n_lose_nothing_and_answer_nothing_twice(
    a13n: A13n, redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    async with before(OfA13n(a13n), redis_url, tmp_path) as stage:
        await kill(stage, seed=11, times=2, points=stage.certain)


@pytest.mark.slow
async def test_twenty_kills_before_a13n(a13n: A13n, redis: Redis, redis_url: str, tmp_path: Path) -> None:
    async with before(OfA13n(a13n), redis_url, tmp_path) as stage:
        await kill(stage, seed=7, times=TIMES)


async def test_a_kill_before_motus_loses_nothing_and_answers_nothing_twice(
    motus: Motus, redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    async with before(OfMotus(motus), redis_url, tmp_path) as stage:
        await kill(stage, seed=12, times=1, points=stage.certain)


@pytest.mark.slow
async def test_twenty_kills_before_motus(motus: Motus, redis: Redis, redis_url: str, tmp_path: Path) -> None:
    async with before(OfMotus(motus), redis_url, tmp_path) as stage:
        await kill(stage, seed=7, times=TIMES)


@pytest.mark.parametrize(("dialect", "seed"), [("serve", 21), ("factory", 29)])
async def test_a_kill_before_looprig_loses_nothing_and_answers_nothing_twice(
    looprig: Looprig, redis: Redis, redis_url: str, tmp_path: Path, dialect: str, seed: int
) -> None:
    async with before(OfLooprig(looprig, dialect), redis_url, tmp_path) as stage:
        await kill(stage, seed=seed, times=1, points=stage.certain)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["serve", "factory"])
async def test_twenty_kills_before_looprig(
    looprig: Looprig, redis: Redis, redis_url: str, tmp_path: Path, dialect: str
) -> None:
    async with before(OfLooprig(looprig, dialect), redis_url, tmp_path) as stage:
        await kill(stage, seed=7, times=TIMES)


async def test_two_kills_in_a_conversation_lose_nothing_and_say_nothing_twice(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as stage:
        for points in (kills_talk.SAYING, kills_talk.ASKING):
            await kill(stage, seed=4, times=1, points=points)


@pytest.mark.slow
async def test_twenty_kills_in_a_conversation(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as stage:
        await kill(stage, seed=7, times=TIMES)
