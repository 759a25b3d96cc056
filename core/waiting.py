"""For whom a gate waits: the people whom it names, who may speak and have not."""

from __future__ import annotations

from collections.abc import Sequence

from core.gates import Gate, Kind
from core.policy import Person, named
from core.runs import Run


def waits_for(run: Run, gate: Gate, *, home: str | None, admins: Sequence[str]) -> list[Person]:
    """The people (those of groups aside) for whom a gate waits at this moment; nobody if it is settled."""
    if not gate.pending:
        return []
    principals = list(gate.policy.deciders)
    if "admins" in principals:
        principals += admins
    silent = {vote.by for vote in gate.votes}
    if gate.doc.kind is Kind.APPROVAL and not gate.policy.self_approval and run.doc.requester:
        silent.add(run.doc.requester)
    return [person for person in named(principals, home=home) if person not in silent]


def waits_for_others(gate: Gate, admins: Sequence[str] = ()) -> bool:
    """Whether a pending gate waits for people whom it does not name, such as the members of a channel.

    ``admins``: who they are, if it matters whether a group of them is among those.
    """
    principals = [*gate.policy.deciders, *(admins if "admins" in gate.policy.deciders else ())]
    return gate.pending and any(
        principal in ("channel", "anyone") or principal.startswith("S") for principal in principals
    )


def may_wait_for(run: Run, gate: Gate, person: Person, *, home: str | None, admins: Sequence[str]) -> bool:
    """Whether a gate may wait for somebody, as far as is known without a look at groups and channels."""
    return waits_for_others(gate, admins) or person in waits_for(run, gate, home=home, admins=admins)
