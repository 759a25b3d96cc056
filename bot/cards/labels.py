"""Labels of options as controls show them: cut to their room, and told apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bot.cards.limits import OPTION_TEXT
from bot.cards.text import cut, glance, length, look, size

SHORT_LABEL: Final = 30
"""Characters of a label up to which an option is a button of its own: what fits a phone beside others."""
NUMBER: Final = 3
"""Characters of `4. `, as a question's four options have it."""
LOOKED_AT: Final = 4 * OPTION_TEXT
"""Bytes of a label that are looked at: more of it than a control shows, also where blanks are many."""


@dataclass(frozen=True, slots=True)
class Labels:
    """One text an option. ``numbered``: each begins with its number, as its line in the list above does."""

    texts: tuple[str, ...]
    numbered: bool

    @property
    def size(self) -> int:
        return sum(map(size, self.texts))

    @property
    def short(self) -> bool:
        return all(length(text) <= SHORT_LABEL for text in self.texts)


def labels(given: Sequence[str], budget: int) -> Labels:
    """Labels in at most ``budget`` bytes together, with numbers if two of them would look alike."""
    each = budget // len(given)
    texts = tuple(_fitted(label, each) for label in map(_whole, given))
    return numbered(given, budget) if alike(texts) else Labels(texts, numbered=False)


def numbered(given: Sequence[str], budget: int) -> Labels:
    """Labels in at most ``budget`` bytes together, each behind its number."""
    taken = len(f"{len(given)}. ")
    each = budget // len(given) - taken
    texts = [f"{n}. {_fitted(label, each, taken)}" for n, label in enumerate(map(_whole, given), start=1)]
    return Labels(tuple(texts), numbered=True)


def alike(texts: Sequence[str]) -> bool:
    """Whether two of the texts look the same.

    Look-alikes may differ by what nobody sees: kinds of blanks, joiners, composed letters.
    """
    return len(set(map(look, texts))) < len(texts)


@lru_cache(maxsize=4096)
def _whole(label: str) -> str:
    """A label on one line; one of nothing but blanks in quotes, for an option without a word is none to Slack."""
    return glance(label, LOOKED_AT) or json.dumps(label[:OPTION_TEXT])


def _fitted(label: str, most: int, taken: int = 0) -> str:
    return cut(cut(label, OPTION_TEXT - taken, length), most)
