"""Which of a host's sessions were met, by any process: where something may wait that the host does not list."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from core.store import lua
from core.store.keys import Keys

if TYPE_CHECKING:
    from core.store.store import Store

MOST: Final = 1000
"""How many sessions of a host are remembered, the latest."""
KEPT_MS: Final = 30 * 24 * 3600 * 1000
"""For how long after a session was last met."""


class Met:
    """Raises StoreUnavailable when Redis cannot be reached or cannot take a write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def meet(self, host: str, sessions: Sequence[str]) -> list[str]:
        """Remember that these were met. Returns all that are remembered, the latest first."""
        keys = Keys(zlib.crc32(host.encode()) % self._store.partitions)
        args: list[str | int] = [self._store.clock.now_ms(), KEPT_MS, MOST, *sessions]
        return list(await self._store.transition(lua.MET, keys, [keys.met(host)], args))
