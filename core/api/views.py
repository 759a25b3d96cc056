"""What the API shows of runs and gates. The models make the answers and their part of the OpenAPI document.

An answer has the members that were given when its view was made, so an absent member and a null are different things.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from core.clock import iso
from core.forms import FormRequest
from core.gates import Action, Decision, Edit, Gate, Kind, Outcome
from core.links import LinkRequest
from core.places import Place
from core.policy import Actor, Person, Policy
from core.resumes import Resume
from core.runs import Run, RunStatus

Time = Annotated[
    str, Field(description="`2026-01-01T00:00:00.000Z`, UTC", json_schema_extra={"format": "date-time"})
]
GateStatus = Literal["pending"] | Outcome


class View(BaseModel):
    model_config = ConfigDict(frozen=True, validate_by_name=True, validate_by_alias=True)


class Result(View):
    """What every result has. ``by`` is empty when nobody did it."""

    # a frozen result is handed over as it is, also when another release made it
    model_config = ConfigDict(frozen=True, extra="allow")
    outcome: Outcome
    by: list[Actor]
    decided_at: Time
    comment: str = Field(
        default="", description="What the people said besides; left out when they said nothing"
    )


class CallReturned(Result):
    status: Literal["returned"]
    value: JsonValue
    action: str = Field(default="", description="What a person chose at a form or a link")


class CallFailed(Result):
    status: Literal["failed"]
    message: str
    action: str = Field(default="", description="What a person chose at a form or a link")


class Approved(Result):
    action: Literal["approve"]
    args_digest: str
    override_args: dict[str, JsonValue] = Field(
        default={}, description="The arguments, if an approver edited them"
    )
    always: bool = Field(default=False, description="Whether it was approved for always")


class Denied(Result):
    action: Literal["deny"]
    reason: str
    args_digest: str


class ResultsView(View):
    """One result for each gate, in its category, by its tool_call_id."""

    calls: dict[str, Annotated[CallReturned | CallFailed, Field(discriminator="status")]]
    approvals: dict[str, Annotated[Approved | Denied, Field(discriminator="action")]]


class CardView(View):
    channel: str
    ts: str


class GateView(View):
    """A gate, in short."""

    id: str
    run_id: str
    tool_call_id: str
    tool_name: str
    kind: Kind
    status: GateStatus
    deadline: Time
    args_digest: str | None
    card: CardView | None

    @classmethod
    def of(cls, run: Run, gate: Gate) -> Self:
        return cls(**_short(run, gate))


class GateItem(GateView):
    """A gate in a list, with what tells whose it is."""

    host: str
    external_id: str | None
    title: str | None
    place: Place | None
    requester: Person | None
    created_at: Time

    @classmethod
    def of(cls, run: Run, gate: Gate) -> Self:
        return cls(**_short(run, gate), **_whose(run, gate))


class DecisionView(View):
    """The record that settled a gate. ``by`` is empty when nobody did it."""

    outcome: Outcome
    by: list[Actor]
    decided_at: Time
    source: Literal["slack", "api", "clock", "host"] = Field(alias="from")
    values: JsonValue
    comment: str | None
    detail: str | None
    args_digest: str | None

    @classmethod
    def of(cls, decision: Decision) -> Self:
        return cls.model_validate(
            {
                "outcome": decision.outcome,
                "by": decision.by,
                "decided_at": iso(decision.at),
                "from": decision.via,
                "values": decision.values,
                "comment": decision.comment,
                "detail": decision.detail,
                "args_digest": decision.digest,
            }
        )


class GateDetail(GateItem):
    """All of a gate. ``offered`` is what may be done with it; ``votes`` counts the words said so far, by action."""

    args: JsonValue
    reason: str | None
    risk: Literal["low", "medium", "high", "extra_high"] | None
    policy: Policy
    offered: list[Action]
    form: FormRequest | None
    link: LinkRequest | None
    answer_schema: dict[str, JsonValue] | None
    args_schema: dict[str, JsonValue] | None
    saves: list[str]
    edits: list[Edit]
    votes: dict[Action, int]
    decision: DecisionView | None

    @classmethod
    def of(cls, run: Run, gate: Gate) -> Self:
        said = [vote.action for vote in gate.votes]
        return cls(
            **_short(run, gate),
            **_whose(run, gate),
            args=gate.doc.args if gate.edited is None else gate.edited,
            reason=gate.doc.reason,
            risk=gate.doc.risk,
            policy=Policy.model_validate(gate.policy.model_dump()),  # the defaults too
            offered=list(gate.doc.offered) if gate.pending else [],
            form=gate.doc.form,
            link=gate.doc.link,
            answer_schema=gate.doc.answer_schema,
            args_schema=gate.doc.args_schema,
            saves=list(gate.doc.saves),
            edits=list(gate.edits),
            votes={action: said.count(action) for action in gate.doc.offered},
            decision=DecisionView.of(gate.decision) if gate.decision else None,
        )


class GatePage(View):
    """Gates, newest first. A page may be short although ``next_cursor`` says that there are more."""

    gates: list[GateItem]
    next_cursor: str | None


class RunView(View):
    """A run. ``results`` is null until every gate is settled; ``error`` is what last went wrong on the way to its host.

    ``attempt`` counts how often people were asked to decide it.
    """

    id: str
    status: RunStatus
    host: str
    external_id: str | None
    title: str | None
    created_at: Time
    gates: list[GateView]
    results: ResultsView | None
    error: str | None
    attempt: int

    @classmethod
    def of(cls, run: Run, results: Mapping[str, Any] | None = None) -> Self:
        """``results``: those that were frozen for the host, if they were."""
        results = results or run.results()
        return cls(
            id=run.id,
            status=run.status,
            host=run.doc.host,
            external_id=run.doc.external_id,
            title=run.doc.title,
            created_at=iso(run.doc.created_at),
            gates=[GateView.of(run, gate) for gate in run.gates],
            results=ResultsView.model_validate(results) if results else None,
            error=run.error,
            attempt=run.attempt,
        )


class RunPage(View):
    """Runs, the newest end first. A page may be short although ``next_cursor`` says that there are more."""

    runs: list[RunView]
    next_cursor: str | None


class ResumeView(View):
    """A settled run under a lease. ``idempotency_key`` is the same at each hand-out; ``tries`` counts them."""

    lease: str
    lease_until: Time
    idempotency_key: str
    tries: int
    run: RunView
    state: str | None

    @classmethod
    def of(cls, resume: Resume, results: Mapping[str, Any]) -> Self:
        return cls(
            lease=resume.lease,
            lease_until=iso(resume.lease_until),
            idempotency_key=resume.key,
            tries=resume.tries,
            run=RunView.of(resume.run, results),
            state=resume.state,
        )


class ClaimView(View):
    resumes: list[ResumeView]


class KeySpeaking(View):
    """An API key, and the person for whom it spoke."""

    key: str
    speaks_for: Person | None = Field(default=None, alias="for")


class AuditLine(View):
    """One line of the audit; ``id`` is the cursor for ``after``."""

    model_config = ConfigDict(frozen=True, extra="allow")
    id: str
    event: str
    at: Time
    run: str
    gate: str | None
    by: Person | KeySpeaking | None
    source: str = Field(alias="from")
    outcome: Outcome | None = None
    reason: str | None = None
    args_digest: str | None = None
    prev: str


class EventView(View):
    """The data of one server-sent event: a line of the audit, and whose it is (null once the run is trimmed)."""

    model_config = ConfigDict(frozen=True, extra="allow")
    event: Literal["gate.opened", "gate.settled", "run.settled", "run.resumed"]
    at: Time
    run: str
    gate: str | None
    by: Person | KeySpeaking | None
    source: str = Field(alias="from")
    host: str | None
    external_id: str | None
    tool_call_id: str | None = Field(default=None, description="Of a gate")
    kind: Kind | None = Field(default=None, description="Of a gate")
    outcome: Outcome | None = None


class ErrorItem(View):
    """One rule that was broken: where, what, and its kind."""

    loc: list[str | int]
    msg: str
    type: str


class Problem(View):
    """Problem details (RFC 9457). ``type`` ends in the machine's word for what went wrong."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: str
    title: str
    status: int
    detail: str
    errors: list[ErrorItem] = []
    request_id: str


