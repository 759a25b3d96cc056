"""JSON Schema (2020-12): for the arguments that an approver may edit, and for the answers to custom calls.

Schemas come from outside, and checking is done while everybody else waits. So what a schema may ask for is bounded: a
check that is not done in time is refused, and so is what could escape that bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.exceptions import ValidationError as SchemaViolation
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_ERRORS = 20
CHECK_S = 0.25
"""How long one check may take."""
MAX_OBJECTS = 1_000
"""Objects in a schema: whether it is one is checked without an eye on the time, in up to 1 ms an object."""
MAX_PATTERN = 1_000
"""Characters of a regular expression: compiling one cannot be stopped."""
_UNBOUNDED = {
    "patternProperties": "name the properties, or use propertyNames",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
}
"""What the library checks without an eye on the time, and what to use in its place."""
_TRIPPED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, regex.error)
"""What the library raises at a reference to what is no schema, and at numbers beyond a double's range."""

_until: ContextVar[float] = ContextVar("until")


class SchemaMismatch(ValueError):
    """The value breaks its schema. ``errors`` are `{"loc", "msg", "type"}` items."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{'.'.join(map(str, e['loc'])) or 'value'}: {e['msg']}" for e in errors))


class _TooLong(Exception):
    """The check is not done in time."""


class _Unbounded(Exception):
    """The check could take any time."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for what is no JSON Schema, or none whose checks can be bounded.

    Whatever dialect its `$schema` names, a schema is taken as one of 2020-12.
    """
    plain = _plain(schema)
    try:
        _check_bounded(plain)
        Draft202012Validator.check_schema(plain)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise ValueError(f"this is no JSON Schema: at {where or 'its top'}: {error.message[:300]}") from None
    except _Unbounded as error:
        raise ValueError(str(error)) from None
    except (*_TRIPPED, RecursionError) as error:
        raise ValueError(f"this is no JSON Schema: {error}") from None


def _check_bounded(schema: Mapping[str, Any]) -> None:
    """Refuse a schema whose check, or the check of itself, could take any time."""
    for number, part in enumerate(_objects(schema)):
        if number == MAX_OBJECTS:
            raise _Unbounded(f"a schema may have at most {MAX_OBJECTS} objects")
        # the library would go over to another dialect's checks, which know no bound
        if isinstance(part.get("$schema"), str):
            raise _Unbounded("$schema belongs to the top of a schema")
        for name, instead in _UNBOUNDED.items():
            if isinstance(part.get(name), Mapping | bool):
                raise _Unbounded(f"{name} are not taken: {instead}")
        pattern = part.get("pattern")
        if isinstance(pattern, str) and len(pattern) > MAX_PATTERN:
            raise _Unbounded(f"a pattern may have at most {MAX_PATTERN} characters")


def check_against(schema: Mapping[str, Any], value: object) -> None:
    """Raise SchemaMismatch if the value breaks the schema. References outside the schema are never fetched."""
    validator = _Bounded(_plain(schema), registry=Registry())
    started = _until.set(time.perf_counter() + CHECK_S)
    try:
        found = list(islice(validator.iter_errors(value), MAX_ERRORS))
    except Unresolvable as error:
        raise _mismatch(f"the schema refers to what it does not hold: {error}") from None
    except (_TooLong, TimeoutError):
        raise _mismatch("the schema takes too long to check") from None
    except RecursionError:
        raise _mismatch("the schema, or what it refers to, goes on too deep") from None
    except _TRIPPED as error:
        raise _mismatch(f"the schema cannot be checked: {error}") from None
    finally:
        _until.reset(started)
    if found:
        found.sort(key=lambda error: list(map(str, error.absolute_path)))
        raise SchemaMismatch([_violation(error) for error in found])


def _violation(error: SchemaViolation) -> dict[str, Any]:
    return _item(list(error.absolute_path), error.message[:300], str(error.validator))


def _mismatch(message: str) -> SchemaMismatch:
    return SchemaMismatch([_item([], message[:300], "schema")])


def _item(loc: list[str | int], message: str, kind: str) -> dict[str, Any]:
    return {"loc": loc, "msg": message, "type": kind}


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without the name of its dialect."""
    return {name: part for name, part in schema.items() if name != "$schema"}


def _objects(part: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, Mapping):
        yield part
    items = part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
    for item in items:
        yield from _objects(item)


# the checks, each with an eye on the time

Keyword = Callable[[Any, Any, Any, Any], Iterable[SchemaViolation] | None]


def _left_s() -> float:
    left = _until.get() - time.perf_counter()
    if left <= 0:
        raise _TooLong
    return left


def _timed(keyword: Keyword) -> Keyword:
    def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterable[SchemaViolation] | None:
        _left_s()
        return keyword(validator, wanted, value, schema)

    return check


def _pattern(validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[SchemaViolation]:
    """Python's own `re` cannot be stopped."""
    if validator.is_type(value, "string") and not regex.search(wanted, value, timeout=_left_s()):
        yield SchemaViolation(f"{value!r} does not match {wanted!r}")


def _unique(validator: Any, wanted: bool, value: Any, _schema: Any) -> Iterator[SchemaViolation]:
    """By sets: the library compares each item with each other."""
    if wanted and validator.is_type(value, "array") and len({_key(item) for item in value}) < len(value):
        yield SchemaViolation("an item is there twice")


def _key(value: object) -> Hashable:
    """Equal for what JSON Schema calls equal: 1 is 1.0, but not true."""
    if isinstance(value, Mapping):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(_key(item) for item in value)
    return (isinstance(value, bool), value)


_Bounded = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {name: _timed(keyword) for name, keyword in Draft202012Validator.VALIDATORS.items()}
    | {"pattern": _pattern, "uniqueItems": _unique},
)
