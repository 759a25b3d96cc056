"""Forms, links, custom answers, edited arguments and "approve always", from the opening to what the host gets."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import ValidationError

from core.answers import Answer
from core.engine import ResumeEngine
from core.errors import ArgumentsChanged, Invalid, InvalidDecision
from core.gates import Action
from core.policy import Key
from core.requests import RunRequest
from core.runs import Run
from tests.conftest import ANA, BEN
from tests.runs import Json, approval, run_request
from tests.stores import events

FIELDS = [
    {"name": "city", "kind": "text", "required": True},
    {"name": "size", "kind": "select", "options": [{"value": "s"}, {"value": "m"}]},
]


def form_call(**form: Any) -> Json:
    return {
        "kind": "form",
        "tool_call_id": "form-1",
        "tool_name": "book",
        "form": {"title": "Book", "fields": FIELDS, "controls": ["accept", "decline", "cancel"], **form},
    }


def link_call(**link: Any) -> Json:
    return {
        "kind": "link",
        "tool_call_id": "link-1",
        "tool_name": "sign_in",
        "link": {
            "url": "https://login.example.com/start",
            "controls": ["accept", "decline", "cancel"],
            **link,
        },
    }


async def opened(engine: ResumeEngine, *calls: Json, approvals: list[Json] | None = None, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(list(calls), approvals, **more), owner="ci")
    return run


def call_result(run: Run) -> Json:
    results = run.results()
    assert results is not None
    [result] = results["calls"].values()
    return dict(result)


async def test_a_form_is_accepted_with_its_values(engine: ResumeEngine) -> None:
    run = await opened(engine, form_call())
    gate = run.gates[0].id
    with pytest.raises(InvalidDecision) as wrong:
        await engine.decide(gate, Action.ACCEPT, by=ANA, via="slack", values={"size": "xl", "ghost": 1})
    assert {(tuple(e["loc"]), e["type"]) for e in wrong.value.errors} == {
        (("values", "city"), "missing_required"),
        (("values", "size"), "option_not_allowed"),
        (("values", "ghost"), "unknown_field"),
    }
    run = await engine.decide(gate, Action.ACCEPT, by=ANA, via="slack", values={"city": "Bonn", "size": "m"})
    result = call_result(run)
    assert (result["status"], result["action"], result["outcome"]) == ("returned", "accept", "answered")
    assert result["value"] == {"city": "Bonn", "size": "m"}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Action.DECLINE, "The user declined to answer: not mine"),
        (Action.CANCEL, "The user dismissed the request: not mine"),
    ],
)
@pytest.mark.parametrize("call", [form_call(), link_call()])
async def test_decline_and_cancel_are_outcomes_of_their_own(
    engine: ResumeEngine, call: Json, action: Action, message: str
) -> None:
    """looprig C30."""
    run = await opened(engine, call)
    run = await engine.decide(run.gates[0].id, action, by=ANA, via="slack", comment="not mine")
    result = call_result(run)
    assert (result["status"], result["action"], result["outcome"]) == ("failed", action, "declined")
    assert result["message"] == message


async def test_what_a_form_does_not_offer_is_refused(engine: ResumeEngine) -> None:
    """looprig C32."""
    run = await opened(engine, form_call(controls=["accept"]))
    for action in (Action.DECLINE, Action.CANCEL, Action.ANSWER, Action.APPROVE):
        with pytest.raises(InvalidDecision, match="is not offered"):
            await engine.decide(run.gates[0].id, action, by=ANA, via="slack")


async def test_a_link_is_confirmed(engine: ResumeEngine) -> None:
    run = await opened(engine, link_call())
    run = await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack")
    assert call_result(run)["value"] == {"action": "accept"}


async def test_a_custom_answer_fits_its_schema(engine: ResumeEngine) -> None:
    call = {
        "tool_call_id": "c",
        "tool_name": "pick",
        "args": {},
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
    run = await opened(engine, call)
    with pytest.raises(InvalidDecision) as wrong:
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values={"n": "x"})
    assert wrong.value.errors[0]["loc"] == ["values", "n"]
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values={"n": 4})
    assert call_result(run)["value"] == {"n": 4}


async def test_a_batch_answers_every_kind(engine: ResumeEngine) -> None:
    policy = {"responders": ["key:ci"], "approvers": ["key:ci"], "edits": True}
    run = await opened(engine, form_call(), link_call(), approvals=[approval()], policy=policy)
    results = {
        "calls": {
            "form-1": {"status": "returned", "value": {"city": "Rom"}},
            "link-1": {"status": "failed", "message": "no", "action": "cancel"},
        },
        "approvals": {"call-2": {"action": "approve", "override_args": {"path": "/tmp/new.log"}}},
    }
    run = await engine.answer_batch(run.id, results, by=Key(key="ci"), via="api")
    found = run.results()
    assert found is not None
    assert found["calls"]["form-1"]["value"] == {"city": "Rom"}
    assert found["calls"]["link-1"]["action"] == "cancel"
    assert found["approvals"]["call-2"]["override_args"] == {"path": "/tmp/new.log"}


# edited arguments


SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "pattern": "^/tmp/"}},
    "required": ["path"],
}


async def test_edited_arguments_are_approved_with_their_own_digest_and_a_diff(engine: ResumeEngine) -> None:
    asked = approval(args_schema=SCHEMA)
    run = await opened(engine, approvals=[asked], policy={"approvers": ["U1"], "edits": True})
    gate = run.gates[0]
    with pytest.raises(InvalidDecision) as wrong:
        await engine.decide(
            gate.id, Action.APPROVE, by=ANA, via="slack", values={"override_args": {"path": "/etc/passwd"}}
        )
    assert wrong.value.errors[0]["loc"] == ["values", "override_args", "path"]
    override = {"override_args": {"path": "/tmp/other.log"}}
    run = await engine.decide(
        gate.id, Action.APPROVE, by=ANA, via="slack", values=override, digest=gate.digest
    )
    results = run.results()
    assert results is not None
    result = results["approvals"]["call-2"]
    assert result["override_args"] == {"path": "/tmp/other.log"}
    assert result["args_digest"] == run.gates[0].digest != gate.digest
    [edit] = run.gates[0].edits
    assert edit.diff == [{"path": "/path", "old": "/tmp/old.log", "new": "/tmp/other.log"}]
    assert edit.by == ANA
    [event] = [e for e in await events(engine, run.id) if e["event"] == "gate.edited"]
    assert (event["was"], event["args_digest"]) == (gate.digest, edit.to_digest)


async def test_edits_must_be_allowed(engine: ResumeEngine) -> None:
    run = await opened(engine, approvals=[approval()])
    with pytest.raises(InvalidDecision, match="does not allow edited arguments"):
        await engine.decide(
            run.gates[0].id, Action.APPROVE, by=ANA, via="slack", values={"override_args": {"path": "/x"}}
        )


async def test_an_edit_makes_earlier_votes_void(engine: ResumeEngine) -> None:
    """looprig C55."""
    policy = {"approvers": ["U1", "U2", "U3"], "quorum": 2, "edits": True}
    run = await opened(engine, approvals=[approval()], policy=policy)
    gate = run.gates[0]
    await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack", digest=gate.digest)
    override = {"override_args": {"path": "/tmp/b"}}
    run = await engine.decide(
        gate.id, Action.APPROVE, by=BEN, via="slack", values=override, digest=gate.digest
    )
    assert run.status == "waiting"
    assert [vote.by for vote in run.gates[0].votes] == [BEN]
    with pytest.raises(ArgumentsChanged):  # what she saw is not what would run
        await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack", digest=gate.digest)
    run = await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack", digest=run.gates[0].digest)
    results = run.results()
    assert results is not None
    assert results["approvals"]["call-2"]["override_args"] == {"path": "/tmp/b"}
    assert len(results["approvals"]["call-2"]["by"]) == 2


async def test_an_edit_that_comes_again_after_its_reply_was_lost_is_no_conflict_with_itself(
    engine: ResumeEngine,
) -> None:
    """Whoever wrote what would run knows what would run, and voids nobody's vote by saying it once more."""
    policy = {"approvers": ["U1", "U2", "U3"], "quorum": 3, "edits": True}
    run = await opened(engine, approvals=[approval()], policy=policy)
    gate = run.gates[0]

    async def edit(path: str, digest: str | None = gate.digest) -> Run:
        values = {"override_args": {"path": path}}
        return await engine.decide(gate.id, Action.APPROVE, by=BEN, via="slack", values=values, digest=digest)

    run = await edit("/tmp/b")
    await engine.decide(gate.id, Action.APPROVE, by=ANA, via="slack", digest=run.gates[0].digest)
    run = await edit("/tmp/b")
    assert {vote.by for vote in run.gates[0].votes} == {ANA, BEN}
    assert len(run.gates[0].edits) == 1
    assert {vote.digest for vote in run.gates[0].votes} == {run.gates[0].digest}
    with pytest.raises(ArgumentsChanged):
        await edit("/tmp/c")