class CoverageProblem(Problem):
    """The answers do not cover the batch; the items read `calls.<id>` and `approvals.<id>`."""

    missing: list[str]
    unexpected: list[str]


class SettledProblem(Problem):
    """It was settled before; ``run`` is how."""

    run: RunView
    results: ResultsView | None


def dumped(view: View) -> dict[str, Any]:
    return view.model_dump(mode="json", by_alias=True, exclude_unset=True)


def written(view: View) -> str:
    return view.model_dump_json(by_alias=True, exclude_unset=True)


def _short(run: Run, gate: Gate) -> dict[str, Any]:
    card = next((card for card in run.cards if gate.doc.index in card.gates), None)
    return {
        "id": gate.id,
        "run_id": run.id,
        "tool_call_id": gate.doc.tool_call_id,
        "tool_name": gate.doc.tool_name,
        "kind": gate.doc.kind,
        "status": gate.status,
        "deadline": iso(gate.deadline),
        "args_digest": gate.digest,
        "card": CardView(channel=card.channel, ts=card.ts) if card else None,
    }


def _whose(run: Run, gate: Gate) -> dict[str, Any]:
    return {
        "host": run.doc.host,
        "external_id": run.doc.external_id,
        "title": run.doc.title,
        "place": run.doc.place,
        "requester": run.doc.requester,
        "created_at": iso(gate.created_at),
    }
