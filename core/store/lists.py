"""Lists beside the newest runs first: what expires next, what a person has said, what could not be delivered, counts.

Each is a sorted set a partition that the scripts keep, so a page costs the same in any crowd.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from core.counts import Counts
from core.store.connect import Client
from core.store.keys import Keys
from core.store.merging import merged
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

PAGE = 50


class Lists:
    """The lists of a store. Every method raises StoreUnavailable when Redis cannot be reached."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._redis: Any = client

    async def runs_between(
        self, partition: int, first_ms: int, last_ms: int, *, prefix: str
    ) -> AsyncGenerator[str]:
        """A partition's runs that were made from one ms to another and whose ids begin so, oldest first."""
        start = 0
        while True:
            async with reachable():
                rows = await self._redis.zrange(
                    Keys(partition).runs, first_ms, last_ms, byscore=True, offset=start, num=PAGE
                )
            for run_id in rows:
                if run_id.startswith(prefix):
                    yield run_id
            if len(rows) < PAGE:
                return
            start += PAGE

    async def expiring(self, after: tuple[int, str] | None = None) -> AsyncGenerator[tuple[int, str]]:
        """The runs with a pending gate by their next deadline, the soonest first, as (ms, id)."""
        sources = [self._soonest(Keys(p).expiries, after) for p in range(self._store.partitions)]
        async for item in merged(sources, newest_first=False):
            yield item

    async def _soonest(self, key: str, after: tuple[int, str] | None) -> AsyncGenerator[tuple[int, str]]:
        position, skip = after, 0
        while True:
            lowest: str | int = position[0] if position else "-inf"
            async with reachable():
                rows = await self._redis.zrangebyscore(
                    key, lowest, "+inf", start=skip, num=PAGE, withscores=True
                )
            found = [(int(score), member) for member, score in rows]
            fresh = [item for item in found if position is None or item > position]
            for item in fresh:
                yield item
            if len(rows) < PAGE:
                return
            # by position and not by number, for runs come and go meanwhile; a number only within one moment
            position, skip = (fresh[-1], 0) if fresh else (position, skip + PAGE)

    async def said(self, who: str, before: tuple[int, str] | None = None) -> AsyncGenerator[tuple[int, str]]:
        """The gates that somebody (`T1:U1`, `key:ci`) has had a word on, the latest first, as (ms, gate)."""
        keys = [Keys(p).said(who) for p in range(self._store.partitions)]
        async for item in merged(
            [self._store.newest_first(k, before, PAGE) for k in keys], newest_first=True
        ):
            yield item

    async def undeliverable(self, before: tuple[int, str] | None = None) -> AsyncGenerator[tuple[int, str]]:
        """The runs of which a gate could be shown to nobody, the latest first, as (ms, id)."""
        keys = [Keys(p).undeliverable for p in range(self._store.partitions)]
        async for item in merged(
            [self._store.newest_first(k, before, PAGE) for k in keys], newest_first=True
        ):
            yield item

    async def counts(self, soon_ms: int) -> Counts:
        """How much there is, in all partitions; ``soon_ms``: from now until when something counts as due soon."""
        now = self._store.clock.now_ms()

        async def of(keys: Keys) -> list[Any]:
            async with reachable():
                return list(
                    await asyncio.gather(
                        self._redis.zcard(keys.open),
                        self._redis.zcount(keys.expiries, now, now + soon_ms),
                        self._redis.zcard(keys.dead),
                        self._redis.zcard(keys.undeliverable),
                        self._redis.zrange(keys.open, 0, 0, withscores=True),
                    )
                )

        found = await asyncio.gather(*(of(Keys(p)) for p in range(self._store.partitions)))
        oldest = [(int(rows[0][1]), str(rows[0][0])) for *_, rows in found if rows]
        waiting, due_soon, dead, undeliverable = (sum(int(row[place]) for row in found) for place in range(4))
        return Counts(waiting, due_soon, dead, undeliverable, min(oldest, default=None))
