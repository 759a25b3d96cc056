"""The audit: newline-delimited JSON, oldest first."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator

import structlog
from aiohttp import web

from core.api.call import Call, about
from core.api.problems import Malformed, invalid
from core.api.requests import AuditQuery
from core.errors import StoreUnavailable
from core.ids import partition_of, run_of

log = structlog.get_logger(__name__)
MEDIA_TYPE = "application/x-ndjson"
_CURSOR = re.compile(r"[0-9]{1,15}-[0-9]{1,15}-[0-9]{1,4}")
_BATCH = 64 * 1024


async def lines(call: Call, query: AuditQuery) -> web.StreamResponse:
    if query.after is not None and not _CURSOR.fullmatch(query.after):
        item = {"loc": ["after"], "msg": "wanted the id of a line of the audit", "type": "cursor"}
        raise invalid([item], Malformed)
    about(**query.model_dump(include={"run", "gate"}, exclude_none=True))
    async with contextlib.aclosing(_events(call, query)) as events:
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


async def _send(
    response: web.StreamResponse, first: tuple[str, str], events: AsyncGenerator[tuple[str, str]]
) -> None:
    batch = _line(*first)
    async for cursor, event in events:
        batch += _line(cursor, event)
        if len(batch) >= _BATCH:
            await response.write(batch)
            batch = b""
    await response.write(batch)


def _line(cursor: str, event: str) -> bytes:
    return f'{{"id":"{cursor}",{event[1:]}\n'.encode()


async def _events(call: Call, query: AuditQuery) -> AsyncGenerator[tuple[str, str]]:
    store = call.engine.store
    run_id = query.run
    if query.gate is not None:
        run_id, named = run_of(query.gate)[0], query.run
        if named not in (None, run_id):
            return
    if run_id is None:
        async for found in store.audit(query.after):
            yield found
        return
    partition_of(run_id, store.partitions)
    after = _position(query.after) if query.after else None
    for cursor, event in await store.audit_of(run_id):
        if after is not None and _position(cursor) <= after:
            continue
        if query.gate is None or json.loads(event)["gate"] == query.gate:
            yield cursor, event


def _position(cursor: str) -> tuple[int, ...]:
    return tuple(map(int, cursor.split("-")))
