"""Text on its way into Slack. An agent's text is hostile: it goes into plain and rich text, never markup.

Slack may escape `&`, `<` and `>` before it counts, so every measure here is that of the escaped text: `size`
in bytes for what a message holds in all, `length` in characters for the limit of one text object.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from bot import words
from core.clock import iso
from core.policy import Actor, Person

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_UNUSUAL: Final = re.compile(
    r"[^\x20-\x7e\n\t\u00a1-\u00ac\u00ae-\u02ff\u3041-\u3096\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
)
"""All but the letters that most texts consist of, each of which is looked at closely."""
_JOINS: Final = re.compile(r"[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What emoji and several scripts are put together with: joiners and variation selectors."""
_BLANK: Final = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""What Unicode counts as marks, letters, signs or nothing yet, and no font shows."""
_KEYCAP: Final = "\u20e3"
_OVERLAY: Final = re.compile(r"[\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5-\u20eb]")
"""Marks that cross out or cover what they stand on."""
_MARKS: Final = 6
"""Marks that one letter may carry: all that writing needs. More of them reach into the lines around."""
_RIGHT_TO_LEFT: Final = re.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ELLIPSIS: Final = "…"

Measure = Callable[[str], int]


def escape(text: str) -> str:
    """Text for markup (Slack's `mrkdwn`): no link, mention or broadcast can be made of it."""
    return text.translate(_ESCAPES)


def visible(text: str) -> str:
    """The text with what a reader cannot see written out: control and bidi characters as `\\u202e`.

    An argument that reads one way and runs another is the oldest trick there is (CVE-2021-42574). Joiners stay
    where writing needs them, behind a character beyond ASCII; marks stay on a letter, as many as writing needs.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNUSUAL.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    char, text, at = found[0], found.string, found.start()
    if _JOINS.match(char):
        shown = text.startswith(_KEYCAP, at + 1) or _takes_joiner(text[at - 1] if at else "", char)
    elif _is_mark(char):
        shown = _takes_mark(text, at)
    else:
        shown = _shows(char)
    return char if shown else json.dumps(char)[1:-1]


def _takes_joiner(before: str, joiner: str) -> bool:
    if _JOINS.match(before):
        # a heart in colour that goes on: U+2764 U+FE0F U+200D
        return joiner == "\u200d" and before == "\ufe0f"
    return bool(before) and not before.isascii() and _shows(before)


def _takes_mark(text: str, at: int) -> bool:
    """Whether the mark at this place stands on something, and covers neither that nor the lines around."""
    mark = text[at]
    if mark == _KEYCAP:
        return text[max(at - 2, 0) : at].removesuffix("\ufe0f")[-1:] in tuple("0123456789#*")
    if _OVERLAY.match(mark) or unicodedata.category(mark) == "Me" or not _shows(mark):
        return False
    for before in reversed(text[max(at - _MARKS, 0) : at]):
        if _OVERLAY.match(before):
            return False
        if not _is_mark(before) and not _JOINS.match(before):
            return unicodedata.category(before)[0] in "LNS" and _shows(before)
    return False


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


@lru_cache(maxsize=4096)
def _shows(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") and not _BLANK.match(char)


def size(text: str) -> int:
    """Bytes of the text in UTF-8 after escaping."""
    return len(text.encode()) + _escaping(text)


def length(text: str) -> int:
    """Characters of the text after escaping; one beyond the basic plane counts as two, as JavaScript has it."""
    return len(text.encode("utf-16-le")) // 2 + _escaping(text)


def _escaping(text: str) -> int:
    return 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def cut(text: str, most: int, measure: Measure = size) -> str:
    """The text in at most ``most`` bytes (or by another measure), with an ellipsis where it was cut."""
    if measure(text) <= most:
        return text
    room = most - measure(_ELLIPSIS)
    return _head(text, room, measure).rstrip() + _ELLIPSIS if room >= 0 else ""


def shown(text: str, most: int, measure: Measure = size) -> str:
    """What is visible of the text, cut; without a look at more of it than that takes."""
    return cut(visible(text[: most + 1]), most, measure)


def uncut(text: str, seen: str) -> bool:
    """Whether ``seen``, made by `shown`, is all of the text."""
    return len(text) <= len(seen) and visible(text) == seen


def chunks(text: str, most: int) -> list[str]:
    """The whole text in pieces of at most ``most`` bytes, cut behind lines, else words, where that wastes little."""
    found, start = [], 0
    while start < len(text):
        piece = _head(text[start : start + most], most, size) or text[start]
        if start + len(piece) < len(text):
            ends = (piece.rfind(end) + 1 for end in ("\n", " "))
            piece = piece[: next((end for end in ends if end > len(piece) // 2), len(piece))]
        found.append(piece)
        start += len(piece)
    return found


def _head(text: str, most: int, measure: Measure) -> str:
    """The longest beginning within ``most``. No character measures less than one."""
    text = text[:most]
    return text[: bisect_right(range(len(text) + 1), most, key=lambda n: measure(text[:n])) - 1]


def one_line(text: str) -> str:
    """The text as a control shows it: every run of white space is one blank."""
    return " ".join(text.split())


def glance(text: str, most: int, measure: Measure = size) -> str:
    """The text as a control shows it, cut; without a look at more of it than that takes."""
    head = text if len(text) <= most else text[:most] + _ELLIPSIS
    return cut(one_line(visible(head)), most, measure)


def reads_from_the_right(text: str) -> bool:
    """Whether some of the text is in a script that is written from right to left."""
    return _RIGHT_TO_LEFT.search(text) is not None


def isolated(text: str) -> str:
    """A text that others stand beside on one line: from whichever side it is read, they keep their places (UAX #9)."""
    return f"\u2068{text}\u2069" if reads_from_the_right(text) else text


def inert(text: str, most: int) -> str:
    """A text of others in our markup, in at most ``most`` bytes: as code, where nothing of it is markup."""
    return f"`{escape(glance(text.replace('`', 'ʼ'), most))}`"


def look(text: str) -> str:
    """What is left of a text for the eye: texts with the same look cannot be told apart."""
    return one_line(_JOINS.sub("", unicodedata.normalize("NFKC", text)))


def date(ms: int) -> str:
    """A moment, as markup that shows each reader their own local time (Slack: date formatting)."""
    fallback = iso(ms)[:16].replace("T", " ") + " UTC"
    return f"<!date^{ms // 1000}^{words.moment('{date_short_pretty}', '{time}')}|{fallback}>"


def mention(actor: Actor) -> str:
    """A person as a mention, an API key by its name, as markup."""
    return f"<@{actor.user}>" if isinstance(actor, Person) else words.api_key(actor.key)


def names(actors: Sequence[Actor], most: int) -> tuple[str, int]:
    """As many people as fit into ``most`` bytes, as markup, and how many are left out."""
    shown: list[str] = []
    for actor in actors:
        shown.append(mention(actor))
        if len(", ".join(shown)) > most:
            shown.pop()
            break
    return ", ".join(shown), len(actors) - len(shown)
