"""What a looprig gate asks of people, and the action and values that go back. Pure functions of the gate's prompt.

The action strings are looprig's own and exact; a bad answer spends the gate, so what goes back is checked before.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from core.gates import MAX_COMMENT
from core.requests import Pending

Json = dict[str, Any]

APPROVE: Final = "Approve"
APPROVE_ALWAYS: Final = "Approve always for this workspace"
DENY: Final = "Deny"
ANSWER: Final = "answer"
OTHER: Final = "other"
"""What looprig's ask_user takes for none of its choices. The text itself follows as input to the session."""
TEXT: Final = "text"
NOTICE_TOOL: Final = "dismiss_request"
SAVES: Final = "Approve always saves:"


class NoWord(Exception):
    """looprig has no word for this outcome: the gate waits on."""


def pending(facts: Json, *, always: bool = True) -> Pending:
    """The one gate of a looprig gate. ``facts``: ``gate`` as its event has it, ``request`` of a permission or None.

    ``always``: whether "Approve always" may be offered. It takes one person, so it goes with no quorum.
    """
    gate = facts["gate"]
    try:
        match gate.get("kind"):
            case "harness.permission":
                return _permission(gate, facts.get("request") or {}, always)
            case "harness.ask_user":
                return _ask_user(gate)
            case "harness.form":
                return _form(gate)
            case "harness.open_url":
                return _open_url(gate)
            case kind:
                why = f"it is of the kind {kind!r}"
    except ValidationError as error:
        why = f"it cannot be shown in full: {error.errors()[0]['msg']}"
    return _notice(gate, why)


def answer(facts: Json, result: Json) -> tuple[str, Json, str | None]:
    """The action, its values, and a text that follows as input. ``result`` is the gate's.

    Raises NoWord if the gate offers nothing that says it.
    """
    gate = facts["gate"]
    asked = pending(facts)
    if asked.approvals and asked.approvals[0].tool_name == NOTICE_TOOL:
        if result["outcome"] != "approved":
            raise NoWord
        return _negative(gate), {}, None
    if gate["kind"] == "harness.permission":
        if result["outcome"] == "approved":
            return APPROVE_ALWAYS if result.get("always") else APPROVE, {}, None
        return DENY, {}, None
    if result["status"] != "returned":
        return result.get("action") or _negative(gate), {}, None
    if gate["kind"] == "harness.ask_user":
        return _answered(result["value"])
    if gate["kind"] == "harness.open_url":
        return "accept", {}, None
    return "accept", result["value"], None


def _answered(value: Json) -> tuple[str, Json, str | None]:
    return ANSWER, {ANSWER: value[ANSWER]}, value.get(TEXT)


def policy_deadline(gate: Json, opened_ms: int) -> int | None:
    """When looprig answers by the gate's own policy, in ms. Its durations are nanoseconds."""
    policy = gate.get("response_policy") or {}
    timeout = policy.get("timeout")
    if policy.get("on_timeout") != "respond" or not isinstance(timeout, int | float) or timeout <= 0:
        return None
    return opened_ms + int(timeout / 1e6)


def actions(gate: Json) -> list[str]:
    """The actions that the gate offers, exactly as they are sent."""
    controls = _prompt(gate).get("controls") or []
    return [str(control.get("action", "")) for control in controls if isinstance(control, dict)]


def _negative(gate: Json) -> str:
    for action in ("cancel", "decline", DENY):
        if action in actions(gate):
            return action
    raise NoWord


def _prompt(gate: Json) -> Json:
    prompt = gate.get("prompt")
    return prompt if isinstance(prompt, dict) else {}


