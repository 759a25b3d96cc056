"""A bell that rings after each change, so that nobody has to poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Changes:
    """Counts changes and wakes whoever waits for the next one. One event loop only."""

    def __init__(self) -> None:
        self.rev = 0
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        self.rev += 1
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def after(self, rev: int) -> int:
        """Return the current revision as soon as it is greater than `rev`."""
        while self.rev <= rev:
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)
        return self.rev

    async def until(self, predicate: Callable[[], T], timeout: float = 10) -> T:
        """Return the first true value of `predicate()`, looked at now and after each change.

        Raises `TimeoutError` after `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            while True:
                rev = self.rev
                if value := predicate():
                    return value
                await self.after(rev)
