"""A run's hash in Redis as a `Run`, and back. The field names are those that the scripts use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.gates import Decision, Edit, Gate, GateDoc, Vote
from core.policy import Policy
from core.runs import Card, Run, RunDoc


def run_fields(doc: RunDoc, gates: Sequence[GateDoc], deadline: int, callback: str | None) -> list[str]:
    """The fields of a run that waits, as a flat list of names and values. ``callback`` is JSON text, secret and all."""
    fields = ["doc", doc.model_dump_json(), "host", doc.host, "n", str(len(gates)), "open", str(len(gates))]
    fields += ["placed", "1" if doc.place else "0"]
    if callback is not None:
        fields += ["callback", callback]
    for gate in gates:
        fields += [f"{gate.index}:doc", gate.model_dump_json(exclude_none=True)]
        fields += [f"{gate.index}:status", "pending", f"{gate.index}:rev", "1"]
        fields += [f"{gate.index}:deadline", str(deadline)]
    return fields


def load_run(fields: Mapping[str, str]) -> Run:
    doc = RunDoc.model_validate_json(fields["doc"])
    reopened_at = int(fields["reopened"]) if "reopened" in fields else None
    return Run(
        doc=doc,
        status=fields["status"],
        rev=int(fields["rev"]),
        gates=tuple(
            _load_gate(fields, index, doc.created_at, reopened_at) for index in range(int(fields["n"]))
        ),
        cards=tuple(Card.model_validate(card) for card in json.loads(fields.get("cards", "[]"))),
        mend=fields.get("mend") == "1",
        escalated=fields.get("escalated") == "1",
        reminded=int(fields.get("reminded", "0")),
        error=fields.get("error") or None,
        attempt=int(fields.get("attempt", "1")),
        reopened_at=reopened_at,
    )


def _load_gate(fields: Mapping[str, str], index: int, created_at: int, reopened_at: int | None) -> Gate:
    decision, policy, edited = (fields.get(f"{index}:{name}") for name in ("decision", "policy", "args"))
    drafts = f"{index}:draft:"
    doc = GateDoc.model_validate_json(fields[f"{index}:doc"])
    return Gate(
        doc=doc,
        policy=Policy.model_validate_json(policy) if policy else doc.policy,
        edited=json.loads(edited) if edited else None,
        edits=tuple(Edit.model_validate(edit) for edit in json.loads(fields.get(f"{index}:edits", "[]"))),
        status=fields[f"{index}:status"],
        rev=int(fields[f"{index}:rev"]),
        deadline=int(fields[f"{index}:deadline"]),
        created_at=created_at,
        reopened_at=reopened_at,
        votes=tuple(
            Vote.model_validate_json(vote["vote"]) for vote in json.loads(fields.get(f"{index}:votes", "[]"))
        ),
        drafts={
            name.removeprefix(drafts): json.loads(value)
            for name, value in fields.items()
            if name.startswith(drafts)
        },
        decision=Decision.model_validate_json(decision) if decision else None,
    )


def spliced(fields: Mapping[str, Any]) -> str:
    """JSON text of members, each with a comma before it, for a script to put behind its own."""
    return "".join(
        f",{json.dumps(name)}:{json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
        if value is not None
    )
