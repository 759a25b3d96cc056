"""Quiet hours: when nobody is reminded of anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SATURDAY: Final = 5
LONGEST_DAYS: Final = 4
"""A weekend between two quiet nights, and a day for where the clocks are changed."""

_TEXT: Final = re.compile(
    r"(?:(?P<start>[0-2]\d:[0-5]\d)-(?P<end>[0-2]\d:[0-5]\d))?\s*(?P<weekends>weekends)?\s*(?P<zone>[A-Z]\S+)?"
)


class Quiet(NamedTuple):
    """From ``start`` to ``end`` each day (the same: never), and on weekends if so. ``zone``: None is each person's."""

    start: time
    end: time
    weekends: bool
    zone: ZoneInfo | None

    def until(self, now_ms: int, zone: ZoneInfo) -> int:
        """When the quiet that there is at this moment ends, in ms; 0 if there is none."""
        now = datetime.fromtimestamp(now_ms / 1000, zone)
        if not self._holds(now):
            return 0
        end = next(moment for moment in self._ends(now) if moment.astimezone(UTC) > now.astimezone(UTC))
        return int(end.timestamp() * 1000)

    def _holds(self, at: datetime) -> bool:
        if self.weekends and at.weekday() >= SATURDAY:
            return True
        clock = at.time()
        if self.start <= self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end

    def _ends(self, now: datetime) -> Iterator[datetime]:
        """The moments from this day on at which a quiet time may end and none begins."""
        for day in range(LONGEST_DAYS + 1):
            date = now.date() + timedelta(days=day)
            for clock in sorted({time(0), self.end}):
                moment = datetime.combine(date, clock, now.tzinfo)
                if not self._holds(moment):
                    yield moment


def parse_quiet(text: str) -> Quiet:
    """`22:00-07:00 weekends Europe/Berlin`, of which hours or weekends may be left out, and the zone.

    Raises ValueError with what is wrong.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or not (match["start"] or match["weekends"]):
        raise ValueError(f"got {text!r}")
    try:
        start, end = (time.fromisoformat(match[name] or "00:00") for name in ("start", "end"))
    except ValueError:
        raise ValueError(f"got {text!r}: there is no such time of day") from None
    if match["start"] and start == end:
        raise ValueError(f"got {text!r}: from and until are the same")
    try:
        zone = ZoneInfo(match["zone"]) if match["zone"] else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {match['zone']!r}") from None
    return Quiet(start, end, bool(match["weekends"]), zone)
