"""What a person wrote, out of the markup that Slack makes of it (Slack: formatting message text)."""

from __future__ import annotations

import html
import re
from typing import Final

_ENTITY: Final = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def said(text: str) -> str:
    """The text as it was written, without blanks around it. Who is mentioned by an id alone stands there by it."""
    return html.unescape(_ENTITY.sub(_written, text)).strip()


def _written(found: re.Match[str]) -> str:
    target, label = found[1], found[2]
    if target.startswith(("@", "!subteam")):
        return f"@{(label or target.rpartition('^')[2]).removeprefix('@')}"
    if target.startswith("#"):
        return f"#{(label or target).removeprefix('#')}"
    if target.startswith("!"):
        return label or f"@{target.removeprefix('!')}"
    # an address stands there as it leads; what somebody typed as one comes with itself as its label
    bare = target.removeprefix("mailto:").removeprefix("tel:")
    return bare if not label or label in target else f"{label} ({bare})"
