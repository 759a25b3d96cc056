"""Troubles that admins are to hear of: noted in the store, told by the agenda's `notice:<name>`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from core.clock import Clock
from core.ids import new_token
from core.store import lua
from core.store.connect import Client
from core.store.keys import BELL, Keys, leases
from core.store.reach import reachable

KEPT: Final = 200
"""How many wait to be told at most, the newest."""
PARTITION: Final = 0
"""All of them are in one place, so that they are told together."""

Trouble = dict[str, Any]


class Troubles:
    """What is to be told. Every method raises StoreUnavailable."""

    def __init__(self, client: Client, clock: Clock) -> None:
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client
        self._clock = clock

    async def note(self, name: str, trouble: Trouble) -> None:
        """Note a trouble (plain JSON), and make `notice:<name>` due unless it is on the agenda."""
        keys = Keys(PARTITION)
        said = json.dumps({"id": new_token(), **trouble}, ensure_ascii=False)
        member, partition = f"notice:{name}", f"{PARTITION:02d}"
        args: list[str | int] = [self._clock.now_ms(), said, KEPT, member, BELL, partition]
        async with reachable():
            await lua.TROUBLE(self._redis, [keys.troubles(name), keys.agenda, leases(keys.agenda)], args)

    async def noted(self, name: str) -> list[Trouble]:
        """What is to be told, oldest first; each has an ``id``."""
        async with reachable():
            found = await self._redis.lrange(Keys(PARTITION).troubles(name), 0, -1)
        return [json.loads(said) for said in found]

    async def told(self, name: str, troubles: Sequence[Trouble]) -> None:
        """Forget these; what was noted meanwhile stays."""
        key = Keys(PARTITION).troubles(name)
        async with reachable():
            for trouble in troubles:
                await self._redis.lrem(key, 1, json.dumps(trouble, ensure_ascii=False))
