"""Finds gates for a person: found while Slack waits, and with an honest word about what could not be checked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog

from bot import words
from bot.cards.inbox import Waiting
from bot.cards.queries import APPROVALS, FOR_ADMINS, OWN, Position, Query, Which
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.copies import card_for, places
from core.engine import ResumeEngine
from core.errors import CannotVerify, NotFound
from core.gates import Gate, Kind, Outcome, speaker
from core.ids import run_of
from core.policy import Person, is_among
from core.runs import Run
from core.shown import shown_run
from core.store.indexes import name_for, names_for, thread_name
from core.waiting import may_wait_for

SHOWN: Final = 10
"""How many gates make a page."""
LOOKED_AT: Final = 500
"""How many pending gates are looked through for those that a person may decide."""
AT_ONCE: Final = 50
"""How many are checked at a time."""
LOOK_S: Final = 1.8
"""How long the search may take, of the 3 s after which Slack hangs up."""
LINK_S: Final = 0.6
"""How long Slack may take to say where the cards are."""
LINKS_KEPT: Final = 2000

T = TypeVar("T")
Item = tuple[Position, Run, Gate]
Check = Callable[[Run, Gate], Awaitable[bool]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """One page of what was asked for. ``further``: the next one, if there is more; ``unsure``: not all was checked."""

    waiting: tuple[Waiting, ...]
    admin: bool
    further: Query | None = None
    unsure: bool = False

    def notes(self, empty: str) -> list[str]:
        """What is to be said about it, as markup. ``empty``: that there is nothing, for when that is sure."""
        if not self.waiting:
            return [words.LIST_EMPTY_UNSURE if self.unsure else empty]
        return [words.LIST_UNSURE] if self.unsure else []


@dataclass(slots=True)
class _Search:
    """One search, and what it has found by the time that it has to end."""

    person: Person
    query: Query
    most: int
    admin: bool = False
    unsure: bool = False
    items: dict[str, Item] = field(default_factory=dict)
    """By gate: two looks may find one."""

    @property
    def soonest_of_own(self) -> bool:
        """Whether all that the person may decide has to be found, before it is known what expires first."""
        return self.query.which is Which.EXPIRING and (not self.admin or self.query.about == OWN)


class Inbox:
    """Finds gates for people. It remembers nothing but where cards are, which does not change."""

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack
        self._links: dict[tuple[str, str], str] = {}

    async def of(self, person: Person, query: Query, *, here: str = "", most: int = SHOWN) -> Found:
        """One page, of at most ``most`` gates. ``here``: a channel that the person is in for sure.

        Raises StoreUnavailable.
        """
        search = _Search(person, query, most)
        try:
            async with asyncio.timeout(LOOK_S):
                search.admin = await self.is_admin(person, search)
                await self._look(search, here)
        except TimeoutError:
            search.unsure = True
        soonest = query.which is Which.EXPIRING
        items = sorted(search.items.values(), key=lambda item: _place(item[0]), reverse=not soonest)
        further = query.next(items[most - 1][0]) if len(items) > most else None
        waiting = await self.linked([(run, gate) for _, run, gate in items[:most]], person)
        return Found(waiting, search.admin, further, search.unsure)

    async def is_admin(self, person: Person, search: _Search | None = None) -> bool:
        """Whether somebody sees all there is. Who cannot be verified does not."""
        engine = self._engine
        try:
            return await is_among(
                engine.admins, person, home=engine.home, channel=None, directory=engine.directory
            )
        except CannotVerify:
            if search:
                search.unsure = True
            return False

    async def may_see(self, person: Person, run: Run, gate: Gate) -> bool:
        """Whether a gate may be shown to somebody: to admins, whom it is asked for, who may decide it or did, and
        whoever sees its card anyway. Raises CannotVerify."""
        if person == run.doc.requester or any(vote.by == person for vote in gate.votes):
            return True
        if await self.is_admin(person) or await self._engine.may_decide(run, gate, person):
            return True
        channels = {card.channel for card in run.cards if card.ts and card.channel[0] in "CG"}
        for channel in sorted(channels):
            if self._engine.is_home(person) and await self._engine.directory.in_channel(channel, person):
                return True
        return False

    # looking

    async def _look(self, search: _Search, here: str) -> None:
        which, about, after = search.query.which, search.query.about, search.query.after
        if which in FOR_ADMINS and not search.admin:
            return
        match which:
            case Which.ALL | Which.MINE:
                await self._decidable(search, all_of_it=search.admin and which is Which.ALL)
            case Which.HOST:
                check = self._any if search.admin else self._may_decide(search)
                await self._scan(search, self._gates([f"host:{about}"], after), check)
            case Which.EXPIRING if not search.soonest_of_own:
                await self._scan(search, self._expiring(after), self._any)
            case Which.EXPIRING:
                await self._decidable(search, all_of_it=False)
                _by_deadline(search)
            case Which.CHANNEL | Which.THREAD:
                channel, _, ts = about.partition("/")
                name = thread_name(channel, ts) if ts else f"channel:{channel}"
                if channel == here or await self._is_in(search, channel):
                    await self._scan(search, self._gates([name], after), _standing(channel, ts))
            case Which.RUN:
                await self._scan(search, self._run(about), self._may_see(search))
            case Which.ASKED:
                name = name_for(speaker(search.person))
                await self._scan(search, self._gates([name], after), self._any)
            case Which.DECIDED:
                said = self._engine.store.lists.said(speaker(search.person), after)
                await self._scan(search, self._said(said), self._any)
            case Which.UNDELIVERABLE:
                await self._scan(search, self._undeliverable(after), self._any)
            case Which.DEAD:
                await self._scan(search, self._dead(after), self._any)

    async def _decidable(self, search: _Search, *, all_of_it: bool) -> None:
        """Who is named is found by the indexes, however many other gates there are; what is open to the members of a
        channel or a group, by a look through the newest."""
        after = None if search.query.which is Which.EXPIRING else search.query.after
        check = self._any if all_of_it else self._may_decide(search)
        if not all_of_it:
            named = names_for(speaker(search.person), home=self._engine.home, admins=self._engine.admins)
            await self._scan(search, self._gates(named, after), check)
        await self._scan(search, self._gates([], after), check)

    async def _scan(self, search: _Search, source: AsyncGenerator[Item], check: Check) -> None:
        """Look at gates in their order, until there is a page of them and one more."""
        all_of_them = search.soonest_of_own
        found = looked_at = 0
        async with contextlib.aclosing(source):
            async for batch in _batches(source):
                checks = (self._check(item, search, check) for item in batch)
                found += sum(await asyncio.gather(*checks))
                looked_at += len(batch)
                if found > search.most and not all_of_them:
                    return
                if looked_at >= LOOKED_AT:
                    search.unsure = True
                    return

    async def _check(self, item: Item, search: _Search, check: Check) -> bool:
        """Whether a gate is one of those that were asked for, which is kept then."""
        _, run, gate = item
        try:
            if await check(run, gate):
                search.items[gate.id] = item
                return True
        except CannotVerify:
            search.unsure = True
        return False

    # which gates fit

    async def _any(self, _run: Run, _gate: Gate) -> bool:
        return True

    def _may_decide(self, search: _Search) -> Check:
        about = search.query.about if search.query.which is Which.MINE else ""

        async def check(run: Run, gate: Gate) -> bool:
            if about and (about == APPROVALS) != (gate.doc.kind is Kind.APPROVAL):
                return False
            return await self._engine.may_decide(run, gate, search.person)

        return check

    def _may_see(self, search: _Search) -> Check:
        async def check(run: Run, gate: Gate) -> bool:
            return await self.may_see(search.person, run, gate)

        return check

    async def _is_in(self, search: _Search, channel: str) -> bool:
        try:
            return search.admin or (
                self._engine.is_home(search.person)
                and await self._engine.directory.in_channel(channel, search.person)
            )
        except CannotVerify:
            search.unsure = True
            return False

    # where they come from

    async def _gates(self, names: Sequence[str], after: Position | None) -> AsyncGenerator[Item]:
        gates = self._engine.gates(only_open=True, names=names, before=after)
        async with contextlib.aclosing(gates):
            async for item in gates:
                if item[2].pending:
                    yield item

    async def _expiring(self, after: Position | None) -> AsyncGenerator[Item]:
        run_id, skip = run_of(after[1]) if after else ("", -1)
        start = (after[0], run_id[:-1]) if after else None
        async for batch in _batches(self._engine.store.lists.expiring(start)):
            scores = {run_id: ms for ms, run_id in batch}
            for run in await self._engine.store.read_all(list(scores)):
                for gate in run.gates:
                    had = after and run.id <= run_id and scores[run.id] == after[0]
                    if gate.pending and not (had and (run.id < run_id or gate.doc.index <= skip)):
                        yield (scores[run.id], gate.id), run, gate

    async def _run(self, run_id: str) -> AsyncGenerator[Item]:
        with contextlib.suppress(NotFound):
            run = await self._engine.run(run_id)
            for gate in run.gates:
                if gate.pending:
                    yield (-gate.doc.index, gate.id), run, gate

    async def _said(self, said: AsyncIterator[Position]) -> AsyncGenerator[Item]:
        async for ms, gate_id in said:
            with contextlib.suppress(NotFound):
                yield ((ms, gate_id), *await self._engine.gate(gate_id))

    async def _undeliverable(self, after: Position | None) -> AsyncGenerator[Item]:
        async for batch in _batches(self._engine.store.lists.undeliverable(_of_run(after))):
            scores = {run_id: ms for ms, run_id in batch}
            for run in await self._engine.store.read_all(list(scores)):
                gate = next((gate for gate in run.gates if gate.status == Outcome.UNDELIVERABLE), None)
                if gate:
                    yield (scores[run.id], gate.id), run, gate

    async def _dead(self, after: Position | None) -> AsyncGenerator[Item]:
        async for (ms, _), run in self._engine.dead_letters.listed(_of_run(after)):
            yield (ms, run.gates[0].id), run, run.gates[0]

    # what is shown of them, and where the cards are

    async def linked(self, found: Sequence[tuple[Run, Gate]], person: Person) -> tuple[Waiting, ...]:
        """The gates as people may see them, with the addresses of their cards, as far as Slack tells them in time.

        Who has a copy of their own is led there: they may not see the other.
        """
        shown = [self._shown(run, gate) for run, gate in found]
        cards = [card_for(run, gate.doc.index, person) for run, gate in shown]
        self._links |= {(card.channel, card.ts): card.url for card in cards if card and card.url}
        unknown = {(card.channel, card.ts) for card in cards if card} - self._links.keys()
        if unknown:
            tasks = [asyncio.create_task(self._ask(channel, ts)) for channel, ts in unknown]
            _, late = await asyncio.wait(tasks, timeout=LINK_S)
            for task in late:
                task.cancel()
        urls = [self._links.get((card.channel, card.ts)) if card else None for card in cards]
        home_of, admins = self._engine.home_of, self._engine.admins
        theirs = [may_wait_for(run, gate, person, home=home_of(run), admins=admins) for run, gate in found]
        return tuple(
            Waiting(run, gate, url, mine) for (run, gate), url, mine in zip(shown, urls, theirs, strict=True)
        )

    def _shown(self, run: Run, gate: Gate) -> tuple[Run, Gate]:
        seen = shown_run(run, self._engine.redaction)
        return seen, seen.gates[gate.doc.index]

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


def _standing(channel: str, ts: str) -> Check:
    """Whether a gate's card stands in a channel (with ``ts``: in that thread there, or begins it)."""

    async def check(run: Run, gate: Gate) -> bool:
        threads = {place.thread_ts for place in places(run).values() if place.channel == channel}
        cards = {card.ts for card in run.cards if card.channel == channel}
        if not ts:
            return bool(threads) or bool(cards)
        return ts in threads | cards

    return check


def _by_deadline(search: _Search) -> None:
    """Order what was found by deadlines, and leave out what stands on the pages before."""
    after = search.query.after
    items = [((gate.deadline, gate.id), run, gate) for _, run, gate in search.items.values()]
    search.items = {item[2].id: item for item in items if after is None or _place(item[0]) > _place(after)}


def _place(position: Position) -> tuple[int, str, int]:
    """A position to sort by: the third gate of a run comes before its tenth."""
    return (position[0], *run_of(position[1]))


def _of_run(after: Position | None) -> Position | None:
    """A position among runs, for one among their gates."""
    return (after[0], run_of(after[1])[0]) if after else None


async def _batches(source: AsyncIterator[T]) -> AsyncGenerator[list[T]]:
    batch: list[T] = []
    async for item in source:
        batch.append(item)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch
