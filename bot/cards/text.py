"""Text on its way into Slack. An agent's text is hostile: it goes into plain and rich text, never markup.

Slack may escape `&`, `<` and `>` before it counts, so every size here is that of the escaped text.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Final

from core.clock import iso
from core.policy import Actor, Person

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_KEPT: Final = frozenset("\n\t\u200d\u200c")
"""Line breaks and tabs, and the joiners that emoji and several scripts are written with."""


def escape(text: str) -> str:
    """Text for markup (Slack's `mrkdwn`): no link, mention or broadcast can be made of it."""
    return text.translate(_ESCAPES)


def visible(text: str) -> str:
    """The text with what a reader cannot see written out: control and bidi characters as `\\u202e`.

    An argument that reads one way and runs another is the oldest trick there is (CVE-2021-42574).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(c) for c in text)


def _written(char: str) -> str:
    if char in _KEPT or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return char
    return json.dumps(char)[1:-1]


def size(text: str) -> int:
    """Bytes of the text in UTF-8 after escaping, which is never less than its characters."""
    return len(escape(text).encode())


def cut(text: str, most: int) -> str:
    """The text in at most ``most`` bytes, with an ellipsis where it was cut."""
    if size(text) <= most:
        return text
    room, kept = most - len("…".encode()), []
    for char in text:
        room -= size(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def chunks(text: str, most: int) -> list[str]:
    """The whole text in pieces of at most ``most`` bytes, cut at line ends where that wastes little."""
    found = []
    while size(text) > most:
        piece = _head(text, most)
        line_end = piece.rfind("\n") + 1
        if line_end > len(piece) // 2:
            piece = piece[:line_end]
        found.append(piece)
        text = text[len(piece) :]
    return [*found, text] if text or not found else found


def _head(text: str, most: int) -> str:
    room = most
    for index, char in enumerate(text):
        room -= size(char)
        if room < 0:
            return text[:index]
    return text


def date(ms: int) -> str:
    """A moment, as markup that shows each reader their own local time (Slack: date formatting)."""
    fallback = iso(ms)[:16].replace("T", " ") + " UTC"
    return f"<!date^{ms // 1000}^{{date_short_pretty}} at {{time}}|{fallback}>"


def mention(actor: Actor) -> str:
    """A person as a mention, an API key by its name, as markup."""
    return f"<@{actor.user}>" if isinstance(actor, Person) else f"API key `{actor.key}`"
