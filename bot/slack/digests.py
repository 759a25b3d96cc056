"""One message to somebody about all that waits for them: the agenda's handler for `nudge:<person>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from bot import words
from bot.cards.card import Message
from bot.cards.inbox import Waiting, digest_blocks
from bot.slack.burden import MANY, burden
from bot.slack.client import Slack
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from bot.slack.quiet import QuietHours
from core.agenda import TryAgain
from core.copies import card_for
from core.engine import ResumeEngine
from core.gates import Gate
from core.ids import new_token
from core.policy import Person
from core.runs import Run
from core.shown import shown_run
from core.store.nudges import GAP_MS

LOOKED_AT: Final = 100
"""How many gates are counted."""
LISTED: Final = 10

log = structlog.get_logger(__name__)


class Digests:
    """Sends in a DM what could not be said at its time, or not alone; with many gates open, about all of them."""

    def __init__(self, engine: ResumeEngine, slack: Slack, quiet: QuietHours) -> None:
        self._engine = engine
        self._slack = slack
        self._quiet = quiet

    async def nudge(self, who: str, tries: int) -> None:
        """Remind a person (`T1:U1`). Raises TryAgain when it is too early, or Slack is busy."""
        team, _, user = who.partition(":")
        person, nudges = Person(team=team, user=user), self._engine.store.nudges
        waiting = await nudges.waiting(person)
        found = await burden(self._engine, person, LOOKED_AT)
        due = [(run, gate) for run, gate in found if run.id in waiting]
        if due:
            try:
                await self._send(person, found if len(found) > MANY else due, looking=tries > 1)
            except SlackBusy as busy:
                log.warning("digest.later", code=busy.code)
                raise again([busy]) from busy
        await nudges.end(person, waiting)

    async def _send(self, person: Person, found: Sequence[tuple[Run, Gate]], *, looking: bool) -> None:
        """Send the message once. Raises TryAgain when it is too early, and SlackBusy."""
        now = self._engine.store.clock.now_ms()
        after = await self._quiet.until(person)
        token, due = await self._engine.store.nudges.take(person, token=new_token(), after=after)
        if not token:
            raise TryAgain(max(due - now, 0))
        payload = {"nudge": token}
        try:
            channel = await self._slack.open_dm(person.user)
            if looking and await self._slack.find(
                channel, thread_ts=None, since_ms=now - GAP_MS, payload=payload
            ):
                return
            await self._slack.post(
                channel, await self._message(person, found), thread_ts=None, payload=payload
            )
        except (SlackRefused, SlackGone) as refused:
            log.warning("digest.failed", code=refused.code)

    async def _message(self, person: Person, found: Sequence[tuple[Run, Gate]]) -> Message:
        """What waits, the soonest deadlines first, each with the way to a card that this person can see."""
        soonest = sorted(found, key=lambda item: (item[1].deadline, item[1].id))[:LISTED]
        items = [await self._item(run, gate, person) for run, gate in soonest]
        text = words.waiting(len(found))
        more = len(found) - len(items)
        return Message((), digest_blocks(text, items, [words.waiting_more(more)] if more else []), text)

    async def _item(self, run: Run, gate: Gate, person: Person) -> Waiting:
        shown = shown_run(run, self._engine.redaction)
        card = card_for(run, gate.doc.index, person)
        url = None
        if card:
            try:
                url = card.url or await self._slack.permalink(card.channel, card.ts)
            except (SlackGone, SlackRefused) as error:
                log.warning("digest.no_link", run=run.id, code=error.code)
        return Waiting(shown, shown.gates[gate.doc.index], url)
