"""Every call to the store ends in bounded time, and what means "not now" has one name: StoreUnavailable."""

from __future__ import annotations

import asyncio
from types import TracebackType
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


class reachable:  # noqa: N801  # it is used as a word; a class, because a generator costs as much as the time-out
    """Around one call. Raises StoreUnavailable when Redis cannot be reached, or cannot take it now.

    Who is cancelled meanwhile is cancelled, whatever came of the call: redis-py sends under asyncio.wait_for, which
    until Python 3.12 may swallow it.
    """

    __slots__ = ("_asked", "_budget", "_task")

    def __init__(self) -> None:
        self._budget = asyncio.timeout(BUDGET_S)

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        self._asked = self._task.cancelling() if self._task else 0
        await self._budget.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._budget.__aexit__(kind, error, trace)
        except TimeoutError as late:
            raise StoreUnavailable from late
        if kind is not asyncio.CancelledError and self._task and self._task.cancelling() > self._asked:
            raise asyncio.CancelledError
        if error is not None and (away := _away(error)):
            raise away from error


def _away(error: BaseException) -> StoreUnavailable | None:
    """What an error means, if it means "not now"."""
    match error:
        case NoPermissionError():
            return StoreUnavailable(REFUSES)
        case _ if isinstance(error, _AWAY):
            return StoreUnavailable(REFUSES if refuses(error) else None)
        case ResponseError() if str(error).startswith(_AWAY_CODES):
            return StoreUnavailable()
    return None


def refuses(error: BaseException) -> bool:
    """Whether a server refuses the login; what is met on the way to a connection, redis-py wraps."""
    return any(isinstance(met, AuthenticationError) for met in (error, error.__cause__, error.__context__))
