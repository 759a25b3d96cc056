"""Who looks at their Home these days, and what it shows: so that it is drawn again when something of theirs changes."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.store import lua
from core.store.connect import Client
from core.store.keys import BELL, Keys, leases
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

WATCHED_MS = 24 * 3600 * 1000
"""How long after its opening a Home is drawn again: nobody says when they leave it."""
WATCHERS = 500
"""Of how many people, those who opened it last."""
PERSON = "person"
"""What the agenda has to do about a Home: the member is `person:T1:U1`."""


@dataclass(frozen=True, slots=True)
class HomeShown:
    """What somebody's Home is to show: the list that they chose, as text; and the digest of what was last drawn."""

    query: str
    drawn: str = ""


class Homes:
    """The Homes of a store. Every method raises StoreUnavailable when Redis cannot be reached or take a write."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._redis: Any = client

    def _partition(self, who: str) -> int:
        return zlib.crc32(who.encode()) % self._store.partitions

    async def opened(self, who: str) -> None:
        """Somebody (`T1:U1`) looks at it from here on. Each partition knows, for its scripts see no other."""
        now = self._store.clock.now_ms()

        async def note(key: str) -> None:
            async with reachable(), self._redis.pipeline(transaction=False) as pipe:
                pipe.zadd(key, {who: now})
                pipe.zremrangebyscore(key, "-inf", now - WATCHED_MS)
                pipe.zremrangebyrank(key, 0, -WATCHERS - 1)
                pipe.pexpire(key, WATCHED_MS)
                await pipe.execute()

        await asyncio.gather(*(note(Keys(p).homes) for p in range(self._store.partitions)))

    async def watchers(self, partition: int) -> list[str]:
        """Who may be looking, as a partition knows it."""
        since = self._store.clock.now_ms() - WATCHED_MS
        async with reachable():
            return list(await self._redis.zrange(Keys(partition).homes, since, "+inf", byscore=True))

    async def shown(self, who: str) -> HomeShown | None:
        """What somebody's Home is to show, if they opened it within a day."""
        async with reachable():
            query, drawn = await self._redis.hmget(self._home(who), "query", "drawn")
        return HomeShown(query, drawn or "") if query else None

    async def choose(self, who: str, query: str) -> None:
        """Somebody wants to see this list there. What was drawn counts no more."""
        async with reachable(), self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(self._home(who), "query", query)
            pipe.hdel(self._home(who), "drawn")
            pipe.pexpire(self._home(who), WATCHED_MS)
            await pipe.execute()

    async def drawn(self, who: str, digest: str) -> None:
        """Note what was drawn. It is another thing than what is to be shown, which may have changed meanwhile."""
        async with reachable(), self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(self._home(who), "drawn", digest)
            pipe.pexpire(self._home(who), WATCHED_MS, nx=True)
            await pipe.execute()

    def _home(self, who: str) -> str:
        return Keys(self._partition(who)).home(who)

    async def due(self, who: str, in_ms: int = 0) -> None:
        """Have somebody's Home drawn again: once, however often that is asked for until then."""
        partition, now = self._partition(who), self._store.clock.now_ms()
        agenda = self._store.queues.agenda(partition)
        command = {
            "now": now,
            "member": f"{PERSON}:{who}",
            "due": now + in_ms,
            "bell": BELL,
            "partition": f"{partition:02d}",
        }
        async with reachable():
            await lua.SOON(self._redis, [agenda, leases(agenda)], [json.dumps(command)])
