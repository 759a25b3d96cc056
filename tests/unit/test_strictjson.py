"""Strict JSON: what parsers read differently is refused, and the refusal says where."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strictjson import JsonError, at, strict_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "line 1, column 1: Expecting value"),
        (b'{"a": 1}\n{', "line 2, column 1: Extra data"),
        (b'{"a": 1,}', "line 1, column 9: "),
        (b"{'a': 1}", "line 1, column 2: "),
        (b'["\x01"]', "line 1, column 3: Invalid control character"),
        (b"[01]", "line 1, column 3: "),
        (b"\xef\xbb\xbf{}", "line 1, column 1: a byte order mark"),
        (b'{\n "\xc3\xb6\xff"}', "line 2, column 4: the byte 0xff is not UTF-8"),
        (b'"\xed\xa0\x80"', "line 1, column 2: the byte 0xed is not UTF-8"),
        (b"NaN", "at the top level: NaN is no JSON number"),
        (b'{"a": [1, -Infinity]}', "at a[1]: -Infinity is no JSON number"),
        (b'{"a": 1e400}', "at a: the number 1e400 is too large"),
        (b'{"a": -' + b"9" * 4001 + b"}", "at a: a whole number of more than 4,000 digits"),
        (b'{"a": {"b c": [{"k": 1, "k": 1}]}}', 'at a["b c"][0]: the key "k" appears twice'),
        (b'{"k": 1, "\\u006b": NaN}', 'at the top level: the key "k" appears twice'),
        (b'{"a": "\\ud83d"}', "at a: the text has half a surrogate pair"),
        (b'{"\\udc00": 1}', "at the top level: the key has half a surrogate pair"),
        (b"[" * 65 + b"]" * 65, "at " + "[0]" * 64 + ": nested more than 64 deep"),
        (b'{"a":' * 100_000, "nested more than 64 deep"),
        (b"[" * 100_000 + b"]" * 100_000, "nested more than 64 deep"),
    ],
)
def test_what_is_refused_says_where(raw: bytes, says: str) -> None:
    with pytest.raises(JsonError) as refused:
        strict_json(raw)
    assert str(refused.value).startswith(says)
    json.dumps([refused.value.detail, refused.value.errors]).encode()


def test_text_with_a_lone_surrogate_is_refused_too() -> None:
    with pytest.raises(JsonError, match="surrogate"):
        strict_json('["\ud800"]')


def test_the_limits_themselves_are_allowed() -> None:
    assert strict_json("9" * 4000) == int("9" * 4000)
    assert strict_json("[" * 64 + "]" * 64) is not None
    assert strict_json('"\\ud83d\\ude42"') == "🙂"
    assert strict_json(' \n{"a": [1.5e3, true, null, ""]}\t') == {"a": [1500.0, True, None, ""]}


def test_an_error_names_the_place_as_data() -> None:
    with pytest.raises(JsonError) as refused:
        strict_json('{"a": [{"k": 1, "k": 2}]}')
    assert refused.value.errors == (
        {"loc": ["a", 0, "k"], "msg": 'the key "k" appears twice', "type": "duplicate_key"},
    )


def test_a_long_key_is_cut_in_the_message() -> None:
    with pytest.raises(JsonError) as refused:
        strict_json('{"%s": NaN}' % ("k" * 10_000))
    assert len(str(refused.value)) < 200
    assert at(("a", 0, "b-c", "d.e")) == 'a[0].b-c["d.e"]'


@given(JSON, st.booleans())
def test_what_json_writes_is_read_back(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert strict_json(text) == strict_json(text.encode()) == value


@given(st.binary(max_size=64) | st.text(alphabet='{}[]",:\\u0d8eE+-.NaInfity\n ', max_size=64))
def test_any_input_is_read_or_refused_never_a_crash(raw: bytes | str) -> None:
    try:
        value = strict_json(raw)
    except JsonError:
        return
    assert json.loads(raw) == value


def test_a_text_has_a_hundred_thousand_values_and_no_more() -> None:
    assert len(strict_json(f"[{'[],' * 99_998}[]]")) == 99_999
    for many in (f"[{'[],' * 99_999}[]]", f'[{{"a":[{"1," * 99_997}1]}}]'):
        with pytest.raises(JsonError, match="more than 100,000 values"):
            strict_json(many)
