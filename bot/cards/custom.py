"""A custom gate on a card: its JSON is shown; text or JSON comes back."""

from __future__ import annotations

import json

from bot import words
from bot.cards import controls as c
from bot.cards.approval import TOOL_BYTES
from bot.cards.arguments import at_a_glance
from bot.cards.blocks import Block, actions, button, code, context, line, piece, rich
from bot.cards.offers import ways_out
from bot.cards.text import shown, size, visible
from core.gates import Gate


def custom_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending custom gate, with at most ``budget`` bytes of the agent's text."""
    tool = shown(gate.doc.tool_name, TOOL_BYTES)
    room = budget - size(tool)
    text, whole = at_a_glance(gate, room)
    whole = whole and tool == visible(gate.doc.tool_name)
    blocks = [rich(line(piece(words.CUSTOM), piece(tool, code=True)), code(text))]
    if not whole:
        blocks.append(context(words.CUSTOM_CUT))
    row = [button(words.ANSWER, c.ANSWER, style="primary")]
    if not whole:
        row.append(button(words.VIEW_IN_FULL, c.FULL))
    return [*blocks, actions(c.block_id(gate.id, 0, "gate"), [*row, *ways_out(gate)])]


def custom_answer(gate: Gate, budget: int) -> list[Block]:
    """What was answered, as one rich text line."""
    values = gate.decision.values if gate.decision else None
    if values is None:
        return []
    text = values if isinstance(values, str) else json.dumps(values, ensure_ascii=False)
    return [line(piece(words.ARROW), piece(shown(text, budget), bold=True))]
