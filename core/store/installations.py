"""Where askgate is installed: a sealed record each, what is only true for a while, and what the agenda is to do."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any, Final

from core.store import lua
from core.store.connect import Client
from core.store.keys import BELL, INSTALLATIONS, ORGS, lease_key, leases, state_key
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

STATE_MS: Final = 600_000
"""How long somebody may take between the install page and Slack's answer."""
LEASE_MS: Final = 15_000


class Installations:
    """By name: the team id of a workspace, or an organisation's. Every method raises StoreUnavailable."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client

    async def names(self) -> list[str]:
        async with reachable():
            return sorted(await self._redis.hkeys(INSTALLATIONS))

    async def all(self) -> dict[str, str]:
        """The sealed records."""
        async with reachable():
            return dict(await self._redis.hgetall(INSTALLATIONS))

    async def get(self, name: str) -> str | None:
        async with reachable():
            found: str | None = await self._redis.hget(INSTALLATIONS, name)
        return found

    async def put(self, name: str, sealed: str) -> None:
        async with reachable():
            await self._redis.hset(INSTALLATIONS, name, sealed)

    async def remove(self, name: str) -> bool:
        """Returns whether there was one."""
        async with reachable():
            removed = await self._redis.hdel(INSTALLATIONS, name)
            for team, org in (await self._redis.hgetall(ORGS)).items():
                if org == name:
                    await self._redis.hdel(ORGS, team)
        return bool(removed)

    # organisations

    async def orgs(self) -> dict[str, str]:
        """The organisation of each workspace that has askgate by one."""
        async with reachable():
            return dict(await self._redis.hgetall(ORGS))

    async def belong(self, org: str, teams: list[str]) -> None:
        """These workspaces are an organisation's."""
        if teams:
            async with reachable():
                await self._redis.hset(ORGS, mapping=dict.fromkeys(teams, org))

    # what is only true for a while

    async def issue(self, state: str) -> None:
        """Remember that somebody has begun to install."""
        async with reachable():
            await self._redis.set(state_key(state), self._store.clock.now_ms(), px=STATE_MS)

    async def consume(self, state: str) -> bool:
        """Whether somebody has, lately; once."""
        async with reachable():
            at = await self._redis.getdel(state_key(state))
        return at is not None and self._store.clock.now_ms() - int(at) <= STATE_MS

    async def lease(self, name: str, token: str) -> bool:
        """Whether the caller alone renews this one's token for now."""
        async with reachable():
            held = await self._redis.set(lease_key(name), token, nx=True, px=LEASE_MS, get=True)
        return held in (None, token)

    async def release(self, name: str) -> None:
        async with reachable():
            await self._redis.delete(lease_key(name))

    # the agenda

    async def due(self, member: str, at_ms: int) -> None:
        """Have the agenda do something about an installation, unless it is due sooner."""
        partition = zlib.crc32(member.encode()) % self._store.partitions
        agenda = self._store.queues.agenda(partition)
        command = {
            "now": self._store.clock.now_ms(),
            "member": member,
            "due": at_ms,
            "bell": BELL,
            "partition": f"{partition:02d}",
        }
        async with reachable():
            await lua.SOON(self._redis, [agenda, leases(agenda)], [json.dumps(command)])
