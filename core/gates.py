"""A gate: one thing a person must settle, and the decision that settled it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from core import approvals, questions
from core.clock import iso
from core.errors import InvalidDecision
from core.policy import Actor, Person, Policy
from core.strictjson import has_lone_surrogate

QUESTION_TOOL = "ask_user_question"
MAX_COMMENT = 4096
"""Characters of a comment or a reason: what the strictest host takes for a denial's reason."""


class Kind(StrEnum):
    QUESTION = "question"
    APPROVAL = "approval"
    CUSTOM = "custom"


class Outcome(StrEnum):
    """How a gate ended. The last four name nobody: no person did it."""

    ANSWERED = "answered"
    APPROVED = "approved"
    DENIED = "denied"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNDELIVERABLE = "undeliverable"
    SUPERSEDED = "superseded"


class Action(StrEnum):
    """What a person may do with a gate."""

    ANSWER = "answer"
    DECLINE = "decline"
    APPROVE = "approve"
    DENY = "deny"

    @property
    def outcome(self) -> Outcome:
        return {
            Action.ANSWER: Outcome.ANSWERED,
            Action.DECLINE: Outcome.DECLINED,
            Action.APPROVE: Outcome.APPROVED,
            Action.DENY: Outcome.DENIED,
        }[self]


OFFERED: dict[Kind, tuple[Action, ...]] = {
    Kind.QUESTION: (Action.ANSWER, Action.DECLINE),
    Kind.CUSTOM: (Action.ANSWER, Action.DECLINE),
    Kind.APPROVAL: (Action.APPROVE, Action.DENY),
}


class GateDoc(BaseModel):
    """What never changes about a gate."""

    model_config = ConfigDict(frozen=True)
    id: str
    index: int
    kind: Kind
    category: Literal["calls", "approvals"]
    tool_call_id: str
    tool_name: str
    args: JsonValue
    args_digest: str | None = None
    reason: str | None = None
    risk: Literal["low", "medium", "high", "extra_high"] | None = None
    policy: Policy

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of an approval or a custom call, in the order in which they were given."""
        return self.args if isinstance(self.args, dict) else {}


class Vote(BaseModel):
    """One person's word on a gate. ``token`` is the one call that brought it, so that a retried call knows itself."""

    model_config = ConfigDict(frozen=True)
    action: Action
    by: Actor
    at: int
    via: str
    token: str
    comment: str | None = None
    digest: str | None = None


class Decision(BaseModel):
    """The record that settled a gate: outcome, values, by whom, when, from where.

    ``via`` is ``slack``, ``api``, ``clock`` or ``host``; ``at`` is in ms; ``votes`` is empty when nobody did it.
    """

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    at: int
    via: str
    votes: tuple[Vote, ...] = ()
    values: JsonValue = None
    digest: str | None = None
    detail: str | None = None

    @property
    def by(self) -> tuple[Actor, ...]:
        return tuple(vote.by for vote in self.votes)

    @property
    def comment(self) -> str | None:
        return "; ".join(vote.comment for vote in self.votes if vote.comment) or None


class Gate(BaseModel):
    """A gate as it is stored."""

    model_config = ConfigDict(frozen=True)
    doc: GateDoc
    status: Literal["pending"] | Outcome
    rev: int
    deadline: int
    created_at: int
    votes: tuple[Vote, ...] = ()
    drafts: dict[str, JsonValue] = {}
    decision: Decision | None = None

    @property
    def id(self) -> str:
        return self.doc.id

    @property
    def pending(self) -> bool:
        return self.status == "pending"

    @property
    def asks(self) -> questions.AskUserQuestion:
        """The questions of a question gate."""
        return questions.AskUserQuestion.model_validate(self.doc.args)

    @property
    def timeout_s(self) -> int:
        return round((self.deadline - self.created_at) / 1000)


