"""JSON from outside, read strictly: what two parsers could understand differently is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from core.errors import AskgateError

MAX_DEPTH = 64
MAX_VALUES = 100_000
"""Objects, lists, texts and numbers in one JSON text: what follows takes microseconds for each."""
# Below the 4,300 digits up to which Python turns numbers into text and back.
MAX_DIGITS = 4_000

Path = tuple[str | int, ...]
_SHOWN = 60
_ATOMS = frozenset({int, float, bool, type(None)})
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class JsonError(AskgateError, ValueError):
    """This is not JSON, or not JSON that everybody reads alike."""

    slug = "malformed"


class _Flaw:
    """Stands in a parsed value where the text was refused, so that its path can be told."""

    def __init__(self, message: str, kind: str, key: str | None = None) -> None:
        self.message = message
        self.kind = kind
        self.key = key


def strict_json(raw: bytes | str) -> Any:
    """The value of one JSON text (bytes are UTF-8).

    Raises JsonError, saying where, for what RFC 8259 refuses and also for: a key twice in one object, NaN and
    Infinity, numbers beyond a double's range, whole numbers of more than 4,000 digits, half a surrogate pair,
    nesting deeper than 64, more than 100,000 values, a byte order mark.
    """
    text = raw if isinstance(raw, str) else _decode(raw)
    if text.startswith("\ufeff"):
        raise JsonError("line 1, column 1: a byte order mark; leave it out")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise JsonError(f"nested more than {MAX_DEPTH} deep") from error
    _check(value, (), _Budget())
    return value


def at(path: Path) -> str:
    """A path for people: `pending.calls[0].args`; the empty path is `the top level`."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step) and len(step) <= _SHOWN:
            shown += f".{step}" if shown else step
        else:
            shown += f"[{quoted(step)}]"
    return shown or "the top level"


def quoted(text: str) -> str:
    """Text in quotes for an error message: cut at 60 characters, everything odd escaped."""
    return json.dumps(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def has_lone_surrogate(text: str) -> bool:
    """Whether the text has half a surrogate pair, which no encoding can carry."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise JsonError(
            f"line {line}, column {column}: the byte 0x{raw[error.start]:02x} is not UTF-8"
        ) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Flaw:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Flaw(f"the key {quoted(key)} appears twice", "duplicate_key", key)
        seen.add(key)
    raise AssertionError("fewer keys than pairs, so one is there twice")


def _constant(word: str) -> _Flaw:
    return _Flaw(f"{word} is no JSON number", "not_finite")


def _float(digits: str) -> float | _Flaw:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        return _Flaw(f"the number {digits[:_SHOWN]} is too large", "too_large")
    return number


def _int(digits: str) -> int | _Flaw:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        return _Flaw(f"a whole number of more than {MAX_DIGITS:,} digits", "too_large")
    return int(digits)


class _Budget:
    """How many values a text may still have."""

    def __init__(self) -> None:
        self._left = MAX_VALUES - 1

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise JsonError(f"more than {MAX_VALUES:,} values in one text")


def _check(value: Any, path: Path, budget: _Budget) -> None:
    if isinstance(value, _Flaw):
        _refuse(value, path)
    if isinstance(value, str) and has_lone_surrogate(value):
        _refuse(_Flaw("the text has half a surrogate pair", "surrogate"), path)
    if not isinstance(value, dict | list):
        return
    if len(path) == MAX_DEPTH:
        _refuse(_Flaw(f"nested more than {MAX_DEPTH} deep", "too_deep"), path)
    budget.spend(len(value))
    steps: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in steps:
        if isinstance(step, str) and has_lone_surrogate(step):
            _refuse(_Flaw("the key has half a surrogate pair", "surrogate", step), path)
        # Most of a large body is numbers and plain text: they are settled here, without a call.
        if type(item) not in _ATOMS and not (type(item) is str and item.isascii()):
            _check(item, (*path, step), budget)


def _refuse(flaw: _Flaw, path: Path) -> NoReturn:
    loc = path if flaw.key is None else (*path, flaw.key)
    printable = [step if isinstance(step, int) else quoted(step)[1:-1] for step in loc]
    raise JsonError(
        f"at {at(path)}: {flaw.message}", errors=[{"loc": printable, "msg": flaw.message, "type": flaw.kind}]
    )
