"""An approval gate on a card: the tool, its arguments, the risk, and who has approved so far."""

from __future__ import annotations

from bot import words
from bot.cards import controls as c
from bot.cards.arguments import at_a_glance
from bot.cards.blocks import Block, actions, button, code, context, line, piece, quote, rich
from bot.cards.deciders import DECIDERS_BYTES, deciders
from bot.cards.edits import EDITS_BYTES, edited, editor_text
from bot.cards.reading import too_long
from bot.cards.text import names, shown, size, visible
from core.gates import Action, Gate

REASON_SHARE = 3
"""A reason gets at most a third of the room; the arguments get the rest."""
TOOL_BYTES = 300
VOTERS_BYTES = 400
"""What the names of those who voted one way may take; two dozen people fit."""
SAVES_BYTES = 60_000
"""What "Approve always" may save, all of which a modal shows."""
OUR_BYTES = 800
"""What our own words take at most around the agent's, before anybody votes or edits."""
EDIT_NOTES = 3
"""How many lines an edit may add: values are hidden, the arguments go on, and they cannot be edited in Slack."""


def approval_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending approval, with at most ``budget`` bytes of the agent's text.

    Approve stands here only if the tool's whole name and all the arguments do; else it waits behind them, in "View in
    full". What approvers edited comes on top, within `growth`.
    """
    parts = [tool_line(gate)]
    why, unread = _reason(gate, budget // REASON_SHARE)
    if why:
        parts.append(quote(why))
    text, whole = _call(gate, budget - size(why))
    parts += [code(text), *edited(gate)]
    blocks = [rich(*parts), context(" · ".join(facts(gate)))]
    if not whole:
        blocks.append(context(words.ARGUMENTS_IN_FILE if too_long(gate) else words.ARGUMENTS_CUT))
    if gate.policy.edits and editor_text(gate) is None:
        blocks.append(context(words.HIDDEN_TO_EDIT if gate.hidden else words.TOO_LONG_TO_EDIT))
    if saves_too_much(gate):
        blocks.append(context(words.TOO_LONG_TO_SAVE))
    return [*blocks, _controls(gate, whole=whole, unread=unread)]


def read_on_card(gate: Gate, budget: int) -> bool:
    """Whether all of a call can be read on the card, as `approval_blocks` shows it: nothing cut, nothing masked."""
    return not gate.hidden and _call(gate, budget - size(_reason(gate, budget // REASON_SHARE)[0]))[1]


def _call(gate: Gate, budget: int) -> tuple[str, bool]:
    """The arguments as they fit beside the tool's name, and whether the whole call is there."""
    tool = shown(gate.doc.tool_name, TOOL_BYTES)
    text, whole = at_a_glance(gate, budget - size(tool))
    return text, whole and tool == visible(gate.doc.tool_name)


def growth(gate: Gate, budget: int, own: int) -> int:
    """By how many bytes a pending approval may grow through what people do.

    ``own`` is what its blocks take at first. An edit may make short arguments long: up to ``budget``.
    """
    policy = gate.doc.policy
    voters = (VOTERS_BYTES + 50) * ((policy.quorum > 1) + (policy.reject_quorum > 1))
    voters += DECIDERS_BYTES - size(deciders(policy.deciders))
    if not policy.edits:
        return voters
    return voters + max(budget + OUR_BYTES - own, 0) + EDITS_BYTES


def _reason(gate: Gate, most: int) -> tuple[str, bool]:
    """The reason that the agent gave, as far as it fits, and whether some of it is left out."""
    reason = (gate.doc.reason or "").strip()
    return shown(reason, most), size(visible(reason)) > most


def _controls(gate: Gate, *, whole: bool, unread: bool) -> Block:
    """``whole``: all the arguments stand above; ``unread``: not all of the reason does."""
    full = button(words.VIEW_IN_FULL, c.FULL, style=None if whole else "primary")
    row = approving(gate) if whole else [full, *editing(gate)]
    row += rejecting(gate)
    if whole and unread:
        row.append(full)
    return actions(c.block_id(gate.id, 0, "gate"), row)


def approving(gate: Gate) -> list[Block]:
    """The buttons that approve. They stand where all of the arguments do. Dots say that something is asked first."""
    dots = "…" if gate.policy.reason == "always" else ""
    row = [button(words.APPROVE + dots, c.APPROVE, gate.digest or "", style="primary"), *editing(gate)]
    if Action.APPROVE_ALWAYS in gate.doc.offered and not saves_too_much(gate):
        row.append(button(f"{words.ALWAYS}…", c.ALWAYS, gate.digest or ""))
    return row


def editing(gate: Gate) -> list[Block]:
    """The editor shows all of the arguments itself, so its button may stand anywhere."""
    can = gate.policy.edits and editor_text(gate) is not None
    return [button(words.EDIT, c.EDIT)] if can else []


def saves_too_much(gate: Gate) -> bool:
    """Whether "Approve always" would save more than its modal can show."""
    return sum(size(visible(text)) for text in gate.doc.saves) > SAVES_BYTES


def rejecting(gate: Gate) -> list[Block]:
    """The buttons that reject, the shortest way first. Where a reason is wanted there is but one way."""
    if gate.policy.reason != "never":
        return [button(words.REJECT_WITH_REASON, c.REJECT_REASON, gate.digest or "", style="danger")]
    return [
        button(words.REJECT, c.REJECT, gate.digest or "", style="danger"),
        button(words.REJECT_WITH_REASON, c.REJECT_REASON, gate.digest or ""),
    ]


def tool_line(gate: Gate) -> Block:
    return line(piece(words.APPROVAL), piece(shown(gate.doc.tool_name, TOOL_BYTES), code=True))


def facts(gate: Gate) -> list[str]:
    """Risk, who may decide and how many have, whether a reason is wanted, and the digest, as markup."""
    doc, policy = gate.doc, gate.policy
    found = [words.RISKS[doc.risk]] if doc.risk else []
    if gate.pending:
        found.append(words.approvers(deciders(policy.deciders)))
    for action, need, say in (
        (Action.APPROVE, policy.quorum, words.votes),
        (Action.DENY, policy.reject_quorum, words.votes_against),
    ):
        voters = [vote.by for vote in gate.votes if vote.action is action]
        if voters or (need > 1 and action is Action.APPROVE):
            found.append(say(len(voters), need, words.and_more(*names(voters, VOTERS_BYTES))))
    if policy.reason != "never":
        found.append(words.REASON_WANTED[policy.reason])
    return [*found, words.digest((gate.digest or "")[:8])]
