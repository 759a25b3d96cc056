"""The file with a call's arguments: for those that are too long to be read in Slack's own windows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bot import words
from bot.cards.arguments import indented
from bot.cards.reading import too_long
from bot.cards.text import visible
from core.gates import Gate
from core.runs import Card, CardFile, Run

INDENTED_CHARS: Final = 4_000_000
"""Up to so many characters of JSON are indented; deep nesting could make a hundred times more of it."""


def file_wanted(gate: Gate) -> bool:
    """Whether people need a file to read what they decide on."""
    return gate.pending and too_long(gate)


def file_data(gate: Gate) -> bytes:
    """All the arguments as JSON, in UTF-8, with nothing invisible in it."""
    text = indented(gate.arguments, INDENTED_CHARS) or indented(gate.arguments, None)
    return visible(f"{text}\n").encode()


def file_name(gate: Gate) -> str:
    """No word of the agent's is in it, nor in the title or the comment."""
    return f"arguments-{short_digest(gate)}.json"


def file_title(gate: Gate) -> str:
    return words.file_title(short_digest(gate))


def short_digest(gate: Gate) -> str:
    return (gate.digest or "")[:8]


def file_of(card: Card, gate: Gate) -> CardFile | None:
    """The file with a gate's present arguments that belongs to a message, if one was begun."""
    own = (file for file in card.files if file.gate == gate.doc.index and file.digest == gate.digest)
    return next(own, None)


def file_there(run: Run, gate: Gate) -> bool:
    """Whether the file is in the thread of every copy of the card that shows the gate."""
    cards = list(_standing(run, gate))
    files = [file_of(card, gate) for card in cards]
    return bool(cards) and all(file is not None and file.shared for file in files)


def file_refused(run: Run, gate: Gate) -> str:
    """Slack's word for why it did not take the file somewhere, or nothing."""
    files = (file_of(card, gate) for card in _standing(run, gate))
    return next((file.refused for file in files if file and file.refused), "")


def _standing(run: Run, gate: Gate) -> Iterable[Card]:
    return (card for card in run.cards if card.ts and gate.doc.index in card.gates)
