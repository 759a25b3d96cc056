"""The pace at which all processes together call the world outside."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.clock import Clock
from core.store import lua
from core.store.keys import pace_key
from core.store.reach import reachable

KEPT_MS: Final = 60_000
"""How long a turn is kept for a caller that does not come."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One call every so many ms, and so many at once after a rest. ``name`` is whatever shares it."""

    name: str
    every_ms: int
    burst: int


class Pace:
    """Turns in the store. Every method raises StoreUnavailable.

    ``whose``: the pace of one workspace, for each has its own limits; empty for the only one.
    """

    def __init__(self, client: Any, clock: Clock, whose: str = "") -> None:
        self._redis = client
        self._clock = clock
        self._whose = (whose,) if whose else ()

    def of(self, whose: str) -> Pace:
        """The pace of one of several workspaces."""
        return Pace(self._redis, self._clock, whose)

    async def turn(self, what: str, who: str, rates: Sequence[Rate] = ()) -> int:
        """How many ms a caller has to wait before it may do something; 0: it may.

        Who has to wait has a turn, by the name ``who``, and asks again when it has come. ``what`` may be held.
        """
        name = hashlib.sha256(who.encode()).hexdigest()[:20]
        keys = [pace_key("hold", *self._whose, what), pace_key("turn", *self._whose, what, name)]
        args: list[str | int] = [self._clock.now_ms(), KEPT_MS]
        for rate in rates:
            keys.append(pace_key("rate", *self._whose, rate.name))
            args += [rate.every_ms, rate.burst]
        async with reachable():
            return int(await lua.PACE(self._redis, keys, args))

    async def hold(self, what: str, for_ms: int) -> None:
        """Have nobody do something for so many ms, in any process."""
        now = self._clock.now_ms()
        async with reachable():
            await lua.HOLD(self._redis, [pace_key("hold", *self._whose, what)], [now, now + for_ms])
