"""Quiet hours: what they say, in each zone, over nights, weekends and changes of the clocks."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.quiet import Quiet, parse_quiet

BERLIN = "Europe/Berlin"
YEAR_MS = 366 * 24 * 3600 * 1000
START_MS = 1_767_225_600_000


def ms(text: str, zone: str = BERLIN) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def until(quiet: Quiet, text: str, zone: str = BERLIN) -> str:
    found = quiet.until(ms(text, zone), ZoneInfo(zone))
    return datetime.fromtimestamp(found / 1000, ZoneInfo(zone)).strftime("%a %d %H:%M") if found else ""


@pytest.mark.parametrize(
    ("text", "now", "end"),
    [
        ("22:00-07:00", "2026-01-05T21:59", ""),
        ("22:00-07:00", "2026-01-05T22:00", "Tue 06 07:00"),
        ("22:00-07:00", "2026-01-05T06:59", "Mon 05 07:00"),
        ("22:00-07:00", "2026-01-05T07:00", ""),
        ("12:00-13:00", "2026-01-05T12:30", "Mon 05 13:00"),
        ("22:00-07:00 weekends", "2026-01-09T23:00", "Mon 12 07:00"),
        ("22:00-07:00 weekends", "2026-01-10T12:00", "Mon 12 07:00"),
        ("weekends", "2026-01-10T12:00", "Mon 12 00:00"),
        ("weekends", "2026-01-09T23:59", ""),
        ("18:00-00:00", "2026-01-05T19:00", "Tue 06 00:00"),
        # the clocks go forward on 29 March 2026 from two to three, and back on 25 October
        ("22:00-02:30", "2026-03-28T23:00", "Sun 29 03:30"),
        ("22:00-07:00", "2026-03-28T23:00", "Sun 29 07:00"),
        ("22:00-07:00", "2026-10-24T23:00", "Sun 25 07:00"),
    ],
)
def test_quiet_ends_when_it_says(text: str, now: str, end: str) -> None:
    assert until(parse_quiet(text), now) == end


def test_each_zone_has_its_own_night() -> None:
    quiet = parse_quiet("22:00-07:00")
    now = ms("2026-01-05T23:00")
    assert quiet.until(now, ZoneInfo("Asia/Tokyo")) == 0
    assert quiet.until(now, ZoneInfo("Asia/Kolkata")) == ms("2026-01-06T07:00", "Asia/Kolkata")
    assert quiet.until(now, ZoneInfo("America/New_York")) == 0
    assert quiet.until(now, ZoneInfo(BERLIN)) == ms("2026-01-06T07:00")


@given(
    now=st.integers(START_MS, START_MS + YEAR_MS),
    text=st.sampled_from(["22:00-07:00", "07:00-06:59 weekends", "weekends", "01:30-02:30", "00:00-23:59"]),
    zone=st.sampled_from([BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"]),
)
def test_it_ends_after_now_and_is_over_then(now: int, text: str, zone: str) -> None:
    quiet, where = parse_quiet(text), ZoneInfo(zone)
    end = quiet.until(now, where)
    assert end == 0 or (now < end < now + 5 * 24 * 3600 * 1000 and quiet.until(end, where) == 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "22-7",
        "22:00",
        "24:00-07:00",
        "22:00-22:00",
        "Europe/Berlin",
        "22:00-07:00 Mars/Base",
        "22:00-07:00 holidays",
    ],
)
def test_what_says_nothing_sensible_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"got|no time zone"):
        parse_quiet(text)


def test_all_of_it_may_be_said() -> None:
    quiet = parse_quiet("22:00-07:00 weekends America/Argentina/Buenos_Aires")
    assert quiet.weekends
    assert str(quiet.zone) == "America/Argentina/Buenos_Aires"
    assert parse_quiet("weekends").zone is None
