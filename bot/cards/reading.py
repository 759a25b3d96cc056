"""Everything there is to read about a gate, in passages, on as many pages as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot import words
from bot.cards.arguments import arguments, at_least
from bot.cards.blocks import Block, code, context, line, piece, quote, rich
from bot.cards.edits import change_text, changes_of
from bot.cards.form import form_of, value_text
from bot.cards.heading import body_of, title_of
from bot.cards.link import address, link_of
from bot.cards.text import chunks, cut, size, visible
from core.forms import FormField
from core.gates import Gate, Kind
from core.questions import Question

CHUNK_BYTES: Final = 2800
"""A piece of a long text: under what Slack takes in one text object."""
PAGE_BYTES: Final = 22_400
PAGE_BLOCKS: Final = 80
"""Of the 100 that a view may have: the others are for what stands around the passages."""
BOLD_BYTES: Final = 400
"""A longer question is no heading, and is set as a text."""
MODAL_BYTES: Final = 200_000
"""Of a call's arguments so many bytes are read in a modal, nine pages; longer ones stand in a file."""


def too_long(gate: Gate) -> bool:
    """Whether the arguments to be approved are too long to be read in a modal, page by page."""
    if gate.doc.kind is not Kind.APPROVAL:
        return False
    # a glance at the texts spares a look at every character of what is far too long
    return at_least(gate.arguments) > MODAL_BYTES or size(arguments(gate, MODAL_BYTES)) > MODAL_BYTES


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
    """A gate's texts in reading order: questions with all options, fields likewise, or a reason and arguments."""
    match gate.doc.kind:
        case Kind.QUESTION:
            for question in gate.asks.questions:
                yield from _of_question(question)
        case Kind.FORM:
            yield from _of_heading(gate)
            for number, field in enumerate(form_of(gate).all_fields, start=1):
                yield from _of_field(number, field)
        case Kind.LINK:
            yield from _of_heading(gate)
            yield Passage(Style.CODE, address(link_of(gate)))
        case _:
            if gate.doc.reason:
                yield Passage(Style.QUOTE, visible(gate.doc.reason))
            if gate.edits:
                yield Passage(Style.TITLE, words.CHANGES)
            for change in changes_of(gate) if gate.edits else ():
                yield Passage(Style.TEXT, change_text(change))
            text = arguments(gate, MODAL_BYTES)
            yield Passage(Style.CODE, cut(text, MODAL_BYTES) if too_long(gate) else arguments(gate))


def _of_heading(gate: Gate) -> Iterator[Passage]:
    yield Passage(Style.TITLE, visible(title_of(gate)))
    if body := body_of(gate):
        yield Passage(Style.TEXT, visible(body))


def _of_field(number: int, field: FormField) -> Iterator[Passage]:
    mark = words.REQUIRED if field.required else ""
    yield Passage(Style.TITLE, f"{number}. {visible(field.shown)}{mark}")
    if field.description.strip():
        yield Passage(Style.TEXT, visible(field.description.strip()))
    for place, option in enumerate(field.options, start=1):
        yield Passage(Style.TEXT, f"{place}. {visible(option.shown)}")
    if field.default is not None:
        yield Passage(Style.TEXT, words.DEFAULT.format(default=visible(value_text(field, field.default))))


def _of_question(question: Question) -> Iterator[Passage]:
    header, asked = visible(question.header), visible(question.question)
    if size(asked) <= BOLD_BYTES:
        yield Passage(Style.TITLE, f"{header}: {asked}")
    else:
        yield Passage(Style.TITLE, f"{header}:")
        yield Passage(Style.TEXT, asked)
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
            if size(text) > left or len(found[-1]) == PAGE_BLOCKS:
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
