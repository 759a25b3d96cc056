"""What a Motus interrupt asks of people, and the value that goes back. Pure functions of the interrupt's payload.

The two built-in types are `tool_approval` and `user_input`. The server checks neither what an agent sends nor what
comes back, and `requires_approval` takes any truthy value for a yes, so both are made here with care.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from core.forms import FormRequest
from core.gates import QUESTION_TOOL
from core.questions import AskUserQuestion
from core.requests import Pending

UNREADABLE: Final = "unreadable"
"""Our own type, for what the server or we cannot show: all that people can do is to cancel the turn."""
CANCEL_TOOL: Final = "cancel_turn"

Json = dict[str, Any]


class CancelTurn(Exception):
    """No value says this to the agent: the turn is to be cancelled, and its conversation kept."""


class LeaveIt(Exception):
    """There is nothing to say: the turn waits on."""


def pending(facts: Json) -> Pending:
    """The one gate of an interrupt. ``facts``: its ``interrupt_id``, ``type`` and ``payload``."""
    kind, payload, call_id = facts["type"], facts["payload"], facts["interrupt_id"]
    try:
        if kind == "tool_approval" and isinstance(payload, dict):
            return _approval(call_id, payload)
        if kind == "user_input" and isinstance(payload, dict):
            return _questions(call_id, payload)
        if kind != UNREADABLE:
            return _custom(call_id, kind, payload)
        why = str(payload)
    except ValidationError as error:
        why = f"what the agent sent cannot be shown in full: {error.errors()[0]['msg']}"
    call = {
        "tool_call_id": call_id,
        "tool_name": CANCEL_TOOL,
        "args": {"session_id": facts["session_id"]},
        "reason": f"This turn waits for something that cannot be answered here: {why}. "
        "Approve to cancel the turn and keep the conversation; reject to let it wait.",
    }
    return Pending.model_validate({"approvals": [call]})


def value(facts: Json, result: Json, failures: Mapping[str, Any]) -> Any:
    """What the interrupt is resumed with. ``result`` is the gate's, ``failures`` the values for custom types.

    Raises CancelTurn or LeaveIt if no value will do.
    """
    approved = result.get("action") == "approve" and result["outcome"] == "approved"
    if _gate_of(facts) == CANCEL_TOOL:
        raise CancelTurn if approved else LeaveIt
    if facts["type"] == "tool_approval":
        return {"approved": True} if approved else {"approved": False, "reason": result["reason"]}
    if facts["type"] == "user_input":
        return _answers(facts["payload"], result)
    if result["status"] == "returned":
        return result["value"]
    if facts["type"] in failures:
        return failures[facts["type"]]
    raise CancelTurn


def _gate_of(facts: Json) -> str:
    asked = pending(facts)
    return (*asked.calls, *asked.approvals)[0].tool_name


# tool_approval


def _approval(call_id: str, payload: Json) -> Pending:
    args = payload.get("tool_args")
    call = {
        "tool_call_id": call_id,
        "tool_name": payload.get("tool_name"),
        "args": args if isinstance(args, dict) else {"args": args},
    }
    return Pending.model_validate({"approvals": [call]})


# user_input


def _questions(call_id: str, payload: Json) -> Pending:
    """The questions as such if they are what Motus' own tool sends; else a form; else the payload as it is."""
    asked = list(_asked(payload))
    call = {"tool_call_id": call_id, "tool_name": QUESTION_TOOL}
    for args in ({"args": {"questions": asked}}, {"kind": "form", "form": _form(asked)}):
        try:
            return Pending.model_validate({"calls": [{**call, **args}]})
        except ValidationError:
            continue
    return _custom(call_id, "user_input", payload)


