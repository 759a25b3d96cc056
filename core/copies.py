"""The places that a run's card belongs in, each with a number that it keeps. A pure function of the stored run."""

from __future__ import annotations

from typing import Final

from core.places import Place
from core.policy import Person
from core.runs import Card, Run

FALLBACK: Final = -1
"""The channel that stands in for the run's own place, if the chat system does not take its card there."""
OWN: Final = 0
"""The place that the run names."""
ESCALATED: Final = 1
"""The place that it was escalated to."""
FIRST_COPY: Final = 2
"""The DM of the first who gets a copy; the others follow."""


def places(run: Run) -> dict[int, Place]:
    """Where a run's card belongs at this moment, by number. A copy goes nowhere that a card stands already."""
    wanted: dict[int, Place] = {}
    if run.doc.place:
        own = run.doc.place
        wanted[OWN] = own.model_copy(update={"team": None}) if own.team else own
        if run.doc.fallback and refusal(run, OWN):
            wanted[FALLBACK] = Place(channel=run.doc.fallback)
    if run.escalated and run.doc.escalate and run.doc.escalate.place:
        wanted[ESCALATED] = run.doc.escalate.place
    for number, person in enumerate(run.copies.to, FIRST_COPY):
        abroad = run.doc.team is not None and person.team != run.doc.team
        wanted[number] = Place(user=person.user, team=person.team if abroad else None)
    there = {card.copy_of for card in run.cards}
    found: dict[int, Place] = {}
    for number in sorted(wanted, key=lambda number: (number not in there, number)):
        if number in there or wanted[number] not in found.values():
            found[number] = wanted[number]
    return dict(sorted(found.items()))


def own_cards(run: Run, copy: int) -> list[Card]:
    """The messages of one copy of a run's card, in their order."""
    return [card for card in run.cards if card.copy_of == copy]


def card_in(run: Run, copy: int) -> Card | None:
    """The first message of one copy of a run's card."""
    return next((card for card in own_cards(run, copy) if card.ts), None)


def card_for(run: Run, gate: int, person: Person | None = None) -> Card | None:
    """The message that shows a gate (by index) to somebody: the copy of their own, or one that they share."""
    own = {copy for copy, place in places(run).items() if person and place.user == person.user}
    shown = [card for card in run.cards if card.ts and gate in card.gates]
    mine = next((card for card in shown if card.copy_of in own), None)
    return mine or next((card for card in shown if card.copy_of < FIRST_COPY), None)


def refusal(run: Run, copy: int) -> str:
    """Slack's word for why it does not show some of this copy, or nothing."""
    return next((card.refused for card in own_cards(run, copy) if card.refused), "")


def origin(run: Run) -> Card | None:
    """The message that copies lead back to: the first of the card in the run's own channel."""
    if run.doc.place is None or run.doc.place.channel is None:
        return None
    return card_in(run, OWN)


def link_for(run: Run, copy: int) -> str:
    """The address that a copy leads back to; empty for the card itself, and as long as it is not known."""
    first = origin(run)
    return first.url if first and copy != OWN else ""


def thread_of(run: Run, card: Card) -> str:
    """The ts of the thread that a message of a card belongs to: the card's own, or the one that its place names."""
    place = places(run).get(card.copy_of)
    if place and place.thread_ts:
        return place.thread_ts
    first = next(own for own in own_cards(run, card.copy_of) if own.ts)
    return first.ts