async def test_an_edit_that_changes_nothing_is_a_plain_vote(engine: ResumeEngine) -> None:
    policy = {"approvers": ["U1", "U2"], "quorum": 2, "edits": True}
    run = await opened(engine, approvals=[approval()], policy=policy)
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    same = {"override_args": dict(run.gates[0].arguments)}
    run = await engine.decide(run.gates[0].id, Action.APPROVE, by=BEN, via="slack", values=same)
    results = run.results()
    assert results is not None
    assert "override_args" not in results["approvals"]["call-2"]


async def test_approve_always_says_so(engine: ResumeEngine) -> None:
    """looprig C18."""
    run = await opened(engine, approvals=[approval(always=["delete_file in /tmp"])])
    assert run.gates[0].doc.saves == ("delete_file in /tmp",)
    run = await engine.decide(run.gates[0].id, Action.APPROVE_ALWAYS, by=ANA, via="slack")
    results = run.results()
    assert results is not None
    assert results["approvals"]["call-2"]["always"] is True
    assert results["approvals"]["call-2"]["action"] == "approve"


async def test_approve_always_is_not_offered_unasked(engine: ResumeEngine) -> None:
    run = await opened(engine, approvals=[approval()])
    with pytest.raises(InvalidDecision, match="not offered"):
        await engine.decide(run.gates[0].id, Action.APPROVE_ALWAYS, by=ANA, via="slack")


