"""The ways out of a call that a card offers beside the answer: to decline it, to cancel it."""

from __future__ import annotations

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import Block, button, confirm
from core.gates import Action, Gate


def ways_out(gate: Gate) -> list[Block]:
    """The buttons, as far as the gate offers them. Cancel asks back, for no modal follows it."""
    row = [button(words.DECLINE, c.DECLINE)] if Action.DECLINE in gate.doc.offered else []
    if Action.CANCEL in gate.doc.offered:
        row.append(button(words.CANCEL, c.CANCEL, confirm=_asks_back()))
    return row


def _asks_back() -> Block:
    return confirm(words.DISMISS_TITLE, words.DISMISS_TEXT, words.DISMISS, words.KEEP)