def _asked(payload: Json) -> Iterator[Any]:
    """The questions as our models name them, each text once: the answers are kept by it."""
    given = payload.get("questions")
    seen: set[str] = set()
    for item in given if isinstance(given, list) else ():
        if isinstance(item, str):
            item = {"question": item}
        if not isinstance(item, dict):
            yield item
            continue
        text = item.get("question")
        if isinstance(text, str):
            if text.strip() in seen:
                continue
            seen.add(text.strip())
        options = item.get("options")
        yield {
            "question": text,
            "header": item.get("header") or "Question",
            "multiSelect": bool(item.get("multiSelect") or item.get("multi_select")),
            "options": list(map(_option, options)) if isinstance(options, list) else [],
        }


def _option(item: Any) -> Any:
    if isinstance(item, str):
        return {"label": item, "description": item}
    if not isinstance(item, dict):
        return item
    description = item.get("description")
    return {
        "label": item.get("label"),
        # ours have to say something
        "description": description
        if isinstance(description, str) and description.strip()
        else item.get("label"),
        "markdown": item.get("markdown"),
    }


def _form(asked: list[Any]) -> Json:
    """One field a question, `q0`, `q1`, …: questions without options, or with more than a question has."""
    fields = []
    for number, item in enumerate(asked):
        question = item if isinstance(item, dict) else {}
        options = question.get("options") or []
        field = {"name": f"q{number}", "label": question.get("question"), "required": True, "kind": "text"}
        if options:
            labels = [option.get("label") if isinstance(option, dict) else option for option in options]
            field["kind"] = "multi_select" if question.get("multiSelect") else "select"
            field["options"] = [{"value": label} for label in labels]
        fields.append(field)
    return {"fields": fields, "controls": ["accept", "decline"]}


def _answers(payload: Json, result: Json) -> Json:
    """`{"answers": {question: text}, "selections": {question: [text]}, …}`, by the agent's own texts."""
    if result["status"] != "returned":
        word = {"expired": "timed_out"}.get(result["outcome"], result["outcome"])
        return {"answers": {}, "status": word, "error": result["message"]}
    given = result["value"]
    asked = list(_asked(payload))
    if _is_question(asked):
        answers = given["answers"]
    elif _is_form(asked):
        answers = {asked[int(name[1:])]["question"].strip(): answer for name, answer in given.items()}
    else:
        return given if isinstance(given, dict) else {"answers": {}, "response": given}
    chosen = {
        item["question"]: [_label(item, text) for text in _texts(answers[item["question"].strip()])]
        for item in asked
        if item["question"].strip() in answers
    }
    said: Json = {
        "answers": {question: ", ".join(texts) for question, texts in chosen.items()},
        "selections": chosen,
    }
    if _is_question(asked) and "response" in given:
        said["response"] = given["response"]
    return said


def _is_form(asked: list[Any]) -> bool:
    try:
        FormRequest.model_validate(_form(asked))
    except ValidationError:
        return False
    return True


def _is_question(asked: list[Any]) -> bool:
    try:
        AskUserQuestion.model_validate({"questions": asked})
    except ValidationError:
        return False
    return True


def _texts(answer: str | list[str]) -> list[str]:
    return [answer] if isinstance(answer, str) else list(answer)


def _label(item: Json, text: str) -> str:
    """The label as the agent wrote it, if the text is one; our models take blanks off its ends."""
    labels = [option.get("label") for option in item["options"] if isinstance(option, dict)]
    return next((label for label in labels if isinstance(label, str) and label.strip() == text), text)


# everything else


def _custom(call_id: str, kind: str, payload: Any) -> Pending:
    args = payload if isinstance(payload, dict) else {"payload": payload}
    call = {"kind": "custom", "tool_call_id": call_id, "tool_name": kind[:256] or "unknown", "args": args}
    return Pending.model_validate({"calls": [call]})


def facts_of(state: str | None) -> Json:
    """The facts of an interrupt, as they were stored with its run. Raises ValueError."""
    facts = json.loads(state or "null")
    if not isinstance(facts, dict) or not {"session_id", "interrupt_id", "type"} <= facts.keys():
        raise ValueError("this is no run that a Motus server opened")
    return facts
