"""Sorted sources, one a partition, as one sorted stream."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any


async def merged(sources: Sequence[AsyncIterator[Any]], *, newest_first: bool) -> AsyncGenerator[Any]:
    """The items of sorted async sources, in one order. The sources are read as far as that takes."""
    heads: list[tuple[Any, int]] = []
    for number, source in enumerate(sources):
        with contextlib.suppress(StopAsyncIteration):
            heads.append((await anext(source), number))
    while heads:
        head = max(heads) if newest_first else min(heads)
        heads.remove(head)
        yield head[0]
        with contextlib.suppress(StopAsyncIteration):
            heads.append((await anext(sources[head[1]]), head[1]))
