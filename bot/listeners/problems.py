"""What core says of an answer that it does not take, in the language that is spoken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from bot import words

LOOKED_AT: Final = 600
"""Characters up to which a sentence is looked up. Longer ones hold more of what somebody typed than of our words."""
_PLACE: Final = re.compile(r"\{(\d)\}")
_ESCAPED: Final = re.compile(r"\\\{(\d)\\\}")


def problem(said: str) -> str:
    """The sentence in the spoken language; as it is, if that language does not know it.

    A sentence with values in it is known by the words around them, and a value may be a sentence itself
    (`line 1, column 5: Expecting value`).
    """
    table = words.PROBLEMS
    if not table or len(said) > LOOKED_AT:
        return said
    if said in table:
        return table[said]
    for pattern, template in _patterns(tuple(table.items())):
        if found := pattern.fullmatch(said):
            return _filled(template, [problem(value) for value in found.groups()])
    return said


def _filled(template: str, values: list[str]) -> str:
    """The template with its values, in one go: what a value holds is no place for another one."""
    return _PLACE.sub(lambda place: values[int(place[1])], template)


@lru_cache(maxsize=4)
def _patterns(table: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What to look for and what to say for it; the sentences with most words of their own first."""
    return tuple(sorted(_compiled(table), key=lambda pair: -len(pair[0].pattern)))


def _compiled(table: tuple[tuple[str, str], ...]) -> Iterator[tuple[re.Pattern[str], str]]:
    for known, said in table:
        if "{0}" in known:
            yield re.compile(_ESCAPED.sub("(.+?)", re.escape(known)), re.DOTALL), said
