"""A run's card: one or more messages, a pure function of the stored run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot import words
from bot.cards.approval import approval_blocks
from bot.cards.blocks import Block, context, divider, header, line, piece, rich
from bot.cards.custom import custom_answer, custom_blocks
from bot.cards.limits import HEADER_TEXT, MESSAGE_BLOCKS, MESSAGE_BYTES, text_bytes
from bot.cards.question import answer_lines, question_blocks
from bot.cards.text import cut, date, escape, mention, visible
from core.gates import Gate, Kind, Outcome
from core.runs import Run

GATE_BYTES = 7000
"""What a lone gate may take of a message; the rest is for the header and our own words."""
SHARED_BYTES = 2300
"""What each of several gates may take: three of them fit into one message."""
ROOM_BYTES = 600
"""Left free in each message for what is added later: votes, drafts, who settled it."""
SETTLED_BYTES = 1200


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a card: the gates it shows (by index), its blocks, and the text for notifications."""

    gates: tuple[int, ...]
    blocks: list[Block]
    text: str


def pack(run: Run) -> list[tuple[int, ...]]:
    """Which gates share a message: in order, as many as fit while all of them are pending.

    Made from what never changes about a run, so that it comes out the same every time.
    """
    budget = gate_budget(run)
    parts: list[list[int]] = []
    blocks_left = bytes_left = 0
    for gate in run.gates:
        rendered = pending_blocks(gate, budget)
        blocks, size = len(rendered) + 1, text_bytes(rendered)
        if not parts or blocks > blocks_left or size > bytes_left:
            parts.append([])
            blocks_left, bytes_left = MESSAGE_BLOCKS - 8, MESSAGE_BYTES - ROOM_BYTES - 2 * HEADER_TEXT
        parts[-1].append(gate.doc.index)
        blocks_left, bytes_left = blocks_left - blocks, bytes_left - size
    return [tuple(part) for part in parts]


def gate_budget(run: Run) -> int:
    """Bytes of agent text that each gate of a run may show on the card."""
    return max(SHARED_BYTES, GATE_BYTES // len(run.gates))


def render(run: Run, parts: Sequence[tuple[int, ...]]) -> list[Message]:
    """The messages of a run's card, one for each part."""
    return [_message(run, part, first=number == 0) for number, part in enumerate(parts)]


def _message(run: Run, part: tuple[int, ...], *, first: bool) -> Message:
    title = visible(run.doc.title or words.DEFAULT_TITLE)
    blocks = [header(cut(title, HEADER_TEXT)), context(" · ".join(_facts(run)))] if first else []
    for index in part:
        gate = run.gates[index]
        if blocks:
            blocks.append(divider())
        blocks += pending_blocks(gate, gate_budget(run)) if gate.pending else settled_blocks(gate)
    pending = sum(run.gates[index].pending for index in part)
    return Message(part, blocks, words.fallback(escape(cut(title, HEADER_TEXT)), pending, len(part)))


def _facts(run: Run) -> list[str]:
    """Who asks, for whom, until when, as markup."""
    facts = [words.asked_by(run.doc.owner, run.doc.host)]
    if run.doc.requester:
        facts.append(words.asked_for(mention(run.doc.requester)))
    pending = [gate.deadline for gate in run.gates if gate.pending]
    if pending:
        facts.append(words.until(date(min(pending))))
    return facts


def pending_blocks(gate: Gate, budget: int) -> list[Block]:
    match gate.doc.kind:
        case Kind.QUESTION:
            return question_blocks(gate, budget)
        case Kind.APPROVAL:
            return approval_blocks(gate, budget)
        case Kind.CUSTOM:
            return custom_blocks(gate, budget)


def settled_blocks(gate: Gate) -> list[Block]:
    """A settled gate: what was asked, and who settled it how and when. No buttons."""
    lines = [_asked(gate)]
    if gate.status == Outcome.ANSWERED:
        lines += (
            answer_lines(gate, SETTLED_BYTES)
            if gate.doc.kind is Kind.QUESTION
            else custom_answer(gate, SETTLED_BYTES)
        )
    elif gate.decision and (word := gate.decision.comment or gate.decision.detail):
        lines.append(line(piece(cut(visible(word), SETTLED_BYTES // 2), italic=True)))
    return [rich(*lines), context(settled_line(gate))]


def _asked(gate: Gate) -> Block:
    if gate.doc.kind is Kind.QUESTION:
        texts = [visible(q.question) for q in gate.asks.questions]
        share = SETTLED_BYTES // 2 // len(texts)
        return line(piece(" · ".join(cut(text, share) for text in texts)))
    return line(piece(cut(visible(gate.doc.tool_name), 300), code=True))


def settled_line(gate: Gate) -> str:
    """`✅ Approved by @ana · Today at 10:00`, as markup."""
    decision = gate.decision
    if decision is None:
        raise ValueError(f"{gate.id} is pending")
    who = ", ".join(mention(actor) for actor in decision.by)
    return words.settled_line(decision.outcome, who, date(decision.at), words.via(decision.via))
