"""Questions and answers behave as a13n's do, and hold against any input."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.questions import (
    MAX_MARKDOWN,
    AnswerError,
    Answers,
    AskUserQuestion,
    Question,
    as_values,
    check_answers,
    labels,
    selected,
)

VECTORS = json.loads((Path(__file__).parent / "data" / "a13n_vectors.json").read_text())


def option(label: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "description": "d", **more}


def question(text: str = "Which scope?", *names: str, multi: bool = False) -> dict[str, Any]:
    return {
        "question": text,
        "header": "Scope",
        "options": [option(name) for name in names or ("Focused", "Broad")],
        "multiSelect": multi,
    }


def call(*questions: dict[str, Any]) -> AskUserQuestion:
    return AskUserQuestion.model_validate({"questions": questions or [question()]})


def outcome(vector: dict[str, Any]) -> Any:
    """The normalised request or answer of a vector."""
    request = AskUserQuestion.model_validate(vector["request"])
    if "answer" in vector:
        return check_answers(request, vector["answer"])
    return request.model_dump(mode="json", by_alias=True)


@pytest.mark.parametrize("vector", [v for v in VECTORS if v["ok"]], ids=lambda v: v["name"])
def test_what_a13n_accepts_is_accepted_and_normalised_alike(vector: dict[str, Any]) -> None:
    assert outcome(vector) == vector["normalised"]


@pytest.mark.parametrize("vector", [v for v in VECTORS if not v["ok"]], ids=lambda v: v["name"])
def test_what_a13n_refuses_is_refused_for_the_same_reason(vector: dict[str, Any]) -> None:
    wanted = AnswerError if "answer" in vector else ValidationError
    with pytest.raises(wanted) as refused:
        outcome(vector)
    if isinstance(refused.value, ValidationError):
        ours = [e["msg"] for e in refused.value.errors() if e["type"] == "value_error"]
    else:
        ours = [f"Value error, {refused.value}"] if "Value error" in vector["error"] else []
        assert vector["stage"] == "model" or str(refused.value) == vector["error"]
    theirs = [part for part in vector["error"].split("; ") if "Value error" in part]
    assert [part.split(": ", 1)[1].removesuffix(" [value_error]") for part in theirs] == ours


def test_all_vectors_are_here() -> None:
    assert len(VECTORS) == 37


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"answers": dict.fromkeys("abcde", "x")}, "too many question answers"),
        ({"answers": dict.fromkeys(" abcd", "")}, "too many question answers"),
        ({"answers": {" ": "x"}}, "answer question key is invalid"),
        ({"answers": {"\x1f": ""}}, "answer question key is invalid"),
        ({"answers": {"q" * 8193: "x"}}, "answer question key is invalid"),
        ({"answers": {"a": []}}, "question answer is invalid"),
        ({"answers": {"a": ["x"] * 5}}, "question answer is invalid"),
        ({"answers": {"a": ["x", " "]}}, "question answer is invalid"),
        ({"answers": {"a": "\x1f"}}, "question answer is invalid"),
        ({"answers": {"a": "v" * 8193}}, "question answer is invalid"),
    ],
)
def test_an_answer_out_of_bounds_says_which_rule(answer: object, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Answers.model_validate(answer)
    assert [e["msg"] for e in refused.value.errors()] == [f"Value error, {text}"]
    with pytest.raises(AnswerError) as unfit:
        check_answers(call(), answer)
    assert (str(unfit.value), unfit.value.loc) == (text, ())


@pytest.mark.parametrize("value", [1, True, None, {}, {"a": "b"}, [["x"]], [1], ["x", None]])
def test_an_answer_of_another_type_fails_at_its_field(value: object) -> None:
    with pytest.raises(AnswerError, match="wanted text, or a list of texts") as refused:
        check_answers(call(), {"answers": {"a": value}})
    assert refused.value.loc == ("answers", "a")


def test_a_json_string_or_null_is_no_answer() -> None:
    values: list[object] = ['{"response": "x"}', None, [], {"answers": None}, {"response": "  "}]
    for value in values:
        with pytest.raises(AnswerError):
            check_answers(call(), value)


def test_blank_means_unicode_whitespace_and_nothing_else() -> None:
    assert call(question("\x1f")).questions[0].question == "\x1f"
    assert call(question("\u00a0q\u3000")).questions[0].question == "q"
    assert Answers.model_validate({"response": "\x1f"}).response == "\x1f"
    assert check_answers(call(), {"answers": {"Which scope?": "\u200b"}})["answers"] == {
        "Which scope?": "\u200b"
    }


@pytest.mark.parametrize(
    ("field", "longest"), [("question", 8192), ("header", 12), ("label", 256), ("description", 4096)]
)
def test_lengths_count_code_points_after_the_strip(field: str, longest: int) -> None:
    def made(length: int) -> AskUserQuestion:
        asked = question()
        where = asked if field in asked else asked["options"][0]
        where[field] = " " + "🙂" * length + "\n"
        return call(asked)

    made(longest)
    for length in (0, longest + 1):
        with pytest.raises(ValidationError):
            made(length)


@pytest.mark.parametrize("value", [True, "true", 1, "yes", "on"])
def test_multi_select_takes_either_name_and_the_words_for_true(value: object) -> None:
    base = {k: v for k, v in question().items() if k != "multiSelect"}
    for name in ("multiSelect", "multi_select"):
        assert call({**base, name: value}).questions[0].multi_select is True
    for wrong in (
        {"multiSelect": None},
        {"multiSelect": "maybe"},
        {"multiSelect": True, "multi_select": True},
    ):
        with pytest.raises(ValidationError):
            call({**base, **wrong})


def test_markdown_is_kept_as_it_is_and_left_out_when_there_is_none() -> None:
    code = "  def f():\n      pass\n"
    asked = question()
    asked["options"] = [option("a", markdown=code), option("b", markdown=None), option("c")]
    dumped = call(asked).model_dump(mode="json", by_alias=True)
    assert dumped["questions"][0]["options"] == [option("a", markdown=code), option("b"), option("c")]
    assert AskUserQuestion.model_validate(dumped) == call(asked)
    asked["options"][0]["markdown"] = "x" * (MAX_MARKDOWN + 1)
    with pytest.raises(ValidationError):
        call(asked)


def test_the_checks_come_in_their_order() -> None:
    asked = call(question(), question("Which outputs?", "Code", "Docs", multi=True))
    with pytest.raises(AnswerError, match="unknown question") as refused:
        check_answers(asked, {"answers": {"Which scope?": ["Focused", "Broad"], "Other?": "x"}})
    assert refused.value.loc == ("answers", "Other?")
    with pytest.raises(AnswerError, match="must cover every question") as refused:
        check_answers(asked, {"answers": {"Which scope?": ["Focused", "Broad"]}})
    assert refused.value.loc == ("answers",)
    with pytest.raises(AnswerError, match="cannot mix") as refused:
        check_answers(
            asked, {"answers": {"Which outputs?": ["Code", "x"], "Which scope?": ["Focused", "Broad"]}}
        )
    assert refused.value.loc == ("answers", "Which outputs?")
    with pytest.raises(AnswerError, match="exactly one option") as refused:
        check_answers(asked, {"answers": {"Which scope?": ["Focused", "Focused"]}, "response": "r"})
    assert refused.value.errors == (
        {
            "loc": ["answers", "Which scope?"],
            "msg": "single-select question requires exactly one option",
            "type": "single_select",
        },
    )


def test_selected_gives_the_indexes_of_picked_options() -> None:
    asked = call(question("q", "a", "b", "c", multi=True)).questions[0]
    assert labels(asked) == ("a", "b", "c")
    assert selected(asked, ["c", "a", "c"]) == [0, 2]
    assert selected(asked, "b") == [1]
    assert selected(asked, "free text") == selected(asked, []) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TEXT = st.text(min_size=1, max_size=12).filter(lambda t: t.strip())
ANSWER = TEXT | st.lists(TEXT, min_size=1, max_size=4)


@st.composite
def calls(draw: st.DrawFn) -> AskUserQuestion:
    """Any valid call whose texts and labels survive the strip."""
    made = []
    for text in draw(st.lists(TEXT, min_size=1, max_size=4, unique_by=str.strip)):
        names = draw(st.lists(TEXT, min_size=2, max_size=4, unique_by=str.strip))
        made.append(question(text, *names, multi=draw(st.booleans())))
    return call(*made)


@st.composite
def answered(draw: st.DrawFn) -> tuple[AskUserQuestion, dict[str, Any]]:
    """A valid call and something that is nearly, or quite, an answer to it."""
    asked = draw(calls())
    answers: dict[str, Any] = {}
    for one in asked.questions:
        pick = st.sampled_from(labels(one))
        answer = pick | ANSWER | st.lists(pick, max_size=5) | st.lists(pick | TEXT, max_size=4)
        if draw(st.integers(0, 9)):
            answers[one.question] = draw(answer)
    answers |= draw(st.dictionaries(TEXT, ANSWER, max_size=1))
    response = draw(st.fixed_dictionaries({}, optional={"response": TEXT | st.none()}))
    return asked, {"answers": answers, **response}


@given(calls(), JSON, JSON)
def test_any_json_is_accepted_or_refused_never_a_crash(
    asked: AskUserQuestion, value: Any, request: Any
) -> None:
    for given_value in (value, {"answers": value}, {"response": value}, {"answers": {"a": value}}):
        try:
            check_answers(asked, given_value)
        except AnswerError:
            continue
    for given_request in (request, {"questions": request}, {"questions": [request]}):
        try:
            AskUserQuestion.model_validate(given_request)
        except ValidationError:
            continue


@given(answered())
def test_an_accepted_answer_covers_its_call_with_labels_or_text_and_is_stable(
    case: tuple[AskUserQuestion, dict[str, Any]],
) -> None:
    asked, value = case
    try:
        normal = check_answers(asked, value)
    except AnswerError:
        return
    assert check_answers(asked, normal) == normal
    assert json.loads(json.dumps(normal)) == normal
    texts = {one.question: one for one in asked.questions}
    assert normal["answers"].keys() <= texts.keys()
    assert "response" in normal or normal["answers"].keys() == texts.keys()
    for text, answer in normal["answers"].items():
        values = as_values(answer)
        picked = [v for v in values if v in labels(texts[text])]
        assert picked in ([], list(values))
        assert len(picked) <= 1 or texts[text].multi_select


@given(calls())
def test_picked_labels_are_always_a_valid_answer(asked: AskUserQuestion) -> None:
    def pick(one: Question) -> str | list[str]:
        return list(labels(one)) if one.multi_select else labels(one)[-1]

    picks = {one.question: pick(one) for one in asked.questions}
    try:
        assert check_answers(asked, {"answers": picks}) == {"answers": picks}
    except AnswerError:
        # U+001C to U+001F: a question or label may consist of them, an answer may not.
        assert any(not text.strip() for text in [*picks, *(v for p in picks.values() for v in as_values(p))])


@given(calls())
def test_a_normalised_call_is_stable(asked: AskUserQuestion) -> None:
    dumped = asked.model_dump(mode="json", by_alias=True)
    assert AskUserQuestion.model_validate(dumped) == asked
    assert AskUserQuestion.model_validate_json(json.dumps(dumped)) == asked
