"""Tells admins of cards that Slack does not take, and of what cannot be put to people: the agenda's `notice:<name>`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from bot import words
from bot.cards.blocks import markup
from bot.cards.card import Message
from bot.cards.text import inert
from bot.slack.client import Slack
from bot.slack.errors import MEANINGS, Meaning, SlackBusy, SlackGone, SlackRefused, again
from core.agenda import TryAgain
from core.engine import ResumeEngine
from core.errors import CannotVerify
from core.hosts.desk import UNOPENED
from core.ids import new_token
from core.places import Place
from core.policy import Person
from core.store.events import DONE
from core.store.troubles import Trouble

CARDS: Final = "cards"
"""The name of the troubles with cards."""
QUIET_MS: Final = 15 * 60_000
"""How long nothing is told after something was; what comes meanwhile is told together."""
ADMINS: Final = 20
"""How many admins are told at most."""
LINES: Final = 10
RUNS: Final = 5
SHOWN: Final = 200
"""How much is shown of a text of others, in bytes."""

SlackOf = Callable[[Person], Awaitable[Slack]]
"""The Web API of the workspace that somebody is of. Raises SlackGone where there is none."""
Admins = Callable[[], Awaitable[list[Person]]]
"""Who they are. Raises CannotVerify."""

log = structlog.get_logger(__name__)


class Notices:
    """One message to each admin about all that happened since the last, and then nothing for `QUIET_MS`."""

    def __init__(self, engine: ResumeEngine, slack_of: SlackOf, admins: Admins) -> None:
        self._engine = engine
        self._slack_of = slack_of
        self._admins = admins

    async def note(self, run_id: str, place: Place, code: str) -> None:
        """Have admins told that Slack does not take a run's card in a place. Raises StoreUnavailable."""
        where = f"<#{place.channel}>" if place.channel else f"<@{place.user}>"
        await self._engine.store.troubles.note(CARDS, {"run": run_id, "where": where, "code": code})

    async def notice(self, name: str, tries: int) -> None:
        """Tell what was noted. Raises TryAgain, also when it was told: to see later whether there is more."""
        troubles = self._engine.store.troubles
        noted = await troubles.noted(name)
        if not noted:
            return
        try:
            admins = await self._admins()
        except CannotVerify:
            # some of them are a group that Slack does not tell now
            raise TryAgain from None
        for admin in admins[:ADMINS]:
            await self._tell(admin, SAYS[name](noted), str(noted[0]["id"]), looking=tries > 1)
        await troubles.told(name, noted)
        raise TryAgain(QUIET_MS, tried=False)

    async def _tell(self, admin: Person, message: Message, first: str, *, looking: bool) -> None:
        """Tell one admin, once. Who cannot be told is left out: the audit and the log have it all."""
        events, about = self._engine.store.events, f"notice:{first}"
        once = f"{about}:{admin.user}"
        if await events.begin(once, new_token()) == DONE:
            return
        told = False
        try:
            await self._post(admin, message, {"notice": about}, looking=looking)
            told = True
        except SlackBusy as busy:
            raise again([busy]) from busy
        except (SlackRefused, SlackGone) as refused:
            log.error("notice.failed", admin=admin.user, code=refused.code)
            told = True
        finally:
            await events.end(once, done=told)

    async def _post(
        self, admin: Person, message: Message, payload: dict[str, object], *, looking: bool
    ) -> None:
        slack = await self._slack_of(admin)
        channel = await slack.open_dm(admin.user)
        since_ms = self._engine.store.clock.now_ms() - QUIET_MS
        if looking and await slack.find(channel, thread_ts=None, since_ms=since_ms, payload=payload):
            return
        await slack.post(channel, message, thread_ts=None, payload=payload)


def unshown(noted: Sequence[Trouble]) -> Message:
    """Of cards that Slack does not take: how many, why and where, what to do about it, and which runs."""
    kinds = Counter((str(trouble["code"]), str(trouble["where"])) for trouble in noted)
    lines = [
        words.unshown_line(count, code, where, words.HINTS.get(str(_meaning(code)), ""))
        for (code, where), count in kinds.most_common(LINES)
    ]
    runs = list(dict.fromkeys(str(trouble["run"]) for trouble in reversed(noted)))
    which = words.and_more(", ".join(f"`{run}`" for run in runs[:RUNS]), max(len(runs) - RUNS, 0))
    text = "\n".join([words.unshown(len(noted)), *lines, words.unshown_runs(which)])
    return Message((), [markup(text)], words.unshown(len(noted)), text)


def _meaning(code: str) -> Meaning | None:
    return MEANINGS.get(code)


def unopened(noted: Sequence[Trouble]) -> Message:
    """Of what hosts wait for that cannot be put to people: where, what and why, the latest first."""
    told = list({(str(t["host"]), str(t["what"])): str(t["why"]) for t in reversed(noted)}.items())
    lines = [
        words.unopened_line(*(inert(text, SHOWN) for text in (host, what, why)))
        for (host, what), why in told[:LINES]
    ]
    more = [words.unopened_more(len(told) - LINES)] if len(told) > LINES else []
    text = "\n".join([words.unopened(len(told)), *lines, *more, words.unopened_mend()])
    return Message((), [markup(text)], words.unopened(len(told)), text)


SAYS: Final[dict[str, Callable[[Sequence[Trouble]], Message]]] = {CARDS: unshown, UNOPENED: unopened}
"""What is said of the troubles of a name."""
