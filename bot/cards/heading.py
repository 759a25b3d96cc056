"""The head of a form or a link on a card: what it is, its title, its body. And what any gate is, in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bot import words
from bot.cards.blocks import Block, line, piece
from bot.cards.text import shown, size, uncut
from core.gates import Gate, Kind

TITLE_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class Heading:
    """Rich text lines, the bytes of the agent's text in them, and whether all of it is there."""

    lines: list[Block]
    size: int
    whole: bool


def heading(gate: Gate, word: str, budget: int) -> Heading:
    """Title and body in at most ``budget`` bytes. Without a title the tool's name stands for it."""
    title, body = title_of(gate), body_of(gate)
    head = shown(title, TITLE_BYTES)
    text = shown(body, max(budget - size(head), 0))
    lines = [title_line(gate, word, head)]
    if text:
        lines.append(line(piece(text)))
    return Heading(lines, size(head) + size(text), uncut(title, head) and uncut(body, text))


def title_line(gate: Gate, word: str, title: str) -> Block:
    return line(piece(word), piece(title, code=True) if _untitled(gate) else piece(title, bold=True))


def title_of(gate: Gate) -> str:
    """The title of a form or a link, or the tool's name if it has none."""
    return gate.doc.tool_name if _untitled(gate) else _asked(gate)[0]


def body_of(gate: Gate) -> str:
    return _asked(gate)[1]


def form_word(gate: Gate) -> str:
    """What a form is: one without fields asks for a yes alone."""
    return words.FILL if gate.doc.form and gate.doc.form.all_fields else words.CUSTOM


def _untitled(gate: Gate) -> bool:
    return not _asked(gate)[0]


def _asked(gate: Gate) -> tuple[str, str]:
    what = gate.doc.form or gate.doc.link
    return (what.title.strip(), what.body.strip()) if what else ("", "")


def asked_of(gate: Gate) -> tuple[str, str]:
    """What a gate is, in our word and the agent's: `Approval needed: ` and a tool."""
    match gate.doc.kind:
        case Kind.QUESTION:
            first = gate.asks.questions[0]
            return "", f"{first.header}: {first.question}"
        case Kind.FORM:
            return form_word(gate), title_of(gate)
        case Kind.LINK:
            return words.LINK, title_of(gate)
        case Kind.APPROVAL:
            return words.APPROVAL, gate.doc.tool_name
        case Kind.CUSTOM:
            return words.CUSTOM, gate.doc.tool_name
