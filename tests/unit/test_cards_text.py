"""Text on its way into Slack: nothing becomes markup, nothing hides, nothing is lost between pieces."""

from __future__ import annotations

import html
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards.text import chunks, cut, escape, inert, isolated, length, look, names, shown, size, visible
from core.policy import Key
from tests.unit.cards import few, people, texts

anything = texts(3000)
room = st.integers(0, 400)


@few
@given(anything)
def test_an_escaped_text_has_no_markup_of_slack_and_reads_back_as_it_was(text: str) -> None:
    escaped = escape(text)
    assert not set("<>") & set(escaped)
    assert re.sub("&(amp|lt|gt);", "", escaped).count("&") == 0
    assert escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


@few
@given(anything)
def test_size_and_length_are_those_of_the_escaped_text(text: str) -> None:
    assert size(text) == len(escape(text).encode())
    assert length(text) == len(escape(text).encode("utf-16-le")) // 2
    assert len(text) <= length(text) <= size(text)


@few
@given(anything, room, st.sampled_from([size, length]))
def test_a_cut_text_fits_and_begins_as_the_whole_does(text: str, most: int, measure) -> None:
    found = cut(text, most, measure)
    assert measure(found) <= most
    if measure(text) <= most:
        assert found == text
    else:
        assert found == "" or (found[-1] == "…" and text.startswith(found[:-1]))


@few
@given(anything, room, st.sampled_from([size, length]))
def test_a_cut_wastes_no_more_than_one_character_and_the_blanks_at_its_end(
    text: str, most: int, measure
) -> None:
    found = cut(text, most, measure)
    if found not in (text, ""):
        kept = len(found) - 1
        rest = text[kept:].lstrip()
        gap = len(text) - kept - len(rest)
        assert measure(text[: kept + gap + 1]) + measure("…") > most


@few
@given(anything, st.integers(5, 400))
def test_pieces_join_to_the_whole_and_each_of_them_fits(text: str, most: int) -> None:
    pieces = chunks(text, most)
    assert "".join(pieces) == text
    assert all(piece and size(piece) <= most for piece in pieces)


def test_a_long_text_is_cut_at_line_ends() -> None:
    pieces = chunks("a line of text\n" * 100, 100)
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_long_line_is_cut_between_words_and_a_long_word_where_it_must() -> None:
    assert all(piece.endswith("words ") for piece in chunks("words " * 100, 100)[:-1])
    assert [len(piece) for piece in chunks("w" * 250, 100)] == [100, 100, 50]


@few
@given(anything)
def test_what_is_visible_hides_nothing_and_is_not_made_any_more_visible(text: str) -> None:
    found = visible(text)
    assert visible(found) == found
    hidden = [
        c
        for c in found
        if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t\u200c\u200d"
    ]
    assert hidden == []


@few
@given(anything)
def test_a_visible_json_text_means_the_same(text: str) -> None:
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == text


@few
@given(anything, room)
def test_what_is_shown_is_what_is_visible_of_it(text: str, most: int) -> None:
    if size(visible(text)) <= most:
        assert shown(text, most) == visible(text)
    else:
        found = shown(text, most)
        assert size(found) <= most
        assert found == "" or visible(text).startswith(found[:-1])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rm \u202egnp.exe", "rm \\u202egnp.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u200db", "a\\u200db"),
        ("zero\x00", "zero\\u0000"),
        ("\r\n", "\\r\n"),
        ("\u3164", "\\u3164"),
        ("\U000e0041", "\\udb40\\udc41"),
        ("a\ufe00\ufe01", "a\\ufe00\\ufe01"),
        ("é\ufe00\ufe01\ufe02", "é\ufe00\\ufe01\\ufe02"),
        # marks: on nothing, too many of them, and those that cross out or cover what they stand on
        ("\u0301a", "\\u0301a"),
        ('"\u0301"', '"\\u0301"'),
        ("a" + "\u0301" * 8, "a" + "\u0301" * 6 + "\\u0301" * 2),
        ("d\u0336e\u0336", "d\\u0336e\\u0336"),
        ("A\u20e0", "A\\u20e0"),
        ("A\u20e3", "A\\u20e3"),
        ("\u200b\u0301", "\\u200b\\u0301"),
    ],
)
def test_what_nobody_sees_is_written_out(text: str, found: str) -> None:
    assert visible(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("👩‍👩‍👧 family", "❤️‍🔥", "1️⃣", "#️⃣", "🏳️‍🌈", "می‌خواهم", "क्‍ष", "naïve\ttab\nline", "漢字 한국어"),
        *("שָׁלוֹם", "e\u0301te\u0301", "ที่นี่", "Vie\u0323\u0302t", "ཧཱུྃ"),
    ],
)
def test_writing_and_emoji_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("one", "other"), [("a b", "a\u00a0 b"), ("é", "e\u0301"), ("ﬁ", "fi"), ("😀", "😀\ufe0f")]
)
def test_what_the_eye_cannot_tell_apart_has_one_look(one: str, other: str) -> None:
    assert one != other
    assert look(one) == look(other)


def test_names_are_shown_as_far_as_they_fit_and_the_others_counted() -> None:
    assert names([*people(2), Key(key="ci")], 400) == (
        "<@U0000000000000000000000000000000>, <@U0000000000000000000000000000001>, API key `ci`",
        0,
    )
    found, more = names(people(32), 400)
    assert len(found) <= 400
    assert found.count("<@") + more == 32
    assert more > 0


def test_an_escape_is_never_split() -> None:
    for most in range(3, 40):
        kept = escape(cut("<&>" * 20, most))
        assert html.unescape(kept).rstrip("…") in "<&>" * 20
        assert len(kept.encode()) <= most


def test_a_text_that_is_read_from_the_right_keeps_its_place_between_others() -> None:
    assert isolated("أمر") == "\u2068أمر\u2069"
    assert isolated("plain 漢字 é") == "plain 漢字 é"


@few
@given(anything, st.integers(20, 400))
def test_an_inert_text_is_one_code_span_without_markup(text: str, most: int) -> None:
    found = inert(text, most)
    assert found[0] == found[-1] == "`"
    assert not set("<>`\n") & set(found[1:-1])
    assert size(found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")) <= most + 2
