"""Runs for tests, as a caller of the API would write them."""

from __future__ import annotations

from typing import Any

from core.requests import RunRequest

Json = dict[str, Any]


def option(label: str, description: str = "What it means", **more: Any) -> Json:
    return {"label": label, "description": description, **more}


def ask(
    text: str = "Which scope should be used?", *labels: str, multi: bool = False, header: str = "Scope"
) -> Json:
    options = [option(label) for label in labels or ("Focused", "Broad")]
    return {"question": text, "header": header, "options": options, "multiSelect": multi}


def question_call(call_id: str = "question-1", *questions: Json) -> Json:
    return {
        "tool_call_id": call_id,
        "tool_name": "ask_user_question",
        "args": {"questions": list(questions or [ask()])},
    }


def approval(call_id: str = "call-2", **more: Any) -> Json:
    return {"tool_call_id": call_id, "tool_name": "delete_file", "args": {"path": "/tmp/old.log"}, **more}


def form_call(call_id: str = "form", *fields: Json, **form: Any) -> Json:
    """A call that a form of these fields answers (one text field unless some are given)."""
    given = list(fields) or [{"name": "city", "label": "City", "kind": "text", "required": True}]
    return {
        "kind": "form",
        "tool_call_id": call_id,
        "tool_name": "book_room",
        "form": {"fields": given, "controls": ["accept", "decline", "cancel"], **form},
    }


def link_call(call_id: str = "link", **link: Any) -> Json:
    """A call that is answered elsewhere, at example.com unless something else is given."""
    where = {} if link.keys() & {"url", "origin"} else {"url": "https://example.com/sign-in?for=agent&x=1"}
    return {
        "kind": "link",
        "tool_call_id": call_id,
        "tool_name": "sign_in",
        "link": {**where, "controls": ["accept", "decline", "cancel"], **link},
    }


def body(calls: list[Json] | None = None, approvals: list[Json] | None = None, **more: Any) -> Json:
    """The body of `POST /api/v1/runs`: one question unless something is given."""
    if calls is None and approvals is None:
        calls = [question_call()]
    return {
        "pending": {"calls": calls or [], "approvals": approvals or []},
        "place": {"channel": "C1"},
        "policy": {"approvers": ["U1", "U2", "U3"]},
        **more,
    }


def run_request(*args: Any, **more: Any) -> RunRequest:
    return RunRequest.model_validate(body(*args, **more))


FOCUSED = {"answers": {"Which scope should be used?": "Focused"}}
