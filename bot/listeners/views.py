"""Modals that were submitted. What is wrong is said at its field, and the modal stays open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards import controls as c
from bot.cards import modals
from bot.cards.controls import Where
from bot.cards.drafts import Draft, Entry, load_draft
from bot.listeners.people import person_of, word_for
from core.engine import ResumeEngine
from core.errors import AskgateError, InvalidDecision, NotFound, StoreUnavailable
from core.gates import Action, Gate, speaker
from core.policy import Person
from core.questions import AskUserQuestion
from core.strictjson import JsonError, strict_json

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
    gate: Gate
    values: dict[str, Any]

    @property
    def text(self) -> str | None:
        return self.values.get(modals.TEXT) or None

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
            c.APPROVE: self._approve,
            c.REJECT_REASON: self._reject,
        }

    def register(self, app: AsyncApp) -> None:
        for callback_id in self._forms:
            app.view(callback_id)(self.handle)

    async def handle(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """Decide, then close the modal and what it lies on: that offers what has just been decided.

        A refusal replaces the modal; a store that is away is said at its field.
        """
        view, person = body["view"], person_of(body)
        fields, about = c.values_of(view["state"]), view["private_metadata"]
        try:
            where = _where(about)
            _, gate = await self._engine.gate(where.gate)
            await self._forms[view["callback_id"]](Submission(where, person, gate, fields))
        except FieldErrors as wrong:
            await ack(response_action="errors", errors=wrong.errors)
        except InvalidDecision as wrong:
            await ack(response_action="errors", errors=self._at_fields(wrong, fields))
        except StoreUnavailable:
            # no 200 would show Slack's own sentence only; this one says that nothing was saved, and keeps the text
            log.error("view.store_away", about=about)
            await ack(response_action="errors", errors={next(iter(fields)): words.DID_NOT_WORK})
        except AskgateError as refusal:
            log.info("view.refused", about=about, reason=refusal.slug)
            await ack(response_action="update", view=modals.refusal(word_for(refusal, person)))
        else:
            await (ack(response_action="clear") if view.get("previous_view_id") else ack())

    def _at_fields(self, wrong: InvalidDecision, fields: dict[str, Any]) -> dict[str, str]:
        """The engine's errors at the fields they are about; what has no field of its own goes to the first."""
        gate: Gate = wrong.extra["gate"]
        first = next(iter(fields))
        found = {}
        for item in wrong.errors:
            block = first
            match item["loc"]:
                case ["values", "answers", str(text), *_] if modals.picks_block(0) in fields:
                    block = modals.picks_block(_number(gate.asks, text))
                case ["values", "response", *_] if modals.RESPONSE in fields:
                    block = modals.RESPONSE
            found[block] = item["msg"]
        return found

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
        draft, response = Draft(self._entries(it)), it.values.get(modals.RESPONSE)
        missing = {
            modals.picks_block(number): words.PICK_OR_WRITE
            for number, entry in enumerate(draft.entries)
            if not entry.given and not response
        }
        if missing:
            raise FieldErrors(missing)
        values: dict[str, Any] = {"answers": draft.answers(it.gate)}
        await self._decide(it, Action.ANSWER, values | ({"response": response} if response else {}))

    def _entries(self, it: Submission) -> tuple[Entry, ...]:
        entries, both = [], {}
        for number in range(len(it.gate.asks.questions)):
            picked = tuple(it.values.get(modals.picks_block(number)) or ())
            other = it.values.get(modals.other_block(number)) or None
            if picked and other:
                both[modals.other_block(number)] = words.NOT_BOTH
            entries.append(Entry(picked if not other else (), other))
        if both:
            raise FieldErrors(both)
        return tuple(entries)

    async def _decline(self, it: Submission) -> None:
        await self._decide(it, Action.DECLINE, comment=it.text)

    # the others

    async def _answer(self, it: Submission) -> None:
        text = _written(it.text)
        value: object = text
        if text.startswith(("{", "[")):
            try:
                value = strict_json(text)
            except JsonError as error:
                raise FieldErrors({modals.TEXT: str(error)}) from None
        await self._decide(it, Action.ANSWER, value)

    async def _approve(self, it: Submission) -> None:
        await self._decide(it, Action.APPROVE, comment=_written(it.text))

    async def _reject(self, it: Submission) -> None:
        await self._decide(it, Action.DENY, comment=_written(it.text))

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
