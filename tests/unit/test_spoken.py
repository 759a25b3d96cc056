"""What is typed behind `/gates`, and spans of time, read kindly."""

from __future__ import annotations

import pytest

from bot.listeners.spoken import Spoken, channel_in, deciders_in, near_list, spoken, written
from core.durations import seconds

GATE = "gate_07_01JZ0000000000000000000000_2"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2h", 7200),
        ("90m", 5400),
        ("1d12h", 129_600),
        ("2 hours", 7200),
        ("1 hour and 30 minutes", 5400),
        ("1h, 30 min.", 5400),
        ("1.5h", 5400),
        ("2 Horas y 5 minutos", 7500),
        ("1w", 604_800),
        ("0s", 0),
    ],
)
def test_a_time_is_read_as_people_write_it(text: str, wanted: int) -> None:
    assert seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "2", "h", "-2h", "2 lightyears", "soon", "2h later", "1e9h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 90s"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", Spoken("list")),
        ("  LIST   mine ", Spoken("list", rest="mine")),
        (f"cancel {GATE}  not   needed", Spoken("cancel", GATE, "not needed")),
        (f"`{GATE}`", Spoken("show", f"`{GATE}`")),
        ("07_01jz00", Spoken("show", "07_01jz00")),
        ("extnd 2h", Spoken("", "extnd", "2h", "extend")),
        ("zzz", Spoken("", "zzz")),
        ("help me", Spoken("help", rest="me")),
    ],
)
def test_a_command_is_a_verb_an_id_and_the_rest(text: str, wanted: Spoken) -> None:
    assert spoken(text) == wanted


def test_people_groups_and_words_are_named_in_any_form() -> None:
    text = "<@U1|ana>, <@W2> T2:U9 <!subteam^S1|@oncall> S2 U1 channel key:ci"
    assert deciders_in(text) == (["U1", "W2", "T2:U9", "S1", "S2", "channel", "key:ci"], [])


@pytest.mark.parametrize("text", ["@ana", "ana", "<!channel>", "<@U1", "admins", "*"])
def test_what_names_nobody_for_sure_is_told_apart(text: str) -> None:
    assert deciders_in(text) == ([], [text])


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("<@U1|ana> said a &lt; b &amp;&amp; c", "@ana said a < b && c"),
        ("in <#C1|ops> and <#C2>", "in #ops and #C2"),
        ("<!subteam^S1|@oncall> or <!subteam^S2>", "@oncall or @S2"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_a_reason_stands_as_it_was_typed(text: str, typed: str) -> None:
    assert written(text) == typed


def test_channels_and_near_words() -> None:
    assert [channel_in(text) for text in ("<#C1|ops>", "C1", "<#C1>", "ops", "")] == [
        "C1",
        "C1",
        "C1",
        None,
        None,
    ]
    assert [near_list(word) for word in ("chanel", "expires", "zzz")] == ["channel", "expiring", ""]
