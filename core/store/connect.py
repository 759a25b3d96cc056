"""Clients of the store, however Redis is run: fast-failing ones for the path of a click, and listening ones."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any, Final, cast

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster, Sentinel, SSLConnection
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, Connection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.address import Address, parse_address

MAX_CONNECTIONS: Final = 64
"""To one server. Who comes when all are in use waits for one, except at a cluster."""
MAX_CLUSTER_CONNECTIONS: Final = 512
"""To each node of a cluster, where redis-py lets nobody wait: who comes when all are in use is turned away."""
CONNECT_TIMEOUT_S: Final = 0.5
POOL_TIMEOUT_S: Final = 0.5
REPLY_TIMEOUT_S: Final = 0.8
"""A server that hangs costs three of these: the call, and on a second connection two tries of the greeting."""

Client = Redis | RedisCluster


def fast_client(url: str) -> Client:
    """A client that answers or fails well inside Slack's 3 s: one retry, no backoff, short time-outs."""
    return _client(parse_address(url))


def listening_client(url: str) -> Client:
    """A client for pub/sub. Whoever reads from it says how long to wait."""
    return _client(parse_address(url))


def pubsub_of(client: Client) -> PubSub:
    """A subscription on a client that is initialized. Each node of a cluster hears what is published on any."""
    if isinstance(client, RedisCluster):
        # any of them, so that one that is gone is not tried for ever
        return client.pubsub(node=random.choice(client.get_nodes()))  # noqa: S311  # no secret
    return client.pubsub()


@contextlib.asynccontextmanager
async def leading_servers(url: str) -> AsyncIterator[list[Redis]]:
    """A client of each server that takes writes: of a cluster's primaries, else of the one that leads."""
    address = parse_address(url)
    async with contextlib.AsyncExitStack() as stack:
        client = _client(address)
        stack.push_async_callback(client.aclose)
        if isinstance(client, Redis):
            yield [client]
            return
        await client.initialize()
        each = [_one(address, host=node.host, port=node.port) for node in client.get_primaries()]
        for one in each:
            stack.push_async_callback(one.aclose)
        yield each


@contextlib.asynccontextmanager
async def sentinels_of(url: str) -> AsyncIterator[list[Any]]:
    """A client of each sentinel that the URL names."""
    address = parse_address(url)
    async with contextlib.AsyncExitStack() as stack:
        watched = _watched(address)
        stack.push_async_callback(watched.aclose)
        yield watched.sentinels


def _client(address: Address) -> Client:
    match address.topology:
        case "sentinel":
            return _led(address)
        case "cluster":
            return _cluster(address)
        case "one":
            where = dict(zip(("host", "port"), address.nodes[0], strict=True)) if address.nodes else {}
            return _one(address, **where)


def _retry() -> Retry:
    # a server that became a replica is left: the second connection finds the one that leads
    return Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError, RedisTimeoutError, ReadOnlyError))


def _timeouts(address: Address) -> dict[str, Any]:
    reply = {"socket_timeout": REPLY_TIMEOUT_S}
    return reply | ({"socket_connect_timeout": CONNECT_TIMEOUT_S} if address.nodes else {})


def _each(address: Address) -> dict[str, Any]:
    """What every connection to a server takes."""
    return {"decode_responses": True, "retry": _retry(), **_timeouts(address), **address.options}


def _one(address: Address, **where: Any) -> Redis:
    kind: type[AbstractConnection] = SSLConnection if address.tls else Connection
    each: dict[str, Any] = {
        "connection_class": kind if address.nodes else UnixDomainSocketConnection,
        **_each(address),
        **where,
    }
    pool = BlockingConnectionPool(max_connections=MAX_CONNECTIONS, timeout=POOL_TIMEOUT_S, **each)
    return Redis.from_pool(pool)


class _LedPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the server that the sentinels name, with a wait for a free one."""


class _Led(Redis):
    """A client of the server that the sentinels name; it closes its connections to them too."""

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        await super().aclose(close_connection_pool)
        pool = cast(_LedPool, self.connection_pool)
        await pool.sentinel_manager.aclose()


def _led(address: Address) -> Redis:
    return _watched(address).master_for(  # type: ignore[no-any-return]
        address.service,
        redis_class=_Led,
        connection_pool_class=_LedPool,
        max_connections=MAX_CONNECTIONS,
        timeout=POOL_TIMEOUT_S,
        ssl=address.tls,
        **_each(address),
    )


def _watched(address: Address) -> Sentinel:
    each: dict[str, Any] = {
        **address.sentinel,
        **_timeouts(address),
        "ssl": address.tls,
        "decode_responses": True,
        "retry": Retry(NoBackoff(), 0),
    }
    return Sentinel(address.nodes, sentinel_kwargs=each)  # type: ignore[no-untyped-call]


def _cluster(address: Address) -> RedisCluster:
    return RedisCluster(
        startup_nodes=[ClusterNode(host, port) for host, port in address.nodes],
        max_connections=MAX_CLUSTER_CONNECTIONS,
        ssl=address.tls,
        **_each(address),
    )
