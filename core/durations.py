"""Spans of time as people write them: `2h`, `90m`, `1d12h`, `2 hours`, `1 hour and 30 minutes`, `1.5h`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    1: "s sec secs second seconds seg segundo segundos",
    60: "m min mins minute minutes minuto minutos",
    3600: "h hr hrs hour hours hora horas",
    86400: "d day days día días dia dias",
    604800: "w wk week weeks semana semanas",
}
_SECONDS: Final = {word: seconds for seconds, words in _UNITS.items() for word in words.split()}
_PART: Final = re.compile(r"(\d{1,9}(?:[.,]\d{1,3})?)\s*([^\W\d_]+)\.?(?:\s*,)?(?:\s+(?:and|y)\b)?\s*")


def seconds(text: str) -> int:
    """A span of time in whole seconds. Raises ValueError for what is none."""
    text = text.strip().casefold()
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _SECONDS:
            raise ValueError(f"{text!r} is no time; wanted one such as 90s, 30m, 2h, 1d or 1h30m")
        total += float(part[1].replace(",", ".")) * _SECONDS[part[2]]
        at = part.end()
    if not text:
        raise ValueError("wanted a time such as 90s, 30m, 2h, 1d or 1h30m")
    return round(total)
