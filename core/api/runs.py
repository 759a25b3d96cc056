"""Runs: create, read, cancel, answer as a batch; the dead letters: list, put back, decide again."""

from __future__ import annotations

import contextlib

from aiohttp import web

from core.api.body import idempotency_key
from core.api.call import Call, about, answer
from core.api.paging import MAX_LOOKED_AT, as_cursor, position_of
from core.api.requests import CancelBody, ReopenBody, ResumeBody, RunQuery, RunsQuery
from core.api.views import RunPage, RunView
from core.requests import RunRequest


async def create(call: Call, body: RunRequest) -> web.Response:
    key = idempotency_key(call.request)
    run, made = await call.work.commit(call.engine.suspend(body, owner=call.caller.key, idempotency_key=key))
    about(run=run.id)
    place = call.request.rel_url.path.rstrip("/")
    return answer(RunView.of(run), 201 if made else 200, Location=f"{place}/{run.id}")


async def read(call: Call, query: RunQuery) -> web.Response:
    about(run=call.run_id)
    run = await call.work.wait(call.engine.wait(call.run_id, query.wait)) if query.wait else None
    return answer(RunView.of(run or await call.engine.run(call.run_id)))


async def cancel(call: Call, body: CancelBody) -> web.Response:
    about(run=call.run_id)
    reason = (body.reason or "").strip() or None
    run = await call.work.commit(call.engine.cancel(call.run_id, reason, by=call.caller, via="api"))
    return answer(RunView.of(run))


async def resume(call: Call, body: ResumeBody) -> web.Response:
    about(run=call.run_id)
    results = body.model_dump(mode="json", exclude_unset=True)
    given = {"calls": results.get("calls", {}), "approvals": results.get("approvals", {})}
    run = await call.work.commit(call.engine.answer_batch(call.run_id, given, by=call.caller, via="api"))
    return answer(RunView.of(run))


async def dead(call: Call, query: RunsQuery) -> web.Response:
    found: list[RunView] = []
    looked_at = 0
    last = position_of(query.cursor, "run") if query.cursor is not None else None
    async with contextlib.aclosing(call.engine.dead_letters.listed(last)) as runs:
        async for position, run in runs:
            if len(found) == query.limit or looked_at == MAX_LOOKED_AT:
                return answer(RunPage(runs=found, next_cursor=as_cursor(*last) if last else None))
            looked_at += 1
            last = position
            if query.status in (None, run.status) and query.host in (None, run.doc.host):
                found.append(RunView.of(run))
    return answer(RunPage(runs=found, next_cursor=None))


async def requeue(call: Call) -> web.Response:
    about(run=call.run_id)
    put_back = call.engine.dead_letters.requeue(call.run_id, by=call.caller, via="api")
    return answer(RunView.of(await call.work.commit(put_back)))


async def reopen(call: Call, body: ReopenBody) -> web.Response:
    about(run=call.run_id)
    reopened = call.engine.dead_letters.reopen(
        call.run_id, by=call.caller, via="api", timeout_s=body.timeout_s
    )
    return answer(RunView.of(await call.work.commit(reopened)))
