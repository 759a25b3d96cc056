"""Redaction: what nobody should read is masked before it is written to logs, to the audit or on a card.

A value is hidden because of its field's name, or because a pattern finds it in a text. The JSON keeps its shape, so a
reader sees that something is there. Hosts get the real values.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

MASK: Final = "•••"
DEFAULT_FIELDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "client_secret",
    "signing_secret",
    "secret_key",
    "secret_access_key",
    "token",
    "access_token",
    "auth_token",
    "bot_token",
    "id_token",
    "refresh_token",
    "api_key",
    "x_api_key",
    "access_key",
    "private_key",
    "credentials",
    "authorization",
    "proxy_authorization",
    "cookie",
    "set_cookie",
)
_NAMES: Final = ("name", "key")
_VALUE: Final = "value"


class Patterns:
    """Regular expressions of RE2, whose time is linear in the text whatever the expression.

    Raises PatternError for one that RE2 does not take (it has no look-around and no back-references) or that finds the
    empty text, and ValueError if there is no RE2, or if they are too large together.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        try:
            re2 = importlib.import_module("re2")
        except ImportError:
            raise ValueError("patterns need the package google-re2: install askgate[redact]") from None
        options = re2.Options()
        options.log_errors = False
        for number, expression in enumerate(expressions):
            try:
                compiled = re2.compile(expression, options)
            except re2.error as error:
                raise PatternError(number, _said(error)) from None
            if compiled.search("") is not None:
                raise PatternError(number, "it finds the empty text")
        try:
            self._any = re2.compile("|".join(f"(?:{expression})" for expression in expressions), options)
        except re2.error as error:
            raise ValueError(f"all together: {_said(error)}") from None

    def masked(self, text: str) -> str:
        """The text with every match masked; half a surrogate pair, which is no text, is read as `?`."""
        whole = text.encode("utf-8", "replace").decode()
        return str(self._any.sub(lambda _: MASK, whole))


class PatternError(ValueError):
    """One expression cannot be used; ``number`` is its index."""

    def __init__(self, number: int, problem: str) -> None:
        self.number = number
        super().__init__(problem)


def _said(error: Exception) -> str:
    """What RE2 says, which comes as bytes."""
    what = error.args[0]
    return what.decode("utf-8", "replace") if isinstance(what, bytes) else str(what)


def plain(name: str) -> str:
    """A field's name as names are compared: letters and digits alone, so that `X-Api-Key` is `x_api_key`."""
    return "".join(char for char in name.casefold() if char.isalnum())


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is hidden. ``fields`` are names as `plain` makes them. With neither it hides nothing."""

    fields: frozenset[str] = frozenset()
    patterns: Patterns | None = None

    @classmethod
    def of(cls, fields: Sequence[str], patterns: Patterns | None = None) -> Redaction:
        return cls(frozenset(map(plain, fields)), patterns)

    def lists(self, name: str) -> bool:
        """Whether what stands under this name is hidden."""
        return plain(name) in self.fields

    def text(self, text: str) -> str:
        """A text, without what the patterns find in it."""
        return self.patterns.masked(text) if self.patterns else text

    def value(self, value: JsonValue, *, hide: bool = False) -> JsonValue:
        """A JSON value of the same shape. ``hide``: all of it, as it stands under a listed name."""
        return self.counted(value, hide=hide)[0]

    def counted(self, value: JsonValue, *, hide: bool = False) -> tuple[JsonValue, int]:
        """The same, and how many values were hidden, wholly or in part.

        Hidden are texts, numbers and booleans at any depth; null and empty text have nothing to hide. In an object
        that names what it holds (`{"name": "Authorization", "value": …}`) the value is hidden too.
        """
        if not (hide or self.fields or self.patterns):
            return value, 0
        match value:
            case None | "":
                return value, 0
            case Mapping():
                return self._members(value, hide)
            case list() | tuple():
                items = [self.counted(item, hide=hide) for item in value]
                return [item for item, _ in items], sum(count for _, count in items)
            case _ if hide:
                return MASK, 1
            case str():
                shown = self.text(value)
                return shown, int(shown != value)
        return value, 0

    def _members(self, members: Mapping[str, JsonValue], hide: bool) -> tuple[dict[str, JsonValue], int]:
        named = any(
            plain(name) in _NAMES and isinstance(item, str) and self.lists(item)
            for name, item in members.items()
        )
        names = distinct([self.text(name) for name in members]) if self.patterns else list(members)
        found: dict[str, JsonValue] = {}
        hidden = sum(name != given for name, given in zip(names, members, strict=True))
        for name, (given, item) in zip(names, members.items(), strict=True):
            secret = hide or self.lists(given) or (named and plain(given) == _VALUE)
            found[name], count = self.counted(item, hide=secret)
            hidden += count
        return found, hidden


NOTHING: Final = Redaction()


def distinct(texts: Sequence[str], most: int | None = None) -> list[str]:
    """Texts that can be told apart, in their order: a repeated one gets a number. ``most``: characters of each."""
    found: dict[str, None] = {}
    for text in texts:
        candidate, number = text[:most], 1
        while candidate in found:
            number += 1
            mark = f" ({number})"
            candidate = (text if most is None else text[: most - len(mark)]) + mark
        found[candidate] = None
    return list(found)