@pytest.mark.parametrize(
    ("text", "taken"), [("x" * 16_376, True), ("x" * 16_377, False), ("é" * 8_189, False)]
)
async def test_a_custom_call_has_up_to_16_kib_of_json(engine: ResumeEngine, text: str, taken: bool) -> None:
    call = {"tool_call_id": "c", "tool_name": "t", "args": {"a": text}}
    with nullcontext() if taken else pytest.raises(ValidationError, match="at most 16 KiB"):
        run = await opened(engine, call)
        assert run.gates[0].arguments == {"a": text}


@pytest.mark.parametrize(
    "broken",
    [
        {"policy": {"quorum": 2, "approvers": ["U1", "U2"]}, "approvals": [approval(always=["x"])]},
        {"approvals": [approval(args_schema={"type": "dance"})]},
        {"approvals": [approval(args_schema={"type": "object", "required": ["ghost"]})]},
        {"calls": [{"kind": "form", "tool_call_id": "a", "tool_name": "t"}]},
        {"calls": [{"kind": "poem", "tool_call_id": "a", "tool_name": "t", "args": {}}]},
        {"policy": {"quorum": True, "approvers": ["U1"]}, "approvals": [approval()]},
        {"timeout_s": "60"},
        {"remind_after_s": [0]},
        {"escalate": {"after_s": 10}},
        {"callback": {"url": "ftp://example.com", "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}},
        {"callback": {"url": "https://example.com", "secret": "whsec_short"}},
        {"callback": {"url": "https://a:b@example.com", "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}},
    ],
)
def test_a_run_that_breaks_a_rule_is_refused(broken: Json) -> None:
    """looprig C33."""
    calls, approvals = broken.pop("calls", None), broken.pop("approvals", None)
    with pytest.raises(ValidationError):
        run_request(calls, approvals, **broken)


def test_a_callback_secret_is_shown_nowhere() -> None:
    callback = {"url": "https://example.com/hook", "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}
    request = run_request(callback=callback)
    assert "MDEyMzQ1" not in repr(request)
    assert "MDEyMzQ1" not in request.model_dump_json()


async def test_answers_are_one_for_each_gate(engine: ResumeEngine) -> None:
    run = await opened(engine, form_call(), link_call())
    answers = [Answer(0, Action.ACCEPT, {"city": "Rom"}), Answer(1, Action.ACCEPT)]
    run = await engine.decide_all(run.id, answers, by=ANA, via="slack")
    assert run.status == "settled"


def test_invalid_is_told_apart() -> None:
    assert issubclass(InvalidDecision, Invalid)
    assert RunRequest.model_fields["timeout_s"].default is None
