"""The modals: a text of one's own, the whole batch of questions in a form, everything in full."""

from __future__ import annotations

import json
from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.aloud import aloud
from bot.cards.approval import TOOL_BYTES, approving, facts, rejecting
from bot.cards.blocks import (
    Block,
    actions,
    button,
    checkboxes,
    code,
    context,
    field,
    line,
    listing,
    modal,
    option,
    piece,
    radio,
    rich,
    text_input,
)
from bot.cards.card import SETTLED_MOST
from bot.cards.controls import Where
from bot.cards.drafts import Draft, Entry
from bot.cards.files import file_name
from bot.cards.labels import labels
from bot.cards.limits import INPUT_TEXT, OPTION_DESCRIPTION, OPTION_TEXT
from bot.cards.link import done_button, link_of, open_button
from bot.cards.reading import CHUNK_BYTES, pages, read_at_once, too_long
from bot.cards.settled import settled_blocks, settled_line
from bot.cards.text import chunks, cut, length, one_line, visible
from core.gates import MAX_COMMENT, Gate, Kind
from core.questions import Question
from core.questions import labels as labels_of

TEXT: Final = "text"
"""The block id of a modal's lone text field."""
RESPONSE: Final = "response"
COMMENT_CHARS: Final = min(INPUT_TEXT, MAX_COMMENT)
LABEL: Final = 300
"""Characters of a question that stand above its field; a longer one is told before the field, in full."""
FORM_LABELS: Final = 2000
"""Bytes of all labels of a question: as much as four options can hold."""
FORM_BYTES: Final = 100_000
"""What the questions may take in a form before they are cut; a view may have 250 kB as JSON."""
ASKED_BYTES: Final = 700
"""What a question takes in a modal that only recalls it."""
SCHEMA_BYTES: Final = 8000
"""What is shown of the schema of an answer. What breaks it is told in words."""


def other(gate: Gate, number: int, entry: Entry) -> Block:
    """A text of one's own instead of the options of one question."""
    question = gate.asks.questions[number]
    blocks = [
        rich(*_asked(question)),
        field(TEXT, words.OTHER_LABEL, text_input(TEXT, initial=entry.other, focus=True)),
    ]
    return prompt(words.OTHER_TITLE, blocks, c.OTHER, Where(gate.id, number))


def response(gate: Gate) -> Block:
    """One text for the whole call, beside or instead of picks."""
    element = text_input(TEXT, focus=True)
    blocks = [
        rich(*(part for question in gate.asks.questions for part in _asked(question))),
        field(TEXT, words.RESPONSE_LABEL, element, hint=words.RESPONSE_HINT),
    ]
    return prompt(words.RESPONSE_TITLE, blocks, c.RESPONSE, Where(gate.id))


def decline(gate: Gate) -> Block:
    element = text_input(TEXT, most=COMMENT_CHARS, focus=True)
    blocks = [
        context(words.DECLINE_TEXT),
        field(TEXT, words.DECLINE_LABEL, element, optional=True),
    ]
    return prompt(words.DECLINE_TITLE, blocks, c.DECLINE, Where(gate.id), submit=words.DECLINE_IT)


def answer(gate: Gate) -> Block:
    """The answer to a custom gate: text or JSON; with a schema JSON alone."""
    schema, element = gate.doc.answer_schema, text_input(TEXT, focus=True)
    tool = line(piece(words.CUSTOM), piece(cut(visible(gate.doc.tool_name), TOOL_BYTES), code=True))
    if schema is None:
        blocks = [rich(tool), field(TEXT, words.ANSWER_LABEL, element, hint=words.ANSWER_HINT)]
        return prompt(words.ANSWER_TITLE, blocks, c.ANSWER, Where(gate.id))
    text = cut(visible(json.dumps(schema, ensure_ascii=False, indent=2)), SCHEMA_BYTES)
    blocks = [rich(tool, line(piece(words.JSON_SCHEMA)), *(code(part) for part in chunks(text, CHUNK_BYTES)))]
    blocks.append(field(TEXT, words.JSON_LABEL, element, hint=words.JSON_HINT))
    return prompt(words.ANSWER_TITLE, blocks, c.ANSWER, Where(gate.id))


