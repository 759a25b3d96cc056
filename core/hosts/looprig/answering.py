"""An answer in looprig's words, and whether an answer that stands in its journal is the same one. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core.hosts.looprig.fold import Closed
from core.hosts.looprig.gates import ANSWER

Json = dict[str, Any]

PREVIEW_BYTES: Final = 80
"""So much of an answer to a question stands in the journal; it may be cut within a character."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer in looprig's words. ``text`` follows as input to the session, behind an `other`."""

    action: str
    values: Json
    text: str | None


def same_answer(kind: str, said: Said, closed: Closed) -> bool | None:
    """Whether a gate of this kind was closed by what was said. None: the journal does not tell."""
    if closed.action != said.action:
        return False
    if kind == "harness.ask_user":
        return _same_text(said.values[ANSWER], closed.audit.get("answer_preview"))
    if kind == "harness.form" and said.action == "accept":
        return _same_values(said.values, closed.audit)
    return True  # an action is all that looprig takes there


def _same_text(text: str, preview: object) -> bool | None:
    if not isinstance(preview, str):
        return None
    sent = text.encode()
    if sent[:PREVIEW_BYTES].decode(errors="ignore").rstrip("\ufffd") != preview.rstrip("\ufffd"):
        return False
    return True if len(sent) <= PREVIEW_BYTES else None


def _same_values(values: Json, audit: Json) -> bool | None:
    told = audit.get("values")
    told = told if isinstance(told, dict) else audit
    return _texts(values) == _texts(told) if told else None


def _texts(values: Json) -> dict[str, str]:
    """Values as looprig keeps them: texts, without what is empty."""
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return {name: text for name, text in texts.items() if text not in (None, "")}
