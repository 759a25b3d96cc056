"""The private offer to use a reply as an answer: one button a question, and one to leave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.aloud import name, subject, told_apart
from bot.cards.blocks import Block, actions, button, context, quote, rich, row
from bot.cards.text import glance, shown
from core.gates import Gate, Kind

USE: Final = "use"
LEAVE: Final = "leave"
OFFERED: Final = 5
"""How many questions are offered; the others are answered on their cards."""
QUESTION_BYTES: Final = 300
REPLY_BYTES: Final = 400
"""How much of the reply is recalled: it stands right above."""


@dataclass(frozen=True, slots=True)
class Open:
    """An open question that takes free text: a gate as it is shown, and which of its questions."""

    gate: Gate
    question: int = 0


def open_questions(gate: Gate) -> list[Open]:
    """What a text may answer: each question, and a custom call without a schema. Never an approval, form or link."""
    match gate.doc.kind:
        case Kind.QUESTION:
            return [Open(gate, number) for number in range(len(gate.asks.questions))]
        case Kind.CUSTOM if gate.doc.answer_schema is None:
            return [Open(gate)]
    return []


def offer_blocks(text: str, found: Sequence[Open], value: str, note: str) -> list[Block]:
    """The offer for a reply's ``text``. ``value`` is what its buttons carry; ``note`` is a sentence of ours."""
    blocks = [context(note), rich(quote(shown(text, REPLY_BYTES)))]
    for item in found[:OFFERED]:
        use = button(
            words.USE_REPLY, USE, value, label=name(words.USE_REPLY, subject(item.gate, item.question))
        )
        asked = row(glance(_asked(item), QUESTION_BYTES), use)
        blocks.append(asked | {"block_id": c.block_id(item.gate.id, item.question, USE)})
    if len(found) > OFFERED:
        blocks.append(context(words.OFFER_MORE))
    leave = button(words.LEAVE_REPLY, LEAVE, value, label=words.LEAVE_REPLY)
    return told_apart([*blocks, actions(LEAVE, [leave])])


def _asked(item: Open) -> str:
    if item.gate.doc.kind is Kind.QUESTION:
        question = item.gate.asks.questions[item.question]
        return f"{question.header}: {question.question}"
    return item.gate.doc.tool_name
