"""`/gates`: what waits, and all that people and admins can do about it by words. The answer is private."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards.blocks import Block, markup
from bot.cards.inbox import Page, headed
from bot.cards.queries import Query, Which
from bot.cards.text import cut, escape, visible
from bot.listeners.admin import Admin, Unreadable, admin_word
from bot.listeners.lists import Lists
from bot.listeners.people import person_of
from bot.listeners.spoken import Spoken, channel_in, near_list, spoken, written
from bot.listeners.talk import Talk
from core.engine import ResumeEngine
from core.errors import AskgateError, NotFound, StoreUnavailable
from core.gates import Gate
from core.lookup import Named, look_up
from core.policy import Person
from core.runs import Run

COMMAND: Final = "/gates"
_HOST: Final = re.compile(r"[a-z0-9._-]{1,64}")
WORD_BYTES: Final = 60
"""What is repeated of a word that nobody knows."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command: by whom, in which conversation, and what. ``text`` is what is behind the verb, as it came."""

    person: Person
    team: str
    channel: str
    said: Spoken
    text: str


class Gates:
    """Answers the command privately. One method a verb; each returns a page, or a sentence."""

    def __init__(self, engine: ResumeEngine, lists: Lists, admin: Admin, talk: Talk) -> None:
        self._engine = engine
        self._talk = talk
        self._lists = lists
        self._admin = admin
        self._verbs: dict[str, Callable[[Asked], Awaitable[Page | str]]] = {
            "": self._unknown,
            "list": self._list,
            "show": self._show,
            "decide": self._decide,
            "cancel": self._cancel,
            "extend": self._extend,
            "reassign": self._reassign,
            "delegate": self._delegate,
            "resend": self._resend,
            "new": self._new,
            "stop": self._stop,
            "stats": self._stats,
            "help": self._help,
        }

    def register(self, app: AsyncApp) -> None:
        app.command(COMMAND)(self.handle)

    async def handle(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        person = person_of(command)
        text = str(command.get("text") or "").strip()
        _, _, behind = text.replace("\n", " \n", 1).partition(" ")
        channel = str(command.get("channel_id") or "")
        asked = Asked(person, str(command["team_id"]), channel, spoken(text), behind.strip())
        try:
            answer = await self._verbs[asked.said.verb](asked)
        except StoreUnavailable:
            answer = words.DID_NOT_WORK
        except Unreadable as wrong:
            answer = wrong.word
        except AskgateError as refusal:
            log.info("command.refused", verb=asked.said.verb, reason=refusal.slug)
            answer = admin_word(refusal, person)
        await ack(response_type="ephemeral", **_as_reply(answer))

    # reading

    async def _list(self, asked: Asked) -> Page | str:
        word, _, rest = asked.said.rest.partition(" ")
        query = _query(word.casefold(), rest, asked.channel) or _host(word)
        if query is None:
            near = near_list(word)
            return words.unknown_list(_quoted(word), near)
        return await self._lists.page(asked.person, query, here=asked.channel)

    async def _show(self, asked: Asked) -> Page | str:
        return await self._about(asked, self._shown)

    async def _decide(self, asked: Asked) -> Page | str:
        """The live controls, for who may use them; who may not is told so, and it is written down."""

        async def live(asked: Asked, run: Run, gate: Gate) -> Page | str:
            await self._engine.check_open(run, gate, asked.person, via="slack")
            return await self._shown(asked, run, gate)

        return await self._about(asked, live)

    async def _shown(self, asked: Asked, run: Run, gate: Gate) -> Page | str:
        return await self._lists.shown(asked.person, run, gate)

    async def _stats(self, asked: Asked) -> Page | str:
        return await self._lists.stats(asked.person)

    async def _help(self, _asked: Asked) -> Page | str:
        return words.HELP

    async def _unknown(self, asked: Asked) -> Page | str:
        return f"{words.unknown_word(_quoted(asked.said.gate), asked.said.nearest)}\n{words.HELP}"

    # talking

    async def _new(self, asked: Asked) -> Page | str:
        return await self._talk.new(asked.person, asked.channel, asked.text, asked.team)

    async def _stop(self, asked: Asked) -> Page | str:
        return await self._talk.stop(asked.person, asked.channel, asked.team)

    # amending

    async def _cancel(self, asked: Asked) -> Page | str:
        """One gate, or with a run's id all that is pending there."""
        run, gate = await self._one(asked)
        index = gate.doc.index if gate else None
        return await self._admin.cancel(asked.person, run.id, index, written(asked.said.rest))

    async def _extend(self, asked: Asked) -> Page | str:
        async def later(asked: Asked, _run: Run, gate: Gate) -> Page | str:
            return await self._admin.extend(asked.person, gate.id, asked.said.rest)

        return await self._about(asked, later)

    async def _reassign(self, asked: Asked) -> Page | str:
        async def others(asked: Asked, _run: Run, gate: Gate) -> Page | str:
            return await self._admin.reassign(asked.person, gate.id, asked.said.rest)

        return await self._about(asked, others)

    async def _delegate(self, asked: Asked) -> Page | str:
        async def another(asked: Asked, _run: Run, gate: Gate) -> Page | str:
            return await self._admin.delegate(asked.person, gate.id, asked.said.rest)

        return await self._about(asked, another)

    async def _resend(self, asked: Asked) -> Page | str:
        run, _ = await self._one(asked)
        return await self._admin.resend(asked.person, run.id)

    # which gate is meant

    async def _about(
        self, asked: Asked, do: Callable[[Asked, Run, Gate], Awaitable[Page | str]]
    ) -> Page | str:
        """Do something about the gate that was named; of a run with several, show them to choose from."""
        run, gate = await self._one(asked)
        if gate is None:
            return await self._lists.page(asked.person, Query(Which.RUN, run.id), here=asked.channel)
        return await do(asked, run, gate)

    async def _one(self, asked: Asked) -> Named:
        """The run and the gate that an id means. Raises Unreadable if that is not clear, or NotFound."""
        typed = asked.said.gate
        if not typed:
            raise Unreadable(words.which_gate(asked.said.verb))
        found = await look_up(self._engine.store, typed)
        if len(found) > 1:
            ids = [f"`{gate.id if gate else run.id}`" for run, gate in found]
            raise Unreadable(words.ambiguous(_quoted(typed), "\n".join(ids)))
        if not found:
            raise NotFound
        return found[0]


def _query(word: str, rest: str, here: str) -> Query | None:
    """The list that a word behind `list` means."""
    if word == "channel":
        channel = channel_in(rest) or (here if not rest else None)
        # a direct conversation has no channel's list: what is there is the person's own
        return (
            None
            if channel is None
            else Query(Which.CHANNEL, channel)
            if channel[0] in "CG"
            else Query(Which.MINE)
        )
    if not word or word in set(Which) - {Which.RUN, Which.THREAD, Which.HOST, Which.OVERVIEW}:
        return None if rest else Query(Which(word or Which.ALL))
    return None


def _host(word: str) -> Query | None:
    name, _, host = word.partition(":")
    return Query(Which.HOST, host) if name.casefold() == "host" and _HOST.fullmatch(host) else None


def _quoted(word: str) -> str:
    """A word that somebody typed, as it stands in our markup."""
    return escape(cut(visible(written(word)), WORD_BYTES)).replace("`", "")


def _as_reply(answer: Page | str) -> dict[str, Any]:
    if isinstance(answer, Page):
        return {"text": answer.text, "blocks": headed(answer)}
    blocks: list[Block] = [markup(answer)]
    return {"text": answer, "blocks": blocks}
