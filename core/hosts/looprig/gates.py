"""What a looprig gate asks of people, and the action and values that go back. Pure functions of the gate's prompt.

The action strings are looprig's own and exact; a bad answer spends the gate, so what goes back is checked before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from core.forms import MAX_TEXT, FormField
from core.gates import MAX_COMMENT
from core.hosts.base import Undescribable
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
NEGATIVE: Final = ("cancel", "decline", DENY)
KINDS: Final = ("harness.permission", "harness.ask_user", "harness.form", "harness.open_url")
FIELD_KEYS: Final = ("name", "label", "kind", "required", "options", "default")
FIELD_KINDS: Final = ("text", "select", "confirm")
"""What a form may ask for: looprig takes no list for an answer, and no number."""
YES_NO: Final = {"true": True, "false": False}
"""How looprig writes the default of a field to confirm."""
MAX_NS: Final = 2**63
"""The longest of looprig's durations."""
NUMBER: Final = re.compile(r"#([0-9]{1,9})")
"""How a choice is named where people write their answer."""


class As(StrEnum):
    """As what a gate is put to people. Kept with the run: what comes back is read as what people saw."""

    APPROVAL = "approval"
    CHOICE = "choice"
    WRITTEN = "written"
    FORM = "form"
    LINK = "link"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Asked:
    """What people are asked."""

    shape: As
    pending: Pending


class NoWord(Exception):
    """looprig is told nothing: the gate waits on. The message says why, for people."""


def asked(facts: Json, *, always: bool = True) -> Asked:
    """The one gate of a looprig gate, in the first way in which it can be shown in full; else a notice.

    ``facts``: ``gate`` as its event has it, ``request`` of a permission or None. ``always``: whether "Approve always"
    may be offered. It takes one person, so it goes with no quorum. Raises Undescribable.
    """
    gate = facts["gate"]
    why = _strange(gate)
    for shape, pending in () if why else _ways(facts, always):
        try:
            return Asked(shape, Pending.model_validate(pending))
        except ValidationError as error:
            why = why or f"it cannot be shown in full: {error.errors()[0]['msg']}"
    return Asked(As.NOTICE, _notice(gate, why))


def _strange(gate: Json) -> str:
    """What there is in a gate that nobody knows how to answer."""
    if gate.get("kind") not in KINDS:
        return f"it is of the kind {gate.get('kind')!r}"
    if gate["kind"] == "harness.form":
        for field in _fields(gate):
            if field.get("kind") not in FIELD_KINDS:
                return f"its field {field.get('name')!r} is of the kind {field.get('kind')!r}"
    return ""


def _ways(facts: Json, always: bool) -> Iterator[tuple[As, Json]]:
    gate = facts["gate"]
    match gate.get("kind"):
        case "harness.permission":
            # what "always" saves is shown in full or not offered; a request that cannot be shown has its prompt's text
            for request in (facts.get("request") or {}, {}):
                for offered in (always, False):
                    yield As.APPROVAL, _permission(gate, request, offered)
        case "harness.ask_user":
            yield As.CHOICE if _choices(gate) else As.WRITTEN, _ask_user(gate)
            yield As.WRITTEN, _ask_in_writing(gate)
        case "harness.form":
            yield As.FORM, _form(gate)
        case "harness.open_url":
            yield As.LINK, _open_url(gate)


def answer(facts: Json, result: Json) -> tuple[str, Json, str | None]:
    """The action, its values, and a text that follows as input. ``result`` is the gate's.

    ``facts``: also what the gate was put to people ``as``. Raises NoWord if there is nothing to say.
    """
    gate, shape = facts["gate"], As(facts["as"])
    if shape is As.NOTICE:
        if result["outcome"] in ("denied", "superseded"):
            raise NoWord("It was left open in looprig.")
        return _negative(gate), {}, None
    if shape is As.APPROVAL:
        if result["outcome"] == "approved":
            return APPROVE_ALWAYS if result.get("always") else APPROVE, {}, None
        return DENY, {}, None
    if result["status"] != "returned":
        return result.get("action") or _negative(gate), {}, None
    match shape:
        case As.CHOICE:
            return ANSWER, {ANSWER: result["value"][ANSWER]}, result["value"].get(TEXT)
        case As.WRITTEN:
            return _written(gate, result["value"][ANSWER])
        case As.LINK:
            return "accept", {}, None
    return "accept", result["value"], None


def policy_deadline(gate: Json, opened_ms: int) -> int | None:
    """When looprig answers by the gate's own policy, in ms. Its durations are nanoseconds."""
    policy = gate.get("response_policy")
    if not isinstance(policy, dict) or policy.get("on_timeout") != "respond":
        return None
    timeout = policy.get("timeout")
    if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_NS:
        return None
    return opened_ms + int(timeout / 1e6)


def actions(gate: Json) -> list[str]:
    """The actions that the gate offers, exactly as they are sent."""
    controls = _prompt(gate).get("controls") or []
    return [str(control.get("action", "")) for control in controls if isinstance(control, dict)]


def _negative(gate: Json) -> str:
    for action in NEGATIVE:
        if action in actions(gate):
            return action
    raise NoWord("looprig takes nothing but an answer here; it waits on.")


