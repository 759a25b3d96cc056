"""Brings a run's card into Slack and keeps it true: the agenda's handler for `card:<run>`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from bot.cards.card import Message, moved, pack, render
from bot.slack.audience import Audience
from bot.slack.client import PACED, Slack
from bot.slack.doors import Doors, Others
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from core.agenda import TryAgain
from core.copies import FALLBACK, OWN, link_for, origin, own_cards, places, refusal
from core.engine import ResumeEngine
from core.errors import NotFound
from core.places import Place
from core.runs import Card, Run
from core.shown import shown_run

POSTS: Final = 5
"""How many messages are posted before those that are there are looked after again."""

Note = Callable[[str, Place, str], Awaitable[None]]
"""Is told of a run whose card is refused in a place, with the word for why."""

log = structlog.get_logger(__name__)


class Delivery:
    """Posts and updates cards. It holds no state: what is where, and what it shows, is in the store.

    Where a run's card belongs is what `places` says: its own place, or if Slack does not take it there the one that
    stands in for it, that of an escalation, and the DMs of people who see none of these.
    """

    def __init__(
        self,
        engine: ResumeEngine,
        slack: Slack,
        audience: Audience,
        note: Note | None = None,
        others: Others | None = None,
    ) -> None:
        self._note = note
        self._engine = engine
        self._slack = slack
        self._doors = Doors(slack, others)
        self._audience = audience

    async def card(self, run_id: str, tries: int) -> None:
        """Draw a run's card as the run is at this moment. Raises TryAgain if Slack is busy, or more is to be posted."""
        try:
            run = await self._run(run_id)
        except NotFound:
            return
        if run.resend:
            run = await self._moved(run)
        if run.mend:
            run = await self._unsure(run)
        run = await self._bring_all(run, places(run), tries=tries)
        if await self._end_unshown(run):
            run = await self._run(run_id)
        copies, unsure = await self._audience.of(run)
        if copies != run.copies:
            await self._keep(run, run.cards, copies=copies)
            there, run = places(run), run.model_copy(update={"copies": copies})
            more = {copy: place for copy, place in places(run).items() if copy not in there}
            run = await self._bring_all(run, more, tries=tries)
        for gate in run.gates:
            if code := self._audience.lost(run, gate):
                await self._engine.undeliverable(run.id, code, index=gate.doc.index)
        if any(_missing(run, copy) and _wanted(run, copy) for copy in places(run)):
            raise TryAgain(0, tried=False)
        if unsure:
            raise TryAgain

    async def _bring_all(self, run: Run, to: Mapping[int, Place], *, tries: int) -> Run:
        """Bring the card to these places. Raises TryAgain if Slack is busy at one of them."""
        busy: list[SlackBusy] = []
        for copy, place in to.items():
            try:
                run = await self._bring(run, copy, place, looking=tries > 1)
            except SlackBusy as error:
                # another copy may be in a channel where things go better
                tell = log.info if error.code == PACED else log.warning
                tell("card.later", run=run.id, copy=copy, code=error.code, in_ms=error.in_ms, tries=tries)
                busy.append(error)
                run = await self._run(run.id)
        if busy:
            raise again(busy) from busy[0]
        return run

    async def _run(self, run_id: str) -> Run:
        """The run as people may see it. Raises NotFound."""
        return shown_run(await self._engine.run(run_id), self._engine.redaction)

    async def _unsure(self, run: Run) -> Run:
        """The run with nothing known of what its messages show, so that each is drawn again, once."""
        cards = [
            card.model_copy(update={"shown": "", "refused": ""}) if card.ts else card for card in run.cards
        ]
        await self._keep(run, cards, mended=True)
        return run.model_copy(update={"cards": tuple(cards), "mend": False})

    async def _moved(self, run: Run) -> Run:
        """Take every message of the card back before it is posted anew, so that never two of them can be clicked.

        Raises TryAgain if Slack is busy: nothing is posted before all of them are gone.
        """
        for card in run.cards:
            if card.ts:
                try:
                    await self._without_controls(run, card)
                except SlackBusy as busy:
                    raise again([busy]) from busy
        await self._keep(run, (), resent=True)
        return await self._run(run.id)

    async def _without_controls(self, run: Run, card: Card) -> None:
        """Delete a message; where that is not allowed, leave a line in its place."""
        slack = await self._doors.of(run, card)
        try:
            await slack.delete(card.channel, card.ts)
        except SlackGone:
            return
        except SlackRefused as refused:
            log.warning("card.not_deleted", run=run.id, ts=card.ts, code=refused.code)
            try:
                await slack.update(card.channel, card.ts, moved(run))
            except (SlackRefused, SlackGone) as error:
                # it cannot be reached: what is clicked there is still checked against the store
                log.error("card.left_over", run=run.id, ts=card.ts, code=error.code)

    async def _bring(self, run: Run, copy: int, place: Place, *, looking: bool) -> Run:
        """Post what is missing of one copy, then bring every message of it up to the present state."""
        if _missing(run, copy) and (looking or _wanted(run, copy)):
            try:
                run = await self._with_link(run, copy)
                await self._post(run, copy, place, _parts(run, copy), looking=looking)
            except (SlackRefused, SlackGone) as refused:
                await self._never(run.id, copy, place, refused.code)
            run = await self._run(run.id)
        return await self._update(run, copy, place)

    async def _with_link(self, run: Run, copy: int) -> Run:
        """The run with the address of its first message, if a copy is to lead there and it is not known yet."""
        card = origin(run)
        if copy == OWN or card is None or card.url:
            return run
        try:
            url = await self._slack.permalink(card.channel, card.ts)
        except (SlackBusy, SlackGone, SlackRefused) as error:
            # the copy is as good without it, and gets it with the next change
            log.warning("card.no_link", run=run.id, code=error.code)
            return run
        cards = [one.model_copy(update={"url": url}) if one is card else one for one in own_cards(run, OWN)]
        return await self._remember(run, OWN, cards)

    async def _post(
        self, run: Run, copy: int, place: Place, parts: Sequence[tuple[int, ...]], *, looking: bool
    ) -> None:
        """Post some of the messages that are not there yet, each remembered before the next.

        ``looking``: an earlier try may have posted one and died before it was remembered.
        """
        own, had, slack = own_cards(run, copy), len(own_cards(run, copy)), await self._doors.to(place)
        channel = own[0].channel if own else place.channel or await slack.open_dm(place.user or "")
        messages = _drawn(run, copy, parts)
        for number in range(had, min(len(parts), had + POSTS)):
            thread_ts = place.thread_ts or (own[0].ts if own else None)
            payload = _payload(run, copy, number)
            ts = None
            if looking and number == had:
                ts = await slack.find(
                    channel, thread_ts=thread_ts, since_ms=run.doc.created_at, payload=payload
                )
            if ts is None and not _wanted(run, copy):
                return
            found, shown = ts, "" if ts else _digest(messages[number])
            ts = ts or await slack.post(channel, messages[number], thread_ts=thread_ts, payload=payload)
            own.append(Card(channel=channel, ts=ts, gates=parts[number], shown=shown, copy_of=copy))
            try:
                run = await self._remember(run, copy, own, event="card.posted")
            except TryAgain:
                if not found:
                    await self._take_back(slack, channel, ts)
                raise

    async def _update(self, run: Run, copy: int, place: Place) -> Run:
        """Bring every message that does not show the present state up to it. What Slack refuses is left as it is."""
        cards, before = own_cards(run, copy), own_cards(run, copy)
        there = [number for number, card in enumerate(cards) if card.ts]
        messages = _drawn(run, copy, [cards[number].gates for number in there])
        failed = None
        for number, message in zip(there, messages, strict=True):
            card = cards[number]
            if card.shown == _digest(message) or card.refused:
                continue
            try:
                cards[number] = await self._show(run, card, number, message, place)
            except (SlackRefused, SlackGone) as refused:
                failed = refused.code
                cards[number] = card.model_copy(update={"refused": failed})
            except SlackBusy:
                await self._remember(run, copy, cards)
                raise
        if cards != before:
            run = await self._remember(run, copy, cards, failed=failed)
        return run

    async def _show(self, run: Run, card: Card, number: int, message: Message, place: Place) -> Card:
        """Change a message; where it is gone and still wanted, post it again."""
        ts, url, slack = card.ts, card.url, await self._doors.to(place)
        try:
            await slack.update(card.channel, ts, message)
        except SlackGone as gone:
            log.warning("card.gone", run=run.id, ts=ts, code=gone.code)
            if run.open:
                payload = _payload(run, card.copy_of, number) | {"again": ts}
                ts = await slack.post(card.channel, message, thread_ts=place.thread_ts, payload=payload)
                url = ""
        return card.model_copy(update={"ts": ts, "url": url, "shown": _digest(message), "refused": ""})

    async def _never(self, run_id: str, copy: int, place: Place, code: str) -> None:
        """Remember that Slack will not take the rest of a copy, so that it is not asked again with each change."""
        run = await self._run(run_id)  # with the messages that were posted meanwhile
        mark = Card(channel=place.channel or place.user or "", ts="", gates=(), copy_of=copy, refused=code)
        await self._remember(run, copy, [*own_cards(run, copy), mark], failed=code)

    async def _end_unshown(self, run: Run) -> bool:
        """End what waits if Slack refuses a part of every copy. What is stored says so, also to the next who comes."""
        refusals = [refusal(run, copy) for copy in places(run)]
        unshown = run.open and bool(refusals) and all(refusals)
        if unshown:
            await self._engine.undeliverable(run.id, refusals[-1])
        return unshown

    async def _remember(
        self, run: Run, copy: int, own: Sequence[Card], *, event: str = "", failed: str | None = None
    ) -> Run:
        """Keep what one copy consists of; with Slack's word for why some of it ``failed``. Returns the run with it."""
        if failed:
            log.error("card.failed", run=run.id, copy=copy, code=failed)
            event = "card.failed"
            if self._note and (place := places(run).get(copy)):
                # before it is remembered: better told twice than never
                await self._note(run.id, place, failed)
        others = [card for card in run.cards if card.copy_of != copy]
        cards = tuple(sorted([*others, *own], key=lambda card: card.copy_of))
        await self._keep(run, cards, event=event, reason=failed)
        return run.model_copy(update={"cards": cards})

    async def _keep(self, run: Run, cards: Sequence[Card], **more: Any) -> None:
        """Keep the cards. Raises TryAgain if another worker, which took this one for dead, was quicker."""
        if not await self._engine.store.set_cards(run, cards, **more):
            log.warning("card.overtaken", run=run.id)
            raise TryAgain(0)

    async def _take_back(self, slack: Slack, channel: str, ts: str) -> None:
        """Delete a message that somebody else has posted as well: its controls would be looked after by nobody."""
        try:
            await slack.delete(channel, ts)
        except (SlackBusy, SlackGone, SlackRefused) as error:
            log.error("card.left_over", channel=channel, ts=ts, code=error.code)


