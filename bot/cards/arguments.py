"""The arguments of a call as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from bot.cards.text import cut, reads_from_the_right, size, visible
from core.gates import Gate

WHOLE_LINES: Final = 40
"""A card shows arguments of up to so many lines whole."""
SOME_LINES: Final = 15
"""Of longer ones it shows so many: the channel is for people, and the rest is one click away."""
COLUMNS: Final = 100
"""Characters after which Slack breaks a line, or later on a wide screen."""
SHORT_LIST: Final = 60
"""Characters of a list up to which it stands in one line."""
_STEP: Final = "  "


def arguments(gate: Gate, most: int | None = None) -> str:
    """Indented JSON in the order given, with nothing invisible in it; only the beginning if over ``most`` characters.

    A text of several lines (a script, a letter) stands under its name, a line a piece, each in its own quotes:
    they are one text when joined. So no line of it can pass for an argument of its own. What cannot be seen is
    escaped; all the rest is the JSON that it seems to be.
    """
    found, length = [], 0
    for piece in _written(gate.arguments, ""):
        found.append(piece)
        length += len(piece)
        if most is not None and length > most:
            return visible("".join(found)[: most + 1])
    return visible("".join(found))


def at_least(value: JsonValue) -> int:
    """Bytes that a value takes at least when it is written: a byte a character of its texts, and one a value."""
    match value:
        case str():
            return 1 + len(value)
        case dict():
            return 1 + sum(len(name) + at_least(item) for name, item in value.items())
        case list():
            return 1 + sum(map(at_least, value))
    return 1


def indented(value: JsonValue, most: int | None) -> str | None:
    """JSON with two blanks a level; None if it is over ``most`` characters. Without a ``most`` it is on one line."""
    if most is None:
        return json.dumps(value, ensure_ascii=False)
    found, length = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        found.append(piece)
        length += len(piece)
        if length > most:
            return None
    return "".join(found)


def at_a_glance(gate: Gate, most: int) -> tuple[str, bool]:
    """What a card shows of the arguments in at most ``most`` bytes, and whether that is all of them."""
    text = arguments(gate, most)
    if size(text) <= most and sum(map(_rows, text.split("\n"))) <= WHOLE_LINES:
        return text, True
    return cut(_beginning(text), most), False


def _beginning(text: str) -> str:
    """The first `SOME_LINES` lines, as a screen breaks them."""
    found: list[str] = []
    left = SOME_LINES
    for line in text.split("\n"):
        found.append(line[: left * COLUMNS])
        left -= _rows(line)
        if left <= 0:
            break
    return "\n".join(found) + "…"


def _rows(line: str) -> int:
    return -(-len(line) // COLUMNS) or 1


def _written(value: JsonValue, indent: str) -> Iterator[str]:
    inner = indent + _STEP
    match value:
        case dict() if value:
            for place, (name, item) in enumerate(value.items()):
                yield f"{',' if place else '{'}\n{inner}{_quoted(name)}:{'' if _has_lines(item) else ' '}"
                yield from _written(item, inner)
            yield f"\n{indent}}}"
        case list() if _is_short(value):
            yield _quoted(value)
        case list() if value:
            for place, item in enumerate(value):
                yield f"{',' if place else '['}\n{inner}"
                yield from _written(item, inner)
            yield f"\n{indent}]"
        case str() if _has_lines(value):
            for line in _lines(value):
                yield f"\n{inner}{_quoted(line)}"
        case _:
            yield _quoted(value)


def _is_short(items: list[JsonValue]) -> bool:
    """Whether a list is a few numbers and words, which read best in one line."""
    if len(items) > SHORT_LIST or any(isinstance(item, dict | list) for item in items):
        return False
    if any(isinstance(item, str) and ("\n" in item or len(item) > SHORT_LIST) for item in items):
        return False
    if any(isinstance(item, str) and reads_from_the_right(item) for item in items):
        # numbers between such words would change their places on one line
        return False
    return len(_quoted(items)) <= SHORT_LIST


def _has_lines(value: JsonValue) -> bool:
    return isinstance(value, str) and "\n" in value[:-1]


def _lines(text: str) -> list[str]:
    """The lines of a text, each with the line break that ends it."""
    *ended, last = text.split("\n")
    return [f"{line}\n" for line in ended] + ([last] if last else [])


def _quoted(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
