"""Approval arguments have one canonical form and one digest, whoever wrote them."""

import hashlib
import json
import random
import struct
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from core.approvals import MAX_INT, ArgumentsError, canonical, digest, parse_args
from core.strictjson import strict_json

NUMBERS = st.integers(-MAX_INT, MAX_INT) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda x: abs(x) <= MAX_INT or abs(x) >= 1e21
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
ARGS = st.dictionaries(st.text(), JSON, max_size=5)


def test_the_example_of_rfc_8785_section_3_2() -> None:
    given_text = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    wanted = r"""{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],
"string":"€$\u000f\nA'B\"\\\\\"/"}""".replace("\n", "")
    assert canonical(parse_args(given_text)).decode() == wanted


def test_keys_sort_by_utf_16_as_in_rfc_8785_section_3_2_3() -> None:
    keys = ["€", "\r", "\ufb33", "1", "😀", "\x80", "ö"]
    written = json.loads(canonical(dict.fromkeys(keys, 0)))
    assert list(written) == ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]


@pytest.mark.parametrize(
    ("bits", "written"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("433fffffffffffff", "9007199254740991"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
    ],
)
def test_numbers_are_written_as_in_rfc_8785_appendix_b(bits: str, written: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical({"n": number}).decode() == f'{{"n":{written}}}'


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"a": float("nan")}, "at a: nan is no JSON number"),
        ({"a": [float("-inf")]}, "at a[0]: -inf is no JSON number"),
        ({"a": MAX_INT + 1}, "at a: whole numbers beyond ±(2^53-1)"),
        ({"a": -MAX_INT - 1}, "at a: whole numbers beyond ±(2^53-1)"),
        ({"a": 2.0**53}, "at a: whole numbers beyond ±(2^53-1)"),
        ({"a": 10**5000}, "at a: whole numbers beyond ±(2^53-1)"),
        ({"a": {"b": ["\ud800"]}}, "at a.b[0]: the text has half a surrogate pair"),
        ({"a": {"\udfff": 1}}, r'at a: the key "\udfff" has half a surrogate pair'),
        ({"a": {1: 2}}, "at a: a key is a number, not text"),
        ({10**5000: 2}, "at the top level: a key is a number, not text"),
        ({None: 2}, "at the top level: a key is null, not text"),
        ({"a": {1, 2}}, "at a: a Python set is no JSON value"),
        ({"a": Decimal(1)}, "at a: a Python Decimal is no JSON value"),
        ({"a": b"bytes"}, "at a: a Python bytes is no JSON value"),
    ],
)
def test_what_has_no_canonical_form_is_refused_and_said_where(args: dict[Any, Any], says: str) -> None:
    with pytest.raises(ArgumentsError) as refused:
        canonical(args)
    assert str(refused.value).startswith(says)
    str(refused.value).encode()


def test_nesting_is_bounded() -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(depth - 1):
            value = {"a": value}
        return value

    canonical(nested(64))
    for depth in (65, 100_000):
        with pytest.raises(ArgumentsError, match="nested more than 64 deep"):
            canonical(nested(depth))


def test_the_digest_is_the_sha256_of_the_canonical_form() -> None:
    assert digest({"b": 1, "a": "ö"}) == hashlib.sha256('{"a":"ö","b":1}'.encode()).hexdigest()
    assert digest(MappingProxyType({"a": (1, MappingProxyType({}))})) == digest({"a": [1, {}]})
    assert digest({"a": 5.0}) == digest({"a": 5})
    assert digest({"a": True}) != digest({"a": 1})
    assert digest({"a": "e\u0301"}) != digest({"a": "\u00e9"})


@given(ARGS)
def test_parsing_the_canonical_form_gives_equal_arguments_and_the_same_digest(args: dict[str, Any]) -> None:
    read = strict_json(canonical(args))
    assert read == args
    assert canonical(read) == canonical(args)
    assert parse_args(canonical(args).decode()) == args


@given(ARGS, st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_key_order(args: dict[str, Any], shuffler: random.Random) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()]
            shuffler.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    assert digest(shuffled(args)) == digest(args)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "not the JSON of an object: line 1, column 1"),
        ('{"a": 1, "a": 2}', 'not the JSON of an object: at the top level: the key "a" appears twice'),
        ('{"a": NaN}', "not the JSON of an object: at a: NaN is no JSON number"),
        ("[1]", "wanted an object, or the JSON text of one; got a list"),
        ('"{}"', "wanted an object, or the JSON text of one; got text"),
        (None, "wanted an object, or the JSON text of one; got null"),
        (7, "wanted an object, or the JSON text of one; got a number"),
        (b"{}", "wanted an object, or the JSON text of one; got a Python bytes"),
    ],
)
def test_arguments_that_are_no_object_are_refused(value: object, says: str) -> None:
    with pytest.raises(ArgumentsError) as refused:
        parse_args(value)
    assert str(refused.value).startswith(says)
    with pytest.raises(ValidationError, match="Value error"):
        TypeAdapter(Annotated[dict[str, Any], BeforeValidator(parse_args)]).validate_python(value)


def test_arguments_come_as_an_object_or_as_its_json_text() -> None:
    assert parse_args({"path": "/tmp/x"}) == parse_args(' {"path": "/tmp/x"} ') == {"path": "/tmp/x"}
