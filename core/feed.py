"""The feed: what happens to runs, told to any number of listeners as it is committed, from one reader a process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any, NamedTuple

import structlog

from core.bell import POLL_S, Bell, heard
from core.errors import StoreUnavailable
from core.store.cursors import Cursor
from core.store.store import Store
from core.store.tail import Entry

log = structlog.get_logger(__name__)
ROOM = 1000
"""Events that a listener may be behind the reader before it goes back to reading for itself."""


class Told(NamedTuple):
    """An event, and how far whoever had it has come."""

    cursor: Cursor
    event: dict[str, Any]


class _Inbox:
    """What the reader found for one listener. A listener that falls behind loses it, and knows."""

    def __init__(self) -> None:
        self.entries: asyncio.Queue[Entry] = asyncio.Queue(ROOM)
        self.behind = False

    def put(self, entry: Entry) -> None:
        if self.entries.full():
            self.behind = True
        else:
            self.entries.put_nowait(entry)


class Feed:
    """Events in the order of their partitions, none left out and none twice, whoever wrote them."""

    def __init__(self, store: Store, bell: Bell) -> None:
        self._store = store
        self._bell = bell
        self._inboxes: set[_Inbox] = set()
        self._joining = asyncio.Lock()
        self._reader: asyncio.Task[None] | None = None
        self._seen = Cursor(())

    async def end(self) -> Cursor:
        """Where the feed ends at this moment: listening from here on tells what comes. Raises StoreUnavailable."""
        return await self._store.tail.end()

    async def listen(self, cursor: Cursor) -> AsyncGenerator[Told]:
        """What came after a cursor, then what comes, for ever. Close it when done. Raises StoreUnavailable."""
        while True:
            with await self._joined() as inbox:
                # first by itself, as far as the reader is; what the reader finds meanwhile is in the inbox
                async with contextlib.aclosing(self._store.tail.between(cursor, self._seen)) as missed:
                    async for entry in missed:
                        cursor = cursor.moved(entry.partition, entry.place)
                        if entry.event is not None:
                            yield Told(cursor, entry.event)
                while not inbox.behind:
                    entry = await inbox.entries.get()
                    if entry.place > cursor.places[entry.partition]:
                        cursor = cursor.moved(entry.partition, entry.place)
                        if entry.event is not None:
                            yield Told(cursor, entry.event)

    async def _joined(self) -> contextlib.AbstractContextManager[_Inbox]:
        """An inbox that gets everything behind ``_seen``, from the moment at which it is entered."""
        async with self._joining:
            if self._reader is None:
                self._seen = await self.end()
                self._reader = asyncio.create_task(self._read(), name="feed")
        return self._inbox()

    @contextlib.contextmanager
    def _inbox(self) -> Iterator[_Inbox]:
        inbox = _Inbox()
        self._inboxes.add(inbox)
        try:
            yield inbox
        finally:
            self._inboxes.discard(inbox)
            if not self._inboxes and self._reader:
                self._reader.cancel()
                self._reader = None

    async def _read(self) -> None:
        # before Python 3.12 a cancel may be lost in redis-py, so a reader also looks whether it is still the one
        me = asyncio.current_task()
        with self._bell.heard("events") as rung:
            while self._reader is me:
                rung.clear()
                if not await self._read_on(me):
                    await heard(rung, POLL_S)

    async def _read_on(self, me: object) -> int:
        try:
            entries = await self._store.tail.after(self._seen)
        except StoreUnavailable:
            log.warning("feed.store_away")
            return 0
        except Exception:
            # an event that cannot be read is tried again: leaving it out would be a lie
            log.exception("feed.broken")
            return 0
        if self._reader is not me:
            return 0
        for entry in entries:
            self._seen = self._seen.moved(entry.partition, entry.place)
            for inbox in self._inboxes:
                inbox.put(entry)
        return len(entries)
