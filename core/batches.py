"""A run's complete batch as another front end answers it: each result in its own category, matched by id."""

from __future__ import annotations

from typing import Any

from core.answers import Answer
from core.errors import CoverageMismatch, InvalidDecision
from core.gates import Action, Gate, GateDoc, Kind
from core.runs import Run
from core.strictjson import at


def batch_answers(run: Run, results: dict[str, dict[str, Any]]) -> list[Answer]:
    """`{"calls": {id: …}, "approvals": {id: …}}` as answers to the run's gates. Raises CoverageMismatch."""
    wanted: dict[tuple[str, str], Gate] = {(g.doc.category, g.doc.tool_call_id): g for g in run.gates}
    given: dict[tuple[str, str], dict[str, Any]] = {
        (category, i): item for category, items in results.items() for i, item in items.items()
    }
    if wanted.keys() != given.keys():
        raise CoverageMismatch(
            extra={
                "missing": sorted(f"{c}.{i}" for c, i in wanted.keys() - given.keys()),
                "unexpected": sorted(f"{c}.{i}" for c, i in given.keys() - wanted.keys()),
            }
        )
    return [_as_answer(wanted[place], item) for place, item in given.items()]


def placed(error: InvalidDecision, doc: GateDoc) -> InvalidDecision:
    """The error with its places as they are in a batch: `calls.<id>.value…` instead of `values…`."""
    names = {"values": "value", "comment": "reason" if doc.category == "approvals" else "message"}
    errors = [
        {
            **item,
            "loc": [
                doc.category,
                doc.tool_call_id,
                names.get(item["loc"][0], item["loc"][0]),
                *item["loc"][1:],
            ],
        }
        for item in error.errors
    ]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    detail = f"{at(errors[0]['loc'])}: {errors[0]['msg']}{more}"
    return InvalidDecision(detail, errors=errors, extra=error.extra)


def _as_answer(gate: Gate, item: dict[str, Any]) -> Answer:
    """One item of a batch, as the API has it (checked there for its form)."""
    index = gate.doc.index
    if gate.doc.kind is Kind.APPROVAL:
        override = item.get("override_args")
        values = None if override is None else {"override_args": override}
        return Answer(index, Action(item["action"]), values, comment=item.get("reason"))
    if item["status"] == "failed":
        return Answer(index, Action(item.get("action", "decline")), comment=item["message"])
    if gate.doc.kind is Kind.LINK:
        return Answer(index, Action.ACCEPT)
    action = Action.ACCEPT if gate.doc.kind is Kind.FORM else Action.ANSWER
    return Answer(index, action, values=item["value"])
