"""How gates end: each outcome of each kind, in the form in which its host gets it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action, Kind, Outcome
from core.policy import Key
from core.runs import Run
from core.store.keys import Keys
from tests.conftest import ANA, HOME
from tests.integration.test_kinds import form_call, link_call
from tests.runs import FOCUSED, Json, approval, question_call, run_request
from tests.stores import events

CI = Key(key="ci")
START = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2026-01-01T00:00:05.000Z"
"""When people decide."""
LATE = "2026-01-01T00:01:00.000Z"
"""The deadline."""
BY_ANA: list[Json] = [{"team": HOME, "user": "U1"}]

CALLS: dict[Kind, Json] = {
    Kind.QUESTION: question_call("call-2"),
    Kind.FORM: {**form_call(), "tool_call_id": "call-2"},
    Kind.LINK: {**link_call(), "tool_call_id": "call-2"},
    Kind.CUSTOM: {"tool_call_id": "call-2", "tool_name": "any", "args": {"a": 1}},
}
VALUES: dict[Kind, Any] = {
    Kind.QUESTION: FOCUSED,
    Kind.FORM: {"city": "Bonn"},
    Kind.CUSTOM: [1, {"b": None}],
}
RETURNED: dict[Kind, Json] = {
    Kind.QUESTION: {"value": FOCUSED},
    Kind.FORM: {"value": {"city": "Bonn"}, "action": "accept"},
    Kind.LINK: {"value": {"action": "accept"}, "action": "accept"},
    Kind.CUSTOM: {"value": [1, {"b": None}]},
}


@dataclass(frozen=True)
class End:
    """One end of one kind: what is done, and what its host gets."""

    kind: Kind
    outcome: Outcome
    action: Action | None
    gives: Json
    by: list[Json] = field(default_factory=list)
    comment: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}-{self.outcome}-{self.action or 'nobody'}"


def _ends() -> Iterator[End]:
    for kind in CALLS:
        accept = Action.ACCEPT if kind in (Kind.FORM, Kind.LINK) else Action.ANSWER
        yield End(kind, Outcome.ANSWERED, accept, {"status": "returned", **RETURNED[kind]}, BY_ANA)
        said = "The user declined to answer"
        own = {"action": "decline"} if kind in (Kind.FORM, Kind.LINK) else {}
        yield _declined(kind, Action.DECLINE, f"{said}.", own)
        yield _declined(kind, Action.DECLINE, f"{said}: not mine", own, "not mine")
        if kind is not Kind.QUESTION:
            own = {"action": "cancel"} if kind in (Kind.FORM, Kind.LINK) else {}
            yield _declined(kind, Action.CANCEL, "The user dismissed the request.", own)
    yield End(Kind.APPROVAL, Outcome.APPROVED, Action.APPROVE, {"action": "approve"}, BY_ANA)
    always = {"action": "approve", "always": True}
    yield End(Kind.APPROVAL, Outcome.APPROVED, Action.APPROVE_ALWAYS, always, BY_ANA)
    denied = {"action": "deny", "reason": "The call was rejected."}
    yield End(Kind.APPROVAL, Outcome.DENIED, Action.DENY, denied, BY_ANA)
    why = {"action": "deny", "reason": "wrong file"}
    yield End(Kind.APPROVAL, Outcome.DENIED, Action.DENY, why, BY_ANA, "wrong file")
    for kind in Kind:
        noun = "decision" if kind is Kind.APPROVAL else "answer"
        for outcome, words in (
            (Outcome.EXPIRED, f"No {noun} within 60 s."),
            (Outcome.CANCELLED, "Cancelled: no need"),
            (Outcome.UNDELIVERABLE, "Undeliverable: channel_not_found"),
        ):
            approval_form = {"action": "deny", "reason": words}
            call_form = {"status": "failed", "message": words}
            yield End(kind, outcome, None, approval_form if kind is Kind.APPROVAL else call_form)
    changed = "Superseded: The arguments are not those that were approved."
    yield End(Kind.APPROVAL, Outcome.SUPERSEDED, Action.APPROVE, {"action": "deny", "reason": changed})


def _declined(kind: Kind, action: Action, message: str, own: Json, comment: str | None = None) -> End:
    gives = {"status": "failed", "message": message, **own}
    return End(kind, Outcome.DECLINED, action, gives, BY_ANA, comment)


ENDS = list(_ends())


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(START, real_asyncio=True) as moved:
        yield moved


async def opened(engine: ResumeEngine, kind: Kind) -> Run:
    """A run of two gates, the second of this kind, the first an answer that has to be kept."""
    calls, approvals = [question_call("first")], []
    if kind is Kind.APPROVAL:
        approvals = [approval(always=["rm of old logs"])]
    else:
        calls.append(CALLS[kind])
    run, _ = await engine.suspend(run_request(calls, approvals, timeout_s=60), owner="ci")
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    return run


async def bring_about(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory, run: Run, end: End
) -> None:
    gate = run.gates[1]
    clock.tick(5)
    match end.outcome:
        case Outcome.EXPIRED:
            clock.tick(60)
            await engine.expire(run.id)
        case Outcome.CANCELLED:
            await engine.cancel(run.id, "no need", by=CI, via="api")
        case Outcome.UNDELIVERABLE:
            await engine.undeliverable(run.id, "channel_not_found")
        case _:
            assert end.action
            values = VALUES.get(end.kind) if end.outcome is Outcome.ANSWERED else None
            await engine.decide(gate.id, end.action, by=ANA, via="slack", values=values, comment=end.comment)
    if end.outcome is Outcome.SUPERSEDED:  # somebody wrote to the store behind askgate's back
        key = Keys(int(run.id[4:6])).run(run.id)
        doc = gate.doc.model_copy(update={"args": {"path": "/"}})
        await redis.hset(key, "1:doc", doc.model_dump_json())


def expected(run: Run, end: End) -> Json:
    found = {
        **end.gives,
        "outcome": end.outcome,
        "by": end.by,
        "decided_at": LATE if end.outcome is Outcome.EXPIRED else AT,
    }
    if end.comment:
        found["comment"] = end.comment
    if end.kind is Kind.APPROVAL:
        found["args_digest"] = run.gates[1].doc.args_digest
    return found


@pytest.mark.parametrize("end", ENDS, ids=str)
async def test_each_end_reaches_the_host_in_its_own_form(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory, end: End
) -> None:
    """looprig C12."""
    run = await opened(engine, end.kind)
    await bring_about(engine, redis, clock, run, end)
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    body = json.loads(resume.body)
    category = "approvals" if end.kind is Kind.APPROVAL else "calls"
    assert body[category].pop("call-2") == expected(run, end)
    # what was answered before is kept, whatever became of the rest
    assert body["calls"].pop("first")["value"] == FOCUSED
    assert body == {"calls": {}, "approvals": {}}


@pytest.mark.parametrize("end", ENDS, ids=str)
async def test_each_end_is_in_the_audit_once_by_its_name(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory, end: End
) -> None:
    run = await opened(engine, end.kind)
    await bring_about(engine, redis, clock, run, end)
    told = [event for event in await events(engine, run.id) if event["gate"] == run.gates[1].id]
    [settled] = [event for event in told if event["event"] == "gate.settled"]
    # an approval that is void at the resume was one when it was given
    assert settled["outcome"] == (Outcome.APPROVED if end.outcome is Outcome.SUPERSEDED else end.outcome)
    assert settled["by"] == (BY_ANA[0] if end.action else None)


def test_every_outcome_of_every_kind_is_among_them() -> None:
    """The table of design.md: what people may do with each kind, and what becomes of it when nobody does."""
    silent = {Outcome.EXPIRED, Outcome.CANCELLED, Outcome.UNDELIVERABLE}
    decided = {kind: {Outcome.ANSWERED, Outcome.DECLINED} for kind in CALLS}
    decided[Kind.APPROVAL] = {Outcome.APPROVED, Outcome.DENIED, Outcome.SUPERSEDED}
    found: dict[Kind, set[Outcome]] = {kind: set() for kind in Kind}
    for end in ENDS:
        found[end.kind].add(end.outcome)
    assert found == {kind: silent | outcomes for kind, outcomes in decided.items()}
