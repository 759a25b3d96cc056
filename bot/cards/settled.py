"""A settled gate on a card: what was asked, who settled it how and when. Nothing to click."""

from __future__ import annotations

from bot import words
from bot.cards.approval import TOOL_BYTES, VOTERS_BYTES
from bot.cards.arguments import arguments
from bot.cards.blocks import Block, code, context, line, person, piece, rich
from bot.cards.custom import custom_answer
from bot.cards.edits import edited
from bot.cards.form import form_answer
from bot.cards.heading import title_line, title_of
from bot.cards.link import link_of
from bot.cards.question import question_lines
from bot.cards.text import cut, date, names, shown
from bot.cards.weight import weight
from core.gates import Action, Gate, Kind, Outcome, Vote

ARGUMENTS_BYTES = 600
REASONS = 3
"""How many people's reasons are shown at most."""
REASON_BYTES = 120
"""What one of several reasons gets at least, with the name in front."""
NAME_BYTES = 80
LABEL_BYTES = 16


def settled_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a settled gate, in at most ``budget`` bytes."""
    foot = context(settled_line(gate))
    room = budget - weight(foot)
    lines_hold_the_answer = gate.doc.kind is Kind.QUESTION and gate.status == Outcome.ANSWERED
    asked = _asked(gate, room if lines_hold_the_answer else room // 2)
    answered = _answered(gate, room - weight(asked))
    return [rich(*asked, *answered, *_reasons(gate, room - weight([asked, answered]))), foot]


def _asked(gate: Gate, budget: int) -> list[Block]:
    match gate.doc.kind:
        case Kind.QUESTION:
            return question_lines(gate, budget)
        case Kind.APPROVAL:
            return _call(gate, budget)
        case Kind.CUSTOM:
            return [_tool(gate, budget)]
        case Kind.FORM:
            return [title_line(gate, "", shown(title_of(gate), budget))]
        case Kind.LINK:
            title = title_line(gate, "", shown(title_of(gate), budget // 2))
            return [title, line(piece(shown(link_of(gate).shown_origin, budget // 2), code=True))]


def _tool(gate: Gate, budget: int) -> Block:
    return line(piece(shown(gate.doc.tool_name, min(TOOL_BYTES, budget // 2)), code=True))


def _call(gate: Gate, budget: int) -> list[Block]:
    """A tool call: the arguments as they are after all edits, who edited them, and what was saved."""
    tool, changes = _tool(gate, budget), edited(gate)
    if weight(changes) > budget // 3:
        changes = changes[:1]
    room = min(budget - weight([tool, *changes]), ARGUMENTS_BYTES)
    return [tool, code(cut(arguments(gate, room), room)), *changes]


def _answered(gate: Gate, budget: int) -> list[Block]:
    decision = gate.decision
    if decision and decision.action is Action.APPROVE_ALWAYS:
        saved = shown("; ".join(gate.doc.saves), budget // 2) or words.NOTHING
        return [line(piece(words.SAVED), piece(saved))]
    if gate.status != Outcome.ANSWERED:
        return []
    match gate.doc.kind:
        case Kind.QUESTION:
            return []
        case Kind.FORM:
            return form_answer(gate, budget)
        case Kind.LINK:
            return [line(piece(words.ARROW), piece(words.DONE, bold=True))]
        case _:
            return custom_answer(gate, budget - 8)


def _reasons(gate: Gate, budget: int) -> list[Block]:
    """What people said with their decision; for what nobody decided, why."""
    decision = gate.decision
    if decision is None or gate.status == Outcome.ANSWERED:
        return []
    said = [vote for vote in decision.votes if vote.comment][: min(REASONS, max(budget // REASON_BYTES, 1))]
    if said:
        share = budget // len(said) - NAME_BYTES
        return [_said(vote, share, named=len(decision.votes) > 1) for vote in said]
    if not decision.detail:
        return []
    return [line(_because(), piece(shown(decision.detail, budget - LABEL_BYTES), italic=True))]


def _said(vote: Vote, budget: int, *, named: bool) -> Block:
    who = [person(vote.by), piece(": ")] if named else [_because()]
    return line(*who, piece(shown(vote.comment or "", budget), italic=True))


def _because() -> Block:
    return piece(f"{words.REASON}: ")


def settled_line(gate: Gate) -> str:
    """`✅ Approved by @ana · Today at 10:00`, as markup."""
    decision = gate.decision
    if decision is None:
        raise ValueError(f"{gate.id} is pending")
    who = words.and_more(*names(decision.by, VOTERS_BYTES))
    return words.settled_line(decision, who, date(decision.at))
