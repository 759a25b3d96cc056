"""Brings a run's card into Slack and keeps it true: the agenda's handler for `card:<run>`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import structlog

from bot.cards.card import Message, pack, render
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.agenda import TryAgain
from core.engine import ResumeEngine
from core.errors import NotFound
from core.places import Place
from core.runs import Card, Run
from core.shown import shown_run

log = structlog.get_logger(__name__)


class Delivery:
    """Posts and updates cards. It holds no state: what is where, and what it shows, is in the store.

    A run has one copy of its card, in its own place; after an escalation that names a place, another one there.
    """

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack

    async def card(self, run_id: str, tries: int) -> None:
        """Draw a run's card as the run is at this moment. Raises TryAgain when Slack is busy."""
        try:
            run = await self._run(run_id)
        except NotFound:
            return
        mend, busy = run.mend, None
        for copy, place in enumerate(places(run)):
            try:
                run = await self._bring(run, copy, place, mend=mend, looking=tries > 1)
            except SlackBusy as error:
                # the other copy may be in a channel where things go better
                log.warning("card.later", run=run_id, copy=copy, code=error.code, tries=tries)
                run, busy = await self._run(run_id), busy or error
        if busy:
            raise TryAgain(busy.in_ms) from busy
        if mend:
            await self._engine.store.set_cards(run, run.cards, mended=True)

    async def _run(self, run_id: str) -> Run:
        """The run as people may see it. Raises NotFound."""
        return shown_run(await self._engine.run(run_id), self._engine.redaction)

    async def _bring(self, run: Run, copy: int, place: Place, *, mend: bool, looking: bool) -> Run:
        """Post what is missing of one copy, then bring every message of it up to the present state."""
        own, parts = own_cards(run, copy), _parts(run, copy)
        missing = len(own) < len(parts) and not any(card.refused for card in own)
        if missing and (looking or _wanted(run, copy)):
            try:
                await self._post(run, copy, place, parts, looking=looking)
            except (SlackRefused, SlackGone) as refused:
                await self._never(run.id, copy, place, refused.code)
            run = await self._run(run.id)
        return await self._update(run, copy, place, mend=mend)

    async def _post(
        self, run: Run, copy: int, place: Place, parts: Sequence[tuple[int, ...]], *, looking: bool
    ) -> None:
        """Post the messages that are not there yet, each remembered before the next.

        ``looking``: an earlier try may have posted one and died before it was remembered.
        """
        own = own_cards(run, copy)
        channel = own[0].channel if own else place.channel or await self._slack.open_dm(place.user or "")
        messages = render(run, parts)
        for number in range(len(own), len(parts)):
            thread_ts = place.thread_ts or (own[0].ts if own else None)
            payload = _payload(run, copy, number)
            ts = None
            if looking:
                ts = await self._slack.find(
                    channel, thread_ts=thread_ts, since_ms=run.doc.created_at, payload=payload
                )
            if ts is None and not _wanted(run, copy):
                return
            shown = "" if ts else _digest(messages[number])
            ts = ts or await self._slack.post(channel, messages[number], thread_ts=thread_ts, payload=payload)
            own.append(Card(channel=channel, ts=ts, gates=parts[number], shown=shown, copy_of=copy))
            await self._remember(run, copy, own, event="card.posted")

    async def _update(self, run: Run, copy: int, place: Place, *, mend: bool) -> Run:
        """Bring every message that does not show the present state up to it. What Slack refuses is left as it is."""
        cards, before = own_cards(run, copy), own_cards(run, copy)
        there = [number for number, card in enumerate(cards) if card.ts]
        messages = render(run, [cards[number].gates for number in there])
        failed = None
        for number, message in zip(there, messages, strict=True):
            card = cards[number]
            if (card.shown == _digest(message) or card.refused) and not mend:
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
            run = await self._remember(run, copy, cards)
        if failed:
            await self._failed(run.id, copy, failed)
        return run

    async def _show(self, run: Run, card: Card, number: int, message: Message, place: Place) -> Card:
        """Change a message; where it is gone and still wanted, post it again."""
        ts = card.ts
        try:
            await self._slack.update(card.channel, ts, message)
        except SlackGone as gone:
            log.warning("card.gone", run=run.id, ts=ts, code=gone.code)
            if run.open:
                payload = _payload(run, card.copy_of, number) | {"again": ts}
                ts = await self._slack.post(card.channel, message, thread_ts=place.thread_ts, payload=payload)
        return card.model_copy(update={"ts": ts, "shown": _digest(message), "refused": ""})

    async def _never(self, run_id: str, copy: int, place: Place, code: str) -> None:
        """Remember that Slack will not take the rest of a copy, so that it is not asked again with each change."""
        run = await self._run(run_id)  # with the messages that were posted meanwhile
        mark = Card(channel=place.channel or place.user or "", ts="", gates=(), copy_of=copy, refused=code)
        await self._remember(run, copy, [*own_cards(run, copy), mark])
        await self._failed(run_id, copy, code)

    async def _failed(self, run_id: str, copy: int, code: str) -> None:
        """Slack will never show this: say so in the audit, and end what waits if there is no other copy of it."""
        log.error("card.failed", run=run_id, copy=copy, code=code)
        run = await self._run(run_id)
        await self._engine.store.set_cards(run, run.cards, event="card.failed", reason=code)
        if run.open and not any(_stands(run, other) for other in range(len(places(run)))):
            await self._engine.undeliverable(run_id, code)

    async def _remember(self, run: Run, copy: int, own: Sequence[Card], *, event: str = "") -> Run:
        """Keep what one copy consists of. Returns the run with it."""
        others = [card for card in run.cards if card.copy_of != copy]
        cards = tuple(sorted([*others, *own], key=lambda card: card.copy_of))
        await self._engine.store.set_cards(run, cards, event=event)
        return run.model_copy(update={"cards": cards})


def places(run: Run) -> list[Place]:
    """Where a run's card belongs at this moment: its own place, then the one that it was escalated to."""
    found = [run.doc.place] if run.doc.place else []
    if run.escalated and run.doc.escalate and run.doc.escalate.place not in (None, run.doc.place):
        found.append(run.doc.escalate.place)
    return [place for place in found if place]


def own_cards(run: Run, copy: int) -> list[Card]:
    """The messages of one copy of a run's card, in their order."""
    return [card for card in run.cards if card.copy_of == copy]


def _wanted(run: Run, copy: int) -> bool:
    """Whether a message that is not there yet is to be posted. A copy is there to be acted on, not for the record."""
    return run.open or copy == 0


def _stands(run: Run, copy: int) -> bool:
    """Whether every gate is on a message of this copy that Slack still changes."""
    shown = {index for card in own_cards(run, copy) if card.ts and not card.refused for index in card.gates}
    return len(shown) == len(run.gates)


def _payload(run: Run, copy: int, number: int) -> dict[str, object]:
    """The metadata by which a message is known again."""
    return {"run": run.id, "part": number} | ({"copy": copy} if copy else {})


def _parts(run: Run, copy: int) -> list[tuple[int, ...]]:
    """Which gates share a message of a copy: as they do already, then those that have none yet."""
    posted = [card.gates for card in own_cards(run, copy) if card.ts]
    return posted + pack(run, sum(map(len, posted)))


def _digest(message: Message) -> str:
    look = json.dumps([message.text, message.blocks], ensure_ascii=False).encode()
    return hashlib.sha256(look).hexdigest()[:16]
