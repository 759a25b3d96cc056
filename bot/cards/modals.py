"""The modals: a text of one's own, a reason, the whole batch of questions in a form, everything in full."""

from __future__ import annotations

from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.approval import arguments, facts
from bot.cards.blocks import (
    Block,
    actions,
    bullets,
    button,
    checkboxes,
    code,
    context,
    field,
    line,
    modal,
    option,
    piece,
    quote,
    radio,
    rich,
    text_input,
)
from bot.cards.card import settled_blocks
from bot.cards.controls import Where
from bot.cards.drafts import Draft, Entry
from bot.cards.limits import INPUT_LABEL, OPTION_DESCRIPTION
from bot.cards.question import options
from bot.cards.text import chunks, cut, visible
from core.gates import MAX_COMMENT, Gate, Kind
from core.questions import Question

TEXT: Final = "text"
"""The block id of a modal's lone text field."""
RESPONSE: Final = "response"
COMMENT_CHARS: Final = min(3000, MAX_COMMENT)
CHUNK: Final = 2800
"""Bytes of a piece of a long text: under what Slack takes in one text object."""
PAGE_CHUNKS: Final = 8


def other(gate: Gate, number: int, entry: Entry) -> Block:
    """A text of one's own instead of the options of one question."""
    question = gate.asks.questions[number]
    blocks = [
        rich(*_asked(question)),
        field(TEXT, words.OTHER_LABEL, text_input(TEXT, initial=entry.other, focus=True)),
    ]
    return _form(words.OTHER_TITLE, blocks, c.OTHER, Where(gate.id, number))


def response(gate: Gate) -> Block:
    """One text for the whole call, beside or instead of picks."""
    element = text_input(TEXT, focus=True)
    blocks = [
        rich(*(part for question in gate.asks.questions for part in _asked(question))),
        field(TEXT, words.RESPONSE_LABEL, element, hint=words.RESPONSE_HINT),
    ]
    return _form(words.RESPONSE_TITLE, blocks, c.RESPONSE, Where(gate.id))


def decline(gate: Gate) -> Block:
    element = text_input(TEXT, most=COMMENT_CHARS, focus=True)
    blocks = [
        context(words.DECLINE_TEXT),
        field(TEXT, words.DECLINE_LABEL, element, optional=True),
    ]
    return _form(words.DECLINE_TITLE, blocks, c.DECLINE, Where(gate.id), submit="Decline")


def reason(gate: Gate, verb: str, digest: str) -> Block:
    """A reason for a decision on an approval: ``verb`` is reject_reason or approve."""
    rejecting = verb == c.REJECT_REASON
    element = text_input(TEXT, most=COMMENT_CHARS, focus=True)
    blocks = [
        rich(line(piece(words.APPROVAL), piece(cut(visible(gate.doc.tool_name), 300), code=True))),
        field(TEXT, words.REASON_LABEL, element, hint=words.REASON_HINT),
    ]
    return _form(
        words.REASON_TITLE if rejecting else words.APPROVE_REASON_TITLE,
        blocks,
        verb,
        Where(gate.id, digest=digest),
        submit=words.REJECT if rejecting else words.APPROVE,
    )


def answer(gate: Gate) -> Block:
    """The answer to a custom gate."""
    element = text_input(TEXT, focus=True)
    blocks = [
        rich(line(piece(words.CUSTOM), piece(cut(visible(gate.doc.tool_name), 300), code=True))),
        field(TEXT, words.ANSWER_LABEL, element, hint=words.ANSWER_HINT),
    ]
    return _form(words.ANSWER_TITLE, blocks, c.ANSWER, Where(gate.id))


def form(gate: Gate, draft: Draft) -> Block:
    """All questions of a call in one modal, with what the person has drafted."""
    blocks: list[Block] = []
    for number, question in enumerate(gate.asks.questions):
        entry = draft.entries[number]
        blocks.append(_choices(number, question, entry))
        initial = cut(entry.other, 3000) if entry.other else None
        element = text_input(TEXT, multiline=False, initial=initial)
        blocks.append(field(other_block(number), words.FORM_OTHER, element, optional=True))
    blocks.append(field(RESPONSE, words.RESPONSE_LABEL, text_input(TEXT), optional=True))
    return _form(words.FORM_TITLE, blocks, c.FORM, Where(gate.id))


