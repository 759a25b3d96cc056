"""Replies in a card's thread. None is taken as an answer by itself: whoever wrote it is asked, privately."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import aiohttp
import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.errors import SlackClientError

from bot import words
from bot.cards import controls as c
from bot.cards.drafts import Entry, load_draft
from bot.cards.offer import LEAVE, USE, Open, offer_blocks, open_questions
from bot.listeners.people import person_of, word_for
from bot.listeners.said import said
from bot.listeners.talk import Talk
from bot.slack.client import Slack
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused
from core.engine import ResumeEngine
from core.errors import AskgateError, CannotVerify, NotFound, StoreUnavailable
from core.gates import Action, Gate, Kind, speaker
from core.policy import Person
from core.questions import MAX_VALUE
from core.shown import shown_gate
from core.store.indexes import thread_name

LOOKED_AT: Final = 100
"""How many open gates of a thread are looked through."""
OFFERS: Final = 3
"""How many offers somebody gets in one thread within `OFFERS_MS`; who leaves one gets no more."""
OFFERS_MS: Final = 600_000

_UNTOLD = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """A message that a person wrote in a thread. ``raw`` is its text as Slack has it."""

    channel: str
    thread_ts: str
    ts: str
    person: Person
    raw: str

    @classmethod
    def of(cls, event: Mapping[str, Any], team: str) -> Self | None:
        """The reply that an event tells of. None for all else: what is no reply, edits, broadcasts, what bots write."""
        texts = [event.get(name) for name in ("channel", "thread_ts", "ts", "user", "text")]
        if event.get("subtype") or event.get("bot_id") or not all(isinstance(t, str) and t for t in texts):
            return None
        channel, thread_ts, ts, user, raw = map(str, texts)
        if thread_ts == ts:
            return None
        try:
            person = Person(team=event.get("user_team") or event.get("team") or team, user=user)
        except ValueError:
            return None
        return cls(channel, thread_ts, ts, person, raw)

    @property
    def text(self) -> str:
        return said(self.raw)

    @property
    def value(self) -> str:
        """What a button carries to find the reply again, and to see whether it still says the same."""
        return f"{self.thread_ts} {self.ts} {hashlib.sha256(self.raw.encode()).hexdigest()[:16]}"

    @property
    def tally(self) -> str:
        return f"offer:{self.channel}:{self.thread_ts}:{self.person.user}"


def _asks_the_bot(reply: Reply, body: Mapping[str, Any]) -> bool:
    """Whether a reply mentions the bot: it is asked what is open there, and says so (see `mentions`)."""
    bots = [item.get("user_id") for item in body.get("authorizations") or () if item.get("is_bot")]
    return any(f"<@{bot}" in reply.raw for bot in bots)


class Replies:
    """Offers, and what becomes of them."""

    def __init__(self, engine: ResumeEngine, slack: Slack, talk: Talk) -> None:
        self._engine = engine
        self._slack = slack
        self._talk = talk

    def register(self, app: AsyncApp) -> None:
        app.event("message")(self.heard)
        app.action(re.compile(f"{USE}|{LEAVE}"))(self.clicked)

    # a reply

    async def heard(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """Offer to use a reply as an answer, if its writer may give one there. In a DM it may be for an agent."""
        if await self._talk.written(event, body):
            return
        reply = Reply.of(event, str(body.get("team_id")))
        if reply is None or not reply.text or _asks_the_bot(reply, body):
            return
        found = await self._open(reply)
        if not found:
            return
        tally = await self._engine.store.tallies.add(reply.tally, kept_ms=OFFERS_MS)
        if tally > OFFERS:
            return
        text, blocks = self._offer(reply, found, words.OFFER_PRIVATE)
        try:
            await self._slack.tell(reply.channel, reply.person.user, text, reply.thread_ts, blocks)
        except (SlackBusy, SlackGone, SlackRefused) as error:
            # the card is there to answer on
            log.warning("reply.not_offered", channel=reply.channel, code=error.code)

    async def _open(self, reply: Reply) -> list[Open]:
        """What is open in a thread that its writer may answer in words, in the order in which it was asked."""
        found: list[Open] = []
        names = [thread_name(reply.channel, reply.thread_ts)]
        looked_at = 0
        async for _, run, gate in self._engine.gates(only_open=True, names=names):
            looked_at += 1
            if looked_at > LOOKED_AT:
                break
            asked = open_questions(shown_gate(gate, self._engine.redaction))
            if not asked or gate.deadline <= self._engine.store.clock.now_ms():
                continue
            try:
                if await self._engine.may_decide(run, gate, reply.person):
                    found = asked + found
            except CannotVerify:
                log.info("reply.cannot_verify", gate=gate.id)
        return found

    def _offer(self, reply: Reply, found: list[Open], note: str) -> tuple[str, list[dict[str, Any]] | None]:
        if len(reply.text) > MAX_VALUE:
            return words.REPLY_TOO_LONG.format(most=MAX_VALUE), None
        return words.OFFER_FALLBACK, offer_blocks(reply.text, found, reply.value, note)

    # a click on an offer

    async def clicked(self, ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        """Do what was chosen; the offer then says what became of it. A store that is away leaves it there."""
        person, action = person_of(body), body["actions"][0]
        try:
            change = await self._chosen(person, action, body)
        except StoreUnavailable:
            await _answer(respond, {"text": words.DID_NOT_WORK, "replace_original": False})
            raise
        except (SlackBusy, SlackRefused) as error:
            log.warning("reply.not_read", code=error.code)
            change = {"text": words.REPLY_UNREAD, "replace_original": False}
        except CannotVerify as refusal:
            change = {"text": word_for(refusal, person), "replace_original": False}
        except AskgateError as refusal:
            log.info("reply.refused", reason=refusal.slug)
            change = {"text": word_for(refusal, person), "replace_original": True}
        await _answer(respond, change)
        await ack()

    async def _chosen(
        self, person: Person, action: Mapping[str, Any], body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns what to make of the offer."""
        channel = str((body.get("container") or {}).get("channel_id") or "")
        thread_ts, ts, digest = _value(action)
        reply = Reply(channel, thread_ts, ts, person, "")
        if action["action_id"] == LEAVE:
            await self._engine.store.tallies.add(reply.tally, kept_ms=OFFERS_MS, by=OFFERS)
            return {"delete_original": True}
        gate, question = await self._asked(action)
        message = await self._slack.reply(channel, thread_ts, ts)
        if message is None or message.get("user") != person.user:
            return {"text": words.REPLY_GONE, "replace_original": True}
        reply = Reply(channel, thread_ts, ts, person, str(message.get("text") or ""))
        if not reply.text or digest != reply.value.split()[2]:
            found = await self._open(reply) if reply.text else []
            text, blocks = self._offer(reply, found, words.REPLY_EDITED)
            gone = {"text": words.REPLY_GONE, "replace_original": True}
            return {"text": text, "blocks": blocks, "replace_original": True} if found else gone
        return {"text": await self._take(person, gate, question, reply.text), "replace_original": True}

    async def _asked(self, action: Mapping[str, Any]) -> tuple[Gate, int]:
        """The question that a button is about. Raises NotFound."""
        try:
            control = c.control(action)
        except (LookupError, ValueError) as error:
            raise NotFound("There is no such control.") from error
        _, gate = await self._engine.gate(control.gate)
        if not any(item.question == control.question for item in open_questions(gate)):
            raise NotFound("There is no such question.", extra={"gate": gate})
        return gate, control.question

    async def _take(self, person: Person, gate: Gate, question: int, text: str) -> str:
        """Answer a lone question or a custom call; keep what answers one of several until all are submitted."""
        asked = gate.asks.questions if gate.doc.kind is Kind.QUESTION else ()
        if len(asked) > 1:
            draft = load_draft(gate, gate.drafts.get(speaker(person))).having(question, Entry(other=text))
            await self._engine.draft(gate.id, person, draft.dump())
            return words.REPLY_KEPT
        values = {"answers": {asked[0].question: text}} if asked else text
        await self._engine.decide(gate.id, Action.ANSWER, by=person, via="slack", values=values)
        return words.REPLY_TAKEN


def _value(action: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a button carries. Raises NotFound for one that is none of ours."""
    try:
        thread_ts, ts, digest = str(action.get("value")).split()
    except ValueError as error:
        raise NotFound("There is no such control.") from error
    return thread_ts, ts, digest


async def _answer(respond: AsyncRespond, change: Mapping[str, Any]) -> None:
    """Change the offer, or say something beside it. What was done stands whether Slack shows this or not."""
    try:
        await respond(response_type="ephemeral", **change)
    except _UNTOLD as error:
        log.warning("reply.not_told", error=type(error).__name__)
