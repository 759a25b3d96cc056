"""A form gate on a card: its title, its fields, and after it was filled in the values by their labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import Block, actions, button, context, line, listing, piece, rich
from bot.cards.heading import form_word, heading
from bot.cards.labels import LOOKED_AT, alike
from bot.cards.limits import MESSAGE_BYTES, OPTION_TEXT
from bot.cards.offers import ways_out
from bot.cards.text import Measure, glance, length, shown, size, uncut
from core.forms import FormField, FormRequest
from core.gates import Gate

SEPARATOR: Final = " — "
QUOTED: Final = 10
"""Characters of a blank label that stand in quotes."""
LONG_LABEL: Final = 2000
"""Characters of a label that is too long for a card, whatever it consists of."""
ROW_BYTES: Final = 60
"""What a field's label and value get at least on a settled card; fields beyond the room are counted."""


def form_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending form, with at most ``budget`` bytes of the agent's text."""
    fields = form_of(gate).all_fields
    head = heading(gate, form_word(gate), budget // 2)
    lines, whole = _fields(fields, budget - head.size)
    blocks = [rich(*head.lines, *([listing(lines)] if lines else []))]
    whole = whole and head.whole
    if not whole:
        blocks.append(context(words.TEXT_CUT))
    row = [button(words.FORM if fields else words.ACCEPT, c.FILL, style="primary")]
    if not whole or not all(map(_options_fit, fields)):
        row.append(button(words.VIEW_IN_FULL, c.FULL))
    return [*blocks, actions(c.block_id(gate.id, 0, "gate"), [*row, *ways_out(gate)])]


def form_of(gate: Gate) -> FormRequest:
    """The form of a form gate. Raises ValueError for another kind."""
    if gate.doc.form is None:
        raise ValueError(f"{gate.id} is no form")
    return gate.doc.form


def field_label(field: FormField, most: int, measure: Measure = size) -> str:
    """A field's label on one line, cut; one of nothing but blanks in quotes."""
    return glance(field.shown, most, measure) or json.dumps(field.shown[:QUOTED])


def label_fits(field: FormField, seen: str) -> bool:
    """Whether a label made by `field_label` is all of it."""
    return len(field.shown) <= LONG_LABEL and field_label(field, MESSAGE_BYTES) == seen


def _fields(fields: Sequence[FormField], budget: int) -> tuple[list[Block], bool]:
    """A line a field, and whether nothing had to be cut. What one field leaves is for the later ones."""
    lines, whole = [], True
    for place, field in enumerate(fields):
        description, mark = field.description.strip(), words.REQUIRED if field.required else ""
        room = budget // (len(fields) - place) - len(mark) - size(SEPARATOR)
        needed = size(shown(description, room))
        head = field_label(field, max(room * 2 // 3, room - needed))
        tail = shown(description, room - size(head))
        lines.append(line(piece(head, bold=True), piece(mark), piece(f"{SEPARATOR}{tail}" if tail else "")))
        budget -= size(head) + len(mark) + size(SEPARATOR) + size(tail)
        whole = whole and label_fits(field, head) and uncut(description, tail)
    return lines, whole


def _options_fit(field: FormField) -> bool:
    """Whether a menu shows each option whole and unlike the others."""
    texts = [glance(option.shown, LOOKED_AT) for option in field.options]
    return all(length(text) <= OPTION_TEXT for text in texts) and not alike(texts)


# what was filled in


def form_answer(gate: Gate, budget: int) -> list[Block]:
    """The values by their labels, a line each, in ``budget`` bytes; what finds no room is counted."""
    values = gate.decision.values if gate.decision else None
    given = values if isinstance(values, dict) else {}
    asked = form_of(gate).all_fields
    if not asked:
        return [line(piece(words.ARROW), piece(words.ACCEPT, bold=True))]
    fields = [field for field in asked if field.name in given]
    count = min(len(fields), max((budget - ROW_BYTES) // ROW_BYTES, 1))
    share = (budget - ROW_BYTES) // max(count, 1)
    lines = []
    for field in fields[:count]:
        head = field_label(field, share // 2)
        text = shown(value_text(field, given[field.name]), share - size(head) - size(": "))
        lines.append(line(piece(f"{head}: "), piece(text, bold=True)))
    if count < len(fields):
        lines.append(line(piece(words.and_more("…", len(fields) - count))))
    return lines


def value_text(field: FormField, value: JsonValue) -> str:
    """A value as people read it: labels of options, Yes or No."""
    labels = {option.value: option.shown for option in field.options}
    match value:
        case bool():
            return words.YES if value else words.NO
        case list():
            return ", ".join(labels.get(str(item), str(item)) for item in value)
        case str():
            return labels.get(value, value)
    return json.dumps(value)
