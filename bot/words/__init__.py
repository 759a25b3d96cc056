"""Every sentence that askgate itself says in Slack, in the language that this process speaks.

`words.APPROVE` is the word of that language at the moment when it is read: so nothing reads one while it is imported.
A language is a module with the names of `english`, of the same types, with the same placeholders.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bot.words import english, spanish

LANGUAGES: Final[Mapping[str, ModuleType]] = {"en": english, "es": spanish}
"""The languages by their codes (ISO 639-1)."""

_spoken: ModuleType = english


def speak(language: str) -> None:
    """Have this process speak a language of `LANGUAGES` from here on. Raises KeyError for another one."""
    global _spoken  # one process, one language, as its settings say
    _spoken = LANGUAGES[language]


if TYPE_CHECKING:
    from bot.words.english import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        return getattr(_spoken, name)
