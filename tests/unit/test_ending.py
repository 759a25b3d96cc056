"""What is ended has ended, also when it does not hear the first cancel."""

from __future__ import annotations

import asyncio

from core.ending import end


async def deaf(times: int) -> None:
    """Loses so many cancels, as `asyncio.wait_for` may before Python 3.12."""
    for _ in range(times):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    await asyncio.Event().wait()


async def test_tasks_that_lose_a_cancel_are_ended_all_the_same() -> None:
    tasks = [asyncio.create_task(deaf(times)) for times in (0, 1, 2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await end(tasks)
    assert all(task.cancelled() for task in tasks)


async def test_what_has_ended_already_keeps_its_end() -> None:
    async def failing() -> None:
        raise ValueError("kept")

    task = asyncio.create_task(failing())
    await asyncio.wait([task])
    await end([task])
    assert isinstance(task.exception(), ValueError)
    await end([])
