"""Redis clients for a URL: a fast-failing one for the path of a click, and one that may block."""

from __future__ import annotations

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

MAX_CONNECTIONS = 64
CONNECT_TIMEOUT_S = 0.5
POOL_TIMEOUT_S = 0.5
REPLY_TIMEOUT_S = 0.8
"""A server that hangs costs three of these: the call, and on a second connection two tries of the greeting."""


def fast_client(url: str) -> Redis:
    """A client that answers or fails well inside Slack's 3 s: one retry, no backoff, short time-outs."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=MAX_CONNECTIONS,
        timeout=POOL_TIMEOUT_S,
        decode_responses=True,
        socket_timeout=REPLY_TIMEOUT_S,
        # a server that became a replica is left: the second connection finds the one that leads
        retry=Retry(
            NoBackoff(), 1, supported_errors=(RedisConnectionError, RedisTimeoutError, ReadOnlyError)
        ),
        **_connect_timeout(url),
    )
    return Redis.from_pool(pool)


def listening_client(url: str) -> Redis:
    """A client for pub/sub: its reads wait as long as it takes."""
    return Redis.from_url(url, decode_responses=True, socket_timeout=None, health_check_interval=15)


def _connect_timeout(url: str) -> dict[str, float]:
    return {} if url.startswith("unix:") else {"socket_connect_timeout": CONNECT_TIMEOUT_S}
