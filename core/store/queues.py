"""What falls due and who works on it: a partition's agenda, and the queue of each host, claimed under leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.clock import Clock
from core.store import lua
from core.store.connect import Client
from core.store.keys import Keys, leases
from core.store.reach import reachable


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed member of an agenda or of a queue. ``tries`` counts this one."""

    partition: int
    member: str
    tries: int
    token: str


class Queues:
    """Claims, and their ends. Every method raises StoreUnavailable. ``fast`` has calls share round trips."""

    def __init__(self, client: Client, fast: Any, clock: Clock) -> None:
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client
        self._fast = fast
        self._clock = clock

    def agenda(self, partition: int) -> str:
        """The key of a partition's agenda."""
        return Keys(partition).agenda

    def of(self, partition: int, host: str) -> str:
        """The key of a host's queue in a partition."""
        return Keys(partition).queue(host)

    async def claim(self, queue: str, partition: int, *, lease_ms: int, limit: int, token: str) -> list[Due]:
        """Take up to ``limit`` members that are due, for ``lease_ms``."""
        async with reachable():
            flat = await lua.CLAIM(
                self._fast, [queue, leases(queue)], [self._clock.now_ms(), lease_ms, limit, token]
            )
        return [Due(partition, m, int(n), token) for m, n in zip(flat[::2], flat[1::2], strict=True)]

    async def finish(
        self, queue: str, token: str, members: Mapping[str, int | None], *, tried: bool = True
    ) -> int:
        """Give claimed members back: done (None) or to be tried again at that ms.

        Not ``tried``: nobody began them, so this claim does not count. Returns how many became due again while they
        were worked on.
        """
        args: list[str | int] = [token, int(tried)]
        for member, retry_at in members.items():
            args += [member, "" if retry_at is None else retry_at]
        async with reachable():
            return int(await lua.FINISH(self._redis, [queue, leases(queue)], args))

    async def renew(self, queue: str, held: Sequence[Due], *, lease_ms: int) -> list[Due]:
        """Have the leases of claimed members end ``lease_ms`` from here. Returns those that are somebody else's."""
        args: list[str | int] = [self._clock.now_ms() + lease_ms]
        for due in held:
            args += [due.member, due.token]
        async with reachable():
            lost = set(await lua.RENEW(self._redis, [queue, leases(queue)], args))
        return [due for due in held if due.member in lost]

    async def next_due(self, queue: str) -> int | None:
        """When the first member falls due, in ms."""
        async with reachable():
            first = await self._fast.execute_command("ZRANGE", queue, 0, 0, "WITHSCORES", withscores=True)
        return int(first[0][1]) if first else None

    async def keep_due(self, partition: int, member: str) -> None:
        """Put a member on the agenda now, unless it is there."""
        agenda = self.agenda(partition)
        async with reachable():
            await self._redis.zadd(agenda, {member: self._clock.now_ms()}, nx=True)