def _missing(run: Run, copy: int) -> bool:
    """Whether some messages of this copy are not there yet, and Slack has not said that it will not take them."""
    own = own_cards(run, copy)
    return len(own) < len(_parts(run, copy)) and not any(card.refused for card in own)


def _wanted(run: Run, copy: int) -> bool:
    """Whether a message that is not there yet is to be posted. A copy is there to be acted on, not for the record."""
    return run.open or copy == OWN


def _drawn(run: Run, copy: int, parts: Sequence[tuple[int, ...]]) -> list[Message]:
    """The messages of one copy, with what sets it apart from the others."""
    instead = refusal(run, OWN) if copy == FALLBACK else ""
    return render(run, parts, link=link_for(run, copy), instead=instead)


def _payload(run: Run, copy: int, number: int) -> dict[str, object]:
    """The metadata by which a message is known again."""
    again = {"sending": run.resent} if run.resent else {}
    return {"run": run.id, "part": number} | ({"copy": copy} if copy else {}) | again


def _parts(run: Run, copy: int) -> list[tuple[int, ...]]:
    """Which gates share a message of a copy: as they do already, then those that have none yet."""
    posted = [card.gates for card in own_cards(run, copy) if card.ts]
    return posted + pack(run, sum(map(len, posted)))


def _digest(message: Message) -> str:
    look = json.dumps([message.text, message.blocks], ensure_ascii=False).encode()
    return hashlib.sha256(look).hexdigest()[:16]
