"""What a server's failures mean: whether it cannot take a call at this moment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable

_AWAY = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    ClusterDownError,
    OSError,
)
_AWAY_CODES = ("MISCONF", "NOREPLICAS", "MASTERDOWN", "TRYAGAIN", "LOADING", "OOM", "UNBLOCKED", "BUSY ")


@contextlib.contextmanager
def reachable() -> Iterator[None]:
    """Around every call of the server: raises StoreUnavailable for what may work again later."""
    try:
        yield
    except _AWAY as error:
        raise StoreUnavailable from error
    except ResponseError as error:
        if str(error).startswith(_AWAY_CODES):
            raise StoreUnavailable from error
        raise
