"""An approval gate on a card: the tool, its arguments, the risk, and who has approved so far."""

from __future__ import annotations

import json

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import Block, actions, button, code, context, line, piece, quote, rich
from bot.cards.text import cut, mention, size, visible
from core.gates import Action, Gate

REASON_SHARE = 3
"""A reason gets at most a third of the room; the arguments get the rest."""


def arguments(gate: Gate) -> str:
    """The arguments as people read them: indented JSON in the order given, with nothing invisible in it.

    Escaping what cannot be seen keeps it JSON that means the same.
    """
    return visible(json.dumps(gate.doc.arguments, indent=2, ensure_ascii=False))


def approval_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending approval, with at most ``budget`` bytes of the agent's text.

    Approve stands here only if all the arguments do; else it waits behind them, in "View in full".
    """
    doc = gate.doc
    title = line(piece(words.APPROVAL), piece(cut(visible(doc.tool_name), 300), code=True))
    shown = [title]
    if doc.reason:
        shown.append(quote(cut(visible(doc.reason), budget // REASON_SHARE)))
    room = budget - sum(size(p["text"]) for element in shown for p in element["elements"])
    text = arguments(gate)
    whole = size(text) <= room
    shown.append(code(text if whole else cut(text, room)))
    cut_reason = bool(doc.reason) and size(visible(doc.reason or "")) > budget // REASON_SHARE
    blocks = [rich(*shown), context(*facts(gate))]
    if not whole:
        blocks.append(context(words.ARGUMENTS_CUT))
    row = [] if whole else [button(words.VIEW_IN_FULL, c.FULL, style="primary")]
    if whole:
        row.append(button(words.APPROVE, c.APPROVE, doc.args_digest or "", style="primary"))
    row.append(button(words.REJECT, c.REJECT, doc.args_digest or "", style="danger"))
    row.append(button(words.REJECT_WITH_REASON, c.REJECT_REASON, doc.args_digest or ""))
    if whole and cut_reason:
        row.append(button(words.VIEW_IN_FULL, c.FULL))
    return [*blocks, actions(c.block_id(gate.id, 0, "gate"), row)]


def facts(gate: Gate) -> list[str]:
    """Risk, quorum and digest, in small print, as markup."""
    doc, policy = gate.doc, gate.doc.policy
    found = [words.RISKS[doc.risk]] if doc.risk else []
    for action, need, say in (
        (Action.APPROVE, policy.quorum, words.votes),
        (Action.DENY, policy.reject_quorum, words.votes_against),
    ):
        names = [mention(vote.by) for vote in gate.votes if vote.action is action]
        if names or (need > 1 and action is Action.APPROVE):
            found.append(say(len(names), need, ", ".join(names)))
    return [*found, words.digest((doc.args_digest or "")[:8])]