def form(gate: Gate, draft: Draft) -> Block:
    """All questions of a call in one modal, with what the person has drafted.

    Slack marks fields that may stay empty, and demands the others before it asks us. So each question has to be
    answered, and a text of one's own is one of the answers: the option behind the agent's.
    """
    questions = gate.asks.questions
    blocks: list[Block] = []
    for number, question in enumerate(questions):
        entry = draft.entries[number]
        blocks += _choices(number, question, entry, FORM_BYTES // len(questions))
        initial = entry.other[:INPUT_TEXT] if entry.other else None
        element = text_input(TEXT, multiline="\n" in (initial or ""), initial=initial)
        label = words.form_other(visible(question.header))
        blocks.append(field(other_block(number), label, element, optional=True))
    blocks.append(field(RESPONSE, words.RESPONSE_LABEL, text_input(TEXT), optional=True))
    return prompt(words.FORM_TITLE, blocks, c.FORM, Where(gate.id))


def picks_block(number: int) -> str:
    return f"picks-{number}"


def other_block(number: int) -> str:
    return f"other-{number}"


def _choices(number: int, question: Question, entry: Entry, budget: int) -> list[Block]:
    """A question's field; before it the whole text, if that is more than the field can show."""
    header, text = visible(question.header), visible(question.question)
    shown = labels([*labels_of(question), words.FORM_WRITTEN], FORM_LABELS)
    full = [*(visible(choice.description) for choice in question.options), words.FORM_WRITTEN_HINT]
    described = [
        option(label, str(index), cut(one_line(description), OPTION_DESCRIPTION, length))
        for index, (label, description) in enumerate(zip(shown.texts, full, strict=True))
    ]
    whole = len(text) <= LABEL and all(length(description) <= OPTION_DESCRIPTION for description in full)
    whole = whole and all(length(visible(choice.label)) <= OPTION_TEXT for choice in question.options)
    picked = [described[index] for index in entry.picked] or ([described[-1]] if entry.other else [])
    element = (
        checkboxes(TEXT, described, picked)
        if question.multi_select
        else radio(TEXT, described, picked[0] if picked else None)
    )
    before = [] if whole else read_at_once(question, budget)
    label = f"{header}: {cut(text, LABEL, length)}"
    return [*before, field(picks_block(number), label, element)]


def full(gate: Gate, page: int, *, file: bool = False) -> Block:
    """Everything there is to read about a gate, a page at a time.

    An approval is given, and a link opened, on the last page: what comes before has been in view, or was passed over.
    Arguments that are too long for that go on in a ``file`` of the thread; while it is not there, none can be given.
    """
    found = pages(gate)
    page = min(max(page, 0), len(found) - 1)
    doc = gate.doc
    blocks: list[Block] = []
    if doc.kind in (Kind.APPROVAL, Kind.CUSTOM):
        blocks.append(rich(line(piece(visible(doc.tool_name), code=True))))
    if doc.kind is Kind.APPROVAL:
        blocks.append(context(" · ".join(facts(gate))))
    if gate.hidden:
        blocks.append(context(words.hidden(gate.hidden)))
    blocks += found[page]
    if len(found) > 1:
        blocks.append(context(words.page(page + 1, len(found))))
    if gate.pending and page == len(found) - 1 and too_long(gate):
        blocks.append(
            context(words.GOES_ON_IN_FILE.format(name=file_name(gate)) if file else words.NO_FILE_YET)
        )
    if not gate.pending:
        blocks.append(context(settled_line(gate)))
    if row := _full_controls(gate, page, len(found), file=file):
        blocks.append(actions(c.block_id(gate.id, 0, "full"), row))
    where = Where(gate.id, page=page)
    return modal(
        words.FULL_TITLE, aloud(blocks, [gate]), callback_id=c.FULL, metadata=where.dump(), submit=None
    )


def _full_controls(gate: Gate, page: int, count: int, *, file: bool) -> list[Block]:
    row = []
    if page > 0:
        row.append(button(words.PREVIOUS, f"{c.PAGE}:{page - 1}"))
    if page < count - 1:
        row.append(button(words.NEXT, f"{c.PAGE}:{page + 1}"))
        if page < count - 2:
            row.append(button(words.LAST, f"{c.PAGE}:{count - 1}"))
    elif gate.doc.kind is Kind.APPROVAL and gate.pending:
        can_be_read = file or not too_long(gate)
        row += [*(approving(gate) if can_be_read else ()), *rejecting(gate)]
    elif gate.doc.kind is Kind.LINK and gate.pending:
        link = link_of(gate)
        row += [*([open_button(link)] if link.url else []), done_button(link)]
    return row


def settled(gate: Gate) -> Block:
    """What a modal turns into when its gate is settled: who, what, when, and nothing to click."""
    return modal(
        words.SETTLED_TITLE, settled_blocks(gate, SETTLED_MOST), callback_id=c.FULL, metadata="", submit=None
    )


def refusal(text: str) -> Block:
    """What a modal turns into when what it asks for cannot be done any more. ``text`` is our own markup."""
    return modal(words.REFUSED_TITLE, [context(text)], callback_id=c.FULL, metadata="", submit=None)


def _asked(question: Question) -> list[Block]:
    text = cut(visible(question.question), ASKED_BYTES)
    lines = [
        line(piece(visible(choice.label), bold=True), piece(f" — {cut(visible(choice.description), 300)}"))
        for choice in question.options
    ]
    return [line(piece(f"{visible(question.header)}: ", bold=True), piece(text)), listing(lines)]


def prompt(
    title: str, blocks: list[Block], callback_id: str, where: Where, submit: str | None = None
) -> Block:
    """A modal that asks for something. Its button says ``submit``, or else just that."""
    return modal(
        title,
        blocks,
        callback_id=callback_id,
        metadata=where.dump(),
        submit=submit or words.SUBMIT,
        close=words.CANCEL,
    )
