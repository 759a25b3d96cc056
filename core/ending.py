"""Ends tasks for certain: a cancel that got lost is said again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

AGAIN_S: Final = 0.1


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and return when each has ended, however it did. What they raise stays in them.

    redis-py sends under `asyncio.wait_for`, which until Python 3.12 loses a cancel that comes in the moment in which
    the send ends: one cancel is then not enough, and whoever waits for the task waits for ever.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=AGAIN_S)
