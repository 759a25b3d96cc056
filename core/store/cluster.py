"""A cluster as one client: each command goes to the node that has its key's slot, and a change of nodes is found out.

redis-py's own client for clusters is not used. When it looks for the nodes anew, it closes the connections that other
calls are using; callers over its limit of connections fail instead of waiting; and its pipelines repeat what is
redirected command by command, so that a WAIT may be answered by another node than the one that took the write.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Self, TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.commands import AsyncCoreCommands
from redis.crc import key_slot
from redis.event import EventDispatcher
from redis.exceptions import ClusterDownError, MovedError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

T = TypeVar("T")
Where = tuple[str, int]

TRIES: Final = 3
LOOKED_S: Final = 0.1
"""For how long nobody asks again who has which slot."""
_SCRIPTS: Final = ("EVAL", "EVALSHA")


class NoCluster(RedisConnectionError):
    """No node says who has which slot, or none has this one."""


class Cluster(AsyncCoreCommands):
    """A cluster. Takes the commands of redis-py's `Redis`, each about one key, or more of the same slot.

    ``connect`` makes the client of one node, which tries once. What cannot be done raises what that client raises, or
    NoCluster.
    """

    _event_dispatcher = EventDispatcher()

    def __init__(self, seeds: Sequence[Where], connect: Callable[[str, int], Redis]) -> None:
        self._seeds = list(seeds)
        self._connect = connect
        self._clients: dict[Where, Redis] = {}
        self._owners: list[Where | None] = []
        self._nodes: list[Where] = []
        self._looking = asyncio.Lock()
        self._looked_at = 0.0
        self._doubted: Where | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def initialize(self) -> Self:
        """Find the nodes, if they are not known. Raises NoCluster."""
        if not self._nodes:
            await self._look()
        return self

    async def aclose(self) -> None:
        """Close every connection, and forget the nodes; the next call finds them anew."""
        clients, self._clients, self._nodes, self._owners = self._clients, {}, [], []
        self._looked_at = 0.0
        await asyncio.gather(*(client.aclose() for client in clients.values()))

    def primaries(self) -> list[Redis]:
        """A client of each node that has slots."""
        return [self._client(where) for where in dict.fromkeys(self._owners) if where]

    def pubsub(self) -> PubSub:
        """A subscription at one of the nodes: each hears what is published on any."""
        # any of them, so that one that is gone is not tried for ever
        return self._client(random.choice(self._nodes)).pubsub()  # noqa: S311  # no secret

    def pipeline(self, transaction: bool = False) -> Pipeline:
        """Commands that go to one node over one connection: that of the first one's key."""
        return Pipeline(self)

    async def ping(self, **_: Any) -> bool:  # type: ignore[override]  # there it may be synchronous
        """Whether every node that has slots answers."""
        await self.initialize()
        return all(await asyncio.gather(*(client.ping() for client in self.primaries())))

    async def execute_command(self, *words: Any, **options: Any) -> Any:
        return await self.at(slot_of(words), lambda node: _execute(node, *words, **options))

    async def at(self, slot: int, call: Callable[[Redis], Awaitable[T]]) -> T:
        """Call the node that has the slot; another one if that has changed. Whatever is called may be called again."""
        await self.initialize()
        if self._doubted:
            doubted, self._doubted = self._doubted, None
            await self._look(besides=doubted)
        where = self._owners[slot]
        for again in range(TRIES):
            if where is None:
                break
            try:
                return await call(self._client(where))
            except MovedError as moved:
                await self._look()  # other slots have moved with it
                # a node that does not know its own name says none
                where = self._owners[slot] = (moved.host or where[0], moved.port)
            except (RedisConnectionError, RedisTimeoutError, ClusterDownError):
                await self._look(besides=where)
                # the same one may have closed a connection that lay idle
                if again and self._owners[slot] == where:
                    raise
                where = self._owners[slot]
            except (
                asyncio.CancelledError
            ):  # the caller's time is over; whoever comes next looks before waiting for it
                self._doubted = where
                raise
        raise NoCluster(f"no node has the slot {slot}")

    def _client(self, where: Where) -> Redis:
        if where not in self._clients:
            self._clients[where] = self._connect(*where)
        return self._clients[where]

    async def _look(self, besides: Where | None = None) -> None:
        """Ask the nodes, one after the other, who has which slot; one that just failed comes last."""
        loop = asyncio.get_running_loop()
        async with self._looking:
            if self._nodes and loop.time() < self._looked_at + LOOKED_S:
                return
            known = list(dict.fromkeys([*self._nodes, *self._seeds]))
            random.shuffle(known)
            for where in sorted(known, key=lambda where: where == besides):
                try:
                    slots = await _execute(self._client(where), "CLUSTER SLOTS")
                except (RedisError, OSError) as error:
                    problem = error
                    continue
                self._remember(where, slots)
                self._looked_at = loop.time()
                return
            raise NoCluster(f"no node says who has which slot ({problem})") from problem

    def _remember(self, asked: Where, slots: Sequence[Sequence[Any]]) -> None:
        """Take over the reply of CLUSTER SLOTS: `[first, last, [host, port, …], …]` each, the primary first."""
        owners: list[Where | None] = [None] * 16_384
        nodes: dict[Where, None] = {}
        for first, last, *servers in slots:
            found = [(str(host or asked[0]), int(port)) for host, port, *_ in servers]
            owners[first : last + 1] = [found[0]] * (last + 1 - first)
            nodes |= dict.fromkeys(found)
        self._owners, self._nodes = owners, list(nodes) or [asked]


class Pipeline(AsyncCoreCommands):
    """Commands kept until `execute`, which sends them over one connection of one node."""

    _event_dispatcher = EventDispatcher()

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._commands: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def execute_command(self, *words: Any, **options: Any) -> Pipeline:
        self._commands.append((words, options))
        return self

    async def execute(self) -> list[Any]:
        """The replies. Raises the first error there is among them."""
        if not self._commands:
            return []
        return await self._cluster.at(slot_of(self._commands[0][0]), self._sent)

    async def _sent(self, node: Redis) -> list[Any]:
        pipe = node.pipeline(transaction=False)
        for words, options in self._commands:
            pipe.execute_command(*words, **options)
        return await pipe.execute()


async def _execute(node: Any, *words: Any, **options: Any) -> Any:
    return await node.execute_command(*words, **options)


def slot_of(words: Sequence[Any]) -> int:
    """The slot of a command's first key: it stands behind the name, that of a script behind the number of keys."""
    key = words[3] if words[0] in _SCRIPTS else words[1]
    return key_slot(str(key).encode())
