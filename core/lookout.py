"""A look at what falls due: one pipeline for all partitions, and nothing else while there is nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from core.errors import StoreUnavailable
from core.store.store import Store

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Look:
    """When the first thing falls due in each partition that could be asked, in ms, as of one moment."""

    now: int
    firsts: tuple[tuple[int, int], ...] = ()
    complete: bool = True

    @property
    def due(self) -> list[int]:
        """The partitions in which something is due."""
        return [partition for partition, first in self.firsts if first <= self.now]

    @property
    def late_ms(self) -> int | None:
        """How late the first of all is (below 0: so long until it is due). None if there is none anywhere."""
        return max((self.now - first for _, first in self.firsts), default=None)


async def look(store: Store, key_of: Callable[[int], str]) -> Look:
    """Look at the sorted set that ``key_of`` names in each partition."""

    async def first(partition: int) -> tuple[int, int | None]:
        return partition, await store.queues.next_due(key_of(partition))

    now = store.clock.now_ms()
    said = await gathered(map(first, range(store.partitions)))
    return Look(
        now,
        tuple((partition, ms) for partition, ms in said if ms is not None),
        complete=len(said) == store.partitions,
    )


async def gathered(calls: Iterable[Awaitable[T]]) -> list[T]:
    """What the partitions say. One that cannot be reached, or is broken, does not hold up the others."""
    said = []
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, StoreUnavailable):
            log.warning("agenda.store_away")
        elif isinstance(answer, Exception):
            log.error("agenda.store_broken", exc_info=answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            said.append(answer)
    return said
