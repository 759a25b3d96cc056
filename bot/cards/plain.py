"""What stands in the place of a card that the chat system does not take: how to read it and decide all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bot import words
from bot.cards.settled import settled_line
from core.gates import Gate

LINES: Final = 20
"""How many gates it names at most. With every line at its longest this is within Slack's 4,000 characters."""


def plain(gates: Sequence[Gate]) -> str:
    """Some gates of a run as markup. None of the agent's words are in it, for they might be what is not taken."""
    pending = [gate for gate in gates if gate.pending]
    lines = [
        words.undrawn_gate(gate.id, "" if gate.pending else settled_line(gate)) for gate in gates[:LINES]
    ]
    if len(gates) > LINES:
        lines.append(words.and_more("…", len(gates) - LINES))
    return "\n".join([words.undrawn(pending[0].id if pending else ""), *lines])
