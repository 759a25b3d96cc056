"""Redaction: listed names and patterns are masked at any depth, the JSON keeps its shape, the real values stay real."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.redaction import DEFAULT_FIELDS, MASK, NOTHING, PatternError, Patterns, Redaction, distinct, plain

BY_NAME = Redaction.of(DEFAULT_FIELDS)
BY_PATTERN = Redaction.of((), Patterns([r"sk-[a-z0-9]{4,}", r"(?i)bearer\s+\S+"]))

NAMES = st.sampled_from(["a", "b", "Password", "api-key", "list", "sk-abcd1", "name", "value"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def shape(value: Any) -> Any:
    """A value's dicts and lists alone."""
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else "leaf"


@settings(deadline=None)
@given(value=JSON)
def test_the_shape_stays_as_it_is(value: Any) -> None:
    for redaction in (BY_NAME, BY_PATTERN):
        assert shape(redaction.value(value)) == shape(value)


@settings(deadline=None)
@given(value=JSON)
def test_what_is_masked_is_masked_whole_and_once(value: Any) -> None:
    masked, hidden = BY_NAME.counted(value)
    assert BY_NAME.value(masked) == masked
    assert (hidden == 0) == (masked == value)


@settings(deadline=None)
@given(value=JSON)
def test_without_names_and_patterns_nothing_changes(value: Any) -> None:
    assert NOTHING.counted(value) == (value, 0)


@pytest.mark.parametrize(
    "name", ["password", "PASSWORD", "apiKey", "api-key", "API_KEY", "X-Api-Key", "accessToken", "Set-Cookie"]
)
def test_a_name_is_known_however_it_is_spelled(name: str) -> None:
    assert BY_NAME.value({name: "x"}) == {name: MASK}


@pytest.mark.parametrize(
    "name", ["passwords_changed", "token_count", "max_tokens", "cookies_accepted", "key", "id"]
)
def test_a_name_is_meant_as_a_whole(name: str) -> None:
    assert BY_NAME.value({name: "x"}) == {name: "x"}


def test_everything_below_a_listed_name_is_hidden_and_counted() -> None:
    args = {
        "user": "ana",
        "credentials": {"login": "ana", "pin": 1234, "otp": [1, True, 2.5], "none": None, "empty": ""},
        "deep": [[{"secret": "x"}]],
    }
    masked, hidden = BY_NAME.counted(args)
    assert masked == {
        "user": "ana",
        "credentials": {"login": MASK, "pin": MASK, "otp": [MASK] * 3, "none": None, "empty": ""},
        "deep": [[{"secret": MASK}]],
    }
    assert hidden == 6


def test_an_object_that_names_what_it_holds_is_understood() -> None:
    headers = [{"name": "Authorization", "value": "Bearer x"}, {"name": "Accept", "value": "text/plain"}]
    env = [{"Key": "API_KEY", "Value": "x", "note": "why"}]
    assert BY_NAME.value(headers) == [{"name": "Authorization", "value": MASK}, headers[1]]
    assert BY_NAME.value(env) == [{"Key": "API_KEY", "Value": MASK, "note": "why"}]


def test_a_pattern_masks_what_it_finds_and_leaves_the_rest() -> None:
    masked, hidden = BY_PATTERN.counted({"cmd": "curl -H 'Authorization: Bearer abc.def' sk-1234", "n": 1})
    assert masked == {"cmd": f"curl -H 'Authorization: {MASK} {MASK}", "n": 1}
    assert hidden == 1
    assert BY_PATTERN.text("é•😀 sk-abcd é") == f"é•😀 {MASK} é"


def test_names_that_a_pattern_finds_are_masked_and_stay_apart() -> None:
    masked, hidden = BY_PATTERN.counted({"sk-aaaa": 1, "sk-bbbb": 2, "c": 3})
    assert masked == {MASK: 1, f"{MASK} (2)": 2, "c": 3}
    assert hidden == 2


def test_half_a_surrogate_pair_stops_no_pattern() -> None:
    assert BY_PATTERN.text("\ud800 sk-abcd") == f"? {MASK}"


@pytest.mark.parametrize(
    ("expressions", "number", "says"),
    [
        (["ok", "("], 1, "missing"),
        ([r"(a)\1"], 0, "invalid escape"),
        (["(?=x)"], 0, "invalid perl operator"),
        (["x", "y", "z*"], 2, "finds the empty text"),
    ],
)
def test_an_expression_that_cannot_be_used_is_named(expressions: list[str], number: int, says: str) -> None:
    with pytest.raises(PatternError, match=says) as wrong:
        Patterns(expressions)
    assert wrong.value.number == number


def test_expressions_that_are_too_large_together_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="all together: pattern too large"):
        Patterns([f"(?:[é-ẞ]{{9}}{n}){{1,100}}" for n in range(600)])
    assert capfd.readouterr().err == ""


def test_without_re2_patterns_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match=r"install askgate\[redact\]"):
        Patterns(["x"])


def test_no_expression_takes_more_than_linear_time() -> None:
    # each of these takes a backtracking engine longer than the age of the universe
    redaction = Redaction.of((), Patterns(["(a+)+b", "(a|aa)+c", "(.*)*d", "(x+x+)+y"]))
    began = time.process_time()
    assert redaction.text("a" * 200_000 + "x" * 200_000) == "a" * 200_000 + "x" * 200_000
    assert time.process_time() - began < 2


@settings(deadline=None)
@given(texts=st.lists(st.sampled_from(["a", "b", "a (2)", "a (2) (2)", ""])), most=st.none() | st.just(8))
def test_distinct_texts_can_be_told_apart_and_keep_their_order(texts: list[str], most: int | None) -> None:
    found = distinct(texts, most)
    assert len(set(found)) == len(texts) == len(found)
    assert all(most is None or len(text) <= most for text in found)
    firsts = {text: texts.index(text) for text in texts}
    assert all(found[place] == text[:most] for text, place in firsts.items() if text == "a")


def test_names_are_compared_by_letters_and_digits() -> None:
    assert plain("X-Api_Key 2") == "xapikey2"
    assert plain("--") == ""
