"""A run and its gates as people may see them: what the redaction hides is masked, everything else is as it is stored.

For cards, modals and lists alone. What is decided is checked against the run itself, which the host gets too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from core.forms import FieldOption, FormField
from core.gates import Decision, Edit, Gate, Kind, Vote
from core.questions import MAX_HEADER, MAX_LABEL, MAX_QUESTION, AskUserQuestion, Question
from core.redaction import NOTHING, Redaction, distinct
from core.runs import Run


def shown_run(run: Run, redaction: Redaction) -> Run:
    """The run with its gates as they may be seen."""
    if redaction == NOTHING:
        return run
    doc = run.doc.model_copy(update={"title": _text(run.doc.title, redaction)})
    gates = tuple(shown_gate(gate, redaction) for gate in run.gates)
    return run.model_copy(update={"doc": doc, "gates": gates, "error": _text(run.error, redaction)})


def shown_gate(gate: Gate, redaction: Redaction) -> Gate:
    """The gate as it may be seen; ``hidden`` says how many of the values that it asks about are masked."""
    if redaction == NOTHING:
        return gate
    look = _LOOKS[gate.doc.kind](gate, redaction)
    doc = gate.doc.model_copy(
        update={
            **look.doc,
            "tool_name": redaction.text(gate.doc.tool_name),
            "reason": _text(gate.doc.reason, redaction),
            "saves": tuple(map(redaction.text, gate.doc.saves)),
        }
    )
    update = {
        "doc": doc,
        "hidden": look.hidden,
        "edited": _edited(gate, redaction),
        "edits": tuple(_edit(edit, redaction) for edit in gate.edits),
        "votes": _votes(gate.votes, redaction),
        "drafts": look.drafts,
        "decision": _decision(gate.decision, look.values, redaction) if gate.decision else None,
    }
    return gate.model_copy(update=update)


class Look(NamedTuple):
    """What differs by kind: members of the doc, the values decided, the drafts, and how many values are masked."""

    doc: dict[str, Any]
    values: JsonValue
    drafts: dict[str, JsonValue]
    hidden: int


def _values(gate: Gate) -> JsonValue:
    return gate.decision.values if gate.decision else None


def _text(text: str | None, redaction: Redaction) -> str | None:
    return redaction.text(text) if text else text


# approvals and custom calls


def _arguments(gate: Gate, redaction: Redaction) -> Look:
    args, hidden = redaction.counted(gate.doc.args)
    if gate.edited is not None:
        hidden = redaction.counted(gate.edited)[1]
    return Look({"args": args}, redaction.value(_values(gate)), gate.drafts, hidden)


def _edited(gate: Gate, redaction: Redaction) -> Any:
    if gate.edited is None:
        return None
    shown = [redaction.value(args) for args in (gate.doc.args, gate.edited)]
    return _told_apart(gate.doc.args, gate.edited, *shown)


def _told_apart(old: JsonValue, new: JsonValue, shown_old: Any, shown_new: Any) -> Any:
    """The new value as it is shown; where the old one looks the same and is another, that is said."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = dict(zip(old, shown_old, strict=True))
        return {
            shown: _told_apart(old[name], item, shown_old[names[name]], shown_new[shown])
            if name in old
            else shown_new[shown]
            for shown, (name, item) in zip(shown_new, new.items(), strict=True)
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_told_apart(*items) for items in zip(old, new, shown_old, shown_new, strict=True)]
    if shown_old == shown_new and (old != new or type(old) is not type(new)):
        return f"{shown_new} (changed)"
    return shown_new


def _edit(edit: Edit, redaction: Redaction) -> Edit:
    changes = []
    for change in edit.diff:
        path = str(change["path"]).split("/")
        hide = any(redaction.lists(name) for name in path)
        changes.append(
            {
                name: value if name == "path" else redaction.value(value, hide=hide)
                for name, value in change.items()
            }
        )
    return edit.model_copy(update={"diff": changes})


