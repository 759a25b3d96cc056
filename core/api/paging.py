"""Cursors of lists: opaque to callers, the place of the last item to us."""

from __future__ import annotations

import base64
import binascii
import re

from core.api.problems import Malformed, invalid
from core.errors import NotFound
from core.ids import made_ms, run_of

MAX_LOOKED_AT = 2_000
"""Items that one call looks at; a filter that matches few of many goes on from the cursor."""
_POSITION = re.compile(r"([0-9]{1,15}) ((gate|run)_[0-9A-Z_]{1,64})")


def as_cursor(score: int, item: str) -> str:
    return base64.urlsafe_b64encode(f"{score} {item}".encode()).decode().rstrip("=")


def position_of(cursor: str, kind: str) -> tuple[int, str]:
    """The score and the id of an item of that kind (`gate`, `run`). Raises Malformed for what is no cursor of such."""
    try:
        text = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    match = _POSITION.fullmatch(text)
    if not match or match[3] != kind or not _is_id(match[2]):
        item = {"loc": ["cursor"], "msg": "wanted the next_cursor of a page before", "type": "cursor"}
        raise invalid([item], Malformed)
    return int(match[1]), match[2]


def _is_id(item: str) -> bool:
    try:
        made_ms(run_of(item)[0] if item.startswith("gate_") else item)
    except NotFound:
        return False
    return True
