"""The questions of a `user_input`: put as they are if they are what Motus' own tool sends, else as a form.

The server checks neither what an agent sends nor what comes back, so an answer is kept by the agent's exact texts,
whatever was made of them to be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from core.forms import FormRequest
from core.questions import MAX_HEADER, AskUserQuestion, as_values, selected

HEADER: Final = "Question"
"""The header of a question that has none."""

Json = dict[str, Any]


def questions(payload: Json) -> Json | None:
    """The arguments of an `ask_user_question`; None if the payload has other questions than that has."""
    args = {"questions": list(_asked(payload))}
    try:
        AskUserQuestion.model_validate(args)
    except ValidationError:
        return None
    return args


def form(payload: Json) -> Json | None:
    """A form, for questions without options, or with more than a question has; None if no form holds them.

    Motus tells its agents that each question with options takes a text as well, so there is a field for one.
    """
    asked = list(_asked(payload))
    for others in (True, False):  # with many questions there is no room for the texts
        made = {"fields": list(_fields(asked, others)), "controls": ["accept", "decline"]}
        try:
            FormRequest.model_validate(made)
        except ValidationError:
            continue
        return made
    return None


def answers(payload: Json, given: Json) -> Json:
    """What was answered to `questions`: `{"answers": {text: text}, "selections": {text: [text]}, "response"?}`."""
    asked = list(_asked(payload))
    chosen: dict[str, list[str]] = {}
    for item, question in zip(asked, AskUserQuestion(questions=asked).questions, strict=True):
        if question.question not in given["answers"]:
            continue
        values = given["answers"][question.question]
        picked = selected(question, values)
        chosen[item["question"]] = [item["options"][i]["label"] for i in picked] or list(as_values(values))
    said = _said(payload, chosen)
    return {**said, "response": given["response"]} if "response" in given else said


def filled_in(payload: Json, given: Json) -> Json:
    """What was filled into `form`, as of `answers`. A question without an answer is left out."""
    chosen: dict[str, list[str]] = {}
    for number, item in enumerate(_asked(payload)):
        question = item if isinstance(item, dict) else {}
        values = as_values(given.get(_name(number), ()))
        labels = [option["label"] for option in question.get("options") or ()]
        other = given.get(_other(number))
        picked = [label for label in labels if label in values] if labels else list(values)
        if texts := [*picked, *([other] if other else [])]:
            chosen[question["question"]] = texts
    return _said(payload, chosen)


def _said(payload: Json, chosen: Mapping[str, Sequence[str]]) -> Json:
    """Texts by the question, under each text that differs from it by blanks alone and so was not asked twice."""
    by_text = {text.strip(): texts for text, texts in chosen.items()}
    everywhere = {text: by_text[text.strip()] for text in _texts(payload) if text.strip() in by_text}
    return {
        "answers": {text: ", ".join(texts) for text, texts in everywhere.items()},
        "selections": {text: list(texts) for text, texts in everywhere.items()},
    }


# what the agent sent


def _items(payload: Json) -> Iterator[Any]:
    given = payload.get("questions")
    for item in given if isinstance(given, list) else ():
        yield {"question": item} if isinstance(item, str) else item


def _texts(payload: Json) -> Iterator[str]:
    for item in _items(payload):
        if isinstance(item, dict) and isinstance(item.get("question"), str):
            yield item["question"]


def _asked(payload: Json) -> Iterator[Any]:
    """The questions as our models name them, each text and each label once: the answers are kept by them."""
    seen: set[str] = set()
    for item in _items(payload):
        if not isinstance(item, dict):
            yield item
            continue
        text = item.get("question")
        if isinstance(text, str):
            if text.strip() in seen:
                continue
            seen.add(text.strip())
        yield {
            "question": text,
            "header": _header(item.get("header")),
            "multiSelect": bool(item.get("multiSelect") or item.get("multi_select")),
            "options": list(_options(item.get("options"))),
        }


def _header(given: Any) -> str:
    """The header, cut to what is shown of one: it is a label above the question and no part of the answer."""
    header = given.strip() if isinstance(given, str) else ""
    if len(header) > MAX_HEADER:
        header = header[: MAX_HEADER - 1].rstrip() + "…"
    return header or HEADER


def _options(given: Any) -> Iterator[Any]:
    seen: set[str] = set()
    for item in given if isinstance(given, list) else ():
        option = {"label": item} if isinstance(item, str) else item
        if not isinstance(option, dict):
            yield option
            continue
        label, description = option.get("label"), option.get("description")
        if isinstance(label, str):
            if label.strip() in seen:
                continue
            seen.add(label.strip())
        says = isinstance(description, str) and description.strip()
        # ours have to say something
        yield {
            "label": label,
            "description": description if says else label,
            "markdown": option.get("markdown"),
        }


# as a form


def _name(number: int) -> str:
    return f"q{number}"


def _other(number: int) -> str:
    return f"q{number}_other"


def _fields(asked: Sequence[Any], others: bool) -> Iterator[Json]:
    """One field a question, with options also one for another text, and then neither has to be filled in."""
    for number, item in enumerate(asked):
        question = item if isinstance(item, dict) else {}
        text, options = question.get("question"), question.get("options")
        field = {"name": _name(number), "label": text, "kind": "text", "required": not (options and others)}
        if options:
            field["kind"] = "multi_select" if question.get("multiSelect") else "select"
            field["options"] = [
                {"value": option.get("label") if isinstance(option, dict) else option} for option in options
            ]
            field["description"] = "\n".join(filter(None, map(_details, options)))
        yield field
        if options and others:
            yield {"name": _other(number), "label": f"Other: {text}", "kind": "text"}


def _details(option: Any) -> str:
    """What an option says beside its label."""
    if not isinstance(option, dict):
        return ""
    label, description, markdown = (option.get(name) for name in ("label", "description", "markdown"))
    name = str(label).strip()
    told = [f"{name}: {description}"] if description != label else []
    if isinstance(markdown, str) and markdown.strip():
        told = [*(told or [f"{name}:"]), markdown]
    return "\n".join(told)
