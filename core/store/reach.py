"""Every call to the store ends in bounded time, and what means "not now" has one name: StoreUnavailable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable

BUDGET_S: Final = 2.0
"""For one call, with all that a client tries: well inside Slack's 3 s, also while a server is failed over."""

_REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)
_AWAY = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    TryAgainError,
    AskError,  # and MOVED, which is one: the client followed it as often as it does
    ClusterError,  # CLUSTERDOWN, MASTERDOWN
    RedisClusterException,  # no node answers, or none has the slot
    OSError,  # and the TimeoutError of the budget
)
_AWAY_CODES = ("MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "LOADING", "OOM", "UNBLOCKED", "BUSY ")


@contextlib.asynccontextmanager
async def reachable() -> AsyncIterator[None]:
    """Around one call. Raises StoreUnavailable when Redis cannot be reached, or cannot take it now."""
    try:
        async with asyncio.timeout(BUDGET_S):
            yield
    except _REFUSED as error:
        raise StoreUnavailable(
            "The store refuses askgate's user: `askgate doctor` says what it may not."
        ) from error
    except _AWAY as error:
        raise StoreUnavailable from error
    except ResponseError as error:
        if str(error).startswith(_AWAY_CODES):
            raise StoreUnavailable from error
        raise
