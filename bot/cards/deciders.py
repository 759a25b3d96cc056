"""Who may decide a gate, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bot import words
from bot.cards.text import size
from core.policy import GROUP, USER, Person

DECIDERS_BYTES: Final = 360
"""What the names of those who may decide take at most; a dozen people with long ids fit."""

_PERSON: Final = re.compile(rf"(?:\w+:)?({USER})")


def deciders(principals: Sequence[str], *, but: Person | None = None) -> str:
    """Those who may decide, as markup within `DECIDERS_BYTES`; without the person ``but``."""
    named = list(dict.fromkeys(_named(p) for p in principals))
    if but:
        named = [name for name in named if name != f"<@{but.user}>"]
    shown: list[str] = []
    for name in named:
        if size(words.and_more(", ".join([*shown, name]), len(named))) > DECIDERS_BYTES:
            break
        shown.append(name)
    return words.and_more(", ".join(shown), len(named) - len(shown))


def _named(principal: str) -> str:
    """A principal as markup: people and groups as mentions."""
    if person := _PERSON.fullmatch(principal):
        return f"<@{person[1]}>"
    if re.fullmatch(GROUP, principal):
        return f"<!subteam^{principal}>"
    if principal.startswith("key:"):
        return words.api_key(principal.removeprefix("key:"))
    return words.DECIDERS[principal]
