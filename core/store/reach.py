"""Every call to the store ends in bounded time, and what means "not now" has one name: StoreUnavailable."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable

BUDGET_S: Final = 1.25
"""For one call, with all that a client tries. A click has a few, of which one that fails is the last: so one that just
came back and one that does not are inside Slack's 3 s."""

REFUSES: Final = "The store refuses askgate's user, or something that it does. `askgate doctor` says more."
_AWAY = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    TryAgainError,
    AskError,  # a slot that is being moved
    ClusterDownError,  # and MASTERDOWN
    OSError,  # and the TimeoutError of the budget
)
_AWAY_CODES = ("MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "LOADING", "OOM", "UNBLOCKED", "BUSY ")


@contextlib.asynccontextmanager
async def reachable() -> AsyncIterator[None]:
    """Around one call. Raises StoreUnavailable when Redis cannot be reached, or cannot take it now.

    Who is cancelled meanwhile is cancelled, whatever came of the call: redis-py sends under asyncio.wait_for, which
    until Python 3.12 may swallow it.
    """
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    try:
        async with asyncio.timeout(BUDGET_S):
            yield
    except NoPermissionError as error:
        raise StoreUnavailable(REFUSES) from error
    except _AWAY as error:
        raise StoreUnavailable(REFUSES if refuses(error) else None) from error
    except ResponseError as error:
        if str(error).startswith(_AWAY_CODES):
            raise StoreUnavailable from error
        raise
    finally:
        if task and task.cancelling() > asked:
            raise asyncio.CancelledError


def refuses(error: BaseException) -> bool:
    """Whether a server refuses the login; what is met on the way to a connection, redis-py wraps."""
    return any(isinstance(met, AuthenticationError) for met in (error, error.__cause__, error.__context__))
