"""The arguments of a tool call that waits for approval: their one written form, and its digest.

The digest of what a person saw is kept with the decision, so that only that can run. It is the SHA-256 of the
arguments as canonical JSON (RFC 8785), which does not depend on key order, blanks or number notation.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import rfc8785

from core.errors import Invalid
from core.strictjson import MAX_DEPTH, JsonError, Path, at, has_lone_surrogate, quoted, strict_json

MAX_INT = 2**53 - 1
# From here on the canonical form of a whole number has an exponent, and reads back as the same double.
_EXPONENT_FROM = 1e21


class ArgumentsError(Invalid, ValueError):
    """The arguments are no JSON object that has one canonical form."""


def canonical(args: Mapping[str, Any]) -> bytes:
    """The arguments as canonical JSON (RFC 8785), in UTF-8. Parsing it gives equal arguments.

    Raises ArgumentsError, saying where, for what has no form that everybody reads alike: NaN and Infinity,
    whole numbers beyond ±(2^53-1) (RFC 7493 section 2.2), half a surrogate pair, keys that are not text,
    values that are not JSON, nesting deeper than 64.
    """
    _check(args, ())
    return rfc8785.dumps(_plain(args))


def digest(args: Mapping[str, Any]) -> str:
    """The SHA-256 of the canonical arguments, as 64 hex digits. Raises what `canonical` raises."""
    return hashlib.sha256(canonical(args)).hexdigest()


def parse_args(value: object) -> dict[str, Any]:
    """The arguments of a tool call, which hosts send as an object or as the JSON text of one.

    Raises ArgumentsError for anything else, and for text that `strict_json` refuses.
    """
    if isinstance(value, str):
        try:
            value = strict_json(value)
        except JsonError as error:
            raise ArgumentsError(f"not the JSON of an object: {error}", errors=error.errors) from error
    if not isinstance(value, Mapping):
        raise ArgumentsError(f"wanted an object, or the JSON text of one; got {_kind(value)}")
    return dict(value)


def loses_digits(number: int | float) -> bool:
    """Whether a finite number is written as a whole number beyond ±(2^53-1), which many programs read as another."""
    # a double this large is written without an exponent too, and would read back as such a whole number
    return abs(number) > MAX_INT and (isinstance(number, int) or abs(number) < _EXPONENT_FROM)


def _check(value: object, path: Path) -> None:
    match value:
        case None | bool():
            pass
        case str():
            if has_lone_surrogate(value):
                _refuse("the text has half a surrogate pair", path)
        case int() | float():
            _check_number(value, path)
        case Mapping():
            _check_depth(path)
            for key, item in value.items():
                if not isinstance(key, str):
                    _refuse(f"a key is {_kind(key)}, not text", path)
                if has_lone_surrogate(key):
                    _refuse(f"the key {quoted(key)} has half a surrogate pair", path)
                _check(item, (*path, key))
        case list() | tuple():
            _check_depth(path)
            for index, item in enumerate(value):
                _check(item, (*path, index))
        case _:
            _refuse(f"{_kind(value)} is no JSON value", path)


def _check_number(number: int | float, path: Path) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        _refuse(f"{number} is no JSON number", path)
    if loses_digits(number):
        _refuse("whole numbers beyond ±(2^53-1) lose digits in many programs; send it as text", path)


def _check_depth(path: Path) -> None:
    if len(path) == MAX_DEPTH:
        _refuse(f"nested more than {MAX_DEPTH} deep", path)


def _plain(value: Any) -> Any:
    """The same value of dicts and lists alone: any mapping has a canonical form, `rfc8785` takes dicts."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _refuse(message: str, path: Path) -> NoReturn:
    raise ArgumentsError(f"at {at(path)}: {message}")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a Python {type(value).__name__}"
