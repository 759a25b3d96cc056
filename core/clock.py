"""Time, as milliseconds since 1970 UTC. The engine asks one clock and passes its answer into every script."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol

REANCHOR_S = 60.0


class Clock(Protocol):
    def now_ms(self) -> int: ...


class WallClock:
    """This machine's wall clock (the one that freezegun moves)."""

    def now_ms(self) -> int:
        return int(time.time() * 1000)


class StoreClock:
    """The store's clock, carried on by the monotonic one, so that replicas with wrong wall clocks agree.

    ``read`` returns the server's time in ms; call ``anchor`` at start and every ``REANCHOR_S`` seconds.
    """

    def __init__(self, read: Callable[[], Awaitable[int]]) -> None:
        self._read = read
        self._offset: float | None = None

    async def anchor(self) -> None:
        before = time.monotonic()
        server = await self._read()
        after = time.monotonic()
        # the server read its clock somewhere between the two; the middle halves the error
        self._offset = server - (before + after) / 2 * 1000

    def now_ms(self) -> int:
        if self._offset is None:
            raise RuntimeError("anchor() the clock before the first use")
        return int(self._offset + time.monotonic() * 1000)


def iso(ms: int) -> str:
    """`2026-01-01T00:00:00.000Z`: the one form of a time in the API and in the audit."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
