"""What may happen in the stateful machine: runs of every kind under every policy, steps of everybody."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from core.requests import RunRequest
from tests.model import Gate, Json, Run, Who, named
from tests.steps import (
    ADMIN,
    ANA,
    ANYBODY,
    BEN,
    CHO,
    CI,
    DAN,
    PEOPLE,
    Amend,
    Decide,
    Draft,
    Expire,
    Step,
    Withdraw,
    call_body,
)

OFFERED: dict[str, tuple[str, ...]] = {
    "question": ("answer", "decline"),
    "form": ("accept", "decline", "cancel"),
    "link": ("accept", "decline", "cancel"),
    "custom": ("answer", "decline", "cancel"),
    "approval": ("approve", "deny"),
    "always": ("approve", "approve_always", "deny"),
}
"""What a gate of each kind offers. `always` is an approval that may be given for always."""


@dataclass(frozen=True)
class Opening:
    """A run to be opened. ``escalate``: after 30 s, to these besides (or only to another place)."""

    kinds: tuple[str, ...]
    policy: Json
    requester: Who | None
    timeout_s: int
    escalate: tuple[str, ...] | None

    def _approval(self, number: int) -> bool:
        return self.kinds[number] in ("approval", "always")

    @property
    def _order(self) -> list[int]:
        """The calls come first."""
        return sorted(range(len(self.kinds)), key=self._approval)

    @property
    def _policy(self) -> Json:
        return self.policy | ({"quorum": 1} if "always" in self.kinds else {})

    def request(self) -> RunRequest:
        items: dict[bool, list[Json]] = {False: [], True: []}
        for number in self._order:
            items[self._approval(number)].append(call_body(self.kinds[number], f"c{number}"))
        escalate: Json | None = None
        if self.escalate is not None:
            more = {"approvers": list(self.escalate)} if self.escalate else {}
            escalate = {"after_s": 30, "place": {"channel": "C2"}} | more
        return RunRequest.model_validate(
            {
                "pending": {"calls": items[False], "approvals": items[True]},
                "place": {"channel": "C1"},
                "policy": self._policy,
                "timeout_s": self.timeout_s,
                "requester": named(self.requester),
                "state": "opaque",
                "escalate": escalate,
            }
        )

    def run(self, now: int) -> Run:
        """The same for the model."""
        deadline = now + self.timeout_s * 1000
        run = Run(now, [self._gate(number, deadline) for number in self._order], CI, self.requester)
        if self.escalate is not None:
            run.escalate_at, run.more_approvers = now + 30_000, self.escalate
        return run

    def _gate(self, number: int, deadline: int) -> Gate:
        kind, call, policy = self.kinds[number], f"c{number}", self._policy
        if not self._approval(number):
            return Gate(kind, call, OFFERED[kind], policy["responders"] or ("channel",), deadline)
        rules = {name: value for name, value in policy.items() if name not in ("approvers", "responders")}
        args: Json = call_body(kind, call)["args"]
        deciders = policy["approvers"] or ("admins",)
        return Gate("approval", call, OFFERED[kind], deciders, deadline, args, first_args=args, **rules)


# what may happen

APPROVERS: list[tuple[str, ...] | None] = [
    *[("U1", "U2", "U3")] * 4,
    *[("U1", "U2", "U3", "key:ci")] * 2,
    ("S1", "U1"),
    ("S404", "U1", "U2"),
    ("channel",),
    ("anyone",),
    ("T2:U1", "U1"),
    ("U1",),
    None,
]
RESPONDERS: list[tuple[str, ...] | None] = [
    None,
    ("anyone",),
    ("U1", "U2"),
    ("S404", "U1"),
    ("key:ci", "U3"),
    ("T2:U1",),
]
DECIDERS: list[tuple[str, ...]] = [
    ("U2", "U3"),
    ("U3", "U8"),
    ("S1",),
    ("T1:U1", "U2"),
    ("channel",),
    ("U2",),
    (),
]
POLICIES = st.fixed_dictionaries(
    {
        "approvers": st.sampled_from(APPROVERS),
        "responders": st.sampled_from(RESPONDERS),
        "quorum": st.sampled_from([2, 2, 1]),
        "reject_quorum": st.sampled_from([2, 1]),
        "self_approval": st.booleans(),
        "reason": st.sampled_from(["never", "never", "on_reject", "always"]),
        "edits": st.booleans(),
    }
)
KINDS = st.lists(st.sampled_from(["approval", "approval", "approval", *OFFERED]), min_size=1, max_size=3).map(
    tuple
)
OPENINGS = st.builds(
    Opening,
    KINDS,
    POLICIES,
    requester=st.sampled_from([None, None, ANA, BEN]),
    timeout_s=st.sampled_from([60, 600, 3600, 86_400]),
    escalate=st.sampled_from([None, ("U3", "T2:U1"), ()]),
)
NUMBERS = st.integers(0, 11)
MOSTLY_MEMBERS = st.sampled_from([ANA, BEN, CHO] * 4 + [*ANYBODY])
MEMBERS_ABOVE_ALL = st.sampled_from([ANA, BEN, CHO, *PEOPLE])
PICKS = st.lists(st.tuples(NUMBERS, st.integers(0, 59)), min_size=1, max_size=3).map(tuple)
DECIDES = st.builds(Decide, PICKS, MOSTLY_MEMBERS)
DRAFTS = st.builds(Draft, NUMBERS, st.sampled_from(PEOPLE), st.sampled_from([None, [], {"0": [1]}]))
WITHDRAWALS = st.builds(
    Withdraw,
    st.sampled_from(["cancelled", "cancelled", "undeliverable", "superseded"]),
    st.sampled_from([None, "too late"]),
    st.none() | NUMBERS,
)
EXTENSIONS = st.builds(
    Amend, NUMBERS, st.sampled_from([ADMIN, ADMIN, CI, ANA]), st.sampled_from([60, 3600, 0, -1, 2_592_000])
)
REASSIGNMENTS = st.builds(
    Amend, NUMBERS, st.sampled_from([ADMIN, ADMIN, CI, ANA]), names=st.sampled_from(DECIDERS)
)
DELEGATIONS = st.builds(Amend, NUMBERS, MEMBERS_ABOVE_ALL, to=st.sampled_from([ANA, CHO, DAN]))
_WEIGHTED: list[st.SearchStrategy[Step]] = [*[DECIDES] * 9, DRAFTS, WITHDRAWALS]
_WEIGHTED += [EXTENSIONS, REASSIGNMENTS, DELEGATIONS, st.builds(Expire)]
STEPS = st.sampled_from(_WEIGHTED).flatmap(lambda steps: steps)
"""Above all, people decide."""

FAULTS = st.sampled_from(["none", "lost", "lost twice", "refused"])
