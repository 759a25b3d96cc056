"""What the engine promises, as a model without a store: plain data, step after step, none of the engine's code.

Each step comes in two parts. `why_not…` says for which reasons it may be refused (none: it must be done), and the part
of the same name does it. What the model does not say (which of several good reasons is given, which of several due runs
is handed out first) the engine may choose.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Who = tuple[str, str]
"""A person as (team, user); a key as ("key", its name)."""
Json = dict[str, Any]

DAY = 86_400_000
MOST_MS = 30 * DAY
LONGEST_COMMENT = 4096
TOLD_BESIDES = ("outcome", "reason", "action", "cancelled_by")
OUTCOMES = {
    "answer": "answered",
    "accept": "answered",
    "decline": "declined",
    "cancel": "declined",
    "approve": "approved",
    "approve_always": "approved",
    "deny": "denied",
}


@dataclass(frozen=True)
class Word:
    """What somebody says about a gate. ``fits``: the values are good; ``kept``: as they are kept; ``edit``: arguments.

    ``seen``: which arguments the person saw: those of the moment, those of the beginning, or others.
    """

    action: str
    values: Any = None
    fits: bool = True
    kept: Any = None
    edit: Json | None = None
    comment: str | None = None
    seen: str = "present"


@dataclass
class Vote:
    who: Who
    action: str
    comment: str | None


@dataclass
class Gate:
    """One gate. ``by`` are the votes that settled it, ``at`` when."""

    kind: str
    call: str
    offered: tuple[str, ...]
    deciders: tuple[str, ...]
    deadline: int
    args: Json = field(default_factory=dict)
    quorum: int = 1
    reject_quorum: int = 1
    self_approval: bool = False
    reason: str = "never"
    edits: bool = False
    status: str = "pending"
    first_args: Json = field(default_factory=dict)
    edited: bool = False
    votes: list[Vote] = field(default_factory=list)
    drafts: dict[Who, Any] = field(default_factory=dict)
    by: list[Vote] = field(default_factory=list)
    at: int = 0
    values: Any = None
    detail: str | None = None

    @property
    def pending(self) -> bool:
        return self.status == "pending"

    @property
    def approval(self) -> bool:
        return self.kind == "approval"

    @property
    def first_digest(self) -> str:
        return digest(self.first_args)


@dataclass
class Run:
    """One run, its place in the queue, and what the audit has of it."""

    created: int
    gates: list[Gate]
    owner: Who
    requester: Who | None = None
    channel: str | None = "C1"
    escalate_at: int | None = None
    more_approvers: tuple[str, ...] = ()
    escalated: bool = False
    status: str = "waiting"
    error: str | None = None
    due: int | None = None
    """When the queue hands it out; None: it is not in the queue."""
    lease: str | None = None
    tries: int = 0
    last_end: tuple[str, str] | None = None
    held: dict[str, int] = field(default_factory=dict)
    """Work on the agenda that a worker died with, and until when it is left alone."""
    told: list[Json] = field(default_factory=list)

    @property
    def pending(self) -> list[Gate]:
        return [gate for gate in self.gates if gate.pending]


@dataclass
class World:
    """Everybody, and the moment (ms). Runs are the caller's."""

    now: int
    home: str
    admins: tuple[str, ...]
    channels: dict[str, set[str]]
    groups: dict[str, set[str]]

    # who may

    def standing(self, run: Run, names: tuple[str, ...], who: Who, *, approval: bool) -> str:
        """`yes`, `not-allowed`, or `cannot-verify`."""
        team, name = who
        if team == "key":
            return "yes" if f"key:{name}" in names or ("anyone" in names and not approval) else "not-allowed"
        if "admins" in names:
            names = (*names, *self.admins)
        if f"{team}:{name}" in names:
            return "yes"
        if team != self.home:
            return "not-allowed"
        circles = [self.groups.get(n) for n in names if n.startswith("S")]
        if "channel" in names and run.channel:
            circles.append(self.channels.get(run.channel))
        if name in names or "anyone" in names or any(name in circle for circle in circles if circle):
            return "yes"
        return "cannot-verify" if None in circles else "not-allowed"

    def barred(self, run: Run, gate: Gate, who: Who, action: str = "") -> set[str]:
        own = OUTCOMES.get(action) == "approved" and who == run.requester and not gate.self_approval
        standing = self.standing(run, gate.deciders, who, approval=gate.approval)
        return ({"self-approval"} if own else set()) | ({standing} - {"yes"})

    def decidable(self, run: Run, gate: Gate, names: tuple[str, ...]) -> bool:
        """Whether as many as it takes could ever say yes: people, and keys."""
        if "admins" in names:
            names = (*names, *self.admins)
        if any(n == "anyone" or n.startswith("S") or (n == "channel" and run.channel) for n in names):
            return True
        people = {n if ":" in n else f"{self.home}:{n}" for n in names if n not in ("admins", "channel")}
        if gate.approval and run.requester and not gate.self_approval:
            people.discard(":".join(run.requester))
        return len(people) >= (gate.quorum if gate.approval else 1)

    # what is written down

    def tell(self, run: Run, event: str, gate: Gate | None, by: Who | None, via: str, **more: Any) -> None:
        index = None if gate is None else run.gates.index(gate)
        first = {"event": event, "gate": index, "by": named(by), "from": via, "at": iso(self.now)}
        run.told.append(first | {name: more.get(name) for name in TOLD_BESIDES})

    def open(self, run: Run) -> None:
        self.tell(run, "run.opened", None, run.owner, "api")
        for gate in run.gates:
            self.tell(run, "gate.opened", gate, run.owner, "api")

    def refused(self, run: Run, gate: Gate | None, who: Who, via: str, reason: str) -> None:
        self.tell(run, "gate.refused" if gate else "run.refused", gate, who, via, reason=reason)

    # settling

    def late(self, gate: Gate) -> set[str]:
        if not gate.pending:
            return {"expired" if gate.status == "expired" else "already-settled"}
        return {"expired"} if gate.deadline <= self.now else set()

    def sweep(self, run: Run) -> None:
        """The expiries become visible."""
        for gate in run.pending:
            if gate.deadline <= self.now:
                self.settle(run, gate, "expired", None, "clock", at=gate.deadline)

    def settle(
        self,
        run: Run,
        gate: Gate,
        outcome: str,
        who: Who | None,
        via: str,
        *,
        at: int | None = None,
        **more: Any,
    ) -> None:
        assert gate.pending, f"a gate that is {gate.status} is settled again"
        gate.status, gate.at = outcome, self.now if at is None else at
        self.tell(run, "gate.settled", gate, who, via, outcome=outcome, **more)
        if not run.pending:
            run.status, run.due = "settled", self.now
            run.held = {what: until for what, until in run.held.items() if what == "card"}
            self.tell(run, "run.settled", None, who, via)

    def why_not_decide(self, run: Run, words: dict[int, Word], who: Who) -> set[tuple[int, str]]:
        return {(index, why) for index, word in words.items() for why in self._why_not(run, index, word, who)}

    def _why_not(self, run: Run, index: int, word: Word, who: Who) -> set[str]:
        gate = run.gates[index]
        if not gate.pending:
            return self.late(gate)
        why = self.late(gate) | self.barred(run, gate, who, word.action)
        comment = word.comment or ""
        wanted = gate.reason == "always" or (gate.reason == "on_reject" and word.action == "deny")
        bad = word.action not in gate.offered or not word.fits or len(comment) > LONGEST_COMMENT
        if (
            bad
            or (word.edit is not None and not gate.edits)
            or (gate.approval and wanted and not comment.strip())
        ):
            why.add("invalid")
        other = word.seen == "other" or (word.seen == "first" and gate.args != gate.first_args)
        if gate.approval and other and (word.edit is None or word.edit != gate.args):
            why.add("arguments-changed")
        return why

    def decide(self, run: Run, words: dict[int, Word], who: Who, via: str) -> None:
        self.sweep(run)
        for index, word in words.items():
            gate = run.gates[index]
            if word.edit is not None and word.edit != gate.args:
                gate.args, gate.edited, gate.votes = word.edit, True, []
                self.tell(run, "gate.edited", gate, who, via)
            vote = Vote(who, word.action, (word.comment or "").strip() or None)
            gate.votes = [v for v in gate.votes if v.who != who] + [vote]
            alike = [v for v in gate.votes if v.action == word.action]
            outcome = OUTCOMES[word.action]
            need = {"approved": gate.quorum, "denied": gate.reject_quorum}.get(outcome, 1)
            if len(alike) >= need:
                gate.by, gate.values = alike, word.kept
                self.settle(run, gate, outcome, who, via, action=word.action)
            else:
                self.tell(run, "gate.voted", gate, who, via, action=word.action)

    def why_not_draft(self, run: Run, gate: Gate, who: Who) -> set[str]:
        return self.late(gate) | self.barred(run, gate, who)

    def draft(self, run: Run, gate: Gate, who: Who, picks: Any) -> None:
        self.sweep(run)
        gate.drafts.pop(who, None)
        if picks is not None:
            gate.drafts[who] = picks

    def withdraw(
        self, run: Run, outcome: str, reason: str | None, by: Who | None, via: str, index: int | None
    ) -> int:
        """Returns how many gates that settled."""
        self.sweep(run)
        found = [gate for gate in run.pending if index is None or gate is run.gates[index]]
        for gate in found:
            gate.detail = reason
            self.settle(run, gate, outcome, None, via, reason=reason, cancelled_by=named(by))
        return len(found)

    # amending

    def may_amend(self, run: Run, who: Who) -> set[str]:
        return set() if who[0] == "key" else {self.standing(run, self.admins, who, approval=True)} - {"yes"}

    def why_not_extend(self, run: Run, gate: Gate, seconds: int, who: Who) -> set[str]:
        why = self.late(gate) | self.may_amend(run, who)
        good = seconds >= 1 and gate.deadline + seconds * 1000 <= run.created + MOST_MS
        return why if good else why | {"invalid"}

    def extend(self, run: Run, gate: Gate, seconds: int, who: Who, via: str) -> None:
        self.sweep(run)
        gate.deadline += seconds * 1000
        self.tell(run, "gate.extended", gate, who, via)

    def why_not_reassign(self, run: Run, gate: Gate, names: tuple[str, ...], who: Who) -> set[str]:
        why = self.late(gate) | self.may_amend(run, who)
        return why if self.decidable(run, gate, names) else why | {"nobody-may-decide"}

    def reassign(
        self, run: Run, gate: Gate, names: tuple[str, ...], who: Who, via: str, reason: str | None = None
    ) -> None:
        """Who may decide no longer has no vote any longer."""
        self.sweep(run)
        gate.deciders = names
        gate.votes = [
            v for v in gate.votes if self.standing(run, names, v.who, approval=gate.approval) == "yes"
        ]
        self.tell(run, "gate.reassigned", gate, who, via, reason=reason)

    def in_stead(self, gate: Gate, who: Who, to: Who) -> tuple[str, ...]:
        own = {":".join(who), who[1] if who[0] == self.home else ""}
        return (*(name for name in gate.deciders if name not in own), ":".join(to))

    def why_not_delegate(self, run: Run, gate: Gate, who: Who, to: Who) -> set[str]:
        names, why = self.in_stead(gate, who, to), self.late(gate)
        if len(names) > len(gate.deciders):
            return why | {"not-allowed"}
        return why if self.decidable(run, gate, names) else why | {"nobody-may-decide"}

    def escalate(self, run: Run) -> None:
        if run.escalated or not run.pending:
            return
        self.sweep(run)
        run.escalated = True
        for gate in run.pending:
            if gate.approval or not run.more_approvers:
                gate.deciders = tuple(dict.fromkeys((*gate.deciders, *run.more_approvers)))
                self.tell(run, "gate.escalated", gate, None, "clock")

    def work(self, run: Run) -> None:
        """A worker expires what is due, then does what else is due for this run and is in nobody's hand."""
        self.sweep(run)
        if run.escalate_at is not None and run.escalate_at <= self.now and self.free(run, "escalate"):
            self.escalate(run)

    def free(self, run: Run, what: str) -> bool:
        return run.held.get(what, 0) <= self.now

    # resuming

    def claimable(self, run: Run) -> bool:
        return run.due is not None and run.due <= self.now

    def claim(self, run: Run, lease: str, lease_ms: int, *, started: bool) -> None:
        """Not ``started``: whoever claimed it died at once."""
        assert self.claimable(run), "a run is handed out that was not due"
        run.lease, run.due, run.tries = lease, self.now + lease_ms, run.tries + 1
        if started:
            run.status = "resuming"
            self.tell(run, "run.claimed", None, None, "host")

    def why_not_end(self, run: Run, lease: str, status: str) -> set[str]:
        if run.last_end == (lease, status) or (run.lease == lease and run.due is not None):
            return set()
        return {"lease-lost"}

    def end(self, run: Run, lease: str, status: str, by: Who, retry_ms: int, error: str | None) -> None:
        if run.last_end == (lease, status):
            return
        run.last_end, run.lease, run.status, run.error = (lease, status), None, status, error
        run.due = self.now + retry_ms if status == "settled" else None
        event = "returned" if status == "settled" else status
        self.tell(run, f"run.{event}", None, by, "host", reason=error)


