"""The modals of an approval: a reason, edited arguments, an approval for always, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bot import words
from bot.cards import controls as c
from bot.cards.approval import tool_line
from bot.cards.blocks import Block, context, field, line, listing, piece, rich, text_input
from bot.cards.controls import Where
from bot.cards.edits import editor_text
from bot.cards.limits import INPUT_TEXT
from bot.cards.modals import TEXT, prompt
from bot.cards.reading import CHUNK_BYTES
from bot.cards.text import chunks, visible
from bot.cards.together import seen, together_blocks
from core.gates import MAX_COMMENT, Gate
from core.runs import Run

COMMENT: Final = "comment"
"""The block id of a reason beside something else."""
COMMENT_CHARS: Final = min(INPUT_TEXT, MAX_COMMENT)


def reason(gate: Gate, verb: str, digest: str) -> Block:
    """A reason for a decision on an approval: ``verb`` is reject_reason or approve."""
    rejecting = verb == c.REJECT_REASON
    element = text_input(TEXT, most=COMMENT_CHARS, focus=True)
    return prompt(
        words.REASON_TITLE if rejecting else words.APPROVE_REASON_TITLE,
        [rich(tool_line(gate)), field(TEXT, words.REASON_LABEL, element, hint=words.REASON_HINT)],
        verb,
        Where(gate.id, digest=digest),
        submit=words.REJECT if rejecting else words.APPROVE,
    )


def edit(gate: Gate) -> Block:
    """The arguments in an editor. Raises ValueError if they are too long for one (`editor_text`)."""
    text = editor_text(gate)
    if text is None:
        raise ValueError(f"the arguments of {gate.id} do not fit a text field")
    hint = words.EDIT_VOIDS if max(gate.policy.quorum, gate.policy.reject_quorum) > 1 else words.EDIT_HINT
    blocks = [
        rich(line(piece(words.APPROVAL), piece(visible(gate.doc.tool_name), code=True))),
        field(TEXT, words.EDIT_LABEL, text_input(TEXT, initial=text, focus=True), hint=hint),
        *_comment(gate),
    ]
    # what is approved is what the editor showed, whatever the card said when it was clicked
    where = Where(gate.id, digest=gate.digest or "")
    return prompt(words.EDIT_TITLE, blocks, c.EDIT, where, submit=words.APPROVE)


def always(gate: Gate, digest: str) -> Block:
    """What "Approve always" saves, all of it."""
    saved = [
        listing([line(piece(part))])
        for text in gate.doc.saves
        for part in chunks(visible(text), CHUNK_BYTES)
        if part
    ]
    blocks = [rich(tool_line(gate)), context(words.ALWAYS_TEXT if saved else words.ALWAYS_NOTHING)]
    blocks += [rich(item) for item in saved]
    blocks += _comment(gate)
    return prompt(words.ALWAYS_TITLE, blocks, c.ALWAYS, Where(gate.id, digest=digest), submit=words.ALWAYS)


def approve_all(run: Run, gates: Sequence[Gate]) -> Block:
    """All the open approvals of a run, listed, to be approved at once."""
    blocks = together_blocks(gates)
    blocks += next((field for gate in gates if (field := _comment(gate))), [])
    where = Where(run.gates[0].id, digest=seen(gates))
    submit = words.approve_all(len(gates))
    return prompt(words.APPROVE_ALL_TITLE, blocks, c.APPROVE_ALL, where, submit=submit)


def _comment(gate: Gate) -> list[Block]:
    """The field for a reason, if the policy wants one from who approves."""
    if gate.policy.reason != "always":
        return []
    return [
        field(COMMENT, words.REASON_LABEL, text_input(COMMENT, most=COMMENT_CHARS), hint=words.REASON_HINT)
    ]
