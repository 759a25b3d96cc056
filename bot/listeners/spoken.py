"""What somebody typed behind `/gates`: a verb and what it is about, read kindly."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

from core.policy import CHANNEL, GROUP, KEY, TEAM, USER

VERBS: Final = (
    "list",
    "show",
    "cancel",
    "extend",
    "reassign",
    "delegate",
    "resend",
    "decide",
    "new",
    "stop",
    "stats",
    "help",
)
LISTS: Final = ("mine", "channel", "expiring", "asked", "decided", "undeliverable", "dead", "all")
"""The words behind `list` that take nothing more, but for a channel that may follow `channel`."""

_ID: Final = re.compile(
    r"[`'\"“]?(?:(?:gate|run)_)?\d{2,4}_[0-9A-HJKMNP-TV-Z]{4,26}(?:_\d{1,3})?[`'\"”…]*", re.IGNORECASE
)
_CHANNEL: Final = re.compile(rf"<#({CHANNEL})(?:\|[^>]*)?>|({CHANNEL})")
_PERSON: Final = re.compile(rf"<@({USER})(?:\|[^>]*)?>|((?:{TEAM}:)?{USER})")
_GROUP: Final = re.compile(rf"<!subteam\^({GROUP})(?:\|[^>]*)?>|({GROUP})")
_WORD: Final = re.compile(rf"channel|anyone|key:{KEY}")
_MENTIONED: Final = re.compile(r"<(?:!subteam\^(?=S))?([@#]?)([A-Z0-9]+)(?:\|([^>]*))?>")
_SPACES: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A verb, the id that follows it, and the rest. ``nearest``: for an unknown word, the verb that it looks like."""

    verb: str
    gate: str = ""
    rest: str = ""
    nearest: str = ""


def spoken(text: str) -> Spoken:
    """Read a command. Words that are none of ours make the verb empty; an id alone is to be shown."""
    text = " ".join(text.split())
    verb, _, rest = text.partition(" ")
    word = verb.casefold()
    if not word:
        return Spoken("list")
    if _ID.fullmatch(verb):
        return Spoken("show", verb, rest)
    if word not in VERBS:
        near = difflib.get_close_matches(word, VERBS, 1, 0.6)
        return Spoken("", verb, rest, near[0] if near else "")
    if word in ("list", "new", "stop", "stats", "help"):
        return Spoken(word, rest=rest)
    gate, _, rest = rest.partition(" ")
    return Spoken(word, gate, rest)


def near_list(word: str) -> str:
    """The word behind `list` that an unknown one looks like, or nothing."""
    return next(iter(difflib.get_close_matches(word.casefold(), LISTS, 1, 0.6)), "")


def channel_in(text: str) -> str | None:
    """The id of a channel that was mentioned (`<#C1|ops>`) or written (`C1`)."""
    found = _CHANNEL.fullmatch(text.strip())
    return (found[1] or found[2]) if found else None


def written(text: str) -> str:
    """Words as they were typed: Slack puts mentions and `&`, `<`, `>` into its own form (Slack: slash commands)."""
    text = _MENTIONED.sub(lambda found: (found[1] or "@") + (found[3] or found[2]).lstrip("@#"), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def deciders_in(text: str) -> tuple[list[str], list[str]]:
    """The principals that were named: people and groups mentioned or by id, `channel`, `anyone`, `key:<name>`.

    Returns them, and the words that are none: a bare `@name` says nobody for sure, for names are not unique.
    """
    found: dict[str, None] = {}
    unknown = []
    for word in filter(None, _SPACES.split(text.strip())):
        for kind in (_PERSON, _GROUP):
            if match := kind.fullmatch(word):
                found[match[1] or match[2]] = None
                break
        else:
            if _WORD.fullmatch(word):
                found[word] = None
            else:
                unknown.append(word)
    return list(found), unknown
