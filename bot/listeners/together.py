"""Approving all open approvals of a run at once: what somebody may not approve, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.together import open_approvals, seen
from bot.listeners.people import word_for
from core.answers import Answer
from core.engine import ResumeEngine
from core.errors import Refused
from core.gates import Action, Gate
from core.policy import Person
from core.runs import Run


async def as_seen(engine: ResumeEngine, run: Run, digest: str, person: Person) -> list[Gate]:
    """The open approvals of a run, if they are those that somebody saw.

    Raises Overtaken if some have been decided or edited since; the card is drawn again then.
    """
    gates = open_approvals(run)
    if seen(gates) != digest:
        raise await engine.overtaken(run, (gates or run.gates)[0], person, via="slack")
    return gates


async def refusals(
    engine: ResumeEngine, run: Run, gates: Sequence[Gate], person: Person
) -> dict[str, list[Gate]]:
    """Which of these somebody may not approve, by the sentence (markup) that says why."""
    found: dict[str, list[Gate]] = {}
    for gate in gates:
        try:
            await engine.check_open(run, gate, person, via="slack", approving=True)
        except Refused as refusal:
            found.setdefault(word_for(refusal, person), []).append(gate)
    return found


async def approve(
    engine: ResumeEngine, run: Run, gates: Sequence[Gate], person: Person, comment: str | None
) -> None:
    """Approve them. Raises as `ResumeEngine.decide` does; nothing is approved then."""
    answers = [Answer(gate.doc.index, Action.APPROVE, comment=comment, digest=gate.digest) for gate in gates]
    await engine.decide_all(run.id, answers, by=person, via="slack")
