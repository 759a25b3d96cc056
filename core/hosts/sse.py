"""Server-sent events, as the HTML standard has them: the frames of a stream that a host sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp

MAX_FRAME = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Frame:
    """One event with data. ``id`` is empty for one that bears none."""

    event: str
    id: str
    data: str


async def frames(content: aiohttp.StreamReader) -> AsyncIterator[Frame]:
    """The frames of a stream, until it ends. Raises ValueError for one that is larger than any event should be."""
    event, number, data, size = "message", "", list[str](), 0
    async for line in _lines(content):
        size += len(line)
        if size > MAX_FRAME:
            raise ValueError("the stream has an event that is too large")
        if not line:
            if data:
                yield Frame(event, number, "\n".join(data))
            event, number, data, size = "message", "", [], 0
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                event = value
            case "id":
                number = value
            case "data":
                data.append(value)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
        if len(rest) > MAX_FRAME:
            raise ValueError("the stream has a line that is too long")
