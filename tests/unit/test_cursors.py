"""Cursors over all partitions."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.store.cursors import Cursor, Place

places = st.just(Place(0, 0)) | st.builds(Place, st.integers(1, 2**45), st.integers(0, 2**40))


@given(st.lists(places, min_size=1, max_size=40))
def test_a_cursor_comes_back_from_its_text(given_places: list[Place]) -> None:
    cursor = Cursor(tuple(given_places))
    assert Cursor.parse(str(cursor), len(given_places)) == cursor


def test_it_is_short_enough_for_a_header_and_has_no_sign_that_a_url_would_change() -> None:
    cursor = Cursor(tuple(Place(1_767_225_600_000 + n * 1000, n % 3) for n in range(16)))
    assert len(str(cursor)) <= 100
    assert str(cursor).replace("-", "").replace("_", "").isalnum()


def test_it_moves_in_one_partition_alone() -> None:
    assert Cursor((Place(1, 0), Place(2, 0))).moved(1, Place(9, 4)) == Cursor((Place(1, 0), Place(9, 4)))


@pytest.mark.parametrize("partitions", [1, 3, 5, 16])
def test_one_of_a_store_with_other_partitions_is_refused(partitions: int) -> None:
    text = str(Cursor((Place(1, 0), Place(2, 0), Place(0, 0), Place(7, 7))))
    with pytest.raises(ValueError, match="of this store"):
        Cursor.parse(text, partitions)


def _packed(*raw: int) -> str:
    return base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    ["", "x", "=", "AA==", "a b", "é", "1-2-3", _packed(2, 5, 1, 0), _packed(2, 5, 1, 0, 1, 0, 0),
     _packed(2, 5, 1, 0, 7, 0), _packed(2, 5, 1, 0, 0x81), _packed(2, *[0xFF] * 12, 1, 0, 0)],
)  # fmt: skip
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="of this store"):
        Cursor.parse(text, 2)


@given(st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: _packed(*raw)))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        cursor = Cursor.parse(text, 4)
    except ValueError:
        return
    assert len(cursor.places) == 4
