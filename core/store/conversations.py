"""The conversations in the store: each is one hash, with the member `talk:<id>` on its partition's agenda."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from core.conversations import Conversation
from core.ids import new_token
from core.store import lua
from core.store.connect import Client
from core.store.keys import BELL, Keys, leases
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

KEPT_MS: Final = 30 * 24 * 3600 * 1000
"""How long a conversation is known in which nothing is said."""


class Conversations:
    """Raises StoreUnavailable when Redis cannot be reached or cannot take a write."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client

    def _keys(self, talk_id: str) -> Keys:
        return Keys(zlib.crc32(talk_id.encode()) % self._store.partitions)

    async def read(self, talk_id: str) -> Conversation | None:
        async with reachable():
            rev, doc = await self._redis.hmget(self._keys(talk_id).talk(talk_id), "rev", "doc")
        if doc is None:
            return None
        return Conversation.model_validate_json(doc).model_copy(update={"rev": int(rev)})

    async def write(self, talk: Conversation, *, due: bool, indexed: bool) -> bool:
        """Store a changed conversation; ``due``: it is to be gone on with; ``indexed``: its session is a new one.

        Returns False, with nothing changed, if somebody has changed it since it was read.
        """
        keys = self._keys(talk.id)
        command = {
            "now": self._store.clock.now_ms(),
            "id": talk.id,
            "rev": talk.rev,
            "doc": talk.model_dump_json(),
            "token": new_token(),
            "due": due,
            "kept": KEPT_MS,
            "member": f"talk:{talk.id}",
            "bell": BELL,
            "partition": f"{keys.partition:02d}",
        }
        names = [keys.talk(talk.id), keys.agenda, leases(keys.agenda), keys.talks(talk.team, talk.channel)]
        if indexed and talk.session:
            names.append(keys.session(talk.host, talk.session))
        word = await self._store.transition(lua.TALK, keys, names, [json.dumps(command)])
        return bool(word == "kept")

    async def of(self, host: str, session: str) -> str | None:
        """The id of the conversation that a host's session is of."""

        async def ask(partition: int) -> str | None:
            async with reachable():
                found: str | None = await self._redis.get(Keys(partition).session(host, session))
            return found

        found = await asyncio.gather(*map(ask, range(self._store.partitions)))
        return next(filter(None, found), None)

    def _begun(self, host: str, session: str) -> str:
        name = f"{host} {session}"
        return Keys(zlib.crc32(name.encode()) % self._store.partitions).begun(host, session)

    async def note_begun(self, host: str, session: str, at_ms: int, kept_ms: int) -> None:
        """Remember for ``kept_ms`` when the last turn of a host's session began."""
        async with reachable():
            await self._redis.set(self._begun(host, session), at_ms, px=kept_ms)

    async def begun(self, host: str, session: str) -> int | None:
        """When that was, in ms; None if it is not remembered."""
        async with reachable():
            found = await self._redis.get(self._begun(host, session))
        return None if found is None else int(found)

    async def ids(self, team: str, channel: str) -> list[str]:
        """The conversations of a channel, that in which something happened last first."""

        async def ask(partition: int) -> list[tuple[str, float]]:
            async with reachable():
                found: list[tuple[str, float]] = await self._redis.zrange(
                    Keys(partition).talks(team, channel), 0, -1, withscores=True
                )
            return found

        rows = await asyncio.gather(*map(ask, range(self._store.partitions)))
        return [talk_id for talk_id, _ in sorted((r for some in rows for r in some), key=lambda r: -r[1])]
