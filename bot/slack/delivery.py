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
from core.gates import Outcome
from core.runs import Card, Run
from core.shown import shown_run

log = structlog.get_logger(__name__)


class Delivery:
    """Posts and updates cards. It holds no state: what is where, and what it shows, is in the store."""

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack

    async def card(self, run_id: str, tries: int) -> None:
        """Draw a run's card as the run is at this moment. Raises TryAgain when Slack is busy."""
        stored = await self._engine.store.read(run_id)
        if stored is None or stored.doc.place is None:
            return
        run = shown_run(stored, self._engine.redaction)
        try:
            if len(run.cards) < len(parts := _parts(run)) and not _given_up(run):
                run = await self._post(run, parts, looking=tries > 1)
            await self._update(run)
        except SlackBusy as busy:
            log.warning("card.later", run=run_id, code=busy.code, tries=tries)
            raise TryAgain(busy.in_ms) from busy
        except (SlackRefused, SlackGone) as refused:
            await self._give_up(run_id, refused.code)

    async def _post(self, run: Run, parts: Sequence[tuple[int, ...]], *, looking: bool) -> Run:
        """Post the messages that are not there yet, each remembered before the next.

        ``looking``: an earlier try may have posted one and died before it was remembered.
        """
        place = run.doc.place
        assert place is not None  # noqa: S101  # card() has looked
        cards = list(run.cards)
        channel = cards[0].channel if cards else place.channel or await self._slack.open_dm(place.user or "")
        messages = render(run, parts)
        for number in range(len(cards), len(parts)):
            thread_ts = place.thread_ts or (cards[0].ts if cards else None)
            payload = {"run": run.id, "part": number}
            ts = None
            if looking:
                ts = await self._slack.find(
                    channel, thread_ts=thread_ts, since_ms=run.doc.created_at, payload=payload
                )
            shown = "" if ts else _digest(messages[number])
            ts = ts or await self._slack.post(channel, messages[number], thread_ts=thread_ts, payload=payload)
            cards.append(Card(channel=channel, ts=ts, gates=parts[number], shown=shown))
            await self._engine.store.set_cards(run, cards, event="card.posted")
        fresh = shown_run(await self._engine.run(run.id), self._engine.redaction)
        return fresh.model_copy(update={"cards": tuple(cards)})

    async def _update(self, run: Run) -> None:
        """Bring every message that does not show the present state up to it."""
        cards, changed = list(run.cards), False
        for number, message in enumerate(render(run, [card.gates for card in cards])):
            card, look = cards[number], _digest(message)
            if card.shown == look and not run.mend:
                continue
            changed = True
            try:
                await self._slack.update(card.channel, card.ts, message)
            except SlackGone as gone:
                log.warning("card.gone", run=run.id, ts=card.ts, code=gone.code)
                if run.open:
                    payload = {"run": run.id, "part": number, "again": card.ts}
                    thread_ts = run.doc.place.thread_ts if run.doc.place else None
                    ts = await self._slack.post(card.channel, message, thread_ts=thread_ts, payload=payload)
                    card = card.model_copy(update={"ts": ts})
            cards[number] = card.model_copy(update={"shown": look})
        if changed:
            await self._engine.store.set_cards(run, cards)

    async def _give_up(self, run_id: str, code: str) -> None:
        """Slack will never show this: say so in the audit, and end what waits with an outcome of its own."""
        log.error("card.failed", run=run_id, code=code)
        run = await self._engine.run(run_id)  # with the messages that were posted meanwhile
        await self._engine.store.set_cards(run, run.cards, event="card.failed", reason=code)
        if run.open:
            await self._engine.undeliverable(run.id, code)


def _given_up(run: Run) -> bool:
    """Whether Slack refused to show a part of this run before. What it did show is still kept true."""
    return any(gate.status == Outcome.UNDELIVERABLE for gate in run.gates)


def _parts(run: Run) -> list[tuple[int, ...]]:
    """Which gates share a message: as they do already, then those that have none yet."""
    posted = [card.gates for card in run.cards]
    return posted + pack(run, sum(map(len, posted)))


def _digest(message: Message) -> str:
    look = json.dumps([message.text, message.blocks], ensure_ascii=False).encode()
    return hashlib.sha256(look).hexdigest()[:16]
