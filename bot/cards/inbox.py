"""What waits for a person, as a list: what, until when, where, and the way to its card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.aloud import name, told_apart
from bot.cards.blocks import Block, button, context, header, markup, row
from bot.cards.heading import title_of
from bot.cards.text import date, glance, size
from core.copies import FIRST_COPY
from core.gates import Gate, Kind
from core.runs import Card, Run

TITLE_BYTES: Final = 90
WHAT_BYTES: Final = 160
"""Twenty gates fit one message with room to spare."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending gate, its run, and the address of its card if Slack told it."""

    run: Run
    gate: Gate
    url: str | None


def inbox_blocks(title: str, waiting: Sequence[Waiting], notes: Sequence[str]) -> list[Block]:
    """The list; ``notes`` are our own sentences below it, the first of them at full size if nothing waits."""
    blocks = [header(title)]
    for item in waiting:
        what = _what(item.run, item.gate)
        label = name(words.OPEN_CARD, what)
        opened = button(words.OPEN_CARD, c.OPEN, url=item.url, label=label) if item.url else None
        blocks += [row(what, opened), context(" · ".join(_facts(item.run, item.gate)))]
    for place, note in enumerate(notes):
        blocks.append(context(note) if waiting or place else markup(note))
    return told_apart(blocks)


def card_of(run: Run, gate: Gate) -> Card | None:
    """The message that shows a gate to all who may see it: no copy of somebody's own."""
    shared = (card for card in run.cards if card.copy_of < FIRST_COPY)
    return next((card for card in shared if card.ts and gate.doc.index in card.gates), None)


def _what(run: Run, gate: Gate) -> str:
    """The run's title and what is asked, as plain text."""
    title = glance(run.doc.title or "", TITLE_BYTES)
    word, asked = _asked(gate)
    room = TITLE_BYTES + WHAT_BYTES - size(title) - size(word)
    return f"{title} · {word}{glance(asked, room)}" if title else f"{word}{glance(asked, room)}"


def _asked(gate: Gate) -> tuple[str, str]:
    """Our word for it, and the agent's."""
    match gate.doc.kind:
        case Kind.QUESTION:
            first = gate.asks.questions[0]
            return "", f"{first.header}: {first.question}"
        case Kind.FORM:
            return words.FILL, title_of(gate)
        case Kind.LINK:
            return words.LINK, title_of(gate)
        case Kind.APPROVAL:
            return words.APPROVAL, gate.doc.tool_name
        case Kind.CUSTOM:
            return words.CUSTOM, gate.doc.tool_name


def _facts(run: Run, gate: Gate) -> list[str]:
    facts = [f"`{gate.id}`", words.until(date(gate.deadline))]
    if card := card_of(run, gate):
        facts.append(f"<#{card.channel}>")
    return facts
