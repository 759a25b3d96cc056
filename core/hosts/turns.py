"""Turns of a conversation at a host: each message is sent once in effect, and its end is read.

Before a message is sent it is noted how many the session has, so that after a crash, or when the reply to the sending
was lost, a reading tells whether it got there. A turn that fails leaves a session's messages as they were: so a
conversation goes on, after a failure, in a session of the same messages that has not failed.
"""

from __future__ import annotations

from typing import Final

from core.agenda import TryAgain
from core.conversations import Conversation, End, Ending, Stage
from core.engine import ResumeEngine
from core.hosts.base import Look, NotTaken, SessionGone, Standing, Talker

BUSY_MS: Final = 1_000
"""When to look again at a session in which somebody else's turn runs."""
AWAY_MS: Final = 15 * 60_000
"""How long a host may be away before a turn is given up."""
_UNDER_WAY: Final = (Standing.RUNNING, Standing.WAITING)


class Behind(TryAgain):
    """Somebody else's turn runs in the session, and the message waits for its end."""

    def __init__(self) -> None:
        super().__init__(BUSY_MS)


class Turns:
    """Takes conversations from `Stage.SAID` to `Stage.TELLING`. Raises what `Talker` does, and Stale."""

    def __init__(self, engine: ResumeEngine) -> None:
        self._talks = engine.talks
        self._clock = engine.store.clock

    async def drop(self, talk: Conversation, talker: Talker) -> Conversation:
        """End the sessions that nobody needs any more."""
        for session in talk.drop:
            await talker.end(session)
        return await self._talks.put(talk.model_copy(update={"drop": ()}))

    async def send(self, talk: Conversation, talker: Talker) -> Conversation:
        """Send what was said, once. Raises Behind while somebody else's turn runs in the session."""
        try:
            if talk.before is None:
                talk = await self._ready(talk, talker)
            elif await self._arrived(talk, talk.before, talker):
                return await self._sent(talk)
        except SessionGone:
            return await self._talks.put(_gone(talk))
        try:
            taken = await talker.say(talk.session, talk.said.text)
        except SessionGone:
            return await self._talks.put(_gone(talk))
        except NotTaken as error:
            return await self._talks.put(talk.ending(End(kind=Ending.REFUSED, text=str(error))))
        if not taken:
            await self._talks.put(talk.model_copy(update={"before": None}))
            raise Behind
        return await self._sent(talk)

    async def look(self, talk: Conversation, talker: Talker) -> tuple[Conversation, Standing]:
        """How the turn stands; the conversation has its end if it has one."""
        try:
            look = await talker.look(talk.session)
        except SessionGone:
            # a turn that was cancelled goes on in another session, which may be known by this moment
            fresh = await self._talks.read(talk.id)
            if fresh is None or fresh.rev != talk.rev:
                raise TryAgain(0) from None
            return await self._talks.put(_gone(talk)), Standing.FAILED
        if look.standing in _UNDER_WAY:
            change: dict[str, object] = {"away_at": 0} if talk.away_at else {}
            if look.standing is Standing.RUNNING and talk.unopened:
                change["unopened"] = ()  # the turn has got over it
            return await self._talks.put(talk.model_copy(update=change)) if change else talk, look.standing
        return await self._talks.put(talk.ending(_end(look))), look.standing

    async def away(self, talk: Conversation) -> Conversation:
        """Note that the host is away; a turn for which it is so too long has ended."""
        if not talk.away_at:
            return await self._talks.put(talk.model_copy(update={"away_at": self._clock.now_ms()}))
        if self._clock.now_ms() - talk.away_at < AWAY_MS:
            return talk
        sent = talk.stage is Stage.SENT or talk.before is not None
        return await self._talks.put(talk.ending(End(kind=Ending.UNKNOWN if sent else Ending.NOT_SENT)))

    async def _ready(self, talk: Conversation, talker: Talker) -> Conversation:
        """The conversation with a session that a message can be sent to, and what it has before that."""
        change: dict[str, object] = {}
        session = talk.session
        if session:
            try:
                look = await talker.look(session)
                if look.standing in _UNDER_WAY:
                    raise Behind
                if look.standing is Standing.FAILED:
                    session = await talker.renew(session)
                    change["drop"] = (*talk.drop, talk.session)
            except SessionGone:
                session, change["anew"] = "", True
        session = session or await talker.begin()
        change |= {"session": session, "before": await talker.messages(session)}
        talk = await self._talks.put(talk.model_copy(update=change), indexed=session != talk.session)
        return await self.drop(talk, talker) if talk.drop else talk

    async def _arrived(self, talk: Conversation, before: int, talker: Talker) -> bool:
        look = await talker.look(talk.session)
        return look.standing is not Standing.ENDED or await talker.messages(talk.session) > before

    async def _sent(self, talk: Conversation) -> Conversation:
        change = {"stage": Stage.SENT, "sent_at": self._clock.now_ms(), "away_at": 0}
        return await self._talks.put(talk.model_copy(update=change))


def _gone(talk: Conversation) -> Conversation:
    return talk.model_copy(update={"session": ""}).ending(End(kind=Ending.GONE))


def _end(look: Look) -> End:
    if look.standing is Standing.FAILED:
        return End(kind=Ending.ERROR, text=look.text or "")
    return End(kind=Ending.REPLY, text=look.text) if look.text else End(kind=Ending.SILENT)