# what a host gets


def results(run: Run) -> Json:
    """What the host gets of a run in which nothing is pending."""
    found: Json = {"calls": {}, "approvals": {}}
    for gate in run.gates:
        found["approvals" if gate.approval else "calls"][gate.call] = _result(run, gate)
    return found


def _result(run: Run, gate: Gate) -> Json:
    comment = "; ".join(vote.comment for vote in gate.by if vote.comment)
    body: Json = {
        "outcome": gate.status,
        "by": [named(vote.who) for vote in gate.by],
        "decided_at": iso(gate.at),
    }
    if comment:
        body["comment"] = comment
    if gate.approval:
        body["args_digest"] = digest(gate.args)
        if gate.status != "approved":
            return body | {"action": "deny", "reason": _sentence(run, gate, comment)}
        always = {"always": True} if gate.by[-1].action == "approve_always" else {}
        return body | {"action": "approve"} | always | ({"override_args": gate.args} if gate.edited else {})
    if gate.by and gate.kind in ("form", "link"):
        body["action"] = gate.by[-1].action
    if gate.status != "answered":
        return body | {"status": "failed", "message": _sentence(run, gate, comment)}
    return body | {
        "status": "returned",
        "value": {"action": "accept"} if gate.kind == "link" else gate.values,
    }


def _sentence(run: Run, gate: Gate, comment: str) -> str:
    if gate.status == "expired":
        return f"No {'decision' if gate.approval else 'answer'} within {(gate.deadline - run.created) // 1000} s."
    if gate.status == "denied":
        return comment or "The call was rejected."
    if gate.status == "declined":
        did = "dismissed the request" if gate.by[-1].action == "cancel" else "declined to answer"
        return f"The user {did}: {comment}" if comment else f"The user {did}."
    return f"{gate.status.capitalize()}: {gate.detail}" if gate.detail else f"The request was {gate.status}."


def named(who: Who | None) -> Json | None:
    """Somebody as the audit and the results name them."""
    if who is None:
        return None
    return {"key": who[1]} if who[0] == "key" else {"team": who[0], "user": who[1]}


def digest(args: Json) -> str:
    """Of arguments whose canonical form is the plain one: texts and small numbers in ASCII."""
    text = json.dumps(args, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def iso(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
