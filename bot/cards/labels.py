"""Labels of options as controls show them: cut to their room, and told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bot.cards.limits import OPTION_TEXT
from bot.cards.text import cut, length, look, one_line, size, visible

SHORT_LABEL: Final = 30
"""Characters of a label up to which an option is a button of its own: what fits a phone beside others."""
NUMBER: Final = 3
"""Characters of `4. `, as a question's four options have it."""


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


def _whole(label: str) -> str:
    return one_line(visible(label))


def _fitted(label: str, most: int, taken: int = 0) -> str:
    return cut(cut(label, OPTION_TEXT - taken, length), most)
