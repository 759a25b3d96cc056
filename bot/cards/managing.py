"""The modals in which admins say how much longer, who instead, or why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bot import words
from bot.cards.blocks import Block, context, field, modal, row, text_input, users
from bot.cards.controls import Where
from bot.cards.deciders import deciders
from bot.cards.inbox import what
from bot.cards.limits import INPUT_TEXT
from bot.cards.text import date
from core.gates import MAX_COMMENT, Gate
from core.runs import Run

EXTEND: Final = "gates_extend"
REASSIGN: Final = "gates_reassign"
CANCEL: Final = "gates_cancel"
TIME: Final = "time"
PEOPLE: Final = "people"
OTHERS: Final = "others"
REASON: Final = "reason"
PEOPLE_MOST: Final = 50


def field_of(verb: str) -> str:
    """The field at which it is said what is wrong."""
    return {EXTEND: TIME, REASSIGN: OTHERS, CANCEL: REASON}[verb]


def extend(run: Run, gate: Gate) -> Block:
    blocks = [
        row(what(run, gate)),
        context(words.until(date(gate.deadline))),
        field(
            TIME,
            words.TIME_LABEL,
            text_input(TIME, multiline=False, most=40, focus=True),
            hint=words.TIME_HINT,
        ),
    ]
    return _asking(words.EXTEND_TITLE, blocks, EXTEND, gate, words.EXTEND)


def reassign(run: Run, gate: Gate) -> Block:
    blocks = [
        row(what(run, gate)),
        context(words.may_decide(deciders(gate.policy.deciders))),
        field(
            PEOPLE, words.PEOPLE_LABEL, users(PEOPLE, words.PEOPLE_PLACEHOLDER, PEOPLE_MOST), optional=True
        ),
        field(
            OTHERS,
            words.OTHERS_LABEL,
            text_input(OTHERS, multiline=False, most=1000),
            optional=True,
            hint=words.OTHERS_HINT,
        ),
        context(words.REASSIGN_VOIDS),
    ]
    return _asking(words.REASSIGN_TITLE, blocks, REASSIGN, gate, words.REASSIGN)


def cancel(run: Run, gate: Gate) -> Block:
    element = text_input(REASON, most=min(INPUT_TEXT, MAX_COMMENT), focus=True)
    blocks = [
        row(what(run, gate)),
        context(words.CANCEL_TEXT),
        field(REASON, words.CANCEL_LABEL, element, optional=True, hint=words.REASON_HINT),
    ]
    return _asking(words.CANCEL_TITLE, blocks, CANCEL, gate, words.CANCEL_GATE)


MODALS: Final[Mapping[str, Callable[[Run, Gate], Block]]] = {
    "extend": extend,
    "reassign": reassign,
    "cancel": cancel,
}


def done(word: str) -> Block:
    """What a modal turns into when it is done. ``word`` is our own markup."""
    return modal(words.DONE_TITLE, [context(word)], callback_id="gates_done", metadata="", submit=None)


def _asking(title: str, blocks: list[Block], callback_id: str, gate: Gate, submit: str) -> Block:
    return modal(
        title,
        blocks,
        callback_id=callback_id,
        metadata=Where(gate.id).dump(),
        submit=submit,
        close=words.BACK_OUT,
    )
