"""The gates of looprig's harness: how each kind is opened, what answers it, and what of an answer its journal keeps."""

from __future__ import annotations

import json
import uuid
from typing import Any

from aiohttp import web

Json = dict[str, Any]

APPROVALS = ("Approve", "Approve always for this workspace", "Deny")


def permission(
    *, always: bool = True, timeout_s: float | None = None, body: str = "Delete /tmp/old.log"
) -> Json:
    """A permission gate as the loop opens it."""
    offered = APPROVALS if always else ("Approve", "Deny")
    nanoseconds = int((timeout_s or 0) * 1e9)
    policy = {"timeout": nanoseconds, "on_timeout": "respond", "response": {"action": "Deny"}}
    return {
        "kind": "harness.permission",
        "resolver": "loop",
        "restorable": True,
        "subject": {"tool_execution_id": str(uuid.uuid4()), "turn_id": "turn-1"},
        "prompt": {
            "title": "Approve tool call",
            "body": body,
            "controls": [{"action": action, "label": action} for action in offered],
        },
        **({"response_policy": policy} if timeout_s else {}),
    }


def ask_user(question: str, *choices: str) -> Json:
    field: Json = {
        "name": "answer",
        "label": question,
        "kind": "select" if choices else "text",
        "required": True,
    }
    if choices:
        field["options"] = [{"value": choice, "label": choice} for choice in choices]
    return {
        "kind": "harness.ask_user",
        "resolver": "loop",
        "subject": {"turn_id": "turn-1"},
        "prompt": {
            "title": "User input requested",
            "body": question,
            "schema": {"fields": [field]},
            "controls": [{"action": "answer", "label": "Answer"}],
        },
    }


def form(*fields: Json, controls: tuple[str, ...] = ("accept", "decline", "cancel")) -> Json:
    return {
        "kind": "harness.form",
        "resolver": "session",
        "prompt": {
            "title": "Release",
            "body": "Which one goes out?",
            "schema": {"fields": list(fields)},
            "controls": [{"action": action, "label": action.title()} for action in controls],
        },
    }


def open_url(origin: str) -> Json:
    return {
        "kind": "harness.open_url",
        "resolver": "session",
        "prompt": {
            "title": "Sign in",
            "origin": origin,
            "controls": [{"action": action, "label": action} for action in ("accept", "decline")],
        },
    }


def refused(kind: type[web.HTTPException], code: str, *, retryable: bool = False) -> web.HTTPException:
    """The error of either dialect, as it is sent."""
    body = {"error": {"code": code, "message": code, "retryable": retryable}}
    return kind(text=json.dumps(body), content_type="application/json")


def audit_of(kind: str, values: Json) -> Json | None:
    """What the journal keeps of an answer: the first 80 bytes of one to a question, all of a form."""
    if kind == "harness.ask_user":
        preview = values["answer"].encode()[:80].decode(errors="replace")
        return {"kind": "ask_user", "data": {"answer_preview": preview}}
    if kind != "harness.form":
        return None
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return {"kind": "form", "data": {"values": texts}}


def fits(gate: Json, action: str, values: Json) -> bool:
    """Whether the session takes an answer. Of a question the tool behind it may think otherwise, later."""
    if action not in [control["action"] for control in gate["prompt"]["controls"]]:
        return False
    if gate["kind"] == "harness.ask_user":
        return isinstance(values.get("answer", ""), str)
    if gate["kind"] != "harness.form" or action != "accept":
        return True
    fields = {field["name"]: field for field in gate["prompt"]["schema"]["fields"]}
    if values.keys() - fields.keys():
        return False
    return all(_fits_field(field, values.get(name)) for name, field in fields.items())


def _fits_field(field: Json, value: Any) -> bool:
    if value is None:
        return not field.get("required")
    if field["kind"] == "confirm":
        return isinstance(value, bool)
    if not isinstance(value, str) or len(value.encode()) > 4096 or (field.get("required") and not value):
        return False
    return field["kind"] != "select" or value in [option["value"] for option in field["options"]]
