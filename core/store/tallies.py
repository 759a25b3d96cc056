"""How often something was done lately: for what is done to nobody too often. Nothing that counts rests on it."""

from __future__ import annotations

from core.store import lua
from core.store.connect import Client
from core.store.keys import tally_key
from core.store.reach import reachable


class Tallies:
    """Counts, each kept for a while from its first count on. Raises StoreUnavailable."""

    def __init__(self, client: Client) -> None:
        self._redis = client

    async def add(self, name: str, *, kept_ms: int, by: int = 1) -> int:
        """Count, and return the tally with it."""
        async with reachable():
            return int(await lua.TALLY(self._redis, [tally_key(name)], [by, kept_ms]))
