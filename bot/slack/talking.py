"""Goes on with a conversation between people in Slack and a host's agent: the agenda's handler for `talk:<id>`."""

from __future__ import annotations

from typing import Any, Final

import structlog

from bot.cards.talk import end_messages, sign_message, unopened_message
from bot.slack.client import Slack
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from core.agenda import TryAgain
from core.conversations import Conversation, End, Sign, Stage, Unopened
from core.engine import ResumeEngine
from core.hosts.base import HostAway, Load, Standing, Talker
from core.hosts.desks import ELSEWHERE_MS, Desks
from core.hosts.turns import Behind, Turns
from core.store.indexes import thread_name
from core.talks import Stale

QUIET_MS: Final = 1_500
"""A turn that ends so soon is shown by its reply alone."""
SOONEST_MS, LATEST_MS, SLOW_MS = 250, 2_000, 10_000
"""How often a turn is looked at: after a quarter of the time that it took so far; after ten minutes, rarely."""
LONG_MS: Final = 600_000
DROP_TRIES: Final = 12
"""How often it is tried to end a session that nobody needs, until the host's own clean-up is left to do it."""

_STARTED: Final = ("working", "waiting", "stuck")
"""The words for a turn that has a worker, which it keeps to its end."""

log = structlog.get_logger(__name__)


