"""The leases of one worker: renewed while it works, so that they end soon after it has died."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from core.errors import StoreUnavailable
from core.store.queues import Due
from core.store.store import Store

log = structlog.get_logger(__name__)

RENEWALS: int = 3
"""How often a lease is renewed within its time: two may fail."""


class Leases:
    """What a worker has claimed and not given back, and who works on it."""

    def __init__(self, store: Store, lease_ms: int) -> None:
        self._store = store
        self._lease_ms = lease_ms
        self._held: dict[Due, asyncio.Task[None] | None] = {}

    def hold(self, claimed: Iterable[Due]) -> None:
        """Renew these from here on."""
        self._held.update(dict.fromkeys(claimed))

    def work(self, due: Due) -> bool:
        """The running task works on this, and ends when the lease is lost. False: it is lost already."""
        if due not in self._held:
            return False
        self._held[due] = asyncio.current_task()
        return True

    def drop(self, due: Due) -> None:
        """This is given back."""
        self._held.pop(due, None)

    async def run(self) -> None:
        """Renew all that is held, until cancelled."""
        while True:
            await asyncio.sleep(self._lease_ms / RENEWALS / 1000)
            by_partition: dict[int, list[Due]] = {}
            for due in self._held:
                by_partition.setdefault(due.partition, []).append(due)
            for partition, held in by_partition.items():
                await self._renew(partition, held)

    async def _renew(self, partition: int, held: list[Due]) -> None:
        try:
            lost = await self._store.queues.renew(
                self._store.queues.agenda(partition), held, lease_ms=self._lease_ms
            )
        except StoreUnavailable:
            log.warning("agenda.not_renewed", partition=partition, members=len(held))
            return
        for due in lost:
            # it may have been given back while the store was asked
            task = self._held.pop(due, None)
            if task:
                log.warning("agenda.lost", member=due.member)
                task.cancel()
