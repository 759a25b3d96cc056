"""The sweeper: makes expiries visible soon after their time. A late click is refused without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from core.bell import heard
from core.errors import StoreUnavailable
from core.lookout import gathered, look
from core.store.keys import Keys
from core.store.store import Store

log = structlog.get_logger(__name__)

PAGE = 64
"""Runs of one partition that are looked up at a time."""
STEP = 32
"""Runs that one script expires: about two milliseconds in which the server does nothing else."""
REST_S = 0.02
"""How long what falls due is left to gather, so that a steady flow goes in batches."""
MAX_IDLE_S = 1.0
"""How long it may sleep. No run is made that expires sooner, so it need not be woken."""
PUT_OFF_MS = 60_000
"""How long a run that cannot be expired is left alone."""


class Sweeper:
    """Expires what is due in any partition. Several may: what two expire is expired once."""

    def __init__(self, store: Store, stopping: asyncio.Event) -> None:
        self._store = store
        self._stopping = stopping
        self.behind_ms = 0

    async def run(self) -> None:
        """Sweep until told to stop."""
        while not self._stopping.is_set():
            await heard(self._stopping, max(await self._sweep_due(), REST_S))

    async def sweep(self) -> int:
        """Expire all that is due at this moment. Returns how many runs that were."""
        return sum(await gathered(map(self._sweep, range(self._store.partitions))))

    async def _sweep_due(self) -> float:
        """Look, and sweep where something is due. Returns how many seconds to rest, if no more than MAX_IDLE_S."""
        seen = await look(self._store, lambda partition: Keys(partition).expiries)
        late_ms = seen.late_ms
        if late_ms is not None or seen.complete:
            self.behind_ms = max(0, late_ms or 0)
        if late_ms is None:
            return MAX_IDLE_S
        swept = await gathered(map(self._sweep, seen.due))
        if len(swept) < len(seen.due):  # the store takes no writes now
            return MAX_IDLE_S
        return min(max(-late_ms, 0) / 1000, MAX_IDLE_S)

    async def _sweep(self, partition: int) -> int:
        done = 0
        while not self._stopping.is_set():
            run_ids = await self._store.expiries.due(partition, PAGE)
            await asyncio.gather(*(self._expire(partition, some) for some in _batched(run_ids, STEP)))
            done += len(run_ids)
            if len(run_ids) < PAGE:
                break
        return done

    async def _expire(self, partition: int, run_ids: Sequence[str]) -> None:
        try:
            await self._store.expiries.settle(partition, run_ids)
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(run_ids) > 1:  # one of them is broken, and must not hold up the others
                await asyncio.gather(*(self._expire(partition, [run_id]) for run_id in run_ids))
                return
            log.error("expiry.failed", run=run_ids[0], exc_info=error)
            until = self._store.clock.now_ms() + PUT_OFF_MS
            await self._store.expiries.put_off(partition, run_ids[0], until)


def _batched(items: Sequence[str], size: int) -> list[Sequence[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
