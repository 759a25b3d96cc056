"""Whatever somebody might send: values of any shape, and right ones that are spoilt in a place or two."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
Path = tuple[str | int, ...]

words = st.sampled_from(
    ["", " ", "U1", "C1", "key:ci", "anyone", "ask_user_question", "question-1", "call-2", "api", "approve", "answer",
     "returned", "failed", "pending", "\x00", "\u202e", "\ud800", "<!channel>", "é" * 300, "{}", "[1"]
)  # fmt: skip
schema_words = st.sampled_from(
    ["object", "string", "array", "number", "integer", "boolean", "null", "properties", "required", "enum", "enumNames",
     "oneOf", "anyOf", "allOf", "not", "const", "title", "items", "type", "$ref", "#", "#/properties/path", "$id",
     "https://example.com/other", "$dynamicRef", "$anchor", "pattern", "(", "a{1,99999}", "format", "date", "minLength",
     "maxLength", "minimum", "maximum", "multipleOf", "minItems", "uniqueItems", "default", "if", "then", "$defs",
     "unevaluatedProperties", "additionalProperties", "patternProperties", "contains", "prefixItems",
     "dependentRequired"]
)  # fmt: skip
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.sampled_from([10**400, -(10**400), 2**53, 1e308, 5e-324, 0.1])
    | st.floats(allow_nan=True, allow_infinity=True)
    | words
    | st.text(max_size=8)
)


def nested(names: st.SearchStrategy[str], leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and objects of such leaves, the objects with such names."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    )


values = nested(words | st.text(max_size=4), scalars)
schema_values = nested(schema_words | words, scalars | schema_words)


def places(value: Any, path: Path = ()) -> list[Path]:
    """The path of every value in a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, item in items for found in places(item, (*path, step)))]


def put(value: Any, path: Path, given: Any) -> Any:
    if not path:
        return given
    if isinstance(value, dict):
        return {k: put(v, path[1:], given) if k == path[0] else v for k, v in value.items()}
    return [put(v, path[1:], given) if n == path[0] else v for n, v in enumerate(value)]


@st.composite
def spoilt(draw: st.DrawFn, whole: Json, by: st.SearchStrategy[Any] = values) -> Any:
    """A body that is right but for one or two places."""
    made: Any = whole
    for _ in range(draw(st.integers(1, 2))):
        made = put(made, draw(st.sampled_from(places(made))), draw(by))
    return made
