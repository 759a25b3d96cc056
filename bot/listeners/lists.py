"""Makes the pages that people ask for, by a command, a mention, a shortcut or a button, and turns them."""

from __future__ import annotations

import re
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond

from bot import words
from bot.cards.inbox import DETAILS, LINK, LIST, REQUEUE, Page, list_page
from bot.cards.pages import gate_page, load, stats_page
from bot.cards.queries import FOR_ADMINS, Query, Which
from bot.listeners.home import SOON_MS, Home
from bot.listeners.inbox import Inbox
from bot.listeners.people import person_of, word_for
from bot.listeners.surfaces import UNTOLD, Surface
from bot.slack.client import Slack
from core.engine import ResumeEngine
from core.errors import AskgateError, NotAllowed, NotFound, StoreUnavailable
from core.gates import Gate
from core.policy import Person
from core.runs import Run

ACTIONS: Final = re.compile(rf"^(?:{LIST}|{DETAILS}|{LINK}|{REQUEUE})(?::[\w-]+)?$")

log = structlog.get_logger(__name__)


class Lists:
    """Pages of gates, as a person may see them."""

    def __init__(self, engine: ResumeEngine, slack: Slack, inbox: Inbox) -> None:
        self._engine = engine
        self._slack = slack
        self._inbox = inbox
        self._home = Home(engine)

    def register(self, app: AsyncApp) -> None:
        app.action(ACTIONS)(self.handle)
        self._home.register(app)

    # pages

    async def page(self, person: Person, query: Query, *, here: str = "") -> Page:
        """One page of a list. ``here``: a channel that the person is in for sure. Raises StoreUnavailable."""
        found = await self._inbox.of(person, query, here=here)
        empty = (
            words.LIST_EMPTY_ADMIN if found.admin and query.which is Which.ALL else words.EMPTY[query.which]
        )
        if query.which in FOR_ADMINS and not found.admin:
            empty = words.ADMINS_ONLY
        return list_page(
            query,
            found.waiting,
            found.notes(empty),
            admin=found.admin,
            further=found.further,
            filters=_filters(query, here, admin=found.admin),
        )

    async def gate(self, person: Person, gate_id: str, *, back: Query | None = None, word: str = "") -> Page:
        """One gate, if it may be shown to the person. Raises NotFound, CannotVerify or StoreUnavailable."""
        run, gate = await self._engine.gate(gate_id)
        return await self.shown(person, run, gate, back=back, word=word)

    async def shown(
        self, person: Person, run: Run, gate: Gate, *, back: Query | None = None, word: str = ""
    ) -> Page:
        if not await self._inbox.may_see(person, run, gate):
            raise NotFound(f"There is no gate {gate.id}.")
        [item] = await self._inbox.linked([(run, gate)], person)
        return gate_page(item, admin=await self._inbox.is_admin(person), back=back, words_above=word)

    async def stats(self, person: Person) -> Page:
        """How much there is, for admins. Raises NotAllowed or StoreUnavailable."""
        if not await self._inbox.is_admin(person):
            raise NotAllowed("Only an admin may do this.")
        return stats_page(await self._engine.store.lists.counts(SOON_MS))

    async def again(self, surface: Surface, person: Person, gate: str, word: str = "") -> bool:
        """Draw a gate's page anew where somebody has just clicked in it, with a sentence (markup) on top.

        Returns whether it stands there: what is no page of ours is left alone. The Home is drawn by the agenda.
        """
        if surface.kind == "home":
            if word:
                await surface.tell(word)
            await self._home.again(person)
            return True
        if not surface.shows_gate:
            return False
        back = load(surface.metadata)[0] if surface.kind == "modal" else None
        try:
            await surface.show(await self.gate(person, gate, back=back, word=word))
        except (AskgateError, *UNTOLD) as error:
            # what was done stands; the page is drawn again by its own button
            log.warning("list.not_drawn_again", gate=gate, error=type(error).__name__)
            return False
        return True

    # clicks

    async def handle(self, ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        """Turn a page, show a gate, hand a run out again; then ack."""
        person, action = person_of(body), body["actions"][0]
        surface = Surface.of(self._slack, body, respond)
        verb, value = action["action_id"].partition(":")[0], str(action.get("value") or "")
        try:
            match verb:
                case _ if verb == LIST and surface.kind == "home":
                    await self._home.turn(person, Query.load(value))
                case _ if verb == LIST:
                    await surface.show(await self.page(person, Query.load(value), here=surface.channel))
                case _ if verb == DETAILS:
                    gate, _, back = value.partition(" ")
                    query = Query.load(back) if back else None
                    await surface.show(await self.gate(person, gate, back=query))
                case _ if verb == REQUEUE:
                    await self._engine.dead_letters.requeue(value, by=person, via="slack")
                    await surface.tell(words.REQUEUED, done=True)
                    await self.again(surface, person, "")
        except StoreUnavailable:
            await surface.tell(words.DID_NOT_WORK)
            raise
        except UNTOLD as error:
            log.warning("list.not_shown", error=type(error).__name__)
            await surface.tell(words.MODAL_FAILED)
        except AskgateError as refusal:
            log.info("list.refused", action=verb, reason=refusal.slug)
            await surface.tell(list_word(refusal, person))
        await ack()


def list_word(refusal: AskgateError, person: Person) -> str:
    """The private sentence for a refusal of what was asked of a list, as markup."""
    if isinstance(refusal, NotAllowed) and "gate" not in refusal.extra:
        return words.CANNOT_VERIFY_ADMIN if refusal.slug == "cannot-verify" else words.ADMINS_ONLY
    if isinstance(refusal, NotFound):
        return words.NO_SUCH_GATE
    return word_for(refusal, person)


def _filters(query: Query, here: str, *, admin: bool) -> list[Query]:
    """The other lists that are a click away."""
    found = [Query(Which.ALL)] if admin else []
    found += [Query(Which.MINE), Query(Which.EXPIRING)]
    if here.startswith(("C", "G")):
        found.append(Query(Which.CHANNEL, here))
    return [*found, Query(Which.ASKED), Query(Which.DECIDED)]