def _prompt(gate: Json) -> Json:
    prompt = gate.get("prompt")
    return prompt if isinstance(prompt, dict) else {}


def _fields(gate: Json) -> list[Json]:
    return (_prompt(gate).get("schema") or {}).get("fields") or []


# permissions


def _permission(gate: Json, request: Json, always: bool) -> Json:
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
    return {"approvals": [call]}


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


# questions


def _question(gate: Json) -> str:
    field = next(iter(_fields(gate)), {})
    return str(_prompt(gate).get("body") or field.get("label") or "")


def _choices(gate: Json) -> dict[str, str]:
    """What may be answered, and how it is shown."""
    return _by_value(next(iter(_fields(gate)), {}).get("options") or [])


def _by_value(options: list[Json]) -> dict[str, str]:
    """Labels by their values. looprig allows two of a value; the first will do."""
    labels: dict[str, str] = {}
    for option in options:
        labels.setdefault(option.get("value") or "", option.get("label") or "")
    return labels


def _ask_user(gate: Json) -> Json:
    """A form of one field; with choices also one for another answer's text, which looprig takes as `other`."""
    field: Json = {"name": ANSWER, "label": _question(gate), "kind": "text", "required": True}
    if choices := _choices(gate):
        choices.setdefault(OTHER, "Something else (write it below)")
        options = [{"value": value, "label": label} for value, label in choices.items()]
        another = {"name": TEXT, "label": "Something else", "kind": "text"}
        return _form_of(gate, [{**field, "kind": "select", "options": options}, another], ["accept"])
    return _form_of(gate, [field], ["accept"])


def _ask_in_writing(gate: Json) -> Json:
    """The question and all of its choices to be read, and one text for the answer."""
    choices = _choices(gate)
    lines = [f"#{number} {shown}" for number, shown in enumerate(map(_readable, choices), 1)]
    told = "\n".join([_question(gate), *lines])
    field: Json = {"name": ANSWER, "label": "Your answer", "kind": "text", "required": True}
    if choices:
        field["label"] = "Your answer: one of the choices, its number (such as #1), or something else"
    # what the body has no room for is read on above the field
    field["description"] = told[MAX_TEXT:]
    return _form_of(gate, [field], ["accept"], told[:MAX_TEXT])


def _readable(choice: str) -> str:
    return choice if choice.strip() else json.dumps(choice)


def _written(gate: Json, text: str) -> tuple[str, Json, str | None]:
    """What was written: one of the choices if it is its text or its number, else the text behind an `other`."""
    choices = list(_choices(gate))
    number = NUMBER.fullmatch(text.strip())
    if not choices or text in choices:
        return ANSWER, {ANSWER: text}, None
    if number and 1 <= int(number[1]) <= len(choices):
        return ANSWER, {ANSWER: choices[int(number[1]) - 1]}, None
    return ANSWER, {ANSWER: OTHER}, text


# forms and links


def _form(gate: Json) -> Json:
    fields = [_field(field) for field in _fields(gate)]
    return _form_of(gate, fields, _offered(gate), str(_prompt(gate).get("body") or ""))


def _field(given: Json) -> Json:
    field = {key: given[key] for key in FIELD_KEYS if given.get(key) not in (None, [], "")}
    if "options" in field:
        labels = _by_value(field["options"])
        field["options"] = [{"value": value, "label": label} for value, label in labels.items()]
    if field.get("kind") == "confirm" and "default" in field:
        field["default"] = YES_NO.get(str(field["default"]).lower())
    try:
        FormField.model_validate(field)
    except ValidationError:  # a default is a convenience, and this one may be what does not fit
        field.pop("default", None)
    return field


def _form_of(gate: Json, fields: list[Json], controls: list[str], body: str = "") -> Json:
    form = {"title": _prompt(gate).get("title") or "", "body": body, "fields": fields, "controls": controls}
    call = {"kind": "form", "tool_call_id": gate["id"], "tool_name": gate["kind"], "form": form}
    return {"calls": [call]}


def _open_url(gate: Json) -> Json:
    prompt = _prompt(gate)
    link = {
        "title": prompt.get("title") or "",
        "body": prompt.get("body") or "",
        "origin": str(prompt.get("origin") or "").removesuffix("/"),
        "controls": _offered(gate),
    }
    call = {"kind": "link", "tool_call_id": gate["id"], "tool_name": gate["kind"], "link": link}
    return {"calls": [call]}


def _offered(gate: Json) -> list[str]:
    return [action for action in actions(gate) if action in ("accept", "decline", "cancel")]


def _notice(gate: Json, why: str) -> Pending:
    """What cannot be put to people faithfully: shown as it is, to be dismissed or left. Raises Undescribable."""
    prompt = _prompt(gate)
    shown = {key: prompt[key] for key in ("title", "body", "origin") if prompt.get(key)}
    try:
        word = _negative(gate)
    except NoWord:
        raise Undescribable(f"{why}, and looprig takes nothing but an answer to it") from None
    call = {
        "tool_call_id": gate["id"],
        "tool_name": NOTICE_TOOL,
        "args": {"kind": gate.get("kind"), **shown},
        "reason": f"This cannot be answered here: {why}. "
        f"Approve to dismiss it, which tells looprig “{word}”; reject to leave it open.",
    }
    return Pending.model_validate({"approvals": [call]})
