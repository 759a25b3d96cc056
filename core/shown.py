"""A run and its gates as people may see them: what the redaction hides is masked, everything else is as it is stored.

For cards, modals and lists alone. What is decided is checked against the run itself, which the host gets too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from core.gates import Decision, Gate, Kind, Vote
from core.questions import MAX_HEADER, MAX_LABEL, MAX_QUESTION, AskUserQuestion, Question
from core.redaction import Redaction, distinct
from core.runs import Run


def shown_run(run: Run, redaction: Redaction) -> Run:
    """The run with its gates as they may be seen."""
    if redaction == Redaction():
        return run
    title = redaction.text(run.doc.title) if run.doc.title else run.doc.title
    gates = tuple(shown_gate(gate, redaction) for gate in run.gates)
    return run.model_copy(update={"doc": run.doc.model_copy(update={"title": title}), "gates": gates})


def shown_gate(gate: Gate, redaction: Redaction) -> Gate:
    """The gate as it may be seen; ``hidden`` says how many of the values that it asks about are masked."""
    if redaction == Redaction():
        return gate
    args: JsonValue
    values: JsonValue = gate.decision.values if gate.decision else None
    if gate.doc.kind is Kind.QUESTION:
        asks = _questions(gate.asks, redaction)
        args, hidden = asks.model_dump(mode="json", by_alias=True), _differences(gate.asks, asks)
        values = _answers(values, gate.asks, asks, redaction)
    else:
        args, hidden = redaction.counted(gate.doc.args)
        values = redaction.value(values)
    doc = gate.doc.model_copy(
        update={
            "args": args,
            "tool_name": redaction.text(gate.doc.tool_name),
            "reason": redaction.text(gate.doc.reason) if gate.doc.reason else gate.doc.reason,
        }
    )
    update = {
        "doc": doc,
        "hidden": hidden,
        "votes": _votes(gate.votes, redaction),
        "drafts": redaction.value(gate.drafts),
        "decision": _decision(gate.decision, values, redaction) if gate.decision else None,
    }
    return gate.model_copy(update=update)


def _decision(decision: Decision, values: JsonValue, redaction: Redaction) -> Decision:
    detail = redaction.text(decision.detail) if decision.detail else decision.detail
    update = {"values": values, "votes": _votes(decision.votes, redaction), "detail": detail}
    return decision.model_copy(update=update)


def _votes(votes: tuple[Vote, ...], redaction: Redaction) -> tuple[Vote, ...]:
    return tuple(
        vote.model_copy(update={"comment": redaction.text(vote.comment)}) if vote.comment else vote
        for vote in votes
    )


# questions: their texts are what answers refer to, so they stay within their bounds and apart from each other


def _questions(asks: AskUserQuestion, redaction: Redaction) -> AskUserQuestion:
    texts = distinct([redaction.text(question.question) for question in asks.questions], MAX_QUESTION)
    return AskUserQuestion(
        questions=tuple(
            _question(question, text, redaction) for question, text in zip(asks.questions, texts, strict=True)
        )
    )


def _question(question: Question, text: str, redaction: Redaction) -> Question:
    labels = distinct([redaction.text(option.label) for option in question.options], MAX_LABEL)
    options = tuple(
        option.model_copy(
            update={
                "label": label,
                "description": redaction.text(option.description),
                "markdown": redaction.text(option.markdown) if option.markdown else option.markdown,
            }
        )
        for option, label in zip(question.options, labels, strict=True)
    )
    header = redaction.text(question.header)[:MAX_HEADER]
    return question.model_copy(update={"question": text, "header": header, "options": options})


def _differences(asks: AskUserQuestion, shown: AskUserQuestion) -> int:
    return sum(one != other for one, other in zip(_texts(asks), _texts(shown), strict=True))


def _texts(asks: AskUserQuestion) -> list[str | None]:
    return [
        text
        for question in asks.questions
        for text in (
            question.question,
            question.header,
            *(part for o in question.options for part in (o.label, o.description, o.markdown)),
        )
    ]


def _answers(
    values: JsonValue, asks: AskUserQuestion, shown: AskUserQuestion, redaction: Redaction
) -> JsonValue:
    """An answer to the questions as they are shown: by their texts, in their labels."""
    if not isinstance(values, Mapping):
        return values
    found: dict[str, Any] = {name: redaction.value(value) for name, value in values.items()}
    given = values.get("answers")
    if isinstance(given, Mapping):
        found["answers"] = {
            other.question: _picked(given[one.question], one, other, redaction)
            for one, other in zip(asks.questions, shown.questions, strict=True)
            if one.question in given
        }
    return found


def _picked(answer: JsonValue, question: Question, shown: Question, redaction: Redaction) -> JsonValue:
    if isinstance(answer, list):
        return [_picked(item, question, shown, redaction) for item in answer]
    labels = {
        one.label: other.label for one, other in zip(question.options, shown.options, strict=True)
    }
    return labels[answer] if answer in labels else redaction.value(answer)
