"""Clients of the store, however Redis is run: fast-failing ones for the path of a click, and listening ones."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, cast

from redis.asyncio import BlockingConnectionPool, Redis, Sentinel, SSLConnection
from redis.asyncio.connection import AbstractConnection, Connection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.address import Address, parse_address
from core.store.cluster import Cluster

MAX_CONNECTIONS: Final = 64
"""To one server. Who comes when all are in use waits for one."""
CONNECT_TIMEOUT_S: Final = 0.5
POOL_TIMEOUT_S: Final = 0.5
REPLY_TIMEOUT_S: Final = 0.8
"""After which a server counts as hanging: the call is tried again, over another connection."""

Client = Redis | Cluster


def fast_client(url: str) -> Client:
    """A client that answers or fails well inside Slack's 3 s: one retry, no backoff, short time-outs."""
    return _client(parse_address(url))


def listening_client(url: str) -> Client:
    """A client for pub/sub. Whoever reads from it says how long to wait."""
    return _client(parse_address(url))


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
        yield client.primaries()


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
            # which tries again itself, perhaps at another node
            return Cluster(address.nodes, lambda host, port: _one(address, retries=0, host=host, port=port))
        case "one":
            host, port = address.nodes[0] if address.nodes else (None, None)
            return _one(address, host=host, port=port)


def _retry(retries: int) -> Retry:
    # a server that became a replica is left: the second connection finds the one that leads
    return Retry(
        NoBackoff(), retries, supported_errors=(RedisConnectionError, RedisTimeoutError, ReadOnlyError)
    )


def _timeouts(address: Address) -> dict[str, Any]:
    reply = {"socket_timeout": REPLY_TIMEOUT_S}
    return reply | ({"socket_connect_timeout": CONNECT_TIMEOUT_S} if address.nodes else {})


def _each(address: Address, retries: int = 1) -> dict[str, Any]:
    """What every connection to a server takes."""
    return {"decode_responses": True, "retry": _retry(retries), **_timeouts(address), **address.options}


def _one(address: Address, *, host: str | None, port: int | None, retries: int = 1) -> Redis:
    """A client of one server; without a host, of the one at the address's socket."""
    kind: type[AbstractConnection] = SSLConnection if address.tls else Connection
    each: dict[str, Any] = {
        "connection_class": kind if host else UnixDomainSocketConnection,
        **_each(address, retries),
        **({"host": host, "port": port} if host else {}),
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
        "retry": _retry(0),
    }
    return Sentinel(address.nodes, sentinel_kwargs=each)  # type: ignore[no-untyped-call]