class Talking:
    """Sends what was said, shows how the turn stands, and posts how it ended. All it knows is in the store."""

    def __init__(self, engine: ResumeEngine, slack: Slack, desks: Desks) -> None:
        self._engine = engine
        self._talks = engine.talks
        self._slack = slack
        self._desks = desks
        self._turns = Turns(engine)

    async def talk(self, talk_id: str, tries: int) -> None:
        """Go on as far as it goes. Raises TryAgain while the turn runs, or Slack or the host cannot be reached."""
        talk = await self._talks.read(talk_id)
        if talk is None:
            return
        desk = self._desks.get(talk.host)
        try:
            if desk and desk.talker:
                await self._go_on(talk, desk.talker, tries)
            else:
                await self._without_host(talk, looking=tries > 1)
        except Stale:
            raise TryAgain(0) from None
        except SlackBusy as busy:
            raise again([busy]) from busy

    async def _go_on(self, talk: Conversation, talker: Talker, tries: int) -> None:
        looking = tries > 1
        talk = await self._tell_unopened(talk, looking=looking)
        if talk.stage in (Stage.SAID, Stage.SENT):
            try:
                talk = await self._turn(talk, talker, looking=looking)
            except HostAway as error:
                log.warning("talk.host_away", host=talk.host, talk=talk.id, error=str(error), tries=tries)
                talk = await self._away(talk.id, looking=looking)
        if talk.stage is Stage.TELLING:
            talk = await self._told(talk, looking=looking)
        if talk.drop:
            await self._drop(talk, talker, tries)

    async def _without_host(self, talk: Conversation, *, looking: bool) -> None:
        """Leave a turn to processes that serve its host; it ends like one whose host is away if there are none."""
        if talk.stage in (Stage.SAID, Stage.SENT):
            log.warning("talk.host_not_here", host=talk.host, talk=talk.id)
            talk = await self._turns.away(talk)
            if talk.stage is not Stage.TELLING:
                raise TryAgain(ELSEWHERE_MS)
        if talk.stage is Stage.TELLING:
            await self._told(talk, looking=looking)

    # the turn

    async def _turn(self, talk: Conversation, talker: Talker, *, looking: bool) -> Conversation:
        """The conversation with its turn's end. Raises TryAgain while it runs."""
        if talk.stage is Stage.SAID:
            if talk.drop:
                talk = await self._turns.drop(talk, talker)
            try:
                talk = await self._turns.send(talk, talker)
            except Behind:
                await self._show_behind(talk.id, looking=looking)
                raise
        if talk.stage is Stage.SENT:
            talk, standing = await self._turns.look(talk, talker)
            if talk.stage is Stage.SENT:
                await self._show(talk, standing, talker, looking=looking)
                raise TryAgain(self._next_look_ms(talk), tried=False)
        return talk

    async def _show(self, talk: Conversation, standing: Standing, talker: Talker, *, looking: bool) -> None:
        """Show how the turn stands, unless it has just begun."""
        if standing is Standing.WAITING:
            stuck = talk.unopened and not await self._asks(talk)
            await self._sign(talk, "stuck" if stuck else "waiting", looking=looking)
        elif talk.sign and talk.sign.word in _STARTED:
            await self._sign(talk, "working", looking=looking)
        elif self._since_ms(talk.sent_at) >= QUIET_MS or talk.sign:
            load = await talker.load()
            await self._sign(talk, _standing(load), load, looking=looking)

    async def _show_behind(self, talk_id: str, *, looking: bool) -> None:
        """Show that a message is not sent yet, unless it was said just now."""
        talk = await self._talks.read(talk_id)
        if talk and talk.stage is Stage.SAID and self._since_ms(talk.said.at) >= QUIET_MS:
            await self._sign(talk, "behind", looking=looking)

    async def _asks(self, talk: Conversation) -> bool:
        """Whether a card of the agent's is open there."""
        place = talk.place
        index = thread_name(talk.channel, place.thread_ts) if place.thread_ts else f"channel:{talk.channel}"
        async for _, run, _ in self._engine.gates(only_open=True, names=[index]):
            if run.doc.host == talk.host:
                return True
        return False

    async def _away(self, talk_id: str, *, looking: bool) -> Conversation:
        """The conversation with its turn given up, if the host is away too long. Raises TryAgain while it is not."""
        talk = await self._talks.read(talk_id)
        if talk is None or talk.stage not in (Stage.SAID, Stage.SENT):
            raise TryAgain(0)
        talk = await self._turns.away(talk)
        if talk.stage is not Stage.TELLING:
            await self._sign(talk, "away", looking=looking)
            raise TryAgain
        return talk

    def _since_ms(self, at_ms: int) -> int:
        return self._engine.store.clock.now_ms() - at_ms

    def _next_look_ms(self, talk: Conversation) -> int:
        age_ms = self._since_ms(talk.sent_at)
        return min(max(age_ms // 4, SOONEST_MS), LATEST_MS if age_ms < LONG_MS else SLOW_MS)

    async def _drop(self, talk: Conversation, talker: Talker, tries: int) -> None:
        try:
            await self._turns.drop(talk, talker)
        except HostAway as error:
            log.warning("talk.not_dropped", host=talk.host, talk=talk.id, error=str(error), tries=tries)
            if tries < DROP_TRIES:
                raise TryAgain from None
            await self._talks.put(talk.model_copy(update={"drop": ()}))

    # in Slack

    async def _sign(
        self, talk: Conversation, word: str, load: Load | None = None, *, looking: bool
    ) -> Conversation:
        """Post or change the message that shows how the turn stands. What Slack refuses is left out."""
        if talk.sign and talk.sign.word == word:
            return talk
        message = sign_message(word, load.turns, load.at_most) if load else sign_message(word)
        posted = ts = ""
        try:
            if talk.sign and talk.sign.ts:
                ts = talk.sign.ts
                await self._slack.update(talk.channel, ts, message)
            elif not talk.sign:
                ts = (await self._find(talk, _sign_payload(talk)) or "") if looking else ""
                if not ts:
                    ts = posted = await self._slack.post(
                        talk.channel, message, thread_ts=talk.place.thread_ts, payload=_sign_payload(talk)
                    )
        except (SlackRefused, SlackGone) as refused:
            log.warning("talk.not_shown", talk=talk.id, code=refused.code)
            ts = ""
        try:
            return await self._talks.put(talk.model_copy(update={"sign": Sign(ts=ts, word=word)}))
        except Stale:
            if posted:
                await self._take_away(talk, posted)
            raise

    async def _tell_unopened(self, talk: Conversation, *, looking: bool) -> Conversation:
        """Say what the turn waits for and nobody can be asked, each once."""
        for item in talk.unopened:
            if item.told:
                continue
            if not any(other.told and other.says_the_same(item) for other in talk.unopened):
                await self._post_unopened(talk, item, looking=looking)
            told = item.model_copy(update={"told": True})
            items = tuple(told if other == item else other for other in talk.unopened)
            talk = await self._talks.put(talk.model_copy(update={"unopened": items}))
        return talk

    async def _post_unopened(self, talk: Conversation, item: Unopened, *, looking: bool) -> None:
        payload = {"talk": talk.id, "turn": talk.turn, "unopened": item.what}
        if looking and await self._find(talk, payload):
            return
        shown = item.model_copy(update={"tool": self._engine.redaction.text(item.tool)})
        message = unopened_message(shown, talk.host)
        try:
            await self._slack.post(talk.channel, message, thread_ts=talk.place.thread_ts, payload=payload)
        except (SlackRefused, SlackGone) as refused:
            log.error("talk.not_told", talk=talk.id, code=refused.code)

    async def _told(self, talk: Conversation, *, looking: bool) -> Conversation:
        """Post how the turn ended, each message once, then take away the one that showed how it stood."""
        messages = end_messages(talk, self._shown(talk.end)) if talk.end else []
        try:
            for number in range(talk.told, len(messages)):
                payload = {"talk": talk.id, "turn": talk.turn, "end": str(talk.end and talk.end.kind)}
                payload |= {"part": number}
                there = looking and number == talk.told and await self._find(talk, payload)
                if not there:
                    place, message = talk.place, messages[number]
                    await self._slack.post(talk.channel, message, thread_ts=place.thread_ts, payload=payload)
                talk = await self._talks.put(talk.model_copy(update={"told": number + 1}))
        except (SlackRefused, SlackGone) as refused:
            log.error("talk.not_told", talk=talk.id, code=refused.code)
        sign = talk.sign.ts if talk.sign else None
        if sign is None and looking:
            sign = await self._find(talk, _sign_payload(talk))
        if sign:
            await self._take_away(talk, sign)
        return await self._talks.put(talk.over(), due=talk.next is not None)

    def _shown(self, end: End) -> End:
        """The end with what nobody should read masked."""
        return end.model_copy(update={"text": self._engine.redaction.text(end.text)})

    async def _find(self, talk: Conversation, payload: dict[str, Any]) -> str | None:
        return await self._slack.find(
            talk.channel, thread_ts=talk.place.thread_ts, since_ms=talk.said.at, payload=payload
        )

    async def _take_away(self, talk: Conversation, ts: str) -> None:
        try:
            await self._slack.delete(talk.channel, ts)
        except (SlackBusy, SlackRefused, SlackGone) as error:
            log.warning("talk.sign_left", talk=talk.id, ts=ts, code=error.code)


def _standing(load: Load) -> str:
    """The word for a turn that has not ended. A server does not tell which of its turns run and which are queued."""
    if load.turns <= load.surely:
        return "working"
    return "taken" if load.turns <= load.at_most else "queued"


def _sign_payload(talk: Conversation) -> dict[str, Any]:
    return {"talk": talk.id, "turn": talk.turn, "sign": True}
