"""Several approvals of one run at once: the button below them, and the modal that lists them first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.approval import TOOL_BYTES, read_on_card
from bot.cards.blocks import Block, actions, button, context, line, listing, modal, piece, rich
from bot.cards.controls import Where
from bot.cards.text import glance, shown
from core.gates import Gate, Kind
from core.runs import Run

FEWEST: Final = 2
RECALLED_BYTES: Final = 150
"""What a row recalls of a call's arguments, which stand on the card."""
ROWS: Final = 20
"""Rows of one block."""
REASONS: Final = 40
"""How many different refusals are told in their own words; the others share one."""


def open_approvals(run: Run) -> list[Gate]:
    """What "Approve all" is about: never a question, a form, a link or a custom call."""
    return [gate for gate in run.gates if gate.doc.kind is Kind.APPROVAL and gate.pending]


def seen(gates: Sequence[Gate]) -> str:
    """The digest of which approvals these are and with what arguments: what somebody saw who approves them together."""
    return hashlib.sha256("\n".join(f"{gate.id} {gate.digest}" for gate in gates).encode()).hexdigest()


def together_row(run: Run, budget: int) -> Block | None:
    """The button, if there are several approvals and all that they are about can be read on the card."""
    gates = open_approvals(run)
    if len(gates) < FEWEST or not all(read_on_card(gate, budget) for gate in gates):
        return None
    label = f"{words.approve_all(len(gates))}…"
    return actions(c.block_id(run.gates[0].id, 0, "all"), [button(label, c.APPROVE_ALL, seen(gates))])


def together_blocks(gates: Sequence[Gate]) -> list[Block]:
    """What is approved, a line each. Which arguments these are is what their digest says."""
    blocks = [context(words.APPROVE_ALL_TEXT)]
    for start in range(0, len(gates), ROWS):
        rows = [_row(gate, number) for number, gate in enumerate(gates[start : start + ROWS], start + 1)]
        blocks.append(rich(*rows))
    if any(gate.policy.quorum > 1 for gate in gates):
        blocks.append(context(words.APPROVE_ALL_VOTES))
    return blocks


def _row(gate: Gate, number: int) -> Block:
    text = glance(json.dumps(gate.arguments, ensure_ascii=False), RECALLED_BYTES)
    risk = [words.PLAIN_RISKS[gate.doc.risk]] if gate.doc.risk else []
    about = " · ".join([*risk, words.plain_digest((gate.digest or "")[:8])])
    return line(
        piece(f"{number}. "),
        piece(shown(gate.doc.tool_name, TOOL_BYTES), code=True),
        piece(f" {about}\n"),
        piece(text, code=True),
        piece("\n"),
    )


def refused_together(run: Run, refused: Mapping[str, Sequence[Gate]]) -> Block:
    """Which of the approvals somebody may not give, by the reason for that (our own markup), and no way to give any."""
    told: dict[str, list[Gate]] = {}
    for place, (reason, gates) in enumerate(refused.items()):
        told.setdefault(reason if place < REASONS else words.NOT_ALLOWED, []).extend(gates)
    blocks = [context(words.APPROVE_ALL_NOT)]
    for reason, gates in told.items():
        names = [line(piece(shown(gate.doc.tool_name, TOOL_BYTES), code=True)) for gate in gates]
        blocks += [rich(listing(names)), context(reason)]
    where = Where(run.gates[0].id)
    title = words.APPROVE_ALL_TITLE
    return modal(title, blocks, callback_id=c.FULL, metadata=where.dump(), submit=None)
