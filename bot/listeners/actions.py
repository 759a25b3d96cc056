"""Clicks on cards and in modals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond

from bot import words
from bot.cards import approval_modals, modals
from bot.cards import controls as c
from bot.cards.blocks import Block
from bot.cards.card import gate_budget, pending_blocks
from bot.cards.controls import Control
from bot.cards.drafts import Draft, Entry, load_draft
from bot.cards.edits import editor_text
from bot.cards.files import file_there
from bot.cards.form import form_of
from bot.cards.form_modal import form_modal
from bot.cards.together import refused_together
from bot.listeners import together
from bot.listeners.lists import Lists
from bot.listeners.people import person_of, word_for
from bot.listeners.surfaces import Surface
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.engine import ResumeEngine
from core.errors import AskgateError, NotFound, StoreUnavailable
from core.gates import Action, Gate, Kind, speaker
from core.policy import Person
from core.runs import Run
from core.shown import shown_gate, shown_run

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Click:
    """A click with all that its handler needs: what, by whom, on which stored gate.

    ``shown`` is the gate as people see it, for every modal; ``gate`` is what they decide.
    """

    control: Control
    person: Person
    run: Run
    gate: Gate
    shown: Gate
    surface: Surface
    state: Mapping[str, Any]

    @property
    def view_id(self) -> str | None:
        """The modal that was clicked in."""
        return self.surface.view_id

    @property
    def draft(self) -> Draft:
        return load_draft(self.gate, self.gate.drafts.get(speaker(self.person)))


class Actions:
    """One method a verb. What a method raises is told to the person; what it returns too."""

    def __init__(self, engine: ResumeEngine, slack: Slack, lists: Lists) -> None:
        self._engine = engine
        self._slack = slack
        self._lists = lists
        self._verbs: dict[str, Callable[[Click], Awaitable[str | None]]] = {
            c.PICK: self._pick,
            c.CHOOSE: self._choose,
            c.OTHER: self._other,
            c.SUBMIT: self._submit,
            c.FORM: self._form,
            c.RESPONSE: self._response,
            c.DECLINE: self._decline,
            c.APPROVE: self._approve,
            c.APPROVE_ALL: self._approve_all,
            c.REJECT: self._reject,
            c.REJECT_REASON: self._reject_with_reason,
            c.EDIT: self._edit,
            c.ALWAYS: self._always,
            c.ANSWER: self._answer,
            c.FILL: self._fill,
            c.DONE: self._done,
            c.CANCEL: self._cancel,
            c.FULL: self._full,
            c.PAGE: self._page,
        }

    def register(self, app: AsyncApp) -> None:
        app.action(c.ANY)(self.handle)

    async def handle(self, ack: AsyncAck, body: dict[str, Any], respond: AsyncRespond) -> None:
        """Do what was clicked, tell the person privately if it was refused, then ack.

        A store that is away, and what nobody foresaw, is raised: Slack then gets no 200.
        """
        person, action = person_of(body), body["actions"][0]
        surface, gate = Surface.of(self._slack, body, respond), action["block_id"].partition("/")[0]
        if action["action_id"] == c.OPEN:
            # Slack has opened the page by itself, and there is nothing to be done about it here
            await ack()
            return
        try:
            word = await self._do(person, _control(action), surface)
        except StoreUnavailable:
            await surface.tell(words.DID_NOT_WORK)
            raise
        except (SlackBusy, SlackGone, SlackRefused) as error:
            log.warning(
                "click.view_failed", action=action["action_id"], block=action["block_id"], code=str(error)
            )
            word = words.MODAL_FAILED
        except AskgateError as refusal:
            log.info(
                "click.refused", action=action["action_id"], block=action["block_id"], reason=refusal.slug
            )
            word = word_for(refusal, person)
        except Exception:
            await surface.tell(words.UNEXPECTED)
            raise
        if word and not await self._lists.again(surface, person, gate, word):
            await surface.tell(word)
        await ack()

    async def _do(self, person: Person, control: Control, surface: Surface) -> str | None:
        run, gate = await self._engine.gate(control.gate)
        if not c.fits(control, gate):
            raise NotFound("There is no such control.", extra={"gate": gate})
        click = Click(
            control=control,
            person=person,
            run=run,
            gate=gate,
            shown=shown_gate(gate, self._engine.redaction),
            surface=surface,
            state=surface.values,
        )
        return await self._verbs[control.verb](click)

    # questions

    async def _pick(self, click: Click) -> str | None:
        """An option's button: the answer of a lone question, a draft among several."""
        return await self._picked(click, (click.control.number,))

    async def _choose(self, click: Click) -> str | None:
        """A menu's change. A lone single-select menu answers; everything else waits for Submit."""
        return await self._picked(click, click.control.picked)

    async def _picked(self, click: Click, picked: tuple[int, ...]) -> str | None:
        questions = click.gate.asks.questions
        entry = Entry(picked)
        if len(questions) == 1 and not questions[0].multi_select:
            value = entry.value(questions[0])
            await self._decide(click, Action.ANSWER, {"answers": {questions[0].question: value}})
        else:
            draft = click.draft.having(click.control.question, entry)
            run = await self._engine.draft(click.gate.id, click.person, draft.dump())
            if await self._lists.again(click.surface, click.person, click.gate.id):
                return None
            if click.control.verb == c.PICK and _looks_alike(
                click.shown, shown_run(run, self._engine.redaction)
            ):
                return words.PICK_KEPT
        return None

    async def _submit(self, click: Click) -> str | None:
        """What the person has drafted and what the menus say at this moment, as the answer."""
        draft = self._with_menus(click)
        count = len(draft.entries)
        if draft.answered < count and click.gate.pending:
            if count == 1:
                return words.CHOOSE_FIRST
            return words.NOTHING_PICKED.format(done=draft.answered, count=count)
        await self._decide(click, Action.ANSWER, {"answers": draft.answers(click.gate)})
        return None

    def _with_menus(self, click: Click) -> Draft:
        """The draft with the menus' present picks: a menu's own event may still be under way."""
        draft = click.draft
        for block, elements in click.state.items():
            menu = elements.get(c.CHOOSE)
            if block.partition("/")[0] != click.gate.id or not menu:
                continue
            shows = _control({"block_id": block, "action_id": c.CHOOSE, **menu})
            # a menu goes on showing its picks after somebody has written another answer
            if c.fits(shows, click.gate) and shows.picked and draft.entries[shows.question].other is None:
                draft = draft.having(shows.question, Entry(shows.picked))
        return draft

    async def _other(self, click: Click) -> str | None:
        entry = click.draft.entries[click.control.question]
        return await self._open(click, modals.other(click.shown, click.control.question, entry))

    async def _form(self, click: Click) -> str | None:
        return await self._open(click, modals.form(click.shown, self._with_menus(click)))

    async def _response(self, click: Click) -> str | None:
        return await self._open(click, modals.response(click.shown))

    async def _decline(self, click: Click) -> str | None:
        return await self._open(click, modals.decline(click.shown))

    # forms, links and custom calls

    async def _answer(self, click: Click) -> str | None:
        return await self._open(click, modals.answer(click.shown))

    async def _fill(self, click: Click) -> str | None:
        if not form_of(click.gate).all_fields:
            return await self._decide(click, Action.ACCEPT, {})
        return await self._open(click, form_modal(click.gate))

    async def _done(self, click: Click) -> str | None:
        return await self._decide(click, Action.ACCEPT)

    async def _cancel(self, click: Click) -> str | None:
        return await self._decide(click, Action.CANCEL)

    # approvals

    async def _approve(self, click: Click) -> str | None:
        if click.gate.policy.reason == "always":
            return await self._ask_why(click, c.APPROVE)
        return await self._decide(click, Action.APPROVE)

    async def _approve_all(self, click: Click) -> str | None:
        """List what is to be approved; or, to somebody who may not approve all of it, what that is."""
        person, run = click.person, shown_run(click.run, self._engine.redaction)
        gates = await together.as_seen(self._engine, run, click.control.value, person)
        if refused := await together.refusals(self._engine, click.run, gates, person):
            view = refused_together(run, refused)
        else:
            view = approval_modals.approve_all(run, gates)
        await click.surface.open(view)
        return None

    async def _reject(self, click: Click) -> str | None:
        if click.gate.policy.reason != "never":
            return await self._ask_why(click, c.REJECT_REASON)
        return await self._decide(click, Action.DENY)

    async def _reject_with_reason(self, click: Click) -> str | None:
        return await self._ask_why(click, c.REJECT_REASON)

    async def _ask_why(self, click: Click, verb: str) -> str | None:
        return await self._open(click, approval_modals.reason(click.shown, verb, click.control.value))

    async def _edit(self, click: Click) -> str | None:
        """The editor has the arguments of this moment, which an old card may not show."""
        if click.shown.hidden:
            return words.HIDDEN_TO_EDIT
        if editor_text(click.gate) is None:
            return words.TOO_LONG_TO_EDIT
        return await self._open(click, approval_modals.edit(click.gate))

    async def _always(self, click: Click) -> str | None:
        return await self._open(click, approval_modals.always(click.shown, click.control.value))

    # reading

    async def _full(self, click: Click) -> str | None:
        """Anybody may read."""
        await click.surface.open(_full(click, 0))
        return None

    async def _page(self, click: Click) -> str | None:
        if click.view_id:
            await self._slack.update_view(click.view_id, _full(click, click.control.number))
        return None

    # what they share

    async def _decide(self, click: Click, action: Action, values: object = None) -> str | None:
        """Settle, or vote. Returns what to tell somebody whose repeated word changes nothing to see."""
        digest = click.control.value if click.gate.doc.kind is Kind.APPROVAL else None
        run = await self._engine.decide(
            click.gate.id,
            action,
            by=click.person,
            via="slack",
            values=values,
            digest=digest,
            known=click.run,
        )
        gate = run.gates[click.gate.doc.index]
        if gate.pending and any(v.by == click.person and v.action is action for v in click.gate.votes):
            return words.VOTED_ALREADY.format(what=words.SETTLED[action.outcome].lower())
        if not await self._lists.again(click.surface, click.person, click.gate.id) and click.view_id:
            await self._show(click.view_id, run, gate.doc.index)
        return None

    async def _show(self, view_id: str, run: Run, index: int) -> None:
        """The modal as the gate is after a decision, which stands whether Slack draws this or not."""
        run = shown_run(run, self._engine.redaction)
        shown = run.gates[index]
        view = modals.full(shown, 0, file=file_there(run, shown)) if shown.pending else modals.settled(shown)
        try:
            await self._slack.update_view(view_id, view)
        except (SlackBusy, SlackGone, SlackRefused) as error:
            log.warning("click.not_shown", gate=shown.id, code=error.code)

    async def _open(self, click: Click, view: Mapping[str, Any]) -> str | None:
        """Open a modal, unless it could only end in a refusal."""
        await self._engine.check_open(click.run, click.gate, click.person, via="slack")
        await click.surface.open(dict(view))
        return None


def _full(click: Click, page: int) -> Block:
    return modals.full(click.shown, page, file=file_there(click.run, click.gate))


def _looks_alike(before: Gate, run: Run) -> bool:
    """Whether a run's card shows a gate as it was before, so that a click on it would seem to do nothing."""
    budget = gate_budget(run)
    return pending_blocks(before, budget) == pending_blocks(run.gates[before.doc.index], budget)


def _control(action: Mapping[str, Any]) -> Control:
    """What was clicked. Raises NotFound for a control that no card of ours has (any more)."""
    try:
        return c.control(action)
    except (LookupError, ValueError) as error:
        raise NotFound("There is no such control.") from error
