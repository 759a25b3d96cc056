"""A run's card: one or more messages, a pure function of the stored run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot import words
from bot.cards import approval
from bot.cards.aloud import aloud
from bot.cards.approval import approval_blocks
from bot.cards.blocks import Block, context, divider, header, note, row
from bot.cards.custom import custom_blocks
from bot.cards.files import file_refused, file_wanted
from bot.cards.form import form_blocks
from bot.cards.heading import asked_of
from bot.cards.limits import HEADER_TEXT, MESSAGE_BLOCKS, MESSAGE_BYTES
from bot.cards.link import link_blocks
from bot.cards.plain import plain
from bot.cards.question import drafts_bytes, question_blocks
from bot.cards.settled import settled_blocks
from bot.cards.text import cut, date, escape, glance, isolated, length, mention, one_line, shown, visible
from bot.cards.together import together_row
from bot.cards.weight import weight
from core.gates import Gate, Kind
from core.places import Place
from core.runs import Run, RunStatus

ERROR_BYTES: Final = 300
"""What is shown of a host's words for why it did not take a run up."""
LINK_CHARS: Final = 300
"""An address that is longer is left out."""
HEAD_BYTES: Final = 800 + LINK_CHARS + ERROR_BYTES
"""For the header, the line below it, and what became of the run afterwards."""
ROOM_BYTES: Final = MESSAGE_BYTES - HEAD_BYTES
"""What the gates of one message may take together, at any time of their lives."""
ASKED_BYTES: Final = 200
"""What a notification holds of what is asked."""
HEAD_BLOCKS: Final = 3
TAIL_BLOCKS: Final = 2
"""A divider and the button for all approvals; its few bytes are in `HEAD_BYTES`."""
LONE_BYTES: Final = 5800
"""What a lone gate may show of the agent's text; the rest is for our own words and for what people pick."""
SHARED_BYTES: Final = 2300
"""What each of several gates may show."""
SETTLED_BYTES: Final = 900
"""What a settled gate gets at least: what it was, who settled it, and some of the answer."""
SETTLED_MOST: Final = 2500
"""More than this of a settled gate only pushes the thread away."""


FILE_BYTES: Final = 300
"""For the word that there is no file where one is wanted."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a card: the gates it shows (by index), its blocks, and the text for notifications.

    ``plain`` is markup of our own, for when the chat system does not take the blocks.
    """

    gates: tuple[int, ...]
    blocks: list[Block]
    text: str
    plain: str = ""


def pack(run: Run, first: int = 0) -> list[tuple[int, ...]]:
    """Which gates share a message, from the gate ``first`` on: in order, as many as fit whatever becomes of them.

    Made from what never changes about a run, so that it comes out the same every time (until settings change what is
    hidden: hence those that have a message keep it).
    """
    parts: list[list[int]] = []
    blocks_left = bytes_left = 0
    for gate in run.gates[first:]:
        blocks, room = _claim(gate, gate_budget(run))
        if not parts or blocks > blocks_left or room > bytes_left:
            parts.append([])
            blocks_left, bytes_left = MESSAGE_BLOCKS - HEAD_BLOCKS - TAIL_BLOCKS, ROOM_BYTES
        parts[-1].append(gate.doc.index)
        blocks_left, bytes_left = blocks_left - blocks, bytes_left - room
    return [tuple(part) for part in parts]


