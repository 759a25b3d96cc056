"""Retention: settled runs and old audit events are deleted, a bounded step at a time.

The agenda has one member a partition, `trim:<partition>`, which is never done: it comes due again in an hour, or at
once while there is more to delete.
"""

from __future__ import annotations

from core.agenda import TryAgain
from core.store.store import Store

STEP = 500
"""Runs, and audit events, that one call deletes at most."""
EVERY_MS = 3_600_000
DAY_MS = 86_400_000


class Retention:
    """Deletes runs ``runs_days`` after they were settled, and audit events after ``audit_days``."""

    def __init__(self, store: Store, *, runs_days: int, audit_days: int) -> None:
        self._store = store
        self._runs_ms = runs_days * DAY_MS
        self._audit_ms = audit_days * DAY_MS

    async def keep_due(self) -> None:
        """See to it that every partition's member is on the agenda. Raises StoreUnavailable."""
        for partition in range(self._store.partitions):
            await self._store.queues.keep_due(partition, f"trim:{partition}")

    async def trim(self, partition: str, _tries: int = 1) -> None:
        """The agenda's handler for `trim:<partition>`: one step. Always raises TryAgain, or StoreUnavailable."""
        now = self._store.clock.now_ms()
        runs = await self._store.forget(int(partition), now - self._runs_ms, STEP)
        events = await self._store.audit.trim(int(partition), now - self._audit_ms, STEP)
        raise TryAgain(0 if STEP in (runs, events) else EVERY_MS)
