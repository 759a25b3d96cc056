"""A question gate on a card: its questions, their options, what people have picked so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import (
    Block,
    actions,
    button,
    context,
    line,
    listing,
    multi_select,
    option,
    person,
    piece,
    rich,
    select,
)
from bot.cards.drafts import Draft, Entry, drafts_of
from bot.cards.labels import NUMBER, Labels, alike, labels, numbered
from bot.cards.text import glance, mention, shown, size, uncut
from core.gates import Gate
from core.policy import Person
from core.questions import Question
from core.questions import labels as labels_of

CONTROLS_SHARE = 0.4
"""How much of a question's room its buttons or menu may take: they repeat the labels."""
HEADER_BYTES = 60
SEPARATOR = " — "
LEAST_BYTES = 20
"""With less room than this the options that were not taken are left out."""
PICKERS = 3
"""How many people's picks a question shows by name; the others are counted."""
PICK_BYTES = 40
WHO_BYTES = 45
"""A mention, with what separates it from the next."""
COUNT_BYTES = 12
"""How many options of a multi select somebody has picked: `2 picked: `."""
DRAFTS_BYTES = PICKERS * (WHO_BYTES + COUNT_BYTES + PICK_BYTES) + 40
"""What drafts add to one question, at most."""
PROGRESS_BYTES = PICKERS * (WHO_BYTES + 10) + 50


