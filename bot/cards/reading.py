"""Everything there is to read about a gate, in passages, on as many pages as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot import words
from bot.cards.arguments import arguments
from bot.cards.blocks import Block, code, context, line, piece, quote, rich
from bot.cards.text import chunks, cut, size, visible
from core.gates import Gate, Kind
from core.questions import Question

CHUNK_BYTES: Final = 2800
"""A piece of a long text: under what Slack takes in one text object."""
PAGE_BYTES: Final = 22_400
"""With the most passages that a gate can have, a page stays well below the 100 blocks of a view."""


class Style(StrEnum):
    """How a passage is set."""

    TITLE = "title"
    TEXT = "text"
    CODE = "code"
    QUOTE = "quote"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with everything in it visible, and how it is set."""

    style: Style
    text: str


def passages(gate: Gate) -> Iterator[Passage]:
    """A gate's texts in reading order: its questions with all options, or its reason and arguments."""
    if gate.doc.kind is Kind.QUESTION:
        for question in gate.asks.questions:
            yield from _of_question(question)
        return
    if gate.doc.reason:
        yield Passage(Style.QUOTE, visible(gate.doc.reason))
    yield Passage(Style.CODE, arguments(gate))


def _of_question(question: Question) -> Iterator[Passage]:
    yield Passage(Style.TITLE, f"{visible(question.header)}: {visible(question.question)}")
    for number, choice in enumerate(question.options, start=1):
        yield Passage(Style.TITLE, f"{number}. {visible(choice.label)}")
        yield Passage(Style.TEXT, visible(choice.description))
        if choice.markdown:
            yield Passage(Style.CODE, visible(choice.markdown))


def pages(gate: Gate) -> list[list[Block]]:
    """All passages of a gate as the blocks of one page after another; at least one page."""
    found: list[list[Block]] = [[]]
    left = PAGE_BYTES
    for passage in passages(gate):
        for text in chunks(passage.text, CHUNK_BYTES):
            if size(text) > left:
                found.append([])
                left = PAGE_BYTES
            found[-1].append(_block(passage.style, text))
            left -= size(text)
    return found


def read_at_once(question: Question, budget: int) -> list[Block]:
    """A question's passages without pages; what is over ``budget`` bytes is cut, and that is said."""
    blocks: list[Block] = []
    for passage in _of_question(question):
        text = cut(passage.text, budget)
        budget -= size(text)
        blocks += [_block(passage.style, chunk) for chunk in chunks(text, CHUNK_BYTES)]
        if text != passage.text:
            return [*blocks, context(words.READ_ON_CARD)]
    return blocks


def _block(style: Style, text: str) -> Block:
    match style:
        case Style.TITLE:
            return rich(line(piece(text, bold=True)))
        case Style.TEXT:
            return rich(line(piece(text)))
        case Style.QUOTE:
            return rich(quote(text))
        case Style.CODE:
            return rich(code(text))
