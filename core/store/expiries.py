"""When runs expire: one sorted set a partition, apart from the agenda, because expiring takes no lease.

`scripts/expire.lua` is one atomic step and idempotent: two workers that expire a run expire it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from core.clock import Clock
from core.store import lua
from core.store.keys import Keys, leases
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store


class _Waiting(NamedTuple):
    """What the script has to know of a run beside its id: its host, and the indexes that it stands in."""

    run_id: str
    host: str
    indexes: list[str]

    def keys(self, keys: Keys) -> list[str]:
        """Those of its partition that are its own, in the order of the script."""
        queue = keys.queue(self.host)
        own = [keys.run(self.run_id), keys.trail(self.run_id), queue, leases(queue)]
        return own + list(map(keys.index, self.indexes))


class Expiries:
    """The expiries of a store. Every method raises StoreUnavailable when Redis cannot be reached or take a write."""

    def __init__(self, store: Store, client: Any, clock: Clock) -> None:
        self._store = store
        self._redis = client
        self._clock = clock

    async def due(self, partition: int, limit: int) -> list[str]:
        """Up to ``limit`` of a partition's runs that have a pending gate past its deadline, the latest first."""
        key, now = Keys(partition).expiries, self._clock.now_ms()
        async with reachable():
            found = await self._redis.execute_command("ZRANGEBYSCORE", key, "-inf", now, "LIMIT", 0, limit)
        return list(found)

    async def settle(self, partition: int, run_ids: Sequence[str]) -> int:
        """Make the expiries of a partition's runs visible, in one step. Returns how many gates that settled."""
        waiting = await self._waiting(partition, run_ids)
        if not waiting:
            return 0
        first, *others = waiting
        numbers: dict[str, int] = {}  # each key once, however many runs share it
        commands = [
            (run.run_id, *(numbers.setdefault(key, len(numbers) + 1) for key in run.keys(Keys(partition))))
            for run in others
        ]
        found = await self._store.about(lua.EXPIRE, *first, {"others": commands}, behind=list(numbers))
        return int(found)

    async def _waiting(self, partition: int, run_ids: Sequence[str]) -> list[_Waiting]:
        """Those of the runs that are there. Of what was deleted meanwhile, nothing is left to expire."""
        keys = Keys(partition)
        async with reachable():
            flat = await lua.HOSTS(self._redis, [keys.run(run_id) for run_id in run_ids], [])
            found = list(zip(run_ids, flat[::2], flat[1::2], strict=True))
            gone = [run_id for run_id, host, _ in found if not host]
            if gone:
                await self._redis.execute_command("ZREM", keys.expiries, *gone)
        return [_Waiting(run_id, host, index.split()) for run_id, host, index in found if host]

    async def put_off(self, partition: int, run_id: str, until: int) -> None:
        """Look at a run that cannot be expired no sooner than at that ms."""
        async with reachable():
            await self._redis.execute_command("ZADD", Keys(partition).expiries, "XX", "GT", until, run_id)
