"""A run's hash in Redis as a `Run`, and back. The field names are those that the scripts use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, JsonValue
from pydantic_core import to_json

from core.gates import Decision, Edit, Gate, GateDoc, Outcome, Vote
from core.ids import gate_id
from core.policy import Policy, names_people
from core.runs import Card, Copies, Run, RunDoc, RunStatus

KEPT: Final = 4096
"""Documents that are kept as they were parsed."""
M = TypeVar("M", bound=BaseModel)
KEPT_CHARS: Final = 4096
"""Longer ones are not: the arguments of a call may have a megabyte."""


def run_fields(
    doc: RunDoc, gates: Sequence[GateDoc], deadline: int, callback: str | None, index: Sequence[str]
) -> list[str]:
    """The fields of a run that waits, as a flat list of names and values. ``callback`` is JSON text, secret and all."""
    fields = [
        "doc",
        doc.model_dump_json(exclude_defaults=True, exclude={"id", "host", "size"}),
        "host",
        doc.host,
        "n",
        str(len(gates)),
        "open",
        str(len(gates)),
    ]
    # whoever is named gets the card in a DM, if there is no channel to see it in
    placed = doc.place is not None or any(names_people(gate.policy.deciders) for gate in gates)
    fields += ["placed", "1" if placed else "0", "index", " ".join(index)]
    if callback is not None:
        fields += ["callback", callback]
    for gate in gates:
        fields += [
            f"{gate.index}:doc",
            gate.model_dump_json(exclude_defaults=True, exclude={"id", "index"}),
        ]
        fields += [f"{gate.index}:status", "pending", f"{gate.index}:rev", "1"]
        fields += [f"{gate.index}:deadline", str(deadline)]
    return fields


def load_run(run_id: str, fields: Mapping[str, str]) -> Run:
    """A run from its fields. What the scripts wrote is not checked again: each part was when it was made."""
    doc = load_run_doc(run_id, fields["doc"], fields["host"], fields["n"])
    drafts = _drafts(fields)
    reopened_at = int(fields["reopened"]) if "reopened" in fields else None
    return _made(
        Run,
        doc=doc,
        status=RunStatus(fields["status"]),
        rev=int(fields["rev"]),
        gates=tuple(
            _load_gate(run_id, fields, index, doc.created_at, reopened_at, drafts.get(index, {}))
            for index in range(int(fields["n"]))
        ),
        cards=tuple(map(Card.model_validate, _listed(fields.get("cards")))),
        copies=Copies.model_validate_json(fields["copies"]) if "copies" in fields else Copies(),
        mend=fields.get("mend") == "1",
        resend=fields.get("resend") == "1",
        resent=int(fields.get("resent", "0")),
        escalated=fields.get("escalated") == "1",
        reminded=int(fields.get("reminded", "0")),
        error=fields.get("error") or None,
        attempt=int(fields.get("attempt", "1")),
        reopened_at=reopened_at,
        index=tuple(fields.get("index", "").split()),
    )


def _load_gate(
    run_id: str,
    fields: Mapping[str, str],
    index: int,
    created_at: int,
    reopened_at: int | None,
    drafts: dict[str, JsonValue],
) -> Gate:
    decision, policy, edited = (fields.get(f"{index}:{name}") for name in ("decision", "policy", "args"))
    doc, status = load_gate_doc(run_id, index, fields[f"{index}:doc"]), fields[f"{index}:status"]
    return _made(
        Gate,
        doc=doc,
        policy=Policy.model_validate_json(policy) if policy else doc.policy,
        edited=json.loads(edited) if edited else None,
        edits=tuple(map(Edit.model_validate, _listed(fields.get(f"{index}:edits")))),
        status="pending" if status == "pending" else Outcome(status),
        rev=int(fields[f"{index}:rev"]),
        deadline=int(fields[f"{index}:deadline"]),
        created_at=created_at,
        reopened_at=reopened_at,
        votes=tuple(Vote.model_validate_json(vote["vote"]) for vote in _listed(fields.get(f"{index}:votes"))),
        drafts=drafts,
        decision=Decision.model_validate_json(decision) if decision else None,
    )


def _made(model: type[M], **fields: Any) -> M:
    """As pydantic's `model_construct`, at a third of its cost: a click reads a run twice."""
    made = model.__new__(model)
    put = object.__setattr__
    put(made, "__dict__", {**_defaults(model), **fields})
    put(made, "__pydantic_fields_set__", set(fields))
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)
    return made


@lru_cache
def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    return {name: field.default for name, field in model.model_fields.items() if not field.is_required()}


def _listed(text: str | None) -> Sequence[Any]:
    return json.loads(text) if text else ()


def _drafts(fields: Mapping[str, str]) -> dict[int, dict[str, JsonValue]]:
    """Everybody's drafts, by gate."""
    found: dict[int, dict[str, JsonValue]] = {}
    for name, value in fields.items():
        if ":draft:" in name:
            index, _, rest = name.partition(":draft:")
            found.setdefault(int(index), {})[rest] = json.loads(value)
    return found


# a document does not say again what its key, its field or a field beside it says: of a lone gate that is a tenth


def load_run_doc(run_id: str, text: str, host: str, size: str) -> RunDoc:
    """A run's document from its text and what stands beside it."""
    text = f'{{"id":"{run_id}","host":{json.dumps(host)},"size":{size},{text[1:]}'
    return _kept_run_doc(text) if len(text) <= KEPT_CHARS else RunDoc.model_validate_json(text)


def load_gate_doc(run_id: str, index: int, text: str) -> GateDoc:
    """A gate's document from its text."""
    text = f'{{"id":"{gate_id(run_id, index)}","index":{index},{text[1:]}'
    return _kept_gate_doc(text) if len(text) <= KEPT_CHARS else GateDoc.model_validate_json(text)


# what never changes is read again and again: at each click, for each card


@lru_cache(maxsize=KEPT)
def _kept_run_doc(text: str) -> RunDoc:
    return RunDoc.model_validate_json(text)


@lru_cache(maxsize=KEPT)
def _kept_gate_doc(text: str) -> GateDoc:
    return GateDoc.model_validate_json(text)


def spliced(fields: Mapping[str, Any]) -> str:
    """JSON text of members, each with a comma before it, for a script to put behind its own."""
    return "".join(
        f",{json_text(name)}:{json_text(value)}" for name, value in fields.items() if value is not None
    )


def json_text(value: object) -> str:
    """A value as JSON, at a fifth of the cost of `json.dumps`. Raises ValueError for half a surrogate pair."""
    return to_json(value).decode()
