"""What admins do with a gate: put its deadline off, let others decide, cancel it, send its card again.

Each is checked by the engine whichever way it came, typed or from a modal, and a refusal is in the audit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond

from bot import words
from bot.cards import controls as c
from bot.cards import managing, modals
from bot.cards.controls import Where
from bot.cards.deciders import deciders
from bot.cards.inbox import MANAGE, VERBS
from bot.cards.text import cut, date, escape, visible
from bot.listeners.lists import list_word
from bot.listeners.people import person_of
from bot.listeners.problems import problem
from bot.listeners.spoken import deciders_in, written
from bot.listeners.surfaces import UNTOLD, Surface
from bot.slack.client import Slack
from core.durations import seconds
from core.engine import ResumeEngine
from core.errors import AskgateError, Invalid, NotAllowed, NotWaiting, StoreUnavailable
from core.gates import MAX_COMMENT
from core.policy import USER, Person
from core.shown import shown_gate

UNKNOWN_BYTES: Final = 200
"""What is repeated of words that name nobody."""
_ACTION: Final = re.compile(rf"^{MANAGE}$")

log = structlog.get_logger(__name__)


class Unreadable(Exception):
    """What was written means nothing here; ``word`` is the sentence that says what is wanted, as markup."""

    def __init__(self, word: str) -> None:
        self.word = word
        super().__init__(word)


class Admin:
    """Does it, and says what came of it. Raises what the engine raises, and Unreadable."""

    def __init__(self, engine: ResumeEngine, slack: Slack) -> None:
        self._engine = engine
        self._slack = slack

    def register(self, app: AsyncApp) -> None:
        app.action(_ACTION)(self.handle)
        for verb in (managing.EXTEND, managing.REASSIGN, managing.CANCEL):
            app.view(verb)(self.submitted)

    # the deeds

    async def extend(self, person: Person, gate: str, by_how_much: str) -> str:
        try:
            span = seconds(by_how_much)
        except ValueError:
            raise Unreadable(words.WANTED_TIME) from None
        run = await self._engine.amendments.extend(gate, span, by=person, via="slack")
        found = next(g for g in run.gates if g.id == gate)
        return words.extended(gate, date(found.deadline))

    async def reassign(self, person: Person, gate: str, to: str) -> str:
        named, unknown = deciders_in(to)
        if unknown or not named:
            raise Unreadable(
                words.wanted_people(escape(cut(visible(written(" ".join(unknown))), UNKNOWN_BYTES)))
            )
        run = await self._engine.amendments.reassign(gate, named, by=person, via="slack")
        found = next(g for g in run.gates if g.id == gate)
        return words.reassigned(gate, deciders(found.policy.deciders))

    async def delegate(self, person: Person, gate: str, to: str) -> str:
        """Not for admins but for who is named as a decider: somebody else decides in their stead."""
        named, unknown = deciders_in(to)
        team, _, user = named[0].rpartition(":") if len(named) == 1 else ("", "", "")
        if unknown or not re.fullmatch(USER, user):
            raise Unreadable(words.WANTED_ONE_PERSON)
        stead = Person(team=team or person.team, user=user)
        try:
            run = await self._engine.amendments.delegate(gate, stead, by=person, via="slack")
        except NotAllowed:
            raise Unreadable(words.ONLY_NAMED) from None
        found = next(g for g in run.gates if g.id == gate)
        return words.delegated(gate, deciders(found.policy.deciders))

    async def cancel(self, person: Person, run: str, index: int | None, reason: str) -> str:
        if len(reason) > MAX_COMMENT:
            raise Unreadable(words.too_long(MAX_COMMENT))
        found = await self._engine.cancel(run, reason or None, by=person, via="slack", index=index)
        return words.cancelled(run if index is None else found.gates[index].id)

    async def resend(self, person: Person, run_id: str) -> str:
        run = await self._engine.run(run_id)
        await self._engine.amendments.resend(run, by=person, via="slack")
        return words.RESENT

    # by buttons

    async def handle(self, ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        """Open the modal that a menu's choice wants, or send the card again at once; then ack."""
        person, surface = person_of(body), Surface.of(self._slack, body, respond)
        chosen = body["actions"][0].get("selected_option") or {}
        verb, _, gate_id = str(chosen.get("value") or "").partition(" ")
        try:
            await self._chosen(person, surface, verb, gate_id)
        except StoreUnavailable:
            await surface.tell(words.DID_NOT_WORK)
            raise
        except UNTOLD as error:
            log.warning("admin.not_shown", error=type(error).__name__)
            await surface.tell(words.MODAL_FAILED)
        except AskgateError as refusal:
            log.info("admin.refused", verb=verb, reason=refusal.slug)
            await surface.tell(admin_word(refusal, person))
        await ack()

    async def _chosen(self, person: Person, surface: Surface, verb: str, gate_id: str) -> None:
        run, gate = await self._engine.gate(gate_id)
        if verb == "resend":
            await surface.tell(await self.resend(person, run.id), done=True)
        elif verb in VERBS:
            await self._engine.amendments.check_admin(run, gate.id, by=person, via="slack")
            shown = shown_gate(gate, self._engine.redaction)
            await surface.open(managing.MODALS[verb](run, shown))

    async def submitted(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """Do what a modal asks for, and say in it what came of it."""
        view, person = body["view"], person_of(body)
        fields = c.values_of(view["state"])
        try:
            gate = Where.load(view["private_metadata"]).gate
            word = await self._done(view["callback_id"], person, gate, fields)
        except Unreadable as wrong:
            await ack(
                response_action="errors", errors={managing.field_of(view["callback_id"]): plain(wrong.word)}
            )
        except StoreUnavailable:
            log.error("admin.store_away", verb=view["callback_id"])
            await ack(
                response_action="errors", errors={managing.field_of(view["callback_id"]): words.DID_NOT_WORK}
            )
        except Invalid as wrong:
            errors = {
                managing.field_of(view["callback_id"]): words.INVALID.format(what=problem(wrong.detail))
            }
            await ack(response_action="errors", errors=errors)
        except AskgateError as refusal:
            log.info("admin.refused", verb=view["callback_id"], reason=refusal.slug)
            await ack(response_action="update", view=modals.refusal(admin_word(refusal, person)))
        else:
            await ack(response_action="update", view=managing.done(word))

    async def _done(self, verb: str, person: Person, gate: str, fields: Mapping[str, Any]) -> str:
        if verb == managing.EXTEND:
            return await self.extend(person, gate, fields.get(managing.TIME) or "")
        if verb == managing.REASSIGN:
            people = " ".join([*(fields.get(managing.PEOPLE) or []), fields.get(managing.OTHERS) or ""])
            return await self.reassign(person, gate, people)
        run, found = await self._engine.gate(gate)
        return await self.cancel(person, run.id, found.doc.index, (fields.get(managing.REASON) or "").strip())


def admin_word(refusal: AskgateError, person: Person) -> str:
    """The private sentence for a refusal of what an admin wanted, as markup."""
    if isinstance(refusal, NotWaiting):
        return words.NOTHING_PENDING
    if isinstance(refusal, Invalid):
        return words.INVALID.format(what=escape(problem(refusal.detail)))
    return list_word(refusal, person)


def plain(word: str) -> str:
    """A sentence without its markup, for where Slack shows plain text."""
    return word.replace("`", "").replace("*", "")
