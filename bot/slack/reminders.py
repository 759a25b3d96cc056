"""Reminds people of what waits for them: the agenda's handler for `remind:<run>`."""

from __future__ import annotations

import re
from typing import Final

import structlog

from bot import words
from bot.cards.blocks import markup
from bot.cards.card import Message, title
from bot.cards.text import date, escape
from bot.slack.client import Slack
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from core.agenda import TryAgain
from core.copies import thread_of
from core.engine import ResumeEngine
from core.gates import Gate, Kind
from core.policy import TEAM, USER, Person
from core.runs import Card, Run
from core.shown import shown_run

MENTIONED: Final = 20
"""How many people a reminder mentions at most."""

_PERSON: Final = re.compile(rf"(?:({TEAM}):)?({USER})")

log = structlog.get_logger(__name__)


class Reminders:
    """Posts one short message into the card's thread at each of a run's reminder times."""

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack

    async def remind(self, run_id: str, tries: int) -> None:
        """Give the reminder that is due; those that were missed meanwhile count as given with it.

        Raises TryAgain when Slack is busy, or the card is not there yet.
        """
        store = self._engine.store
        run = await store.read(run_id)
        if run is None or not run.open:
            return
        times = [run.opened_at + seconds * 1000 for seconds in run.doc.remind_after_s]
        given = max(sum(time <= store.clock.now_ms() for time in times), run.reminded)
        if given > run.reminded:
            card = next((card for card in run.cards if card.ts), None)
            if card is None:
                raise TryAgain
            await self._post(run, card, given, looking=tries > 1)
        await store.reminded(run, given, times[given] if given < len(times) else None)

    async def _post(self, run: Run, card: Card, number: int, *, looking: bool) -> None:
        """Post a reminder, unless an earlier try did. One that Slack refuses is left out: the card still stands."""
        thread_ts = thread_of(run, card)
        payload = {"run": run.id, "reminder": number}
        try:
            if looking and await self._slack.find(
                card.channel, thread_ts=thread_ts, since_ms=run.opened_at, payload=payload
            ):
                return
            url = await self._slack.permalink(card.channel, card.ts)
            shown = shown_run(run, self._engine.redaction)
            message = reminder(shown, url, home=self._engine.home)
            await self._slack.post(card.channel, message, thread_ts=thread_ts, payload=payload)
        except SlackBusy as busy:
            log.warning("reminder.later", run=run.id, code=busy.code)
            raise again([busy]) from busy
        except (SlackRefused, SlackGone) as refused:
            log.warning("reminder.failed", run=run.id, code=refused.code)


def reminder(run: Run, url: str, *, home: str | None) -> Message:
    """The message: who is still wanted, how much is open and until when, and where the card is (``url``)."""
    pending = [gate for gate in run.gates if gate.pending]
    people = list(dict.fromkeys(user for gate in pending for user in _wanted(run, gate, home)))
    who = " ".join(f"<@{user}>" for user in people[:MENTIONED])
    text = words.reminder(
        words.and_more(who, len(people) - len(people[:MENTIONED])),
        len(pending),
        len(run.gates),
        date(min(gate.deadline for gate in pending)),
        escape(url),
    )
    return Message((), [markup(text)], words.reminder_fallback(escape(title(run))))


def _wanted(run: Run, gate: Gate, home: str | None) -> list[str]:
    """The ids of the people whom a gate names, but for those who have spoken and who may not speak."""
    silent = {vote.by for vote in gate.votes if isinstance(vote.by, Person)}
    if gate.doc.kind is Kind.APPROVAL and not gate.policy.self_approval and run.doc.requester:
        silent.add(run.doc.requester)
    found = []
    for principal in gate.policy.deciders:
        if named := _PERSON.fullmatch(principal):
            team, user = named.groups()
            if not any(person.user == user and person.team == (team or home) for person in silent):
                found.append(user)
    return found
