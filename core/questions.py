"""Questions that an agent asks, the answers people give, and the check that an answer fits its questions.

Bounds, stripping, the order of checks and the error texts are those of a13n's `ask_user_question`. Lengths
are in code points, after surrounding whitespace is stripped; inner whitespace, case and Unicode form stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails

from core.errors import Invalid

MAX_LABEL = 256
MAX_DESCRIPTION = 4_096
MAX_HEADER = 12
MAX_QUESTION = 8_192
MAX_VALUE = 8_192
MAX_RESPONSE = 65_536
# Motus, the only one to send it, names no bound. With this one the largest call (4 questions of 4 options) in
# plain ASCII is about half of the largest request that the HTTP API takes.
MAX_MARKDOWN = 65_536
OPTIONS = (2, 4)
QUESTIONS = (1, 4)
MAX_VALUES = 4

# Code and diagrams begin with blanks that mean something.
_Markdown = Annotated[str, StringConstraints(strip_whitespace=False, max_length=MAX_MARKDOWN)]


Loc = tuple[str | int, ...]


class AnswerError(Invalid, ValueError):
    """The answer does not fit the questions.

    `str` of it is the rule's exact text, `loc` the path into the answer of what broke it, such as
    `("answers", "Which scope?")`.
    """

    def __init__(self, message: str, kind: str, loc: Loc) -> None:
        self.loc = loc
        super().__init__(message, errors=[{"loc": list(loc), "msg": message, "type": kind}])


class QuestionOption(BaseModel):
    """One option of a question. `markdown`, a preview of it, is left out of dumps when None."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    label: str = Field(min_length=1, max_length=MAX_LABEL)
    description: str = Field(min_length=1, max_length=MAX_DESCRIPTION)
    markdown: _Markdown | None = Field(default=None, exclude_if=lambda value: value is None)


class Question(BaseModel):
    """One question with 2 to 4 options. `multi_select` is `multiSelect` in JSON; input takes either name."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", str_strip_whitespace=True, validate_by_name=True, validate_by_alias=True
    )

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    header: str = Field(min_length=1, max_length=MAX_HEADER)
    options: tuple[QuestionOption, ...] = Field(min_length=OPTIONS[0], max_length=OPTIONS[1])
    multi_select: bool = Field(default=False, alias="multiSelect")

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        if len({option.label for option in self.options}) < len(self.options):
            raise ValueError("question option labels must be unique")
        return self


class AskUserQuestion(BaseModel):
    """The arguments of one `ask_user_question` call: 1 to 4 questions. Dump with `by_alias=True`."""

    model_config = ConfigDict(frozen=True, extra="forbid", revalidate_instances="always")

    questions: tuple[Question, ...] = Field(min_length=QUESTIONS[0], max_length=QUESTIONS[1])

    @model_validator(mode="after")
    def _texts_differ(self) -> Self:
        if len({question.question for question in self.questions}) < len(self.questions):
            raise ValueError("question texts must be unique")
        return self


class Answers(BaseModel):
    """Answers by question text, one string or up to 4 each, and/or a general response to the whole call."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    answers: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    response: str | None = Field(default=None, min_length=1, max_length=MAX_RESPONSE)

    @model_validator(mode="after")
    def _within_bounds(self) -> Self:
        if len(self.answers) > QUESTIONS[1]:
            raise ValueError("too many question answers")
        for text, answer in self.answers.items():
            # Not the same as the stripping of fields: this `strip` also takes U+001C to U+001F for blanks.
            if not text.strip() or len(text) > MAX_QUESTION:
                raise ValueError("answer question key is invalid")
            values = as_values(answer)
            if not 1 <= len(values) <= MAX_VALUES or any(
                not value.strip() or len(value) > MAX_VALUE for value in values
            ):
                raise ValueError("question answer is invalid")
        return self


def check_answers(request: AskUserQuestion, value: object) -> dict[str, Any]:
    """The normalised answer to a call: `{"answers": {…}, "response"?}`, ready for JSON.

    `value` is the parsed JSON object of an `Answers`. Each answer is either labels of its question's options
    or free text, never both; a single-select question takes one label. Only with a `response` may a question
    stay without an answer.

    Raises AnswerError for the first rule that `value` breaks: first those of `Answers`, then of the call.
    """
    try:
        given = Answers.model_validate(value)
    except ValidationError as error:
        raise _shape_error(error.errors()[0]) from error
    questions = {question.question: question for question in request.questions}
    for text in given.answers:
        if text not in questions:
            raise AnswerError("answer contains an unknown question", "unknown_question", ("answers", text))
    if given.response is None and any(text not in given.answers for text in questions):
        raise AnswerError(
            "answer must cover every question or include a general response", "incomplete", ("answers",)
        )
    for text, answer in given.answers.items():
        _check_answer(questions[text], as_values(answer))
    return given.model_dump(mode="json", exclude_none=True)


def _shape_error(first: ErrorDetails) -> AnswerError:
    match first["loc"]:
        case ("answers", text, *_):
            # What follows is the member of the union that pydantic tried, which is no place in the answer.
            return AnswerError("wanted text, or a list of texts", "invalid_type", ("answers", text))
        case loc if first["type"] == "value_error":
            return AnswerError(str(first["ctx"]["error"]), "out_of_bounds", loc)
        case ():
            return AnswerError('wanted an object with "answers", "response" or both', "invalid_type", ())
        case loc:
            return AnswerError(first["msg"], first["type"], loc)


def _check_answer(question: Question, values: Sequence[str]) -> None:
    loc = ("answers", question.question)
    known = labels(question)
    picked = sum(value in known for value in values)
    if 0 < picked < len(values):
        raise AnswerError("answer cannot mix option labels and free text", "mixed", loc)
    if picked > 1 and not question.multi_select:
        raise AnswerError("single-select question requires exactly one option", "single_select", loc)


def labels(question: Question) -> tuple[str, ...]:
    """The labels of a question's options, in their order."""
    return tuple(option.label for option in question.options)


def as_values(answer: str | Sequence[str]) -> Sequence[str]:
    """An answer as a list: a plain string is one value."""
    return (answer,) if isinstance(answer, str) else answer


def selected(question: Question, values: str | Sequence[str]) -> list[int]:
    """The indexes, ascending, of the options that an answer picks; empty for free text."""
    picked = set(as_values(values))
    return [index for index, label in enumerate(labels(question)) if label in picked]
