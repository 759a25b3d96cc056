"""Forms, links and schemas: what is refused when they are opened, and what answers fit them."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.diffs import diff
from core.forms import MAX_VALUE_BYTES, FieldOption, FormError, FormField, FormRequest, check_form
from core.links import LinkRequest
from core.schemas import SchemaMismatch, check_against, check_schema

COLOURS = ({"value": "r", "label": "Red"}, {"value": "g", "label": "Green"})


def field(kind: str = "text", name: str = "f", **more: Any) -> FormField:
    options = COLOURS if kind in ("select", "multi_select") else ()
    return FormField.model_validate({"name": name, "kind": kind, "options": options, **more})


def errors(fields: tuple[FormField, ...], values: object) -> dict[str, str]:
    with pytest.raises(FormError) as wrong:
        check_form(fields, values)
    return {str(item["loc"][0]): item["type"] for item in wrong.value.errors}


@pytest.mark.parametrize(
    ("asked", "value", "kind"),
    [
        (field(required=True), None, "missing_required"),
        (field(required=True), "", "missing_required"),
        (field(), 7, "type_invalid"),
        (field(), "x" * (MAX_VALUE_BYTES + 1), "too_long"),
        (field(), "é" * (MAX_VALUE_BYTES // 2 + 1), "too_long"),
        (field(max_length=3), "four", "too_long"),
        (field(min_length=3), "no", "type_invalid"),
        (field(format="email"), "ana@", "type_invalid"),
        (field(format="uri"), "no uri", "type_invalid"),
        (field(format="uri"), "https://example.com/\n", "type_invalid"),
        (field(format="date"), "2026-02-30", "type_invalid"),
        (field(format="date"), "2026-W01-1", "type_invalid"),
        (field(format="date"), "２０２６-01-01", "type_invalid"),
        (field(format="date-time"), "2026-01-01T10:00:00", "type_invalid"),
        (field(format="date-time"), "2026-01-01T25:00:00Z", "type_invalid"),
        (field(format="date-time"), "2026-W01-1T10:00:00Z", "type_invalid"),
        (field(format="date-time"), "20260101T100000Z", "type_invalid"),
        (field(format="date-time"), "2026-01-01T10Z", "type_invalid"),
        (field("confirm"), "true", "type_invalid"),
        (field("confirm", required=True), None, "missing_required"),
        (field("select"), "blue", "option_not_allowed"),
        (field("select"), "Red", "option_not_allowed"),
        (field("select"), ["r"], "type_invalid"),
        (field("multi_select"), "r", "type_invalid"),
        (field("multi_select"), ["r", "r"], "type_invalid"),
        (field("multi_select"), ["b"], "option_not_allowed"),
        (field("multi_select", max_items=1), ["r", "g"], "too_long"),
        (field("multi_select", min_items=2), ["r"], "missing_required"),
        (field("multi_select", required=True), [], "missing_required"),
        (field("number"), "3", "type_invalid"),
        (field("number"), True, "type_invalid"),
        (field("number", minimum=2), 1.5, "type_invalid"),
        (field("number", maximum=2), 2.5, "type_invalid"),
        (field("integer"), 1.5, "type_invalid"),
        (field("integer"), 2**53, "type_invalid"),
        (field("number"), 1e20, "type_invalid"),
    ],
)
def test_each_bad_value_has_its_kind_of_error(asked: FormField, value: object, kind: str) -> None:
    assert errors((asked,), {"f": value}) == {"f": kind}


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        (field(), ""),
        (field(), "x" * MAX_VALUE_BYTES),
        (field(format="email"), "ana@example.com"),
        (field(format="uri"), "https://example.com/a"),
        (field(format="date"), "2026-02-28"),
        (field(format="date-time"), "2026-01-01T10:00:00Z"),
        (field(format="date-time"), "2026-01-01t10:00:00.25+02:00"),
        (field("confirm", required=True), False),
        (field("select", required=True), "g"),
        (field("multi_select"), ["g", "r"]),
        (field("multi_select"), []),
        (field("number", minimum=2, maximum=3), 2.5),
        (field("integer"), 3),
        (field("integer"), 3.0),
    ],
)
def test_what_fits_comes_back_as_it_was_given(asked: FormField, value: object) -> None:
    assert check_form((asked,), {"f": value}) == {"f": value}


def test_every_field_gets_its_own_error_and_null_is_absent() -> None:
    fields = (field(required=True), field("select", "s"), field("number", "n"))
    assert errors(fields, {"s": "blue", "n": "x", "ghost": 1}) == {
        "f": "missing_required",
        "s": "option_not_allowed",
        "n": "type_invalid",
        "ghost": "unknown_field",
    }
    assert check_form(fields, {"f": "a", "s": None, "n": None}) == {"f": "a"}
    with pytest.raises(FormError, match="wanted an object"):
        check_form(fields, ["f"])


@pytest.mark.parametrize(
    "broken",
    [
        {"fields": []},
        {"fields": [{"name": "", "kind": "text"}]},
        {"fields": [{"name": "é" * 65, "kind": "text"}]},
        {"fields": [{"name": "a", "kind": "text"}] * 2},
        {"fields": [{"name": f"f{i}", "kind": "text"} for i in range(33)]},
        {"fields": [{"name": "a", "kind": "select"}]},
        {"fields": [{"name": "a", "kind": "select", "options": [{"value": ""}]}]},
        {"fields": [{"name": "a", "kind": "select", "options": [{"value": "x"}, {"value": "x"}]}]},
        {"fields": [{"name": "a", "kind": "select", "options": [{"value": str(i)} for i in range(65)]}]},
        {"fields": [{"name": "a", "kind": "text", "options": [{"value": "x"}]}]},
        {"fields": [{"name": "a", "kind": "text", "minimum": 1}]},
        {"fields": [{"name": "a", "kind": "text", "default": 5}]},
        {"fields": [{"name": "a", "kind": "text", "format": "date", "default": "2026-W01-1"}]},
        {"fields": [{"name": "a", "kind": "text", "min_length": 5, "max_length": 4}]},
        {"fields": [{"name": "a", "kind": "text", "min_length": MAX_VALUE_BYTES + 1}]},
        {"fields": [{"name": "a", "kind": "number", "minimum": 2, "maximum": 1}]},
        {"fields": [{"name": "a", "kind": "integer", "default": 2**53}]},
        {"fields": [{"name": "a", "kind": "multi_select", "options": [{"value": "x"}], "min_items": 2}]},
        {"fields": [{"name": "a", "kind": "dance"}]},
        {"fields": [{"name": "a", "kind": "text"}], "controls": ["decline"]},
        {"fields": [{"name": "a", "kind": "text"}], "controls": ["accept", "accept"]},
        {"fields": [{"name": "a", "kind": "text"}], "schema": {"type": "object", "properties": {"a": {}}}},
        {"schema": {"type": "array"}},
        {"schema": {"type": "object"}},
        {"schema": {"type": "object", "properties": {"a": {"type": "object"}}}},
        {"schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}},
        {"schema": {"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}}},
    ],
)
def test_a_form_that_nobody_could_fill_in_is_refused(broken: dict[str, Any]) -> None:
    """looprig C32."""
    with pytest.raises(ValidationError):
        FormRequest.model_validate(broken)


def test_a_form_has_up_to_32_fields_and_64_options() -> None:
    options = [{"value": str(i)} for i in range(64)]
    fields = [{"name": f"f{i}", "kind": "select", "options": options} for i in range(32)]
    assert len(FormRequest.model_validate({"fields": fields}).all_fields) == 32


def test_an_mcp_elicitation_becomes_the_same_fields() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 40},
            "mail": {"type": "string", "format": "email", "description": "For the receipt"},
            "age": {"type": "integer", "minimum": 18},
            "ratio": {"type": "number", "maximum": 1, "default": 0.5},
            "news": {"type": "boolean", "default": False},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]},
            "tier": {
                "type": "string",
                "oneOf": [{"const": "a", "title": "Gold"}, {"const": "b", "title": "Tin"}],
            },
            "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1},
            "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}]}},
        },
        "required": ["name", "news"],
    }
    fields = {f.name: f for f in FormRequest.model_validate({"schema": schema}).all_fields}
    assert [f.kind for f in fields.values()] == [
        *("text", "text", "integer", "number", "confirm", "select", "select", "multi_select", "multi_select")
    ]
    assert fields["name"].required
    assert fields["name"].shown == "Your name"
    assert fields["size"].options[1] == FieldOption(value="m", label="Medium")
    assert fields["days"].options[0].shown == "Monday"
    assert fields["ratio"].default == 0.5
    given_ = {"name": "Ana", "news": False, "age": 18, "tier": "b", "tags": ["y"], "days": ["mo"]}
    assert check_form(tuple(fields.values()), given_) == given_
    assert errors(tuple(fields.values()), {**given_, "age": 17, "tags": ["x", "y"]}) == {
        "age": "type_invalid",
        "tags": "too_long",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_form_or_a_clear_refusal(value: Any) -> None:
    for body in (
        value,
        {"fields": value},
        {"schema": value},
        {"schema": {"type": "object", "properties": value}},
    ):
        with contextlib.suppress(ValidationError):
            form = FormRequest.model_validate(body)
            assert form.all_fields or (form.json_schema and form.json_schema["properties"] == {})


@given(JSON)
def test_any_answer_fits_or_is_refused(value: Any) -> None:
    fields = (field(), field("confirm", "c"), field("multi_select", "m"), field("number", "n"))
    for answers in (value, {"f": value, "c": value}, {"m": value, "n": value}):
        with contextlib.suppress(FormError):
            found = check_form(fields, answers)
            assert check_form(fields, found) == found


@pytest.mark.parametrize(
    ("given_", "shown"),
    [
        ({"origin": "https://example.com"}, "https://example.com"),
        ({"origin": "https://example.com:8443/"}, "https://example.com:8443"),
        ({"url": "https://pay.example.com/i?id=1#x"}, "https://pay.example.com"),
        ({"url": "http://[::1]:80/x"}, "http://[::1]:80"),
        ({"url": "https://bücher.example/x"}, "https://xn--bcher-kva.example"),
    ],
)
def test_a_link_shows_its_origin(given_: dict[str, str], shown: str) -> None:
    """looprig C50."""
    assert LinkRequest.model_validate(given_).shown_origin == shown


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"origin": "example.com"},
        {"origin": "https://example.com/path"},
        {"origin": "https://example.com?q"},
        {"origin": "https://ana:pw@example.com"},
        {"url": "javascript:alert(1)"},
        {"url": "ftp://example.com"},
        {"url": "https://"},
        {"url": "https://example.com/a|b"},
        {"url": "https://exa mple.com/"},
        {"url": "https://example.com:99999/"},
        {"url": "https://a.example/", "origin": "https://b.example"},
        {"url": "https://example.com/", "controls": ["cancel"]},
    ],
)
def test_a_link_that_misleads_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LinkRequest.model_validate(broken)


def test_a_schema_says_where_a_value_breaks_it() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]}
    check_schema(schema)
    check_against(schema, {"n": 3})
    with pytest.raises(SchemaMismatch) as wrong:
        check_against(schema, {"n": 4})
    assert wrong.value.errors == [
        {"loc": ["n"], "msg": "4 is greater than the maximum of 3", "type": "maximum"}
    ]
    with pytest.raises(ValueError, match="no JSON Schema"):
        check_schema({"type": "dance"})


def test_a_schema_never_fetches_anything() -> None:
    with pytest.raises(SchemaMismatch, match="refers to what it does not hold"):
        check_against({"$ref": "http://127.0.0.1:9/schema.json"}, {})


def test_a_diff_names_each_place_that_changed() -> None:
    old = {"path": "/a", "deep": {"x/y": 1, "gone": 2}, "list": [1, 2]}
    new = {"path": "/b", "deep": {"x/y": 1.5, "come": 3}, "list": [1, 3]}
    assert diff(old, new) == [
        {"path": "/path", "old": "/a", "new": "/b"},
        {"path": "/deep/x~1y", "old": 1, "new": 1.5},
        {"path": "/deep/gone", "old": 2},
        {"path": "/deep/come", "new": 3},
        {"path": "/list/1", "old": 2, "new": 3},
    ]
    assert diff(1, True) == [{"path": "", "old": 1, "new": True}]


@given(JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    same = json.loads(json.dumps(value))
    assert diff(same, json.loads(json.dumps(value))) == [] or "NaN" in json.dumps(value)
