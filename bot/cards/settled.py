"""A settled gate on a card: what was asked, who settled it how and when. Nothing to click."""

from __future__ import annotations

from bot import words
from bot.cards.approval import TOOL_BYTES, VOTERS_BYTES
from bot.cards.arguments import arguments
from bot.cards.blocks import Block, code, context, line, person, piece, rich
from bot.cards.custom import custom_answer
from bot.cards.question import answer_lines
from bot.cards.text import cut, date, names, shown, size
from bot.cards.weight import weight
from core.gates import Gate, Kind, Outcome, Vote

ARGUMENTS_BYTES = 600
REASONS = 3
"""How many people's reasons are shown at most."""
REASON_BYTES = 120
"""What one of several reasons gets at least, with the name in front."""
NAME_BYTES = 80


def settled_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a settled gate, in at most ``budget`` bytes."""
    foot = context(settled_line(gate))
    room = budget - weight(foot)
    asked = _asked(gate, room // 2)
    words_left = room - weight(asked)
    return [rich(*asked, *_answered(gate, words_left), *_reasons(gate, words_left)), foot]


def _asked(gate: Gate, budget: int) -> list[Block]:
    if gate.doc.kind is Kind.QUESTION:
        questions = gate.asks.questions
        share = budget // len(questions) - size(" · ")
        return [line(piece(" · ".join(shown(q.question, share) for q in questions)))]
    tool = line(piece(shown(gate.doc.tool_name, min(TOOL_BYTES, budget // 2)), code=True))
    if gate.doc.kind is Kind.APPROVAL:
        room = min(budget - weight(tool), ARGUMENTS_BYTES)
        return [tool, code(cut(arguments(gate, room), room))]
    return [tool]


def _answered(gate: Gate, budget: int) -> list[Block]:
    if gate.status != Outcome.ANSWERED:
        return []
    return answer_lines(gate, budget) if gate.doc.kind is Kind.QUESTION else custom_answer(gate, budget - 8)


def _reasons(gate: Gate, budget: int) -> list[Block]:
    """What people said with their decision; for what nobody decided, why."""
    decision = gate.decision
    if decision is None or gate.status == Outcome.ANSWERED:
        return []
    said = [vote for vote in decision.votes if vote.comment][: min(REASONS, max(budget // REASON_BYTES, 1))]
    if said:
        share = budget // len(said) - NAME_BYTES
        return [_said(vote, share, named=len(decision.votes) > 1) for vote in said]
    return [line(piece(shown(decision.detail, budget), italic=True))] if decision.detail else []


def _said(vote: Vote, budget: int, *, named: bool) -> Block:
    who = [person(vote.by), piece(": ")] if named else [piece(f"{words.REASON}: ")]
    return line(*who, piece(shown(vote.comment or "", budget), italic=True))


def settled_line(gate: Gate) -> str:
    """`✅ Approved by @ana · Today at 10:00`, as markup."""
    decision = gate.decision
    if decision is None:
        raise ValueError(f"{gate.id} is pending")
    who = words.and_more(*names(decision.by, VOTERS_BYTES))
    return words.settled_line(decision.outcome, who, date(decision.at), words.via(decision.via))
