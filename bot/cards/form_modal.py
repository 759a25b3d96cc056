"""A form gate as a modal: an input a field, with the defaults filled in, and what its fields hold as an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pydantic import JsonValue

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import (
    Block,
    context,
    date_input,
    field,
    line,
    moment_input,
    multi_select,
    number_input,
    option,
    piece,
    radio,
    rich,
    select,
    text_input,
)
from bot.cards.controls import Where
from bot.cards.form import field_label, form_of, label_fits, value_text
from bot.cards.heading import body_of, title_of
from bot.cards.labels import labels
from bot.cards.limits import INPUT_TEXT, VIEW_BYTES, view_bytes
from bot.cards.modals import prompt
from bot.cards.rules import DECIMAL, WHOLE
from bot.cards.text import length, shown, uncut
from core.approvals import MAX_INT
from core.forms import FormField
from core.gates import Gate

VALUE: Final = "value"
"""The action id of a field's element."""
LABEL: Final = 150
"""Characters of a label that stand at its field; a longer one is told before the field."""
HINT: Final = 300
"""Characters of a description that stand below its field; a longer one is told before the field."""
DEFAULT: Final = 100
"""Characters of a default that is told because it cannot be filled in."""
SHORT_TEXT: Final = 300
"""A field for at most so many characters has one line."""
MOMENTS: Final = range(10**9, 10**10)
"""The seconds since 1970 that a picker may start at (Slack: datetimepicker has 10 digits)."""
MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class _Room:
    """How much a modal shows: bytes of a long text, bytes of an option's label, and whether menus have defaults."""

    text: int
    option: int
    picked: bool = True


ROOMS: Final = (
    _Room(2800, 300),
    _Room(600, 120),
    _Room(200, 60),
    _Room(100, 24, picked=False),
    _Room(60, 8, picked=False),
)
"""From roomy to tight: the first that fits is taken. The last holds 32 menus of 64 options each."""


def form_modal(gate: Gate) -> Block:
    """All fields of a form, within what Slack takes in one view."""
    views = (_view(gate, room) for room in ROOMS)
    return next((view for view in views if view_bytes(view) <= VIEW_BYTES), _view(gate, ROOMS[-1]))


def field_block(number: int) -> str:
    """The block id of a form's field."""
    return f"field-{number}"


def _view(gate: Gate, room: _Room) -> Block:
    lines, whole = [], True
    for text, bold in ((title_of(gate), True), (body_of(gate), False)):
        seen = shown(text, room.text)
        lines += [line(piece(seen, bold=bold))] if seen else []
        whole = whole and uncut(text, seen)
    blocks = [rich(*lines)]
    for number, asked in enumerate(form_of(gate).all_fields):
        before, told = _before(asked, room)
        blocks += [*before, _input(number, asked, room)]
        whole = whole and told
    if not whole:
        blocks.append(context(words.FILL_CUT))
    return prompt(words.FILL_TITLE, blocks, c.FILL, Where(gate.id))


def _before(asked: FormField, room: _Room) -> tuple[list[Block], bool]:
    """What is told before a field because it is too long for its label or its hint, and whether that is all of it."""
    texts, description = [], asked.description.strip()
    if not label_fits(asked, _label(asked)):
        texts.append((asked.shown, shown(asked.shown, room.text)))
    if not uncut(description, shown(description, HINT, length)):
        texts.append((description, shown(description, room.text)))
    blocks = [rich(*(line(piece(seen)) for _, seen in texts))] if texts else []
    return blocks, all(uncut(text, seen) for text, seen in texts)


def _input(number: int, asked: FormField, room: _Room) -> Block:
    element, filled = _element(asked, room)
    facts, description = [], asked.description.strip()
    hint = shown(description, HINT, length)
    if hint and uncut(description, hint):
        facts.append(hint)
    if asked.format in words.FORMATS:
        facts.append(words.FORMATS[asked.format])
    if asked.kind == "text" and asked.max_length and asked.max_length > INPUT_TEXT:
        facts.append(words.AT_MOST.format(most=INPUT_TEXT, allowed=asked.max_length))
    if asked.default is not None and not filled:
        default = shown(value_text(asked, asked.default), DEFAULT, length)
        facts.append(words.DEFAULT_UNFILLED.format(default=default))
    hints = "\n".join(facts) or None
    return field(field_block(number), _label(asked), element, optional=not asked.required, hint=hints)


def _label(asked: FormField) -> str:
    return field_label(asked, LABEL, length)


def _element(asked: FormField, room: _Room) -> tuple[Block, bool]:
    """The element for a field's kind, and whether its default is filled in."""
    match asked.kind:
        case "text" if asked.format == "date":
            return date_input(VALUE, None if asked.default is None else str(asked.default)), True
        case "text" if asked.format == "date-time":
            return _moment(asked)
        case "text":
            return _text(asked)
        case "number" | "integer":
            return _number(asked)
        case "confirm":
            choices = [option(words.YES, "0"), option(words.NO, "1")]
            initial = None if asked.default is None else choices[0 if asked.default else 1]
            return radio(VALUE, choices, initial), True
        case "select" | "multi_select":
            return _menu(asked, room)


