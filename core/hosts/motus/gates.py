"""What a Motus interrupt asks of people, and the value that goes back. Pure functions of the interrupt's facts.

The two built-in types are `tool_approval` and `user_input`. The server checks neither what an agent sends nor what
comes back, and `requires_approval` takes any truthy value for a yes, so both are made here with care.

The facts are the interrupt's `session_id`, `interrupt_id`, `type` and `payload`; of one that the server cannot show,
`hidden` says why, in place of the last two. With a run they are stored with `shown`: as what people saw it. No name
that an agent chose tells anything of that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from core.gates import QUESTION_TOOL
from core.hosts.motus import asking
from core.requests import Pending

CANCEL_TOOL: Final = "cancel_turn"
"""What our own notice is called on its card."""

Json = dict[str, Any]


class Shown(StrEnum):
    """As what an interrupt is put to people. ``NOTICE``: it cannot be; all that they can do is cancel the turn."""

    APPROVAL = "approval"
    QUESTIONS = "questions"
    FORM = "form"
    CUSTOM = "custom"
    NOTICE = "notice"


class CancelTurn(Exception):
    """No value says this to the agent: the turn is to be cancelled, and its conversation kept."""


class LeaveIt(Exception):
    """There is nothing to say: the turn waits on."""


def pending(facts: Json) -> tuple[Shown, Pending]:
    """The one gate of an interrupt, and as what it is shown."""
    if "hidden" in facts:
        return Shown.NOTICE, _notice(facts, facts["hidden"])
    try:
        return _shown(facts["interrupt_id"], facts["type"], facts["payload"])
    except ValidationError as error:
        why = f"what the agent sent cannot be shown in full: {error.errors()[0]['msg']}"
        return Shown.NOTICE, _notice(facts, why)


def value(facts: Json, result: Json, failures: Mapping[str, Any]) -> Any:
    """What the interrupt is resumed with. ``result`` is the gate's, ``failures`` the values for custom types.

    Raises CancelTurn or LeaveIt if no value will do.
    """
    approved = result.get("action") == "approve" and result["outcome"] == "approved"
    match Shown(facts["shown"]):
        case Shown.NOTICE:
            raise CancelTurn if approved else LeaveIt
        case Shown.APPROVAL:
            return {"approved": True} if approved else {"approved": False, "reason": result["reason"]}
        case shown if facts["type"] == "user_input":
            return _answers(shown, facts["payload"], result)
    if result["status"] == "returned":
        return result["value"]
    if facts["type"] in failures:
        return failures[facts["type"]]
    raise CancelTurn


def facts_of(state: str | None) -> Json:
    """The facts of an interrupt, as they were stored with its run. Raises ValueError."""
    facts = json.loads(state or "null")
    if not isinstance(facts, dict) or not {"session_id", "interrupt_id", "shown"} <= facts.keys():
        raise ValueError("this is no run that a Motus server opened")
    return facts


def _shown(call_id: str, kind: str, payload: Any) -> tuple[Shown, Pending]:
    if kind == "tool_approval" and isinstance(payload, dict):
        return Shown.APPROVAL, _approval(call_id, payload)
    if kind == "user_input" and isinstance(payload, dict):
        call = {"tool_call_id": call_id, "tool_name": QUESTION_TOOL}
        if args := asking.questions(payload):
            return Shown.QUESTIONS, Pending.model_validate({"calls": [{**call, "args": args}]})
        if form := asking.form(payload):
            return Shown.FORM, Pending.model_validate({"calls": [{**call, "kind": "form", "form": form}]})
    return Shown.CUSTOM, _custom(call_id, kind, payload)


def _approval(call_id: str, payload: Json) -> Pending:
    args = payload.get("tool_args")
    call = {
        "tool_call_id": call_id,
        "tool_name": payload.get("tool_name"),
        "args": args if isinstance(args, dict) else {"args": args},
    }
    return Pending.model_validate({"approvals": [call]})


def _custom(call_id: str, kind: str, payload: Any) -> Pending:
    args = payload if isinstance(payload, dict) else {"payload": payload}
    call = {"kind": "custom", "tool_call_id": call_id, "tool_name": kind[:256] or "unknown", "args": args}
    return Pending.model_validate({"calls": [call]})


def _notice(facts: Json, why: str) -> Pending:
    call = {
        "tool_call_id": facts["interrupt_id"],
        "tool_name": CANCEL_TOOL,
        "args": {"session_id": facts["session_id"]},
        "reason": f"This turn waits for something that cannot be answered here: {why}. "
        "Approve to cancel the turn and keep the conversation; reject to let it wait.",
    }
    return Pending.model_validate({"approvals": [call]})


def _answers(shown: Shown, payload: Json, result: Json) -> Json:
    if result["status"] != "returned":
        word = {"expired": "timed_out"}.get(result["outcome"], result["outcome"])
        return {"answers": {}, "status": word, "error": result["message"]}
    given = result["value"]
    if shown is Shown.QUESTIONS:
        return asking.answers(payload, given)
    if shown is Shown.FORM:
        return asking.filled_in(payload, given)
    return given if isinstance(given, dict) else {"answers": {}, "response": given}
