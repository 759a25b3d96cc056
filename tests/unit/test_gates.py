"""What a host gets for each outcome, and what a gate takes as an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from core import approvals
from core.answers import Answer, check_answer
from core.errors import InvalidDecision
from core.forms import FormField, FormRequest
from core.gates import (
    MAX_COMMENT,
    Action,
    Decision,
    Gate,
    GateDoc,
    Kind,
    Outcome,
    Vote,
    speaker,
)
from core.links import LinkRequest
from core.policy import Actor, Key, Person, Policy
from core.results import result
from core.runs import Run, RunDoc, RunStatus
from tests.runs import FOCUSED, question_call

ANA = Person(team="T1", user="U1")
BEN = Person(team="T1", user="U2")
OPENED = 1_767_225_600_000  # 2026-01-01T00:00:00Z
ARGS: dict[str, JsonValue] = {"path": "/tmp/old.log"}
FORM = FormRequest(fields=(FormField(name="city", kind="text"),))
NOBODY = (Outcome.EXPIRED, Outcome.CANCELLED, Outcome.UNDELIVERABLE, Outcome.SUPERSEDED)


OFFERED = {
    Kind.QUESTION: (Action.ANSWER, Action.DECLINE),
    Kind.CUSTOM: (Action.ANSWER, Action.DECLINE, Action.CANCEL),
    Kind.FORM: (Action.ACCEPT, Action.DECLINE, Action.CANCEL),
    Kind.LINK: (Action.ACCEPT, Action.DECLINE, Action.CANCEL),
    Kind.APPROVAL: (Action.APPROVE, Action.DENY),
}


def check(asked: Gate, action: Action, values: object = None, comment: str | None = None) -> JsonValue:
    return check_answer(asked, Answer(asked.doc.index, action, values, comment))


def gate(kind: Kind = Kind.QUESTION, decision: Decision | None = None, index: int = 0, **policy: Any) -> Gate:
    args: JsonValue = question_call()["args"] if kind is Kind.QUESTION else ARGS
    rules = Policy(deciders=("anyone",), **policy)
    return Gate(
        policy=rules,
        doc=GateDoc(
            id=f"gate_00_01JZ0000000000000000000000_{index}",
            index=index,
            kind=kind,
            category="approvals" if kind is Kind.APPROVAL else "calls",
            tool_call_id="same id",
            tool_name="tool",
            args=args,
            args_digest=approvals.digest(ARGS) if kind is Kind.APPROVAL else None,
            policy=rules,
            offered=OFFERED[kind],
            form=FORM if kind is Kind.FORM else None,
            link=LinkRequest(origin="https://example.com") if kind is Kind.LINK else None,
        ),
        status=decision.outcome if decision else "pending",
        rev=1,
        deadline=OPENED + 90_000,
        created_at=OPENED,
        decision=decision,
    )


def vote(action: Action, by: Actor = ANA, comment: str | None = None) -> Vote:
    return Vote(action=action, by=by, at=OPENED, via="slack", token="t", comment=comment)


def by_person(action: Action, comment: str | None = None, **more: Any) -> Decision:
    return Decision(
        outcome=action.outcome, at=OPENED + 5, via="slack", votes=(vote(action, comment=comment),), **more
    )


def by_nobody(outcome: Outcome, detail: str | None = None) -> Decision:
    return Decision(outcome=outcome, at=OPENED + 5, via="clock", detail=detail)


TAIL = {"decided_at": "2026-01-01T00:00:00.005Z"}
BY_ANA = {"by": [{"team": "T1", "user": "U1"}], **TAIL}
BY_NOBODY: dict[str, Any] = {"by": [], **TAIL}


@pytest.mark.parametrize("kind", [Kind.QUESTION, Kind.CUSTOM])
@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (
            by_person(Action.ANSWER, values=FOCUSED),
            {"status": "returned", "value": FOCUSED, "outcome": "answered", **BY_ANA},
        ),
        (
            by_person(Action.ANSWER, values=FOCUSED, comment="a hint"),
            {"status": "returned", "value": FOCUSED, "outcome": "answered", "comment": "a hint", **BY_ANA},
        ),
        (
            by_person(Action.DECLINE),
            {"status": "failed", "message": "The user declined to answer.", "outcome": "declined", **BY_ANA},
        ),
        (
            by_person(Action.DECLINE, comment="ask Ben"),
            {
                "status": "failed",
                "message": "The user declined to answer: ask Ben",
                "outcome": "declined",
                "comment": "ask Ben",
                **BY_ANA,
            },
        ),
        (
            by_nobody(Outcome.EXPIRED),
            {"status": "failed", "message": "No answer within 90 s.", "outcome": "expired", **BY_NOBODY},
        ),
        (
            by_nobody(Outcome.CANCELLED),
            {
                "status": "failed",
                "message": "The request was cancelled.",
                "outcome": "cancelled",
                **BY_NOBODY,
            },
        ),
        (
            by_nobody(Outcome.CANCELLED, "not needed"),
            {"status": "failed", "message": "Cancelled: not needed", "outcome": "cancelled", **BY_NOBODY},
        ),
        (
            by_nobody(Outcome.UNDELIVERABLE, "channel_not_found"),
            {
                "status": "failed",
                "message": "Undeliverable: channel_not_found",
                "outcome": "undeliverable",
                **BY_NOBODY,
            },
        ),
    ],
)
def test_a_call_returns_only_what_a_person_answered(
    kind: Kind, decision: Decision, expected: dict[str, Any]
) -> None:
    assert result(gate(kind, decision)) == expected


DIGEST = approvals.digest(ARGS)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (by_person(Action.APPROVE, digest=DIGEST), {"action": "approve", "outcome": "approved", **BY_ANA}),
        (
            by_person(Action.APPROVE, digest=DIGEST, comment="go"),
            {"action": "approve", "outcome": "approved", "comment": "go", **BY_ANA},
        ),
        (
            by_person(Action.DENY),
            {"action": "deny", "reason": "The call was rejected.", "outcome": "denied", **BY_ANA},
        ),
        (
            by_person(Action.DENY, comment="wrong file"),
            {
                "action": "deny",
                "reason": "wrong file",
                "outcome": "denied",
                "comment": "wrong file",
                **BY_ANA,
            },
        ),
        (
            by_nobody(Outcome.EXPIRED),
            {"action": "deny", "reason": "No decision within 90 s.", "outcome": "expired", **BY_NOBODY},
        ),
        (
            by_nobody(Outcome.CANCELLED, "not needed"),
            {"action": "deny", "reason": "Cancelled: not needed", "outcome": "cancelled", **BY_NOBODY},
        ),
        (
            by_nobody(Outcome.UNDELIVERABLE),
            {
                "action": "deny",
                "reason": "The request was undeliverable.",
                "outcome": "undeliverable",
                **BY_NOBODY,
            },
        ),
        (
            by_person(Action.APPROVE, digest="0" * 64, comment="go"),
            {
                "action": "deny",
                "reason": "Superseded: The arguments are not those that were approved.",
                "outcome": "superseded",
                **BY_NOBODY,
            },
        ),
        (
            by_person(Action.APPROVE),
            {
                "action": "deny",
                "reason": "Superseded: The arguments are not those that were approved.",
                "outcome": "superseded",
                **BY_NOBODY,
            },
        ),
    ],
)
def test_a_tool_runs_only_when_a_person_approved_these_arguments(
    decision: Decision, expected: dict[str, Any]
) -> None:
    assert result(gate(Kind.APPROVAL, decision)) == expected | {"args_digest": DIGEST}


@pytest.mark.parametrize("outcome", NOBODY)
@pytest.mark.parametrize("kind", list(Kind))
def test_what_nobody_decided_names_nobody_and_grants_nothing(kind: Kind, outcome: Outcome) -> None:
    found = result(gate(kind, by_nobody(outcome)))
    assert found["by"] == []
    assert found["outcome"] == outcome
    assert "comment" not in found
    assert found.get("status", found.get("action")) in ("failed", "deny")
    assert "value" not in found


def test_a_pending_gate_has_no_result() -> None:
    with pytest.raises(ValueError, match="is pending"):
        result(gate())


def test_a_quorum_s_result_names_all_and_joins_their_comments() -> None:
    votes = (vote(Action.DENY, ANA, "one"), vote(Action.DENY, BEN), vote(Action.DENY, Key(key="ci"), "two"))
    found = result(gate(Kind.APPROVAL, Decision(outcome=Outcome.DENIED, at=OPENED, via="slack", votes=votes)))
    assert found["by"] == [{"team": "T1", "user": "U1"}, {"team": "T1", "user": "U2"}, {"key": "ci"}]
    assert found["reason"] == found["comment"] == "one; two"


def test_a_denial_s_reason_is_never_longer_than_a_host_takes() -> None:
    votes = (vote(Action.DENY, ANA, "a" * MAX_COMMENT), vote(Action.DENY, BEN, "b" * MAX_COMMENT))
    found = result(gate(Kind.APPROVAL, Decision(outcome=Outcome.DENIED, at=OPENED, via="slack", votes=votes)))
    assert len(found["comment"]) == 2 * MAX_COMMENT + 2
    assert found["reason"] == found["comment"][: MAX_COMMENT - 1] + "…"
    found = result(gate(Kind.APPROVAL, by_person(Action.DENY, "a" * MAX_COMMENT)))
    assert found["reason"] == found["comment"]


def test_a_run_has_results_when_everything_is_settled_each_in_its_own_category() -> None:
    doc = RunDoc(
        id="run_00_01JZ0000000000000000000000",
        host="api",
        owner="ci",
        external_id=None,
        title=None,
        place=None,
        requester=None,
        created_at=OPENED,
        size=2,
    )
    question, approval = gate(decision=by_person(Action.ANSWER, values=FOCUSED)), gate(Kind.APPROVAL, index=1)
    waiting = Run(doc=doc, status=RunStatus.WAITING, rev=1, gates=(question, approval))
    assert waiting.open
    assert waiting.results() is None
    denied = gate(Kind.APPROVAL, by_person(Action.DENY), index=1)
    settled = waiting.model_copy(update={"gates": (question, denied)})
    results = settled.results()
    assert results is not None
    # the same id in both categories would not get past the door; here it shows that they are kept apart
    assert results["calls"]["same id"]["outcome"] == "answered"
    assert results["approvals"]["same id"]["outcome"] == "denied"
    assert json.loads(json.dumps(results)) == results


# what a gate takes


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("action", list(Action))
def test_a_gate_takes_only_the_actions_that_it_offers(kind: Kind, action: Action) -> None:
    values = FOCUSED if action is Action.ANSWER else None
    if action in OFFERED[kind]:
        expected = {} if kind is Kind.FORM and action is Action.ACCEPT else values
        assert check(gate(kind), action, values, None) == expected
    else:
        with pytest.raises(
            InvalidDecision, match=f"{action} is not offered by this {kind}; wanted one of"
        ) as wrong:
            check(gate(kind), action, values, None)
        assert wrong.value.errors[0]["loc"] == ["action"]


@pytest.mark.parametrize("action", [Action.DECLINE, Action.CANCEL, Action.DENY])
def test_only_an_answer_takes_values(action: Action) -> None:
    kind = next(kind for kind in Kind if action in OFFERED[kind])
    for values in (FOCUSED, True, "", {}, 0):
        with pytest.raises(InvalidDecision, match="takes no values"):
            check(gate(kind), action, values, None)


def test_a_comment_has_its_bounds() -> None:
    asked = gate(Kind.APPROVAL)
    assert check(asked, Action.DENY, None, "🧨" * MAX_COMMENT) is None
    for comment in ("x" * (MAX_COMMENT + 1), "half \ud83d"):
        with pytest.raises(InvalidDecision) as wrong:
            check(asked, Action.DENY, None, comment)
        assert wrong.value.errors[0]["loc"] == ["comment"]


def test_a_reason_is_a_duty_of_approvals_alone() -> None:
    assert check(gate(reason="always"), Action.DECLINE, None, None) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text() | st.floats(-1e15, 1e15),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_custom_gate_takes_any_json_but_null_as_it_is(value: Any) -> None:
    if value is None:
        with pytest.raises(InvalidDecision, match="wants a value"):
            check(gate(Kind.CUSTOM), Action.ANSWER, value, None)
    else:
        assert check(gate(Kind.CUSTOM), Action.ANSWER, value, None) is value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**53, "\ud83d", {1: 2}, {"a": b"b"}, object()]
)
def test_a_custom_gate_refuses_what_is_no_json(value: object) -> None:
    with pytest.raises(InvalidDecision) as wrong:
        check(gate(Kind.CUSTOM), Action.ANSWER, value, None)
    assert wrong.value.errors[0]["loc"] == ["values"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_no_value_whatever_approves_a_tool(value: Any) -> None:
    with pytest.raises(InvalidDecision):
        check(gate(Kind.APPROVAL), Action.ANSWER, value, None)
    if value is not None:
        with pytest.raises(InvalidDecision):
            check(gate(Kind.APPROVAL), Action.APPROVE, value, None)


def test_a_speaker_is_one_word_for_one_person() -> None:
    words = {
        speaker(actor) for actor in (ANA, BEN, Person(team="T2", user="U1"), Key(key="U1"), Key(key="ci"))
    }
    assert words == {"T1:U1", "T1:U2", "T2:U1", "key:U1", "key:ci"}
