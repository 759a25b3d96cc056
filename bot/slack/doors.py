"""Which workspace a card's place is in: the run's own, or that of a person of another one who gets a copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.slack.client import Slack
from core.copies import places
from core.places import Place
from core.runs import Card, Run

Others = Callable[[str], Awaitable[Slack | None]]
"""The Web API of another workspace, by its id; None where askgate is not installed."""


class Doors:
    """The Web API for each place. A person of whose workspace nothing is known is reached by the run's own, as far as
    a shared channel allows it."""

    def __init__(self, own: Slack, others: Others | None = None) -> None:
        self._own = own
        self._others = others

    async def to(self, place: Place | None) -> Slack:
        if place is None or place.team is None or self._others is None:
            return self._own
        return await self._others(place.team) or self._own

    async def of(self, run: Run, card: Card) -> Slack:
        """That by which a message of a card was posted."""
        return await self.to(places(run).get(card.copy_of))