def check_values(gate: Gate, action: Action, values: object, comment: str | None) -> JsonValue:
    """Check what a person decided against the gate itself, and return the values in their normal form.

    Raises InvalidDecision, with the place and the rule that was broken.
    """
    kind = gate.doc.kind
    if action not in OFFERED[kind]:
        offered = ", ".join(OFFERED[kind])
        raise _invalid(("action",), f"{action} is not offered by this {kind}; wanted one of: {offered}")
    if comment is not None and len(comment) > MAX_COMMENT:
        raise _invalid(("comment",), f"wanted at most {MAX_COMMENT} characters, got {len(comment)}")
    wants = gate.doc.policy.reason
    if comment is not None and has_lone_surrogate(comment):
        raise _invalid(("comment",), "the text has half a surrogate pair")
    needed = wants == "always" or (wants == "on_reject" and action is Action.DENY)
    if kind is Kind.APPROVAL and needed and not (comment and comment.strip()):
        raise _invalid(("comment",), "the policy wants a reason")
    if action is not Action.ANSWER:
        if values is not None:
            raise _invalid(("values",), f"{action} takes no values")
        return None
    if kind is Kind.QUESTION:
        try:
            answers: JsonValue = questions.check_answers(gate.asks, values)
        except questions.AnswerError as error:
            raise _invalid(("values", *error.loc), str(error)) from None
        return answers
    if values is None:
        raise _invalid(("values",), "an answer wants a value: text or JSON")
    return _json(values)


def _json(values: object) -> JsonValue:
    try:
        approvals.canonical({"value": values})
    except ValueError as error:
        raise _invalid(("values",), str(error)) from None
    return values  # type: ignore[return-value]  # canonical() takes nothing but JSON


def _invalid(loc: tuple[str | int, ...], message: str) -> InvalidDecision:
    where = ".".join(str(part) for part in loc)
    return InvalidDecision(
        f"{where}: {message}", errors=[{"loc": list(loc), "msg": message, "type": "invalid"}]
    )


def result(gate: Gate) -> dict[str, Any]:
    """The result of a settled gate, as its host gets it. A pure function of what is stored.

    Raises ValueError for a pending gate.
    """
    decision = gate.decision
    if decision is None:
        raise ValueError(f"{gate.id} is pending")
    if gate.doc.category == "calls":
        body = _call_result(gate, decision)
    else:
        decision = _as_shown(gate, decision)
        body = _approval_result(gate, decision)
    body["outcome"] = decision.outcome
    body["by"] = [actor.model_dump() for actor in decision.by]
    body["decided_at"] = iso(decision.at)
    if decision.comment:
        body["comment"] = decision.comment
    return body


def _as_shown(gate: Gate, decision: Decision) -> Decision:
    """What was shown is what runs: an approval of other arguments than the stored ones is void."""
    if decision.outcome is not Outcome.APPROVED or _digest(gate.doc.arguments) == decision.digest:
        return decision
    detail = "The arguments are not those that were approved."
    return Decision(outcome=Outcome.SUPERSEDED, at=decision.at, via="host", detail=detail)


def _digest(args: dict[str, JsonValue]) -> str:
    try:
        return approvals.digest(args)
    except approvals.ArgumentsError:  # no form that everybody reads alike: nobody was shown these
        return ""


def _call_result(gate: Gate, decision: Decision) -> dict[str, Any]:
    if decision.outcome is Outcome.ANSWERED:
        return {"status": "returned", "value": decision.values}
    return {"status": "failed", "message": failure(gate, decision)}


def _approval_result(gate: Gate, decision: Decision) -> dict[str, Any]:
    body: dict[str, Any] = {"action": "approve"}
    if decision.outcome is not Outcome.APPROVED:
        reason = failure(gate, decision)
        # a host may refuse a longer one; `comment` has all of it
        body = {
            "action": "deny",
            "reason": reason if len(reason) <= MAX_COMMENT else f"{reason[: MAX_COMMENT - 1]}…",
        }
    return body | {"args_digest": gate.doc.args_digest}


def failure(gate: Gate, decision: Decision) -> str:
    """The sentence that a host's model reads when there is no answer and no approval."""
    approval = gate.doc.kind is Kind.APPROVAL
    word = decision.comment or decision.detail
    match decision.outcome:
        case Outcome.DENIED:
            return word or "The call was rejected."
        case Outcome.DECLINED:
            return f"The user declined to answer: {word}" if word else "The user declined to answer."
        case Outcome.EXPIRED:
            return f"No {'decision' if approval else 'answer'} within {gate.timeout_s} s."
        case outcome:
            return f"{outcome.capitalize()}: {word}" if word else f"The request was {outcome}."


def speaker(actor: Actor) -> str:
    """An actor as one word: `T1:U1` or `key:ci`. One vote and one draft a speaker."""
    return f"{actor.team}:{actor.user}" if isinstance(actor, Person) else f"key:{actor.key}"
