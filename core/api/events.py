"""The events: server-sent events (HTML Living Standard, 9.2), from a cursor on or from now on, without end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator

import structlog
from aiohttp import web

from core.api.call import Call
from core.api.problems import Malformed, invalid
from core.api.requests import EventsQuery
from core.ending import end
from core.errors import StoreUnavailable
from core.feed import Told
from core.store.cursors import Cursor

log = structlog.get_logger(__name__)
MEDIA_TYPE = "text/event-stream"
LAST_EVENT_ID = "Last-Event-ID"
KEEPALIVE_S = 15.0
RECONNECT_MS = 1000


async def stream(call: Call, query: EventsQuery) -> web.StreamResponse:
    feed = call.engine.feed
    cursor = _given(call, query) or await feed.end()
    async with contextlib.aclosing(feed.listen(cursor)) as events:
        response = web.StreamResponse(
            headers={
                "Content-Type": MEDIA_TYPE,
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",  # nginx would hold events back
            }
        )
        await response.prepare(call.request)
        # an id without data is no event, but remembered: who loses the connection before the first one misses nothing
        await response.write(f"retry: {RECONNECT_MS}\nid: {cursor}\n\n".encode())
        try:
            await _send(response, events, call.work.stopping)
        # the end of the answer makes a listener come back with the last id that it had
        except StoreUnavailable:
            log.warning("events.cut")
        except ConnectionResetError:
            log.debug("events.left")
        except Exception:
            log.exception("events.broken")
    return response


async def _send(response: web.StreamResponse, events: AsyncGenerator[Told], stopping: asyncio.Event) -> None:
    """Write events as they come, a comment when none did for a while, until the server stops."""
    stop = asyncio.create_task(stopping.wait())
    coming: asyncio.Task[Told] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(_next(events))
            await asyncio.wait({coming, stop}, timeout=KEEPALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return
            if coming.done():
                await response.write(_frame(coming.result()))
                coming = None
            else:
                await response.write(b": nothing happened\n\n")
    finally:
        await end(task for task in (stop, coming) if task is not None)


async def _next(events: AsyncGenerator[Told]) -> Told:
    return await anext(events)


def _frame(told: Told) -> bytes:
    data = json.dumps(told.event, ensure_ascii=False)  # of one line: JSON has no bare line break
    return f"id: {told.cursor}\nevent: {told.event['event']}\ndata: {data}\n\n".encode()


def _given(call: Call, query: EventsQuery) -> Cursor | None:
    """The cursor to go on from. A browser that reconnects repeats its URL and adds the header, so the header counts."""
    header = call.request.headers.get(LAST_EVENT_ID)
    where, text = (LAST_EVENT_ID, header) if header else ("after", query.after)
    if text is None:
        return None
    try:
        return Cursor.parse(text, call.engine.store.partitions)
    except ValueError as error:
        raise invalid([{"loc": [where], "msg": str(error), "type": "cursor"}], Malformed) from None
