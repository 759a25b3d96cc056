"""Results: what a settled gate says to its host. Pure functions of what is stored."""

from __future__ import annotations

from typing import Any

from core import approvals
from core.clock import iso
from core.gates import MAX_COMMENT, Action, Decision, Gate, Kind, Outcome


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
    if decision.outcome is not Outcome.APPROVED or _digest(gate.arguments) == decision.digest:
        return decision
    detail = "The arguments are not those that were approved."
    return Decision(outcome=Outcome.SUPERSEDED, at=decision.at, via="host", detail=detail)


def _digest(args: dict[str, Any]) -> str:
    try:
        return approvals.digest(args)
    except approvals.ArgumentsError:  # no form that everybody reads alike: nobody was shown these
        return ""


def _call_result(gate: Gate, decision: Decision) -> dict[str, Any]:
    """`returned` or `failed`; forms and links also say which of accept, decline and cancel a person chose."""
    body: dict[str, Any] = {"status": "failed", "message": failure(gate, decision)}
    if decision.outcome is Outcome.ANSWERED:
        value = {"action": decision.action} if gate.doc.kind is Kind.LINK else decision.values
        body = {"status": "returned", "value": value}
    if gate.doc.kind in (Kind.FORM, Kind.LINK) and decision.action:
        body["action"] = decision.action
    return body


def _approval_result(gate: Gate, decision: Decision) -> dict[str, Any]:
    body: dict[str, Any] = {"action": "approve"}
    if decision.outcome is Outcome.APPROVED:
        if gate.edited is not None:
            body["override_args"] = gate.edited
        if decision.action is Action.APPROVE_ALWAYS:
            body["always"] = True
    else:
        reason = failure(gate, decision)
        # a host may refuse a longer one; `comment` has all of it
        body = {
            "action": "deny",
            "reason": reason if len(reason) <= MAX_COMMENT else f"{reason[: MAX_COMMENT - 1]}…",
        }
    return body | {"args_digest": gate.digest}


def failure(gate: Gate, decision: Decision) -> str:
    """The sentence that a host's model reads when there is no answer and no approval."""
    approval = gate.doc.kind is Kind.APPROVAL
    word = decision.comment or decision.detail
    match decision.outcome:
        case Outcome.DENIED:
            return word or "The call was rejected."
        case Outcome.DECLINED:
            did = "dismissed the request" if decision.action is Action.CANCEL else "declined to answer"
            return f"The user {did}: {word}" if word else f"The user {did}."
        case Outcome.EXPIRED:
            return f"No {'decision' if approval else 'answer'} within {gate.timeout_s} s."
        case outcome:
            return f"{outcome.capitalize()}: {word}" if word else f"The request was {outcome}."
