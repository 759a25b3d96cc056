"""Modals that were submitted. What is wrong is said at its field, and the modal stays open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards import controls as c
from bot.cards import form_modal, modals
from bot.cards.approval_modals import COMMENT
from bot.cards.controls import Where
from bot.cards.drafts import Draft, Entry, load_draft
from bot.cards.form import form_of
from bot.cards.text import cut, visible
from bot.listeners import together
from bot.listeners.people import person_of, word_for
from bot.listeners.problems import problem
from core.engine import ResumeEngine
from core.errors import ArgumentsChanged, AskgateError, InvalidDecision, NotFound, StoreUnavailable
from core.gates import Action, Gate, Kind, speaker
from core.policy import Person
from core.questions import AskUserQuestion
from core.runs import Run
from core.strictjson import JsonError, at, strict_json

ERROR_CHARS: Final = 1000
"""What is said at one field, at most: a schema may be broken in many places."""

log = structlog.get_logger(__name__)


class FieldErrors(Exception):
    """What was written cannot be taken: a sentence a field, by block id."""

    def __init__(self, errors: dict[str, str]) -> None:
        self.errors = errors
        super().__init__(str(errors))


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted modal: what it is about, by whom, and what its fields hold."""

    where: Where
    person: Person
    run: Run
    gate: Gate
    values: dict[str, Any]

    @property
    def text(self) -> str | None:
        return self.written(modals.TEXT)

    def written(self, block: str) -> str | None:
        """What a text field holds, without blanks around it; None if that is nothing."""
        return (self.values.get(block) or "").strip() or None

    @property
    def draft(self) -> Draft:
        return load_draft(self.gate, self.gate.drafts.get(speaker(self.person)))


