"""An approval gate on a card: the tool, its arguments, the risk, and who has approved so far."""

from __future__ import annotations

from bot import words
from bot.cards import controls as c
from bot.cards.arguments import arguments
from bot.cards.blocks import Block, actions, button, code, context, line, piece, quote, rich
from bot.cards.text import cut, names, shown, size, visible
from core.gates import Action, Gate

REASON_SHARE = 3
"""A reason gets at most a third of the room; the arguments get the rest."""
TOOL_BYTES = 300
VOTERS_BYTES = 400
"""What the names of those who voted one way may take; two dozen people fit."""


def approval_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending approval, with at most ``budget`` bytes of the agent's text.

    Approve stands here only if the tool's whole name and all the arguments do; else it waits behind them, in "View in
    full".
    """
    doc = gate.doc
    parts = [tool_line(gate)]
    why, unread = _reason(gate, budget // REASON_SHARE)
    if why:
        parts.append(quote(why))
    tool = shown(doc.tool_name, TOOL_BYTES)
    room = budget - size(tool) - size(why)
    text = arguments(gate, room)
    whole = size(text) <= room and tool == visible(doc.tool_name)
    parts.append(code(cut(text, room)))
    blocks = [rich(*parts), context(" · ".join(facts(gate)))]
    if not whole:
        blocks.append(context(words.ARGUMENTS_CUT))
    return [*blocks, _controls(gate, whole=whole, unread=unread)]


def _reason(gate: Gate, most: int) -> tuple[str, bool]:
    """The reason that the agent gave, as far as it fits, and whether some of it is left out."""
    reason = (gate.doc.reason or "").strip()
    return shown(reason, most), size(visible(reason)) > most


def _controls(gate: Gate, *, whole: bool, unread: bool) -> Block:
    """``whole``: all the arguments stand above; ``unread``: not all of the reason does."""
    full = button(words.VIEW_IN_FULL, c.FULL, style=None if whole else "primary")
    row = [approve(gate)] if whole else [full]
    row += [reject(gate), button(words.REJECT_WITH_REASON, c.REJECT_REASON, gate.doc.args_digest or "")]
    if whole and unread:
        row.append(full)
    return actions(c.block_id(gate.id, 0, "gate"), row)


def approve(gate: Gate) -> Block:
    """The button. Its dots say that a reason is asked for first."""
    text = words.APPROVE + ("…" if gate.doc.policy.reason == "always" else "")
    return button(text, c.APPROVE, gate.doc.args_digest or "", style="primary")


def reject(gate: Gate) -> Block:
    text = words.REJECT + ("" if gate.doc.policy.reason == "never" else "…")
    return button(text, c.REJECT, gate.doc.args_digest or "", style="danger")


def tool_line(gate: Gate) -> Block:
    return line(piece(words.APPROVAL), piece(shown(gate.doc.tool_name, TOOL_BYTES), code=True))


def facts(gate: Gate) -> list[str]:
    """Risk, quorum, whether a reason is wanted, and the digest, as markup."""
    doc, policy = gate.doc, gate.doc.policy
    found = [words.RISKS[doc.risk]] if doc.risk else []
    for action, need, say in (
        (Action.APPROVE, policy.quorum, words.votes),
        (Action.DENY, policy.reject_quorum, words.votes_against),
    ):
        voters = [vote.by for vote in gate.votes if vote.action is action]
        if voters or (need > 1 and action is Action.APPROVE):
            found.append(say(len(voters), need, words.and_more(*names(voters, VOTERS_BYTES))))
    if policy.reason != "never":
        found.append(words.REASON_WANTED[policy.reason])
    return [*found, words.digest((doc.args_digest or "")[:8])]
