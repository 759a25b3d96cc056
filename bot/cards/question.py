"""A question gate on a card: its questions, their options, what people have picked so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import (
    Block,
    actions,
    bullets,
    button,
    context,
    line,
    multi_select,
    option,
    piece,
    rich,
    select,
)
from bot.cards.drafts import drafts_of
from bot.cards.limits import OPTION_TEXT
from bot.cards.text import cut, mention, size, visible
from core.gates import Gate
from core.policy import Person
from core.questions import Question

SHORT_LABEL = 40
"""Bytes of a label up to which an option is a button of its own; Slack may cut longer ones on a phone."""


def question_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending question gate, with at most ``budget`` bytes of the agent's text."""
    questions = gate.asks.questions
    share = budget // len(questions)
    blocks, whole = [], True
    for number, question in enumerate(questions):
        shown, complete = _question(gate, number, question, share)
        blocks += shown
        whole = whole and complete
    if not whole:
        blocks.append(context(words.TEXT_CUT))
    if len(questions) > 1:
        blocks += [context(text) for text in _progress(gate)]
    return [*blocks, _gate_controls(gate, whole)]


def _question(gate: Gate, number: int, question: Question, budget: int) -> tuple[list[Block], bool]:
    """One question with its controls, and whether all of its text is there."""
    text = cut(visible(question.question), budget // 2)
    room = (budget - size(text)) // len(question.options)
    lines, whole = [], text == visible(question.question)
    for choice in question.options:
        label = visible(choice.label)
        description = cut(visible(choice.description), max(room - size(label), 60))
        whole = whole and description == visible(choice.description) and not choice.markdown
        lines.append(line(piece(label, bold=True), piece(f" — {description}")))
    asked = line(piece(f"{visible(question.header)}: ", bold=True), piece(text))
    return [rich(asked, bullets(lines)), _option_controls(gate, number, question)], whole


def _option_controls(gate: Gate, number: int, question: Question) -> Block:
    labels = [visible(choice.label) for choice in question.options]
    row = c.block_id(gate.id, number, "options")
    other = button(words.OTHER, c.OTHER)
    if question.multi_select:
        menu = multi_select(c.CHOOSE, words.CHOOSE_SOME, options(labels))
        lone = [button(words.SUBMIT, c.SUBMIT, style="primary")] if len(gate.asks.questions) == 1 else []
        return actions(row, [menu, *lone, other])
    if all(size(label) <= SHORT_LABEL for label in labels):
        picks = [button(label, f"{c.PICK}:{index}") for index, label in enumerate(labels)]
        return actions(row, [*picks, other])
    return actions(row, [select(c.CHOOSE, words.CHOOSE_ONE, options(labels)), other])


def options(labels: Sequence[str]) -> list[Block]:
    """Options of a menu; labels that would look alike after a cut get a number in front."""
    cuts = [cut(label, OPTION_TEXT) for label in labels]
    if len(set(cuts)) < len(cuts):
        cuts = [cut(f"{number}. {label}", OPTION_TEXT) for number, label in enumerate(labels, start=1)]
    return [option(text, str(index)) for index, text in enumerate(cuts)]


def _gate_controls(gate: Gate, whole: bool) -> Block:
    several = len(gate.asks.questions) > 1
    row = []
    if several:
        row += [button(words.SUBMIT, c.SUBMIT, style="primary"), button(words.FORM, c.FORM)]
    if not whole:
        row.append(button(words.VIEW_IN_FULL, c.FULL))
    row += [button(words.GENERAL_RESPONSE, c.RESPONSE), button(words.DECLINE, c.DECLINE)]
    return actions(c.block_id(gate.id, 0, "gate"), row)


def _progress(gate: Gate) -> Iterator[str]:
    """Who has answered how much, as markup: `@ana: 1 of 3 answered`."""
    for person, draft in drafts_of(gate).items():
        yield words.progress(draft.answered, len(draft.entries), _who(person))


def _who(speaker: str) -> str:
    team, _, user = speaker.partition(":")
    return mention(Person(team=team, user=user))


def answer_lines(gate: Gate, budget: int) -> list[Block]:
    """What was answered, a line a question, as rich text lines."""
    values = gate.decision.values if gate.decision else None
    if not isinstance(values, dict):
        return []
    answers = values.get("answers")
    lines = []
    for question in gate.asks.questions:
        answer = answers.get(question.question) if isinstance(answers, dict) else None
        if answer is not None:
            text = ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
            lines.append(
                line(
                    piece(f"{visible(question.header)}: ", bold=True),
                    piece(cut(visible(text), budget // len(gate.asks.questions))),
                )
            )
    if response := values.get("response"):
        lines.append(line(piece(cut(visible(str(response)), budget // 2))))
    return lines