def picks_block(number: int) -> str:
    return f"picks-{number}"


def other_block(number: int) -> str:
    return f"other-{number}"


def _choices(number: int, question: Question, entry: Entry) -> Block:
    described = [
        option(o["text"]["text"], o["value"], cut(visible(choice.description), OPTION_DESCRIPTION))
        for o, choice in zip(
            options([visible(choice.label) for choice in question.options]), question.options, strict=True
        )
    ]
    picked = [described[index] for index in entry.picked]
    element = (
        checkboxes(TEXT, described, picked)
        if question.multi_select
        else radio(TEXT, described, picked[0] if picked else None)
    )
    label = cut(f"{visible(question.header)}: {visible(question.question)}", INPUT_LABEL)
    return field(picks_block(number), label, element, optional=True)


def full(gate: Gate, page: int) -> Block:
    """Everything there is to read about a gate, a page at a time.

    An approval is given on the last page: by then all of the arguments have been in view.
    """
    texts = chunks(_everything(gate), CHUNK)
    pages = [texts[i : i + PAGE_CHUNKS] for i in range(0, len(texts), PAGE_CHUNKS)]
    page = min(max(page, 0), len(pages) - 1)
    doc = gate.doc
    blocks = [rich(line(piece(cut(visible(doc.tool_name), 300), code=True)))]
    if doc.kind is Kind.APPROVAL and page == 0:
        if doc.reason:
            blocks += [rich(quote(text)) for text in chunks(visible(doc.reason), CHUNK)]
        blocks.append(context(*facts(gate)))
    blocks += [rich(code(text)) for text in pages[page]]
    row = []
    if page > 0:
        row.append(button(words.PREVIOUS, f"{c.PAGE}:{page - 1}"))
    if page < len(pages) - 1:
        row.append(button(words.NEXT, f"{c.PAGE}:{page + 1}"))
    elif doc.kind is Kind.APPROVAL:
        row.append(button(words.APPROVE, c.APPROVE, doc.args_digest or "", style="primary"))
        row.append(button(words.REJECT, c.REJECT, doc.args_digest or "", style="danger"))
    if len(pages) > 1:
        blocks.append(context(words.page(page + 1, len(pages))))
    if row:
        blocks.append(actions(c.block_id(gate.id, 0, "full"), row))
    where = Where(gate.id, page=page)
    return modal(words.FULL_TITLE, blocks, callback_id=c.FULL, metadata=where.dump(), submit=None)


def _everything(gate: Gate) -> str:
    if gate.doc.kind is not Kind.QUESTION:
        return arguments(gate)
    parts = []
    for question in gate.asks.questions:
        parts.append(f"{visible(question.header)}: {visible(question.question)}")
        for choice in question.options:
            parts.append(f"• {visible(choice.label)}\n{visible(choice.description)}")
            if choice.markdown:
                parts.append(visible(choice.markdown))
    return "\n\n".join(parts)


def settled(gate: Gate) -> Block:
    """What a modal turns into when its gate is settled: who, what, when, and nothing to click."""
    return modal(words.SETTLED_TITLE, settled_blocks(gate), callback_id=c.FULL, metadata="", submit=None)


def refusal(text: str) -> Block:
    """What a modal turns into when what it asks for cannot be done any more. ``text`` is our own markup."""
    return modal(words.SETTLED_TITLE, [context(text)], callback_id=c.FULL, metadata="", submit=None)


def _asked(question: Question) -> list[Block]:
    text = cut(visible(question.question), CHUNK // 4)
    lines = [
        line(piece(visible(choice.label), bold=True), piece(f" — {cut(visible(choice.description), 300)}"))
        for choice in question.options
    ]
    return [line(piece(f"{visible(question.header)}: ", bold=True), piece(text)), bullets(lines)]


def _form(
    title: str, blocks: list[Block], callback_id: str, where: Where, submit: str = words.SUBMIT
) -> Block:
    return modal(
        title, blocks, callback_id=callback_id, metadata=where.dump(), submit=submit, close=words.CANCEL
    )
