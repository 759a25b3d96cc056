"""Talking with an agent: what people say to it in threads, direct messages and by command goes into the store.

What is said in a thread of a channel goes to the agent if it mentions the bot, in a direct message all of it does.
Only people of the workspace itself can talk with an agent, and Slack brings only what people say who are there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond

from bot import words
from bot.cards.inbox import Page
from bot.cards.talk import STOP, choice_blocks, opening_message
from bot.cards.text import mention
from bot.listeners.inbox import Inbox
from bot.listeners.people import person_of
from bot.listeners.said import said
from bot.listeners.surfaces import UNTOLD, Surface
from bot.slack.client import CLICK_TIMEOUT_S, Slack
from core.conversations import ID, Conversation, End, Ending, Said, Where
from core.engine import ResumeEngine
from core.errors import CannotVerify, NotAllowed, StoreUnavailable
from core.policy import Person, check_admin
from core.store.indexes import thread_name
from core.talks import Word

Hosts = Callable[[str], str | None]
"""The host that people talk with in a channel; None: there is none."""

_STOP: Final = "stop"
_NEW: Final = re.compile(r"new(?:[:\n]\s*(?P<text>.*))?", re.IGNORECASE | re.DOTALL)

log = structlog.get_logger(__name__)


class Talk:
    """Takes what is said, and says privately why it was not taken."""

    def __init__(self, engine: ResumeEngine, slack: Slack, inbox: Inbox, hosts: Hosts) -> None:
        self._engine = engine
        self._slack = slack
        self._inbox = inbox
        self._hosts = hosts

    def register(self, app: AsyncApp) -> None:
        app.action(STOP)(self.clicked)

    # in a thread, or in a direct message

    async def mentioned(self, event: Mapping[str, Any], body: Mapping[str, Any], person: Person) -> bool:
        """Take a mention of the bot. False: nobody talks there, or nothing was said."""
        channel, ts = str(event["channel"]), str(event["ts"])
        host, text = self._hosts(channel), said(_without_bots(str(event.get("text") or ""), body))
        if host is None or not text or event.get("edited"):
            return False
        thread = str(event.get("thread_ts") or ts)
        where = Where(str(body["team_id"]), channel, thread)
        await self._heard(where, host, Said(by=person, ts=ts, thread_ts=thread, text=text, at=self._now()))
        return True

    async def written(self, event: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        """Take what was written in a direct message. False: it is no such thing, or nobody talks there."""
        if event.get("channel_type") != "im" or event.get("bot_id"):
            return False
        if event.get("subtype") not in (None, "file_share"):
            return False
        channel, ts, user = (str(event.get(name) or "") for name in ("channel", "ts", "user"))
        host, text = self._hosts(channel), said(_without_bots(str(event.get("text") or ""), body))
        thread = str(event.get("thread_ts") or "")
        if host is None or not text or not user or await self._asks(channel, thread):
            return False
        team = event.get("user_team") or event.get("team") or body["team_id"]
        person = Person(team=str(team), user=user)
        words_said = Said(by=person, ts=ts, thread_ts=thread, text=text, at=self._now())
        await self._heard(Where(str(body["team_id"]), channel, ""), host, words_said)
        return True

    async def _asks(self, channel: str, thread: str) -> bool:
        """Whether something is open in a thread: a reply there is about that."""
        if not thread:
            return False
        async for _ in self._engine.gates(only_open=True, names=[thread_name(channel, thread)]):
            return True
        return False

    async def _heard(self, where: Where, host: str, what: Said) -> None:
        new = _NEW.fullmatch(what.text)
        if what.by.team != where.team:
            word: str | None = words.TALK_OUTSIDER
        elif what.text.casefold() == _STOP or (new and not new["text"]):
            word = await self._stopped(where.id, what.by, what.ts)
        else:
            text = new["text"] if new else what.text
            word = await self._said(where, host, what.model_copy(update={"text": text}), anew=bool(new))
        if word:
            await self._tell(where.channel, what, word)

    async def _said(self, where: Where, host: str, what: Said, *, anew: bool) -> str | None:
        """Returns why it was not taken."""
        taken, talk = await self._engine.talks.say(where, host, what, anew=anew)
        if taken is not Word.BUSY:
            return None
        return words.TALK_BUSY[talk.sign.word if talk.sign and talk.sign.word in words.TALK_BUSY else ""]

    async def _stopped(self, talk_id: str, by: Person, ts: str = "") -> str | None:
        """End a conversation; all see that in its thread. Returns why it was not ended."""
        engine = self._engine
        talk = await engine.talks.read(talk_id)
        if talk and ts in talk.heard:
            return None
        if talk is None or not talk.alive:
            return words.TALK_NOTHING
        if talk.by != by:
            try:
                await check_admin(engine.admins, by, home=engine.home, directory=engine.directory)
            except CannotVerify:
                return words.CANNOT_VERIFY_ADMIN
            except NotAllowed:
                return words.talk_not_yours(mention(talk.by))
        done = await engine.talks.stop(talk_id, End(kind=Ending.STOPPED, by=by), ts=ts)
        return None if done else words.TALK_NOTHING

    async def _tell(self, channel: str, what: Said, word: str) -> None:
        try:
            await self._slack.tell(channel, what.by.user, word, what.thread_ts or None)
        except UNTOLD as error:
            log.warning("talk.not_answered", channel=channel, error=type(error).__name__)

    def _now(self) -> int:
        return self._engine.store.clock.now_ms()

    # by command

    async def new(self, person: Person, channel: str, raw: str, team: str) -> str:
        """Begin a conversation in a channel, below a message that says who begins it and with what."""
        host, text = self._hosts(channel), said(raw)
        if host is None:
            return words.TALK_NO_AGENT
        if person.team != team:
            return words.TALK_OUTSIDER
        if not text:
            return words.TALK_NEW_WHAT
        try:
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                ts = await self._slack.post(
                    channel,
                    opening_message(person, text),
                    thread_ts=None,
                    payload={"talk": "new", "by": person.user},
                )
        except UNTOLD as error:
            log.warning("talk.not_begun", channel=channel, error=type(error).__name__)
            return words.TALK_NOT_HERE
        thread = "" if channel.startswith("D") else ts
        what = Said(by=person, ts=ts, thread_ts=thread, text=text, at=self._now())
        await self._engine.talks.say(Where(team, channel, thread), host, what, anew=True)
        return words.TALK_BEGUN

    async def stop(self, person: Person, channel: str, team: str) -> Page | str:
        """End the one conversation here that somebody began, or let them choose; admins choose among all."""
        here = await self._engine.talks.here(team, channel)
        if any(talk.by != person for talk in here) and not await self._inbox.is_admin(person):
            here = [talk for talk in here if talk.by == person]
        if not here:
            return words.TALK_NOTHING
        if len(here) > 1 or here[0].by != person:
            return _choice(here)
        return await self._stopped(here[0].id, person) or words.TALK_ENDED

    async def clicked(self, ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        """End the conversation that was chosen."""
        person, talk_id = person_of(body), str(body["actions"][0].get("value") or "")
        surface = Surface.of(self._slack, body, respond)
        try:
            known = re.fullmatch(ID, talk_id)
            word = await self._stopped(talk_id, person) if known else words.TALK_NOTHING
        except StoreUnavailable:
            await surface.tell(words.DID_NOT_WORK)
            raise
        try:
            await respond(
                text=word or words.TALK_ENDED, response_type="ephemeral", replace_original=word is None
            )
        except UNTOLD as error:
            log.warning("talk.not_told", error=type(error).__name__)
        await ack()


def _choice(talks: list[Conversation]) -> Page:
    head, *rows = choice_blocks(talks)
    return Page(str(head["text"]["text"]), rows, words.TALK_WHICH)


def _without_bots(raw: str, body: Mapping[str, Any]) -> str:
    """What was said, without the mentions that made the bot hear it."""
    bots = [item.get("user_id") for item in body.get("authorizations") or () if item.get("is_bot")]
    for bot in filter(None, bots):
        raw = re.sub(rf"<@{re.escape(str(bot))}(?:\|[^>]*)?>", "", raw)
    return raw.strip()
