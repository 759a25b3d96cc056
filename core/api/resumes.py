"""Resumes: a host claims settled runs, and says whether it has taken them up."""

from __future__ import annotations

import json

from aiohttp import web

from core.api.call import Call, about, answer
from core.api.requests import AckBody, ClaimBody, NackBody
from core.api.views import ClaimView, ResumeView, RunView


async def claim(call: Call, body: ClaimBody) -> web.Response:
    claimed = call.engine.resumes.claim(
        body.host, limit=body.limit, wait_s=body.wait_s, lease_s=body.lease_s, by=call.caller
    )
    found = await call.work.wait(claimed) or []
    about(runs=" ".join(resume.run.id for resume in found))
    return answer(ClaimView(resumes=[ResumeView.of(resume, json.loads(resume.body)) for resume in found]))


async def ack(call: Call, body: AckBody) -> web.Response:
    about(run=call.run_id)
    run = await call.work.commit(call.engine.resumes.ack(call.run_id, body.lease, by=call.caller))
    return answer(RunView.of(run))


async def nack(call: Call, body: NackBody) -> web.Response:
    about(run=call.run_id)
    resumes, error = call.engine.resumes, body.error
    if body.final:
        said = resumes.refuse(call.run_id, body.lease, by=call.caller, error=error or "")
    elif body.lost:
        said = resumes.lose(call.run_id, body.lease, by=call.caller, error=error)
    else:
        said = resumes.nack(call.run_id, body.lease, by=call.caller, retry_in_s=body.retry_in_s, error=error)
    return answer(RunView.of(await call.work.commit(said)))