def _text(asked: FormField) -> tuple[Block, bool]:
    most = min(asked.max_length or INPUT_TEXT, INPUT_TEXT)
    default = asked.default if isinstance(asked.default, str) and asked.default else None
    fits = default is None or _units(default) <= most
    initial = default if fits else None
    short = asked.format is not None or (asked.max_length or SHORT_TEXT + 1) <= SHORT_TEXT
    multiline = "\n" in (initial or "") or not short
    return text_input(VALUE, multiline=multiline, most=most, initial=initial), fits


def _units(text: str) -> int:
    """The text's length as a browser counts it."""
    return len(text.encode("utf-16-le")) // 2


def _moment(asked: FormField) -> tuple[Block, bool]:
    start = _start(asked)
    return moment_input(VALUE, start), asked.default is None or start is not None


def _start(asked: FormField) -> int | None:
    """The whole minute that a moment's picker starts at: that of the default, if a picker can show it."""
    if asked.default is None:
        return None
    minute = int(datetime.fromisoformat(str(asked.default).upper()).timestamp()) // MINUTE * MINUTE
    return minute if minute in MOMENTS else None


def _number(asked: FormField) -> tuple[Block, bool]:
    decimal = asked.kind == "number"
    round_up, round_down = (float, float) if decimal else (math.ceil, math.floor)
    least = None if asked.minimum is None else _plain(round_up(asked.minimum), decimal=decimal)
    most = None if asked.maximum is None else _plain(round_down(asked.maximum), decimal=decimal)
    if least is not None and most is not None and float(least) > float(most):
        least = most = None
    default = asked.default if isinstance(asked.default, int | float) else None
    initial = None if default is None else _plain(default, decimal=decimal)
    element = number_input(VALUE, decimal=decimal, least=least, most=most, initial=initial)
    return element, default is None or initial is not None


def _plain(number: float, *, decimal: bool) -> str | None:
    """A number as Slack's number field takes it; None for one that it cannot hold."""
    text = format(Decimal(repr(number)), "f")
    if text.endswith(".0"):
        text = text.removesuffix(".0")
    return text if (DECIMAL if decimal else WHOLE).fullmatch(text) else None


def _menu(asked: FormField, room: _Room) -> tuple[Block, bool]:
    texts = labels([choice.shown for choice in asked.options], room.option * len(asked.options)).texts
    choices = [option(text, str(index)) for index, text in enumerate(texts)]
    values = [choice.value for choice in asked.options]
    if asked.kind == "select":
        initial = choices[values.index(str(asked.default))] if asked.default is not None else None
        return select(VALUE, words.CHOOSE_ONE, choices, initial), True
    picked = asked.default if isinstance(asked.default, list) else []
    filled = room.picked or not picked
    initials = [choices[values.index(str(value))] for value in picked] if filled else []
    return multi_select(VALUE, words.CHOOSE_SOME, choices, initials, asked.max_items), filled


# what came back


def entered(gate: Gate, values: Mapping[str, Any]) -> tuple[dict[str, JsonValue], dict[str, str]]:
    """What the modal's fields hold: the values by name, and for what is no value a sentence by block id.

    What was left empty is absent. Whether the values fit the form is the engine's to say.
    """
    found: dict[str, JsonValue] = {}
    wrong: dict[str, str] = {}
    for number, asked in enumerate(form_of(gate).all_fields):
        held = values.get(field_block(number))
        if not held or (isinstance(held, str) and not held.strip()):
            continue
        try:
            found[asked.name] = _value(asked, held)
        except InvalidOperation:
            wrong[field_block(number)] = words.NO_NUMBER
    return found, wrong


def _value(asked: FormField, held: Any) -> JsonValue:
    match asked.kind:
        case "text" if asked.format == "date-time":
            # what nobody touched comes back as it was given, with its seconds and its offset
            return asked.default if held == _start(asked) else _moment_of(held)
        case "text":
            # what nobody touched comes back as it was given, blanks at its ends too
            return str(held) if held == asked.default else str(held).strip()
        case "number" | "integer":
            return _number_of(str(held))
        case "confirm":
            return bool(held == [0])
        case "select" | "multi_select":
            chosen: list[JsonValue] = [asked.options[index].value for index in held]
            return chosen if asked.kind == "multi_select" else chosen[0]


def _moment_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _number_of(text: str) -> int | float:
    """The number that was typed. Raises InvalidOperation for what is none, or so large that it loses digits."""
    number = Decimal(text.strip())
    if not number.is_finite() or abs(number) > MAX_INT:
        raise InvalidOperation
    whole = number == number.to_integral_value() and "." not in text
    return int(number) if whole else float(number)
