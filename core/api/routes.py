"""The one table of routes: what each takes, what it gives, and how it may fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from core import errors
from core.api import audit, events, gates, resumes, runs
from core.api.body import read_body, read_query
from core.api.call import Call
from core.api.problems import Malformed, TooLarge, Unauthorized, UnsupportedMediaType
from core.api.requests import (
    AckBody,
    AuditQuery,
    CancelBody,
    ClaimBody,
    DecideBody,
    EventsQuery,
    GatesQuery,
    NackBody,
    Query,
    ReopenBody,
    ResumeBody,
    RunQuery,
    RunsQuery,
)
from core.api.views import AuditLine, ClaimView, EventView, GateDetail, GatePage, RunPage, RunView, View
from core.errors import AskgateError
from core.requests import RunRequest

Handler = Callable[..., Awaitable[web.StreamResponse]]
"""Takes the Call, and as `body` and `query` what its route names."""

OPENED_HEADERS = {"Location": "Where to read the run"}


@dataclass(frozen=True, slots=True)
class Route:
    """One route. ``gives`` is the model of the answer, by status; ``fails`` what it raises of its own."""

    method: str
    path: str
    summary: str
    handler: Handler
    gives: Mapping[int, type[View]]
    fails: tuple[type[AskgateError], ...] = ()
    body: type[BaseModel] | None = None
    body_optional: bool = False
    query: type[Query] | None = None
    media_type: str = "application/json"
    takes_headers: Mapping[str, str] = field(default_factory=dict)
    gives_headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_failures(self) -> tuple[type[AskgateError], ...]:
        """Every error that this route may answer with, those of each call included."""
        found: list[type[AskgateError]] = [Unauthorized, errors.StoreUnavailable, *self.fails]
        if self.body:
            found += [Malformed, TooLarge, UnsupportedMediaType, errors.Invalid]
        elif self.query:
            found += [Malformed, errors.Invalid]
        return tuple(dict.fromkeys(found))

    async def call(self, call: Call) -> web.StreamResponse:
        """Read what the route takes, and hand it to the handler."""
        given: dict[str, Any] = {}
        if self.query:
            given["query"] = read_query(call.request, self.query)
        if self.body:
            given["body"] = await read_body(call.request, self.body, optional=self.body_optional)
        return await self.handler(call, **given)


_REFUSALS = (
    errors.NotFound,
    errors.AlreadySettled,
    errors.Expired,
    errors.NotAllowed,
    errors.SelfApproval,
    errors.CannotVerify,
)

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/v1/runs",
        "Suspend a run: put its pending batch before people",
        runs.create,
        {201: RunView, 200: RunView},
        (errors.IdempotencyKeyReused, errors.NobodyMayDecide, errors.NoPlace),
        body=RunRequest,
        takes_headers={
            "Idempotency-Key": "1 to 255 visible ASCII characters, kept for 24 h per API key: the same key "
            "and body give the first run (200), the same key with another body is refused (409)"
        },
        gives_headers=OPENED_HEADERS,
    ),
    Route(
        "GET",
        "/v1/runs/{run_id}",
        "Read a run, or wait for it to be settled",
        runs.read,
        {200: RunView},
        (errors.NotFound,),
        query=RunQuery,
    ),
    Route(
        "POST",
        "/v1/runs/{run_id}/cancel",
        "Settle what is pending as cancelled",
        runs.cancel,
        {200: RunView},
        (errors.NotFound, errors.NotWaiting),
        body=CancelBody,
        body_optional=True,
    ),
    Route(
        "POST",
        "/v1/runs/{run_id}/resume",
        "Answer the complete batch from another front end",
        runs.resume,
        {200: RunView},
        (*_REFUSALS, errors.CoverageMismatch),
        body=ResumeBody,
    ),
    Route(
        "GET",
        "/v1/runs",
        "List dead letters: runs that failed or were lost, the newest end first",
        runs.dead,
        {200: RunPage},
        query=RunsQuery,
    ),
    Route(
        "POST",
        "/v1/runs/{run_id}/requeue",
        "Put a dead letter back into its queue: the same decisions, bytes and key",
        runs.requeue,
        {200: RunView},
        (errors.NotFound, errors.NotFailed),
    ),
    Route(
        "POST",
        "/v1/runs/{run_id}/reopen",
        "Have people decide a failed run again, from the start",
        runs.reopen,
        {200: RunView},
        (errors.NotFound, errors.NotFailed),
        body=ReopenBody,
        body_optional=True,
    ),
    Route("GET", "/v1/gates", "List gates, newest first", gates.listed, {200: GatePage}, query=GatesQuery),
    Route(
        "GET",
        "/v1/gates/{gate_id}",
        "Read a gate with its decision",
        gates.read,
        {200: GateDetail},
        (errors.NotFound,),
    ),
    Route(
        "POST",
        "/v1/gates/{gate_id}/decide",
        "Settle one gate from another front end",
        gates.decide,
        {200: GateDetail},
        (*_REFUSALS, errors.ArgumentsChanged),
        body=DecideBody,
    ),
    Route(
        "POST",
        "/v1/resumes/claim",
        "Take settled runs to take up again, each under a lease",
        resumes.claim,
        {200: ClaimView},
        body=ClaimBody,
        body_optional=True,
    ),
    Route(
        "POST",
        "/v1/resumes/{run_id}/ack",
        "Say that the run was taken up; saying it again is fine",
        resumes.ack,
        {200: RunView},
        (errors.NotFound, errors.LeaseLost),
        body=AckBody,
    ),
    Route(
        "POST",
        "/v1/resumes/{run_id}/nack",
        "Give the run back, to be handed out again",
        resumes.nack,
        {200: RunView},
        (errors.NotFound, errors.LeaseLost),
        body=NackBody,
    ),
    Route(
        "GET",
        "/v1/audit",
        "The audit, one JSON object a line, oldest first",
        audit.lines,
        {200: AuditLine},
        (errors.NotFound,),
        query=AuditQuery,
        media_type=audit.MEDIA_TYPE,
    ),
    Route(
        "GET",
        "/v1/events",
        "Server-sent events, as they are committed: gate.opened, gate.settled, run.settled, run.resumed",
        events.stream,
        {200: EventView},
        query=EventsQuery,
        media_type=events.MEDIA_TYPE,
        takes_headers={
            events.LAST_EVENT_ID: "The id of the last event that is known; it counts before `after`"
        },
    ),
)
