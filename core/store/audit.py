"""The audit in the store: one stream of events a partition, read as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple

from core.audit import Chain, ChainBroken, Event, Position, digest
from core.clock import Clock
from core.ids import made_ms, partition_of
from core.store import lua
from core.store.connect import Client
from core.store.keys import Keys
from core.store.merging import merged
from core.store.reach import reachable

PAGE = 500


class Ends(NamedTuple):
    """What is remembered of a partition's stream, as of one moment.

    ``link`` is the digest of the newest event that was trimmed (empty: none was), ``head`` that of the newest of all.
    """

    link: str
    head: str
    newest: str | None


class AuditLog:
    """The audit of a whole store. Every method raises StoreUnavailable when Redis cannot be reached."""

    def __init__(self, client: Client, partitions: int, clock: Clock) -> None:
        self._redis: Any = client
        self._partitions = partitions
        self._clock = clock

    async def events(self, after: Position | None = None, *, page: int = PAGE) -> AsyncGenerator[Event]:
        """Every event there is by now, oldest first; ``after``: the last one had. None comes later in an earlier place.

        A writer's call may take a while to arrive, so its event could get an earlier place than one of another
        partition that was read already. Hence a fence first: later events stand behind all that is told here.
        """
        fence = await self._fenced()
        sources = [self._partition(p, after, f"({fence}-0", page) for p in range(self._partitions)]
        async for event in merged(sources, newest_first=False):
            yield event

    async def _fenced(self) -> int:
        """A ms behind every event there is, before which no event comes to stand any more."""
        every = [Keys(p).audit_head for p in range(self._partitions)]
        async with reachable():
            newest = await asyncio.gather(*(self._redis.hget(head, "ms") for head in every))
            fence = max(self._clock.now_ms(), *(int(ms or 0) for ms in newest)) + 1
            await asyncio.gather(*(lua.FENCE(self._redis, [head], [fence]) for head in every))
        return fence

    async def of_run(
        self, run_id: str, after: Position | None = None, *, page: int = PAGE
    ) -> AsyncGenerator[Event]:
        """One run's events, oldest first. Raises NotFound for what is no run's id.

        While the run is kept they are looked up; once it was trimmed, they are searched for from its time on, through
        all that its partition has since, a page at a time.
        """
        partition = partition_of(run_id, self._partitions)
        keys, start = Keys(partition), 0
        async with reachable():
            opened, size = await self._redis.hmget(keys.run(run_id), "opened", "n")
        if opened:
            for event in await self._opening(partition, opened, int(size)):
                if after is None or event.position > after:
                    yield event
        while opened:
            async with reachable():
                ids = await self._redis.lrange(keys.trail(run_id), start, start + page - 1)
            for event in await self._read(partition, ids):
                if after is None or event.position > after:
                    yield event
            if len(ids) < page:
                return
            start += page
        first = Position(made_ms(run_id), 0, -1)  # before all that stands in its ms
        searched = self._partition(partition, max(first, after or first), "+", page)
        name = f'","run":"{run_id}","gate":'
        async for event in searched:
            if name in event.line:
                yield event

    async def _opening(self, partition: int, opened: str, gates: int) -> list[Event]:
        """The events with which a run was opened, for itself and for each gate, from the id of the first on."""
        ms, seq = opened.split("-")
        async with reachable():
            rows = await self._redis.xrange(Keys(partition).audit, opened, f"{ms}-{int(seq) + gates}")
        return [_event(partition, *row) for row in rows]

    async def _read(self, partition: int, ids: Sequence[str]) -> list[Event]:
        """Events by their stream's ids; those that were trimmed are left out."""
        key = Keys(partition).audit
        async with reachable():
            pipe = self._redis.pipeline(transaction=False)
            for event_id in ids:
                pipe.xrange(key, event_id, event_id)
            found = await pipe.execute()
        return [_event(partition, *row) for rows in found for row in rows]

    async def _partition(
        self, partition: int, after: Position | None, until: str, page: int
    ) -> AsyncGenerator[Event]:
        minimum = f"{after.ms}-0" if after else "-"
        while True:
            async with reachable():
                rows = await self._redis.xrange(Keys(partition).audit, minimum, until, count=page)
            for row in rows:
                event = _event(partition, *row)
                if after is None or event.position > after:
                    yield event
            if len(rows) < page:
                return
            minimum = f"({rows[-1][0]}"

    # the chain

    async def verify(self, partition: int) -> Chain:
        """Follow a partition's chain from its oldest kept event to the newest. Raises ChainBroken."""
        while True:
            ends = await self._ends(partition)
            chain = Chain(partition, ends.link)
            try:
                if ends.newest:
                    async for event in self._partition(partition, None, ends.newest, PAGE):
                        chain.follow(event)
                chain.end(ends.head)
            except ChainBroken:
                # it may have been trimmed meanwhile: then the beginning is another
                if (await self._ends(partition)).link == ends.link:
                    raise
            else:
                return chain

    async def compare(self, chain: Chain) -> bool:
        """Look whether the newest event of an exported chain is here as it was exported. Raises ChainBroken if not.

        Returns False if that cannot be told, because it was trimmed since.
        """
        if chain.last is None or not 0 <= chain.partition < self._partitions:
            raise ChainBroken(f"Partition {chain.partition}: the store has no such partition.")
        key, event_id = Keys(chain.partition).audit, f"{chain.last.ms}-{chain.last.seq}"
        ends = await self._ends(chain.partition)
        async with reachable():
            rows = await self._redis.xrange(key, event_id, event_id)
            oldest = await self._redis.xrange(key, "-", "+", count=1)
        if (
            not rows
            and ends.link
            and (not oldest or _event(chain.partition, *oldest[0]).position > chain.last)
        ):
            return False
        if not rows or digest(_event(chain.partition, *rows[0]).line) != chain.link:
            raise ChainBroken(
                f"Partition {chain.partition}: the store has {'another' if rows else 'no'} event {chain.last} than was"
                " exported: its audit was written anew."
            )
        return True

    async def _ends(self, partition: int) -> Ends:
        keys = Keys(partition)
        async with reachable():
            link, head, newest = await lua.ENDS(self._redis, [keys.audit, keys.audit_head], [])
        return Ends(link, head, newest or None)

    async def trim(self, partition: int, before_ms: int, limit: int) -> int:
        """Delete up to ``limit`` of a partition's events from before that ms, oldest first. Returns how many."""
        keys = Keys(partition)
        async with reachable():
            return int(await lua.TRIM(self._redis, [keys.audit, keys.audit_head], [before_ms, limit]))


def _event(partition: int, event_id: str, fields: dict[str, str]) -> Event:
    ms, seq = map(int, event_id.split("-"))
    return Event(Position(ms, seq, partition), fields["event"])
