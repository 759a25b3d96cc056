"""Reminds people of what waits for them: the agenda's handler for `remind:<run>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from bot import words
from bot.cards.blocks import markup
from bot.cards.card import Message, title
from bot.cards.text import date, escape, isolated, mention
from bot.slack.burden import MANY, burden
from bot.slack.client import Slack
from bot.slack.doors import Doors, Others
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from bot.slack.quiet import QuietHours
from core.agenda import TryAgain
from core.copies import FIRST_COPY, card_in, places, thread_of
from core.engine import ResumeEngine
from core.policy import Person
from core.runs import Card, Run
from core.shown import shown_run
from core.waiting import waits_for, waits_for_others

MENTIONED: Final = 20
"""How many people a reminder mentions at most."""

log = structlog.get_logger(__name__)


class Reminders:
    """Posts one short message into the card's thread at each of a run's reminder times.

    Who has a copy of their own gets it there. Who was reminded of something within the hour, has many gates open, or is
    to be left in peace is not mentioned: see `Digests`.
    """

    def __init__(
        self, engine: ResumeEngine, slack: Slack, quiet: QuietHours, others: Others | None = None
    ) -> None:
        self._engine = engine
        self._doors = Doors(slack, others)
        self._quiet = quiet

    async def remind(self, run_id: str, tries: int) -> None:
        """Give the reminder that is due; those that were missed meanwhile count as given with it.

        Raises TryAgain when Slack is busy, the card is not there yet, or it is quiet everywhere.
        """
        store = self._engine.store
        run = await store.read(run_id)
        if run is None or not run.open:
            return
        now = store.clock.now_ms()
        times = [run.opened_at + seconds * 1000 for seconds in run.doc.remind_after_s]
        given = max(sum(time <= now for time in times), run.reminded)
        if given > run.reminded:
            if quiet_until := self._quiet.everywhere():
                raise TryAgain(quiet_until - now)
            if all(not card.ts for card in run.cards):
                raise TryAgain
            try:
                await self._give(run, given, looking=tries > 1)
            except SlackBusy as busy:
                log.warning("reminder.later", run=run.id, code=busy.code)
                raise again([busy]) from busy
        await store.reminded(run, given, times[given] if given < len(times) else None)

    async def _give(self, run: Run, number: int, *, looking: bool) -> None:
        """Post what there is to say at each place. Raises SlackBusy."""
        home, admins = self._engine.home_of(run), self._engine.admins
        wanted = dict.fromkeys(
            p for gate in run.gates for p in waits_for(run, gate, home=home, admins=admins)
        )
        people: list[Person] = []
        for person in wanted:
            if len(people) < MENTIONED and await self._may_have(person, run, number):
                people.append(person)
        own = {p.user: copy for copy, p in places(run).items() if p.user and copy >= FIRST_COPY}
        for user, copy in own.items():
            alone = [person for person in people if person.user == user]
            if alone and (card := card_in(run, copy)):
                await self._post(run, card, alone, number, looking=looking)
        together = [person for person in people if person.user not in own]
        shared = next((card for card in run.cards if card.ts and card.copy_of < FIRST_COPY), None)
        if shared and (together or any(map(waits_for_others, run.gates))):
            await self._post(run, shared, together, number, looking=looking)

    async def _may_have(self, person: Person, run: Run, number: int) -> bool:
        """Whether somebody may be reminded of this run by a message of its own now; else it waits for a digest."""
        many = len(await burden(self._engine, person, MANY + 1)) > MANY
        after = await self._quiet.until(person)
        token = f"{run.id}:{run.attempt}:{number}"
        return await self._engine.store.nudges.ask(person, run.id, token=token, after=after, alone=not many)

    async def _post(
        self, run: Run, card: Card, people: Sequence[Person], number: int, *, looking: bool
    ) -> None:
        """Post a reminder, unless an earlier try did. One that Slack refuses is left out: the card still stands."""
        thread_ts = thread_of(run, card)
        slack = await self._doors.of(run, card)
        payload = {"run": run.id, "reminder": number} | ({"copy": card.copy_of} if card.copy_of else {})
        try:
            if looking and await slack.find(
                card.channel, thread_ts=thread_ts, since_ms=run.opened_at, payload=payload
            ):
                return
            url = card.url or await slack.permalink(card.channel, card.ts)
            shown = shown_run(run, self._engine.redaction)
            await slack.post(card.channel, reminder(shown, url, people), thread_ts=thread_ts, payload=payload)
        except (SlackRefused, SlackGone) as refused:
            log.warning("reminder.failed", run=run.id, code=refused.code)


def reminder(run: Run, url: str, people: Sequence[Person]) -> Message:
    """The message: who is still wanted, how much is open and until when, and where the card is (``url``)."""
    pending = [gate for gate in run.gates if gate.pending]
    text = words.reminder(
        words.and_more(" ".join(map(mention, people[:MENTIONED])), len(people) - len(people[:MENTIONED])),
        len(pending),
        len(run.gates),
        date(min(gate.deadline for gate in pending)),
        escape(url),
    )
    return Message((), [markup(text)], words.reminder_fallback(isolated(escape(title(run)))))