class Views:
    """One method a modal."""

    def __init__(self, engine: ResumeEngine) -> None:
        self._engine = engine
        self._forms: dict[str, Callable[[Submission], Awaitable[None]]] = {
            c.OTHER: self._other,
            c.RESPONSE: self._response,
            c.DECLINE: self._decline,
            c.FORM: self._form,
            c.ANSWER: self._answer,
            c.FILL: self._fill,
            c.APPROVE: self._approve,
            c.APPROVE_ALL: self._approve_all,
            c.REJECT_REASON: self._reject,
            c.EDIT: self._edit,
            c.ALWAYS: self._always,
        }

    def register(self, app: AsyncApp) -> None:
        for callback_id in self._forms:
            app.view(callback_id)(self.handle)

    async def handle(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """Decide, then close the modal and what it lies on: that offers what has just been decided.

        A refusal replaces the modal; a store that is away is said at its field, and so is that somebody else edited
        what this person was editing, who may want to keep the text.
        """
        view, person = body["view"], person_of(body)
        fields, about = c.values_of(view["state"]), view["private_metadata"]
        try:
            where = _where(about)
            run, gate = await self._engine.gate(where.gate)
            if not c.fits(where.control(view["callback_id"]), gate):
                raise NotFound("There is no such form.", extra={"gate": gate})
            await self._forms[view["callback_id"]](Submission(where, person, run, gate, fields))
        except FieldErrors as wrong:
            await ack(response_action="errors", errors=wrong.errors)
        except InvalidDecision as wrong:
            await _refuse(ack, _at_fields(wrong, fields), word_for(wrong, person))
        except StoreUnavailable:
            # no 200 would show Slack's own sentence only; this one says that nothing was saved, and keeps the text
            log.error("view.store_away", about=about)
            first = {next(iter(fields)): words.DID_NOT_WORK} if fields else {}
            await _refuse(ack, first, words.DID_NOT_WORK)
        except AskgateError as refusal:
            log.info("view.refused", about=about, reason=refusal.slug)
            if isinstance(refusal, ArgumentsChanged) and view["callback_id"] == c.EDIT:
                await ack(response_action="errors", errors={modals.TEXT: words.EDITED_MEANWHILE})
            else:
                await ack(response_action="update", view=modals.refusal(word_for(refusal, person)))
        else:
            await (ack(response_action="clear") if view.get("previous_view_id") else ack())

    # questions

    async def _other(self, it: Submission) -> None:
        text = _written(it.text)
        questions = it.gate.asks.questions
        if len(questions) == 1:
            await self._decide(it, Action.ANSWER, {"answers": {questions[0].question: text}})
        else:
            draft = it.draft.having(it.where.question, Entry(other=text))
            await self._engine.draft(it.gate.id, it.person, draft.dump())

    async def _response(self, it: Submission) -> None:
        values = {"answers": it.draft.answers(it.gate), "response": _written(it.text)}
        await self._decide(it, Action.ANSWER, values)

    async def _form(self, it: Submission) -> None:
        draft, response = Draft(self._entries(it)), it.written(modals.RESPONSE)
        values: dict[str, Any] = {"answers": draft.answers(it.gate)}
        await self._decide(it, Action.ANSWER, values | ({"response": response} if response else {}))

    def _entries(self, it: Submission) -> tuple[Entry, ...]:
        entries, wrong = [], {}
        for number, question in enumerate(it.gate.asks.questions):
            chosen: list[int] = it.values.get(modals.picks_block(number)) or []
            picked = tuple(index for index in chosen if index < len(question.options))
            other = it.written(modals.other_block(number))
            if picked and (other or len(picked) < len(chosen)):
                wrong[modals.other_block(number)] = words.NOT_BOTH
            elif not picked and not other:
                place = modals.other_block if chosen else modals.picks_block
                wrong[place(number)] = words.WRITE_SOMETHING if chosen else words.PICK_OR_WRITE
            entries.append(Entry(picked, None if picked else other))
        if wrong:
            raise FieldErrors(wrong)
        return tuple(entries)

    async def _decline(self, it: Submission) -> None:
        await self._decide(it, Action.DECLINE, comment=it.text)

    # forms and custom calls

    async def _fill(self, it: Submission) -> None:
        values, wrong = form_modal.entered(it.gate, it.values)
        if wrong:
            raise FieldErrors(wrong)
        await self._decide(it, Action.ACCEPT, values)

    async def _answer(self, it: Submission) -> None:
        """Text or JSON; where the gate has a schema, JSON alone."""
        text = _written(it.text)
        as_json = it.gate.doc.answer_schema is not None or text.startswith(("{", "["))
        await self._decide(it, Action.ANSWER, _json(it) if as_json else text)

    # approvals

    async def _approve(self, it: Submission) -> None:
        await self._decide(it, Action.APPROVE, comment=_written(it.text))

    async def _approve_all(self, it: Submission) -> None:
        gates = await together.as_seen(self._engine, it.run, it.where.digest, it.person)
        await together.approve(self._engine, it.run, gates, it.person, it.written(COMMENT))

    async def _reject(self, it: Submission) -> None:
        await self._decide(it, Action.DENY, comment=_written(it.text))

    async def _edit(self, it: Submission) -> None:
        args = _json(it)
        if not isinstance(args, dict):
            raise FieldErrors({modals.TEXT: words.NO_OBJECT})
        await self._decide(it, Action.APPROVE, {"override_args": args}, comment=it.written(COMMENT))

    async def _always(self, it: Submission) -> None:
        await self._decide(it, Action.APPROVE_ALWAYS, comment=it.written(COMMENT))

    async def _decide(
        self, it: Submission, action: Action, values: object = None, comment: str | None = None
    ) -> None:
        await self._engine.decide(
            it.gate.id,
            action,
            by=it.person,
            via="slack",
            values=values,
            comment=comment,
            digest=it.where.digest or None,
        )


async def _refuse(ack: AsyncAck, errors: dict[str, str], word: str) -> None:
    """Say what is wrong at the fields; in a modal without any, instead of it."""
    if errors:
        await ack(response_action="errors", errors=errors)
    else:
        await ack(response_action="update", view=modals.refusal(word))


def _at_fields(wrong: InvalidDecision, fields: Mapping[str, Any]) -> dict[str, str]:
    """The engine's errors at the fields they are about; what has no field of its own goes to the first."""
    gate: Gate = wrong.extra["gate"]
    found: dict[str, list[str]] = {}
    for item in wrong.errors if fields else ():
        block, rest = _field_of(gate, item["loc"], fields)
        said = problem(item["msg"])
        found.setdefault(block, []).append(f"{at(rest)}: {said}" if rest else said[:1].upper() + said[1:])
    return {block: cut(visible("; ".join(said)), ERROR_CHARS, len) for block, said in found.items()}


def _field_of(
    gate: Gate, loc: list[str | int], fields: Mapping[str, Any]
) -> tuple[str, tuple[str | int, ...]]:
    """The block of the field that a place in the answer is about, and the place within what was typed there."""
    match loc:
        case ["values", "answers", str(text), *_] if modals.picks_block(0) in fields:
            return modals.picks_block(_number(gate.asks, text)), ()
        case ["values", "response", *_] if modals.RESPONSE in fields:
            return modals.RESPONSE, ()
        case ["values", str(name), *_] if gate.doc.kind is Kind.FORM:
            names = [field.name for field in form_of(gate).all_fields]
            return form_modal.field_block(names.index(name)), ()
        case ["values", "override_args", *rest] if modals.TEXT in fields:
            return modals.TEXT, tuple(rest)
        case ["values", *rest] if gate.doc.kind is Kind.CUSTOM:
            return modals.TEXT, tuple(rest)
        case ["comment"] if COMMENT in fields:
            return COMMENT, ()
    return next(iter(fields)), ()


def _json(it: Submission) -> Any:
    """What was typed, as JSON. Its lines are counted as they were typed."""
    _written(it.text)
    try:
        return strict_json(it.values[modals.TEXT])
    except JsonError as error:
        raise FieldErrors({modals.TEXT: words.NO_JSON.format(where=problem(str(error)))}) from None


def _where(about: str) -> Where:
    """What a modal is about. Raises NotFound for one that is none of ours (any more)."""
    try:
        return Where.load(about)
    except (TypeError, ValueError) as error:
        raise NotFound("There is no such form.") from error


def _written(text: str | None) -> str:
    if not text:
        raise FieldErrors({modals.TEXT: words.WRITE_SOMETHING})
    return text


def _number(asks: AskUserQuestion, text: str) -> int:
    return [question.question for question in asks.questions].index(text)
