"""Which events of the chat system were heard: it brings one again when it did not hear that it was taken."""

from __future__ import annotations

from typing import Any, Final

from core.store.connect import Client
from core.store.keys import event_key
from core.store.reach import reachable

LEASE_MS: Final = 30_000
"""How long an event counts as being done by a process of which nothing more is heard."""
KEPT_MS: Final = 3_600_000
"""How long it is remembered that one was done: longer than Slack goes on trying."""
DONE: Final = "done"


class Events:
    """Heard by one process at a time, and done once. Raises StoreUnavailable."""

    def __init__(self, client: Client) -> None:
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client

    async def begin(self, event: str, token: str) -> str:
        """``first``: it is the caller's to do, who then calls `end`; ``doing``: somebody does it; or ``done``."""
        async with reachable():
            # a retry after a lost reply finds its own token
            held = await self._redis.set(event_key(event), token, nx=True, px=LEASE_MS, get=True)
        if held in (None, token):
            return "first"
        return DONE if held == DONE else "doing"

    async def end(self, event: str, *, done: bool) -> None:
        """Remember that an event was done, or else let it be heard again."""
        async with reachable():
            if done:
                await self._redis.set(event_key(event), DONE, px=KEPT_MS)
            else:
                await self._redis.delete(event_key(event))
