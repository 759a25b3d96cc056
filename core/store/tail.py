"""The audit as listeners follow it: what came after a cursor, with what they need to know besides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any, NamedTuple

from core.errors import StoreUnavailable
from core.ids import run_of
from core.store.codec import load_gate_doc, load_run_doc
from core.store.connect import Client
from core.store.cursors import Cursor, Place
from core.store.keys import Keys
from core.store.merging import merged
from core.store.reach import reachable

TOLD = frozenset({"gate.opened", "gate.settled", "run.settled", "run.resumed"})
PAGE = 500


class Entry(NamedTuple):
    """An entry of the audit. ``event`` is its line with what is known of its run; None: not for listeners."""

    place: Place
    partition: int
    event: dict[str, Any] | None


class Tail:
    """Reads the audit of all partitions from their ends on. Raises StoreUnavailable when Redis cannot be reached."""

    def __init__(self, client: Client, partitions: int) -> None:
        self._redis: Any = client
        self._partitions = partitions

    async def end(self) -> Cursor:
        """Where the audit ends at this moment."""
        async with reachable():
            ends = await asyncio.gather(
                *(self._redis.xrevrange(Keys(p).audit, "+", "-", count=1) for p in range(self._partitions))
            )
        return Cursor(tuple(Place.of(rows[0][0]) if rows else Place(0, 0) for rows in ends))

    async def after(self, cursor: Cursor) -> list[Entry]:
        """Some of what came after a cursor, oldest first; nothing only if there is nothing.

        Partitions that cannot be reached are left out, unless none can.
        """
        pages = await asyncio.gather(
            *(self._page(p, place, "+") for p, place in enumerate(cursor.places)), return_exceptions=True
        )
        found = [page for page in pages if not isinstance(page, BaseException)]
        for page in pages:
            if isinstance(page, BaseException) and (not found or not isinstance(page, StoreUnavailable)):
                raise page
        return sorted((entry for page in found for entry in page), key=lambda entry: entry[:2])

    async def between(self, after: Cursor, until: Cursor) -> AsyncGenerator[Entry]:
        """What came after a cursor, up to another one, oldest first."""
        sources = [
            self._partition(p, start, end)
            for p, (start, end) in enumerate(zip(after.places, until.places, strict=True))
        ]
        async for entry in merged(sources, newest_first=False):
            yield entry

    async def _partition(self, partition: int, start: Place, end: Place) -> AsyncGenerator[Entry]:
        while start < end:
            page = await self._page(partition, start, str(end))
            for entry in page:
                yield entry
            if not page:
                return
            start = page[-1].place

    async def _page(self, partition: int, after: Place, until: str) -> list[Entry]:
        async with reachable():
            rows = await self._redis.xrange(Keys(partition).audit, f"({after}", until, count=PAGE)
            lines = [json.loads(fields["event"]) for _, fields in rows]
            events = await self._with_facts(Keys(partition), lines)
        return [
            Entry(Place.of(entry_id), partition, event)
            for (entry_id, _), event in zip(rows, events, strict=True)
        ]

    async def _with_facts(self, keys: Keys, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Each line that is told, with what its run says; with nulls once the run is gone."""
        told = [line for line in lines if line["event"] in TOLD]
        pipe = self._redis.pipeline(transaction=False)
        for line in told:
            gate = f"{run_of(line['gate'])[1]}:doc" if line["gate"] else "none"
            pipe.hmget(keys.run(line["run"]), gate, "doc", "host", "n")
        docs = iter(await pipe.execute() if told else [])
        return [line | _facts(line, *next(docs)) if line["event"] in TOLD else None for line in lines]


def _facts(line: dict[str, Any], gate_doc: str | None, *run_doc: str | None) -> dict[str, Any]:
    doc, host, size = run_doc
    run = load_run_doc(line["run"], doc, host, size) if doc and host and size else None
    facts: dict[str, Any] = {
        "host": run.host if run else None,
        "external_id": run.external_id if run else None,
    }
    if line["gate"]:
        gate = load_gate_doc(*run_of(line["gate"]), gate_doc) if gate_doc else None
        facts |= {
            "tool_call_id": gate.tool_call_id if gate else None,
            "kind": gate.kind if gate else None,
        }
    return facts