def _permission(gate: Json, request: Json, always: bool) -> Pending:
    body = str(_prompt(gate).get("body") or "")
    shown = {key: value for key, value in request.items() if key not in ("tool_name", "summary") and value}
    call: Json = {
        "tool_call_id": gate["id"],
        "tool_name": request.get("tool_name") or "tool call",
        # without the request all there is to decide on is the prompt's text
        "args": shown or {"request": body},
        "reason": request.get("summary") or None if shown else None,
    }
    if call["reason"] is not None and len(call["reason"]) > MAX_COMMENT:
        call["args"] = {**shown, "summary": call.pop("reason")}
    if always and APPROVE_ALWAYS in actions(gate):
        call["always"] = _saves(request, body)
    return Pending.model_validate({"approvals": [call]})


def _saves(request: Json, body: str) -> list[str]:
    requirements = request.get("requirements") or []
    said = [
        str(candidate.get("description"))
        for requirement in requirements
        for candidate in requirement.get("candidates") or []
        if candidate.get("description")
    ]
    if said or SAVES not in body:
        return said
    bullets = body.split(SAVES, 1)[1].strip().splitlines()
    return [bullet.strip().lstrip("-*• ").strip() for bullet in bullets if bullet.strip()]


def _ask_user(gate: Json) -> Pending:
    """A form of one field; with choices also one for another answer's text, which looprig takes as `other`."""
    prompt = _prompt(gate)
    fields = (prompt.get("schema") or {}).get("fields") or [{}]
    choices = fields[0].get("options") or []
    label = prompt.get("body") or fields[0].get("label") or ""
    field: Json = {"name": ANSWER, "label": label, "kind": "text", "required": True}
    if choices:
        # looprig allows two of a kind; the first will do
        labels = {option.get("value"): option.get("label") or "" for option in reversed(choices)}
        labels = {value: labels[value] for value in dict.fromkeys(o.get("value") for o in choices)}
        labels.setdefault(OTHER, "Something else (write it below)")
        options = [{"value": value, "label": label} for value, label in labels.items()]
        another = {"name": TEXT, "label": "Something else", "kind": "text"}
        return _form_of(gate, [{**field, "kind": "select", "options": options}, another], ["accept"])
    return _form_of(gate, [field], ["accept"])


def _form(gate: Json) -> Pending:
    fields = [
        {key: value for key, value in field.items() if key in _FIELD_KEYS and value not in (None, [], "")}
        for field in (_prompt(gate).get("schema") or {}).get("fields") or []
    ]
    return _form_of(gate, fields, _offered(gate))


_FIELD_KEYS = ("name", "label", "kind", "required", "options", "default")


def _form_of(gate: Json, fields: list[Json], controls: list[str]) -> Pending:
    prompt = _prompt(gate)
    form = {"title": prompt.get("title") or "", "fields": fields, "controls": controls}
    if gate["kind"] == "harness.form":
        form["body"] = prompt.get("body") or ""
    call = {"kind": "form", "tool_call_id": gate["id"], "tool_name": gate["kind"], "form": form}
    return Pending.model_validate({"calls": [call]})


def _open_url(gate: Json) -> Pending:
    prompt = _prompt(gate)
    link = {
        "title": prompt.get("title") or "",
        "body": prompt.get("body") or "",
        "origin": str(prompt.get("origin") or "").removesuffix("/"),
        "controls": _offered(gate),
    }
    call = {"kind": "link", "tool_call_id": gate["id"], "tool_name": gate["kind"], "link": link}
    return Pending.model_validate({"calls": [call]})


def _offered(gate: Json) -> list[str]:
    return [action for action in actions(gate) if action in ("accept", "decline", "cancel")]


def _notice(gate: Json, why: str) -> Pending:
    """What cannot be put to people faithfully: shown as it is, to be dismissed or left."""
    prompt = _prompt(gate)
    shown = {key: prompt[key] for key in ("title", "body", "origin") if prompt.get(key)}
    call = {
        "tool_call_id": gate["id"],
        "tool_name": NOTICE_TOOL,
        "args": {"kind": gate.get("kind"), **shown},
        "reason": f"This cannot be answered here: {why}. Approve to dismiss it; reject to leave it open.",
    }
    return Pending.model_validate({"approvals": [call]})
