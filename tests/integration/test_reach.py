"""A call to the store may be given up at any moment, and whoever made it is cancelled then."""

from __future__ import annotations

import asyncio

import pytest

from core.engine import ResumeEngine

TURNS = 60
"""Of the event loop: more than a call takes."""


async def test_a_task_that_is_cancelled_in_a_call_ends_however_far_the_call_is(engine: ResumeEngine) -> None:
    """looprig C44."""

    async def read_on() -> None:
        while True:
            await engine.store.ping()

    for turns in range(TURNS):
        task = asyncio.create_task(read_on())
        for _ in range(turns):
            await asyncio.sleep(0)
        cancels = 0
        while not task.done():
            task.cancel()
            cancels += 1
            await asyncio.wait([task], timeout=1)
        assert cancels == 1, f"after {turns} turns of the loop: {cancels}"


async def test_a_time_limit_around_calls_is_kept(engine: ResumeEngine) -> None:
    async def read_on(seconds: float) -> None:
        async with asyncio.timeout(seconds) as limit:
            while not limit.expired():
                await engine.store.ping()

    for ms in range(1, 20):
        with pytest.raises(TimeoutError):
            await read_on(ms / 1000)
