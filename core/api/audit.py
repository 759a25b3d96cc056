"""The audit: newline-delimited JSON, oldest first."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

import structlog
from aiohttp import web

from core.api.call import Call, about
from core.api.problems import Malformed, invalid
from core.api.requests import AuditQuery
from core.audit import Event, Position
from core.errors import StoreUnavailable
from core.ids import run_of

log = structlog.get_logger(__name__)
MEDIA_TYPE = "application/x-ndjson"
_BATCH = 64 * 1024


async def lines(call: Call, query: AuditQuery) -> web.StreamResponse:
    after = _position(query.after)
    about(**query.model_dump(include={"run", "gate"}, exclude_none=True))
    async with contextlib.aclosing(_events(call, query, after)) as events:
        # the first one before the status is out: a store that is away is a 503
        first = await anext(events, None)
        response = web.StreamResponse(headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})
        await response.prepare(call.request)
        if first is None:
            return response
        try:
            await _send(response, first, events)
        except StoreUnavailable:
            # nothing but a broken connection tells the caller that lines are missing
            log.warning("audit.cut")
            if call.request.transport:
                call.request.transport.abort()
    return response


async def _send(response: web.StreamResponse, first: Event, events: AsyncGenerator[Event]) -> None:
    batch = _line(first)
    async for event in events:
        batch += _line(event)
        if len(batch) >= _BATCH:
            await response.write(batch)
            batch = b""
    await response.write(batch)


def _line(event: Event) -> bytes:
    return f"{event.exported()}\n".encode()


async def _events(call: Call, query: AuditQuery, after: Position | None) -> AsyncGenerator[Event]:
    log_of_all, run_id = call.engine.store.audit, query.run
    if query.gate is not None:
        run_id, named = run_of(query.gate)[0], query.run
        if named not in (None, run_id):
            return
    events = log_of_all.events(after) if run_id is None else log_of_all.of_run(run_id, after)
    about_gate = f'","gate":"{query.gate}"'
    async with contextlib.aclosing(events):
        async for event in events:
            if query.gate is None or about_gate in event.line:
                yield event


def _position(after: str | None) -> Position | None:
    try:
        return None if after is None else Position.parse(after)
    except ValueError as error:
        raise invalid([{"loc": ["after"], "msg": str(error), "type": "cursor"}], Malformed) from None
