"""What a waiting a13n run asks of people, and the body that it is resumed with. Pure functions."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import ValidationError

from core.gates import MAX_COMMENT, QUESTION_TOOL
from core.hosts.base import Undescribable
from core.requests import Pending

MAX_BODY: Final = 262_144
"""Bytes of a resume's canonical JSON (a13n: Resume)."""

Json = dict[str, Any]


class TooLarge(ValueError):
    """The answers of a run are together more than a13n takes."""


def pending(asked: Json) -> Pending:
    """The gates of a run's `pending`: one for each item, in its category. Raises Undescribable."""
    calls = [_call(item) for item in asked.get("calls") or ()]
    permissions = [_approval(item) for item in asked.get("approvals") or ()]
    try:
        return Pending.model_validate({"calls": calls, "approvals": permissions})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Undescribable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def wants_client(asked: Json) -> bool:
    """Whether a run waits for a client tool's result, which a program may be there to give."""
    return any(item["tool_name"] != QUESTION_TOOL for item in asked.get("calls") or ())


def _call(item: Json) -> Json:
    """A question as such; any other call, and a question of a form that nobody knows, as its JSON."""
    call = {"tool_call_id": item["tool_call_id"], "tool_name": item["tool_name"], "args": item["arguments"]}
    if item["tool_name"] == QUESTION_TOOL:
        try:
            Pending.model_validate({"calls": [call]})
        except ValidationError:
            return {**call, "kind": "custom"}
        return call
    return {**call, "kind": "custom"}


def _approval(item: Json) -> Json:
    """The call and what a13n says of it: risk, reason and target, which it has cleaned of secrets."""
    shown = item.get("presentation") or {}
    said = [text for text in (shown.get("reason"), shown.get("target")) if isinstance(text, str) and text]
    risk = shown.get("risk")
    return {
        "tool_call_id": item["tool_call_id"],
        "tool_name": item["tool_name"],
        "args": item["arguments"],
        "reason": " · ".join(said)[:MAX_COMMENT] or None,
        "risk": risk if risk in ("low", "medium", "high", "extra_high") else None,
    }


def body(results: dict[str, dict[str, Json]]) -> bytes:
    """The resume of a run's results, the same bytes for the same results. Raises TooLarge."""
    answers = {
        "approvals": {call_id: _permission(result) for call_id, result in results["approvals"].items()},
        "calls": {call_id: _answer(result) for call_id, result in results["calls"].items()},
    }
    raw = json.dumps(answers, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    # as a13n measures it: with the defaults filled in
    if len(raw) + len(b',"input":null') > MAX_BODY:
        raise TooLarge(f"the answers together have more than {MAX_BODY} bytes, which is all that a13n takes")
    return raw


def _permission(result: Json) -> Json:
    if result["action"] == "approve" and result["outcome"] == "approved":
        return {"action": "approve"}
    return {"action": "deny", "reason": result["reason"][:MAX_COMMENT]}


def _answer(result: Json) -> Json:
    if result["status"] == "returned":
        return {"status": "returned", "value": result["value"]}
    return {"status": "failed", "message": result["message"][:MAX_COMMENT]}
