"""Runs: create, read, cancel, answer as a batch."""

from __future__ import annotations

from aiohttp import web

from core.api.body import idempotency_key
from core.api.call import Call, about, answer
from core.api.requests import CancelBody, ResumeBody, RunQuery
from core.api.views import RunView
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
