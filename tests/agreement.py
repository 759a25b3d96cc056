"""A run as the store has it and as the model has it, in one form, to be compared."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from core.gates import Vote
from core.runs import Run as StoredRun
from tests import model
from tests.model import Json, Run, named

TOLD = ("event", "gate", "by", "from", "at", *model.TOLD_BESIDES)


def index_of(gate: str | None) -> int | None:
    return None if gate is None else int(gate.rpartition("_")[2])


def seen(run: StoredRun) -> Json:
    """A stored run, as far as the model knows of it."""
    found: Json = {"status": run.status, "error": run.error, "gates": []}
    for gate in run.gates:
        decision = gate.decision
        one = {
            "status": gate.status,
            "deciders": gate.policy.deciders,
            "deadline": gate.deadline,
            "votes": votes(gate.votes),
            "drafts": gate.drafts if gate.pending else None,
            "args": gate.arguments if gate.digest else {},
            "decision": decision
            and (votes(decision.votes), decision.values, decision.at, decision.detail, decision.outcome),
        }
        found["gates"].append(one)
    return found


def votes(given: tuple[Vote, ...]) -> list[Any]:
    return [(vote.by.model_dump(), vote.action, vote.comment) for vote in given]


def expected(run: Run) -> Json:
    """The same of the model's run."""
    found: Json = {"status": run.status, "error": run.error, "gates": []}
    for gate in run.gates:
        decision = ([as_seen(vote) for vote in gate.by], gate.values, gate.at, gate.detail, gate.status)
        one = {
            "status": gate.status,
            "deciders": gate.deciders,
            "deadline": gate.deadline,
            "votes": [as_seen(vote) for vote in gate.votes],
            "drafts": {":".join(who): picks for who, picks in gate.drafts.items()} if gate.pending else None,
            "args": gate.args,
            "decision": None if gate.pending else decision,
        }
        found["gates"].append(one)
    return found


def as_seen(vote: model.Vote) -> Any:
    return (named(vote.who), vote.action, vote.comment)


def in_some_order(told: list[Json]) -> tuple[list[Json], Counter[str]]:
    """Refusals are written down apart from what others do meanwhile: their order says nothing."""
    refused = [event for event in told if event["event"].endswith(".refused")]
    return [event for event in told if event not in refused], Counter(map(json.dumps, refused))
