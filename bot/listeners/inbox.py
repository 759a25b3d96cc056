"""What waits for a person: found while Slack waits, and with an honest word about what could not be checked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from bot import words
from bot.cards.inbox import Waiting, card_of
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.engine import ResumeEngine
from core.errors import CannotVerify
from core.gates import Gate
from core.policy import Person, is_among
from core.runs import Run
from core.shown import shown_run
from core.store.indexes import names_for

SHOWN: Final = 20
LOOKED_AT: Final = 500
"""How many pending gates are looked through for those that a person may decide."""
AT_ONCE: Final = 50
"""How many are checked at a time."""
LOOK_S: Final = 1.8
"""How long the search may take, of the 3 s after which Slack hangs up."""
LINK_S: Final = 0.6
"""How long Slack may take to say where the cards are."""
LINKS_KEPT: Final = 2000

Position = tuple[int, str]
Item = tuple[Position, Run, Gate]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """What waits, newest first. ``more``: there is more than is shown; ``unsure``: not all of it could be checked."""

    waiting: tuple[Waiting, ...]
    admin: bool
    more: bool
    unsure: bool

    def notes(self, empty: str) -> list[str]:
        """What is to be said about it, as markup. ``empty``: that nothing waits, for when that is sure."""
        if not self.waiting:
            return [words.LIST_EMPTY_UNSURE if self.unsure else empty]
        more = [words.LIST_MORE.format(count=len(self.waiting))] if self.more else []
        return more + ([words.LIST_UNSURE] if self.unsure else [])


@dataclass(slots=True)
class _Search:
    """One search, and what it has found by the time that it has to end."""

    admin: bool = False
    unsure: bool = False
    items: dict[str, Item] = field(default_factory=dict)
    """By gate: both looks may find one."""


class Inbox:
    """Finds what waits for people. It remembers nothing but where cards are, which does not change."""

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack
        self._links: dict[tuple[str, str], str] = {}

    async def of(self, person: Person, *, all_for_admins: bool = False) -> Found:
        """What a person may decide; with ``all_for_admins`` all there is, if the person is an admin.

        Raises StoreUnavailable.
        """
        search = _Search()
        try:
            async with asyncio.timeout(LOOK_S):
                if all_for_admins:
                    search.admin = await self._is_admin(person, search)
                await self._look(person, search)
        except TimeoutError:
            search.unsure = True
        items = sorted(search.items.values(), key=lambda item: item[0], reverse=True)
        waiting = await self._linked([self._shown(run, gate) for _, run, gate in items[:SHOWN]])
        return Found(waiting, search.admin, more=len(items) > SHOWN, unsure=search.unsure)

    async def _is_admin(self, person: Person, search: _Search) -> bool:
        """Whether somebody sees all there is. Who cannot be verified does not."""
        engine = self._engine
        try:
            return await is_among(
                engine.admins, person, home=engine.home, channel=None, directory=engine.directory
            )
        except CannotVerify:
            search.unsure = True
            return False

    async def _look(self, person: Person, search: _Search) -> None:
        """Who is named is found by the indexes, however many other gates there are; what is open to the members of a
        channel or a group, by a look through the newest."""
        if not search.admin:
            who = f"{person.team}:{person.user}"
            named = names_for(who, home=self._engine.home, admins=self._engine.admins)
            await self._scan(person, search, named)
        await self._scan(person, search)

    async def _scan(self, person: Person, search: _Search, names: Sequence[str] = ()) -> None:
        """Look at pending gates, newest first (with ``names``, at those of these indexes)."""
        found = looked_at = 0
        async with contextlib.aclosing(self._batches(names)) as batches:
            async for batch in batches:
                checks = (self._check(item, person, search) for item in batch)
                found += sum(await asyncio.gather(*checks))
                looked_at += len(batch)
                if found > SHOWN:
                    return
                if looked_at >= LOOKED_AT:
                    search.unsure = True
                    return

    async def _batches(self, names: Sequence[str]) -> AsyncGenerator[list[Item]]:
        batch: list[Item] = []
        async with contextlib.aclosing(self._engine.gates(only_open=True, names=names)) as gates:
            async for item in gates:
                if item[2].pending:
                    batch.append(item)
                if len(batch) == AT_ONCE:
                    yield batch
                    batch = []
        yield batch

    async def _check(self, item: Item, person: Person, search: _Search) -> bool:
        """Whether somebody may decide a gate, which is kept then."""
        _, run, gate = item
        try:
            if search.admin or await self._engine.may_decide(run, gate, person):
                search.items[gate.id] = item
                return True
        except CannotVerify:
            search.unsure = True
        return False

    def _shown(self, run: Run, gate: Gate) -> tuple[Run, Gate]:
        seen = shown_run(run, self._engine.redaction)
        return seen, seen.gates[gate.doc.index]

    # where the cards are

    async def _linked(self, found: list[tuple[Run, Gate]]) -> tuple[Waiting, ...]:
        """The gates with the addresses of their cards, as far as Slack tells them in time."""
        cards = [card_of(run, gate) for run, gate in found]
        unknown = {(card.channel, card.ts) for card in cards if card} - self._links.keys()
        if unknown:
            tasks = [asyncio.create_task(self._ask(channel, ts)) for channel, ts in unknown]
            _, late = await asyncio.wait(tasks, timeout=LINK_S)
            for task in late:
                task.cancel()
        urls = [self._links.get((card.channel, card.ts)) if card else None for card in cards]
        return tuple(Waiting(run, gate, url) for (run, gate), url in zip(found, urls, strict=True))

    async def _ask(self, channel: str, ts: str) -> None:
        try:
            url = await self._slack.permalink(channel, ts)
        except (SlackBusy, SlackGone, SlackRefused) as error:
            # the list is as good without the button
            log.warning("inbox.no_link", channel=channel, code=error.code)
            return
        if len(self._links) >= LINKS_KEPT:
            self._links.clear()
        self._links[channel, ts] = url
