"""Edits: what approvers changed in the arguments of a call, and what of it fits a card or an editor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from bot import words
from bot.cards.arguments import indented
from bot.cards.blocks import Block, line, listing, person, piece
from bot.cards.limits import INPUT_TEXT
from bot.cards.text import isolated, length, shown, visible
from core.diffs import Change, diff
from core.gates import Gate

EDITS_BYTES: Final = 830
"""What edits add to a card, at most."""
EDITORS: Final = 2
"""How many people are named as editors."""
CHANGES: Final = 4
"""How many changes a card shows; the others are counted."""
PATH_BYTES: Final = 45
VALUE_BYTES: Final = 45


def editor_text(gate: Gate) -> str | None:
    """The arguments for a text field: indented JSON with nothing invisible in it.

    None if it does not fit one, or if some of it is masked: a mask would come back as a value.
    """
    if gate.hidden:
        return None
    text = indented(gate.arguments, INPUT_TEXT)
    if text is None:
        return None
    text = visible(text)
    return text if length(text) <= INPUT_TEXT else None


def edited(gate: Gate) -> list[Block]:
    """Who edited the arguments, and how they differ from what the agent asked for, as rich text in `EDITS_BYTES`."""
    if not gate.edits:
        return []
    changes = changes_of(gate)
    lines = [_change(change) for change in changes[:CHANGES]]
    if len(changes) > CHANGES:
        lines.append(line(piece(words.and_more("…", len(changes) - CHANGES))))
    who = line(piece(words.EDITED_BY), *_editors(gate), piece(":" if lines else words.EDITED_BACK))
    return [who, listing(lines)] if lines else [who]


def changes_of(gate: Gate) -> list[Change]:
    """The places that differ between what the agent asked for and what is to be approved."""
    return diff(gate.doc.arguments, gate.arguments)


def change_text(change: Mapping[str, JsonValue]) -> str:
    """A change in full: `/path: "old" → "new"`."""
    old, new = (isolated(_value(change, name)) for name in ("old", "new"))
    return f"{isolated(path_of(change))}: {old} → {new}"


def path_of(change: Mapping[str, JsonValue]) -> str:
    """Where it is, as a JSON Pointer (RFC 6901); `/` for the whole."""
    return visible(str(change["path"])) or "/"


def _change(change: Mapping[str, JsonValue]) -> Block:
    old, new = (isolated(shown(_value(change, name), VALUE_BYTES)) for name in ("old", "new"))
    path = isolated(shown(path_of(change), PATH_BYTES))
    return line(piece(path, code=True), piece(f": {old} → "), piece(new, bold=True))


def _value(change: Mapping[str, JsonValue], name: str) -> str:
    if name not in change:
        return words.NOTHING
    return visible(json.dumps(change[name], ensure_ascii=False))


def _editors(gate: Gate) -> Iterator[Block]:
    people = list(dict.fromkeys(edit.by for edit in gate.edits))
    for place, actor in enumerate(people[:EDITORS]):
        if place:
            yield piece(", ")
        yield person(actor)
    if len(people) > EDITORS:
        yield piece(words.and_more("", len(people) - EDITORS))
