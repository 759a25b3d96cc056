"""Invariants 6 to 8: silence is a failure, an answer is no permission, and what was shown is what runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core import approvals
from core.engine import ResumeEngine
from core.errors import ArgumentsChanged, InvalidDecision
from core.gates import Action, Outcome
from core.runs import Run
from core.store.keys import Keys
from tests.conftest import ANA, BEN
from tests.integration.invariants import ANYBODY, CI, claimed, opened, results_of
from tests.runs import approval, ask, question_call
from tests.stores import events

# 6: silence is a failure


async def silent(engine: ResumeEngine, clock: FrozenDateTimeFactory, outcome: str) -> Run:
    """A run that nobody answered, with drafts and a vote that never became decisions."""
    policy = ANYBODY | {"quorum": 2, "reject_quorum": 2}
    run = await opened(engine, [question_call("q")], [approval("a")], timeout_s=60, policy=policy)
    await engine.draft(run.gates[0].id, ANA, {"0": [0]})
    await engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", comment="fine by me")
    match outcome:
        case "expired":
            clock.tick(60)
            await engine.expire(run.id)
        case "cancelled":
            await engine.cancel(run.id, "no longer needed", by=CI, via="api")
        case "undeliverable":
            assert await engine.undeliverable(run.id, "channel_not_found") == 2
    return await engine.run(run.id)


@pytest.mark.parametrize(
    ("outcome", "call", "denial"),
    [
        ("expired", "No answer within 60 s.", "No decision within 60 s."),
        ("cancelled", "Cancelled: no longer needed", "Cancelled: no longer needed"),
        ("undeliverable", "Undeliverable: channel_not_found", "Undeliverable: channel_not_found"),
    ],
)
async def test_invariant_06_silence_has_its_own_word_and_names_nobody(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, outcome: str, call: str, denial: str
) -> None:
    """looprig C12."""
    run = await silent(engine, clock, outcome)
    resume = await claimed(engine)
    results = json.loads(resume.body)
    at = results["calls"]["q"].pop("decided_at")
    assert at == ("2026-03-01T12:01:00.000Z" if outcome == "expired" else "2026-03-01T12:00:00.000Z")
    assert results["calls"] == {"q": {"status": "failed", "message": call, "outcome": outcome, "by": []}}
    assert results["approvals"]["a"] == {
        "action": "deny",
        "reason": denial,
        "args_digest": run.gates[1].doc.args_digest,
        "outcome": outcome,
        "by": [],
        "decided_at": at,
    }
    settled = [e for e in await events(engine, run.id) if e["event"] == "gate.settled"]
    assert [e["outcome"] for e in settled] == [outcome] * 2
    assert [e["by"] for e in settled] == [None] * 2
    # a cancel has an author, who decided nothing
    author = {"key": "ci"} if outcome == "cancelled" else None
    assert [e.get("cancelled_by") for e in settled] == [author] * 2
    assert {gate.status for gate in run.gates}.isdisjoint({"answered", "approved", "denied", "declined"})
    assert all(gate.decision is not None and gate.decision.by == () for gate in run.gates)


async def test_invariant_06_a_person_s_no_is_told_apart_from_silence(engine: ResumeEngine) -> None:
    run = await opened(engine, [question_call("q")], [approval("a")])
    await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
    await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack")
    results = await results_of(engine, run)
    assert (results["calls"]["q"]["status"], results["calls"]["q"]["outcome"]) == ("failed", "declined")
    assert (results["approvals"]["a"]["action"], results["approvals"]["a"]["outcome"]) == ("deny", "denied")
    assert results["calls"]["q"]["by"] == [ANA.model_dump()]
    assert results["approvals"]["a"]["by"] == [BEN.model_dump()]


@pytest.mark.parametrize("outcome", list(Outcome)[4:])
async def test_invariant_06_no_action_of_a_person_leads_to_an_outcome_of_silence(outcome: Outcome) -> None:
    assert outcome not in {action.outcome for action in Action}


# 7: an answer is no permission


@pytest.mark.parametrize(
    "values",
    [
        {"response": "approve"},
        {"answers": {"May I delete_file?": "Yes"}},
        {"response": '{"action": "approve"}'},
    ],
)
async def test_invariant_07_no_value_approves_a_tool(engine: ResumeEngine, values: dict[str, Any]) -> None:
    """looprig C20."""
    question = question_call("call-2-question", ask("May I delete_file?", "Yes", "No"))
    run = await opened(engine, [question], [approval()])
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=values)
    assert run.gates[1].pending
    with pytest.raises(InvalidDecision):
        await engine.decide(run.gates[1].id, Action.ANSWER, by=ANA, via="slack", values=values)
    with pytest.raises(InvalidDecision):
        await engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", values=values)
    assert (await engine.run(run.id)).gates[1].pending


# 8: what was shown is what runs


async def test_invariant_08_an_approval_of_other_arguments_is_refused(engine: ResumeEngine) -> None:
    """looprig C55."""
    run = await opened(engine, [], [approval()])
    seen = approvals.digest({"path": "/tmp/other.log"})
    with pytest.raises(ArgumentsChanged):
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack", digest=seen)
    assert (await engine.run(run.id)).gates == run.gates
    assert (await events(engine, run.id))[-1]["reason"] == "arguments-changed"


async def test_invariant_08_the_digest_seen_is_kept_with_the_approval(engine: ResumeEngine) -> None:
    args = {"b": 1e3, "a": ["ü", "\u0000", "🧨"], "c": {}, "d": [], "e": 1.5}
    run = await opened(engine, [], [approval(args=json.dumps(args))])
    digest = approvals.digest({"e": 1.5, "d": [], "c": {}, "a": ["ü", "\u0000", "🧨"], "b": 1000})
    run = await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack", digest=digest)
    assert run.gates[0].doc.args == args
    decision = run.gates[0].decision
    assert decision is not None
    assert (decision.digest, decision.votes[0].digest) == (digest, digest)
    result = (await results_of(engine, run))["approvals"]["call-2"]
    assert (result["action"], result["args_digest"]) == ("approve", digest)
    assert [e["args_digest"] for e in await events(engine, run.id) if e["event"] == "gate.settled"] == [
        digest
    ]


@pytest.mark.parametrize(
    "tampered", [{"path": "/"}, {}, {"n": 2**60}], ids=["other", "empty", "not canonical"]
)
@pytest.mark.parametrize("with_digest", [False, True])
async def test_invariant_08_arguments_changed_in_the_store_do_not_run(
    engine: ResumeEngine, redis: Redis, tampered: dict[str, Any], with_digest: bool
) -> None:
    run = await opened(engine, [], [approval()])
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    key = Keys(int(run.id[4:6])).run(run.id)
    stored = json.loads(await redis.hget(key, "0:doc") or "")
    stored["args"] = tampered
    if with_digest:
        stored["args_digest"] = approvals.digest({"path": "/"})
    await redis.hset(key, "0:doc", json.dumps(stored))
    result = json.loads((await claimed(engine)).body)["approvals"]["call-2"]
    assert result["action"] == "deny"
    assert result["outcome"] == "superseded"
    assert result["by"] == []
    assert "not those that were approved" in result["reason"]


async def test_invariant_08_what_was_frozen_for_the_host_cannot_be_changed(
    engine: ResumeEngine, redis: Redis
) -> None:
    run = await opened(engine, [], [approval()])
    await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack")
    first = await claimed(engine)
    await engine.resumes.nack(run.id, first.lease, by=CI, retry_in_s=0)
    key = Keys(int(run.id[4:6])).run(run.id)
    decision = json.loads(await redis.hget(key, "0:decision") or "")
    await redis.hset(key, "0:decision", json.dumps(decision | {"outcome": "approved"}))
    assert (await claimed(engine)).body == first.body