def question_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending question gate, with at most ``budget`` bytes of the agent's text.

    What people have drafted comes on top, within `drafts_bytes`.
    """
    questions, drafts = gate.asks.questions, drafts_of(gate)
    share = budget // len(questions)
    blocks, whole = [], True
    for number, question in enumerate(questions):
        fitted = _fitted(question, share)
        picks = _picks(number, question, drafts)
        blocks += [rich(*fitted.lines, *picks), _option_controls(gate, number, question, fitted.labels)]
        whole = whole and fitted.whole
    if not whole:
        blocks.append(context(words.TEXT_CUT))
    elif any(choice.markdown for question in questions for choice in question.options):
        blocks.append(context(words.PREVIEWS))
        whole = False
    if len(questions) > 1 and drafts:
        blocks.append(context(_progress(drafts, len(questions))))
    return [*blocks, _gate_controls(gate, whole)]


def drafts_bytes(gate: Gate) -> int:
    """How much a question gate may grow by what people pick."""
    return len(gate.asks.questions) * DRAFTS_BYTES + PROGRESS_BYTES


class _Fitted(NamedTuple):
    """A question as it fits: its lines, the labels on its controls, and whether all of the text is there."""

    lines: list[Block]
    labels: Labels
    whole: bool


def _fitted(question: Question, budget: int) -> _Fitted:
    for_controls = int(budget * CONTROLS_SHARE)
    on_controls = labels(labels_of(question), for_controls)
    header = shown(question.header, HEADER_BYTES)
    room = budget - on_controls.size - NUMBER * len(question.options) - size(header)
    text = shown(question.question, room // 2)
    lines, whole = _options(question, room - size(text))
    if alike([label for label, _ in lines]):
        # what is told apart on a button may look alike in a list that is cut shorter
        on_controls = numbered(labels_of(question), for_controls)
    items = [
        line(piece(label, bold=True), piece(f"{SEPARATOR}{description}" if description else ""))
        for label, description in lines
    ]
    asked = line(piece(f"{header}: ", bold=True), piece(text))
    whole = whole and uncut(question.header, header) and uncut(question.question, text)
    return _Fitted([asked, listing(items, ordered=on_controls.numbered)], on_controls, whole)


def _options(question: Question, budget: int) -> tuple[list[tuple[str, str]], bool]:
    """Labels and descriptions, and whether nothing had to be cut. What one option leaves is for the later ones."""
    lines: list[tuple[str, str]] = []
    whole = True
    for place, choice in enumerate(question.options):
        room = budget // (len(question.options) - place) - size(SEPARATOR)
        needed = size(shown(choice.description, room))
        label = shown(choice.label, max(room * 2 // 3, room - needed))
        description = shown(choice.description, room - size(label))
        lines.append((label, description))
        budget -= size(label) + size(SEPARATOR) + size(description)
        whole = whole and uncut(choice.label, label) and uncut(choice.description, description)
    return lines, whole


def _option_controls(gate: Gate, number: int, question: Question, on_controls: Labels) -> Block:
    row, several = c.block_id(gate.id, number, "options"), len(gate.asks.questions) > 1

    def hint(text: str) -> str:
        return words.about(text, glance(question.header, HEADER_BYTES)) if several else text

    other = button(words.OTHER, c.OTHER)
    if question.multi_select:
        menu = multi_select(c.CHOOSE, hint(words.CHOOSE_SOME), options(on_controls.texts))
        lone = [] if several else [button(words.SUBMIT, c.SUBMIT, style="primary")]
        return actions(row, [menu, *lone, other])
    if on_controls.short:
        picks = [button(label, f"{c.PICK}:{index}") for index, label in enumerate(on_controls.texts)]
        return actions(row, [*picks, other])
    return actions(row, [select(c.CHOOSE, hint(words.CHOOSE_ONE), options(on_controls.texts)), other])


def options(texts: Sequence[str]) -> list[Block]:
    """Options of a menu. Their values are indexes."""
    return [option(text, str(index)) for index, text in enumerate(texts)]


def _gate_controls(gate: Gate, whole: bool) -> Block:
    several = len(gate.asks.questions) > 1
    row = []
    if several:
        row += [button(words.SUBMIT, c.SUBMIT, style="primary"), button(words.FORM, c.FORM)]
    if not whole:
        row.append(button(words.VIEW_IN_FULL, c.FULL))
    row += [button(words.GENERAL_RESPONSE, c.RESPONSE), button(words.DECLINE, c.DECLINE)]
    return actions(c.block_id(gate.id, 0, "gate"), row)


# what people have picked


def _picks(number: int, question: Question, drafts: Mapping[str, Draft]) -> list[Block]:
    """Who picks what, as one line: `Picked so far: @ana Focused · @ben Broad`; of a multi select also how many."""
    given = {who: draft.entries[number] for who, draft in drafts.items() if draft.entries[number].given}
    if not given:
        return []
    pieces = [piece(words.PICKED_SO_FAR, italic=True)]
    for place, (who, entry) in enumerate(list(given.items())[:PICKERS]):
        count = words.picked(len(entry.picked)) if question.multi_select and entry.picked else ""
        text = shown(_words_of(question, entry), PICK_BYTES)
        pieces += [piece(" · " if place else ""), person(_person(who)), piece(f" {count}{text}")]
    if len(given) > PICKERS:
        pieces.append(piece(words.and_more("", len(given) - PICKERS)))
    return [line(*pieces)]


def _words_of(question: Question, entry: Entry) -> str:
    value = entry.value(question)
    return ", ".join(value) if isinstance(value, list) else value or ""


def _progress(drafts: Mapping[str, Draft], count: int) -> str:
    """Who has answered how much, as markup: `@ana: 1 of 3 picked`."""
    people = list(drafts.items())
    said = [words.progress(draft.answered, count, mention(_person(who))) for who, draft in people[:PICKERS]]
    return words.progress_line(words.and_more(" · ".join(said), len(people) - len(said)))


def _person(speaker: str) -> Person:
    team, _, user = speaker.partition(":")
    return Person(team=team, user=user)


# what became of it


def question_lines(gate: Gate, budget: int) -> list[Block]:
    """What was asked and answered, and what was not taken, as rich text lines within ``budget`` bytes."""
    values = gate.decision.values if gate.decision else None
    given = values if isinstance(values, dict) else {}
    answers, response = given.get("answers"), given.get("response")
    questions = gate.asks.questions
    share = budget // (len(questions) + bool(response))
    found: list[Block] = []
    for question in questions:
        answer = answers.get(question.question) if isinstance(answers, dict) else None
        taken = answer if isinstance(answer, list) else [] if answer is None else [answer]
        found += _settled(question, [str(item) for item in taken], answered=values is not None, budget=share)
    if response:
        head = f"{words.RESPONSE_TITLE}: "
        found.append(line(piece(head), piece(shown(str(response), share - size(head)), bold=True)))
    return found


def _settled(question: Question, taken: list[str], *, answered: bool, budget: int) -> Iterator[Block]:
    """One question's lines. The answer has the room that it needs; the options beside it have what is left."""
    head = f"{shown(question.header, min(HEADER_BYTES, budget // 4))}: "
    text = shown(question.question, budget // 3)
    yield line(piece(head, bold=True), piece(text))
    room = budget - size(head) - size(text)
    word = words.NOT_TAKEN if answered else words.OPTIONS
    others = ", ".join(label for label in labels_of(question) if label not in taken)
    wanted = size(word) + size(shown(others, room)) if others else 0
    if taken:
        said = shown(", ".join(taken), room - min(wanted, room // 3) - size(words.ARROW))
        yield line(piece(words.ARROW), piece(said, bold=True))
        room -= size(words.ARROW) + size(said)
    if others and room >= size(word) + LEAST_BYTES:
        yield line(piece(word), piece(shown(others, room - size(word))))