def _decision(decision: Decision, values: JsonValue, redaction: Redaction) -> Decision:
    update = {
        "values": values,
        "votes": _votes(decision.votes, redaction),
        "detail": _text(decision.detail, redaction),
    }
    return decision.model_copy(update=update)


def _votes(votes: tuple[Vote, ...], redaction: Redaction) -> tuple[Vote, ...]:
    return tuple(vote.model_copy(update={"comment": _text(vote.comment, redaction)}) for vote in votes)


# questions: their texts are what answers refer to, so they stay within their bounds and apart from each other


def _question_look(gate: Gate, redaction: Redaction) -> Look:
    # the members of questions have names of ours: only their texts may have something to hide
    by = Redaction(patterns=redaction.patterns)
    asks, shown = gate.asks, _questions(gate.asks, by)
    args = shown.model_dump(mode="json", by_alias=True)
    return Look(
        {"args": args},
        _answers(_values(gate), asks, shown, by),
        {who: by.value(draft) for who, draft in gate.drafts.items()},
        _differences(asks, shown),
    )


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
                "markdown": _text(option.markdown, redaction),
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
    labels = {one.label: other.label for one, other in zip(question.options, shown.options, strict=True)}
    return labels[answer] if answer in labels else redaction.value(answer)


# forms and links


def _form_look(gate: Gate, redaction: Redaction) -> Look:
    form = gate.doc.form
    if form is None:
        raise ValueError(f"{gate.id} has no form")
    fields = tuple(_field(field, redaction) for field in form.all_fields)
    hidden = sum(one != other for one, other in zip(form.all_fields, fields, strict=True))
    shown = form.model_copy(
        update={
            "title": redaction.text(form.title),
            "body": redaction.text(form.body),
            "fields": fields,
            "json_schema": None,
        }
    )
    drafts = {who: _content(draft, redaction) for who, draft in gate.drafts.items()}
    return Look(
        {"args": redaction.value(gate.doc.args), "form": shown},
        _content(_values(gate), redaction),
        drafts,
        hidden,
    )


def _field(field: FormField, redaction: Redaction) -> FormField:
    """A field without what is hidden. What it asks for stays; a default that is hidden is none."""
    listed = redaction.lists(field.name)
    default = None if redaction.value(field.default, hide=listed) != field.default else field.default
    return field.model_copy(
        update={
            "label": redaction.text(field.label),
            "description": redaction.text(field.description),
            "options": tuple(_option(option, redaction) for option in field.options),
            "default": default,
        }
    )


def _option(option: FieldOption, redaction: Redaction) -> FieldOption:
    """An option keeps its value, which is what comes back; shown is a label."""
    shown = redaction.text(option.shown)
    return option if shown == option.shown else option.model_copy(update={"label": shown})


def _content(content: JsonValue, redaction: Redaction) -> JsonValue:
    """What was filled in, by the names of fields."""
    if not isinstance(content, Mapping):
        return redaction.value(content)
    return {name: redaction.value(value, hide=redaction.lists(name)) for name, value in content.items()}


def _link_look(gate: Gate, redaction: Redaction) -> Look:
    """A link leads where it leads, so an address that has something to hide is not shown beyond its origin."""
    link = gate.doc.link
    if link is None:
        raise ValueError(f"{gate.id} has no link")
    url = link.url if link.url is None or redaction.text(link.url) == link.url else None
    shown = link.model_copy(
        update={
            "title": redaction.text(link.title),
            "body": redaction.text(link.body),
            "origin": link.shown_origin,
            "url": url,
        }
    )
    hidden = int(url != link.url)
    return Look({"args": redaction.value(gate.doc.args), "link": shown}, None, gate.drafts, hidden)


_LOOKS: Mapping[Kind, Callable[[Gate, Redaction], Look]] = {
    Kind.QUESTION: _question_look,
    Kind.FORM: _form_look,
    Kind.LINK: _link_look,
    Kind.CUSTOM: _arguments,
    Kind.APPROVAL: _arguments,
}