def gate_budget(run: Run) -> int:
    """Bytes of agent text that each gate of a run may show on the card."""
    return max(SHARED_BYTES, LONE_BYTES // len(run.gates))


def _claim(gate: Gate, budget: int) -> tuple[int, int]:
    """The blocks and bytes that a gate may come to need, made from what never changes about it."""
    untouched = gate.model_copy(
        update={"votes": (), "drafts": {}, "policy": gate.doc.policy, "edited": None, "edits": ()}
    )
    blocks = pending_blocks(untouched, budget)
    own, grown = weight(blocks), 0
    if gate.doc.kind is Kind.QUESTION:
        grown = drafts_bytes(gate)
    elif gate.doc.kind is Kind.APPROVAL:
        grown = approval.growth(gate, budget, own)
    notes = approval.EDIT_NOTES if gate.doc.policy.edits else 0
    if gate.doc.policy.edits or file_wanted(untouched):
        notes, grown = notes + 1, grown + FILE_BYTES
    # a divider, and a line of progress
    return len(blocks) + notes + 2, max(own + grown, SETTLED_BYTES)


def render(run: Run, parts: Sequence[tuple[int, ...]], *, link: str = "", instead: str = "") -> list[Message]:
    """The messages of a run's card, one for each part. A copy leads back to the card: ``link`` is its address.

    ``instead``: it stands in for the card, which the run's place does not take, by this word of the chat system's.
    """
    return [_message(run, parts, number, link, instead) for number in range(len(parts))]


def _message(run: Run, parts: Sequence[tuple[int, ...]], number: int, link: str, instead: str) -> Message:
    gates, budget = [run.gates[index] for index in parts[number]], gate_budget(run)
    blocks = _head(run, number, len(parts), link, instead)
    claims = [_claim(gate, budget)[1] for gate in gates]
    spare = max(ROOM_BYTES - sum(claims), 0) // len(gates)
    for gate, claim in zip(gates, claims, strict=True):
        blocks.append(divider())
        if gate.pending:
            blocks += _with_note(run, gate, pending_blocks(gate, budget))
        else:
            blocks += settled_blocks(gate, min(claim + spare, SETTLED_MOST))
    if number == len(parts) - 1 and sum(map(len, parts)) == len(run.gates):
        # below all that it is about, once all of that is there
        row = together_row(run, budget)
        blocks += [divider(), row] if row else []
    pending = sum(gate.pending for gate in gates)
    text = words.fallback(isolated(escape(title(run))), pending, len(gates), isolated(_first_asked(gates)))
    return Message(parts[number], aloud(blocks, gates), text, plain(gates))


def moved(run: Run) -> Message:
    """What stands in the place of a card that was sent again."""
    return Message((), [note(title(run)), context(words.MOVED)], words.MOVED)


def _with_note(run: Run, gate: Gate, blocks: list[Block]) -> list[Block]:
    """The blocks of a pending gate; above its controls, that Slack did not take the file with its arguments."""
    code = file_refused(run, gate)
    if not code or not file_wanted(gate):
        return blocks
    return [*blocks[:-1], context(words.file_refused(escape(code))), blocks[-1]]


def _first_asked(gates: Sequence[Gate]) -> str:
    """What the first pending gate asks, as one escaped line: what notifications show, and screen readers say."""
    first = next((gate for gate in gates if gate.pending), None)
    if first is None:
        return ""
    word, asked = asked_of(first)
    return escape(word + glance(asked, ASKED_BYTES))


def title(run: Run) -> str:
    """What a run is about, on one line, as plain text."""
    return cut(one_line(visible(run.doc.title or "")) or words.DEFAULT_TITLE, HEADER_TEXT, length)


def _head(run: Run, number: int, count: int, link: str, instead: str) -> list[Block]:
    """What it is about, who asks, for whom, until when; in the thread's later messages only what they go on with."""
    if number:
        return [note(f"{isolated(title(run))} ({words.continued(number + 1, count)})")]
    facts = [words.asked_by(run.doc.owner, run.doc.host)]
    if run.doc.requester:
        facts.append(words.asked_for(mention(run.doc.requester)))
    if run.escalated:
        facts.append(words.escalated(_elsewhere(run)))
    pending = [gate.deadline for gate in run.gates if gate.pending]
    if pending:
        facts.append(words.until(date(min(pending))))
    if link and len(link) <= LINK_CHARS and run.doc.place:
        facts.append(words.copy_of(f"<#{run.doc.place.channel}>", escape(link)))
    if instead and run.doc.place:
        facts.append(words.instead_of(_named(run.doc.place), instead))
    return [header(title(run)), context(" · ".join(facts)), *_afterwards(run)]


def _afterwards(run: Run) -> list[Block]:
    """That the host did not take the run up, or in vain: whoever decided it thinks that it went on."""
    error = shown(one_line(run.error or ""), ERROR_BYTES - 100)
    match run.status:
        case RunStatus.FAILED:
            return [row(words.host_refused(error))]
        case RunStatus.LOST:
            return [row(words.host_moved_on(error))]
        case RunStatus.WAITING if run.attempt > 1 and error:
            return [row(words.asked_again(error))]
    return []


def _elsewhere(run: Run) -> str:
    """Where a run was escalated to, as markup; empty if only to more people."""
    place = run.doc.escalate.place if run.doc.escalate else None
    return _named(place) if place else ""


def _named(place: Place) -> str:
    return f"<#{place.channel}>" if place.channel else f"<@{place.user}>"


def pending_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending gate; above them, how many of its values are hidden."""
    blocks = _by_kind(gate, budget)
    return [context(words.hidden(gate.hidden)), *blocks] if gate.hidden else blocks


def _by_kind(gate: Gate, budget: int) -> list[Block]:
    match gate.doc.kind:
        case Kind.QUESTION:
            return question_blocks(gate, budget)
        case Kind.APPROVAL:
            return approval_blocks(gate, budget)
        case Kind.FORM:
            return form_blocks(gate, budget)
        case Kind.LINK:
            return link_blocks(gate, budget)
        case Kind.CUSTOM:
            return custom_blocks(gate, budget)
