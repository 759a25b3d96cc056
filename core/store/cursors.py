"""How far a reader of the audit has come, in each partition.

One position for all partitions could not say it: an event may reach one partition later than its time says, when a
reader has told later events of another partition already.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TEXT = re.compile(r"[A-Za-z0-9_-]+")
_BITS = 64


class Place(NamedTuple):
    """An entry of a partition's stream: its ms, and its number within that. `Place(0, 0)` is before all of them."""

    ms: int
    seq: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.seq}"

    @classmethod
    def of(cls, entry: str) -> Place:
        """The place of an entry, by the id that the stream gave it."""
        ms, _, seq = entry.partition("-")
        return cls(int(ms), int(seq))


@dataclass(frozen=True, slots=True)
class Cursor:
    """For each partition the place of the last entry that was had. As text it is opaque, and safe in a URL."""

    places: tuple[Place, ...]

    def moved(self, partition: int, place: Place) -> Cursor:
        return Cursor((*self.places[:partition], place, *self.places[partition + 1 :]))

    def __str__(self) -> str:
        newest = max(place.ms for place in self.places)
        numbers = [len(self.places), newest]
        for ms, seq in self.places:
            numbers += [newest - ms + 1, seq] if (ms, seq) != (0, 0) else [0]
        return base64.urlsafe_b64encode(bytes(_packed(numbers))).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, partitions: int) -> Cursor:
        """Raises ValueError for what is no cursor of a store with so many partitions."""
        try:
            numbers = _unpacked(_raw(text))
            count, newest = next(numbers), next(numbers)
            places = [_place(numbers, newest) for _ in range(partitions)]
        except StopIteration:
            count, places = 0, []
        if count != partitions or any(True for _ in numbers):
            raise ValueError("wanted the id of an event of this store")
        return cls(tuple(places))


def _place(numbers: Iterator[int], newest: int) -> Place:
    back = next(numbers)
    if not back:
        return Place(0, 0)
    place = Place(newest - back + 1, next(numbers))
    if place.ms < 0:
        raise ValueError("wanted the id of an event of this store")
    return place


def _packed(numbers: Iterable[int]) -> Iterator[int]:
    """Each number in groups of seven bits, the lowest first; all groups but its last have the eighth bit set."""
    for number in numbers:
        while number > 0x7F:
            yield number & 0x7F | 0x80
            number >>= 7
        yield number


def _unpacked(raw: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in raw:
        number |= (byte & 0x7F) << shift
        shift += 7
        if number.bit_length() > _BITS:
            raise ValueError("wanted the id of an event of this store")
        if not byte & 0x80:
            yield number
            number, shift = 0, 0
    if shift:
        raise ValueError("wanted the id of an event of this store")


def _raw(text: str) -> bytes:
    try:
        if _TEXT.fullmatch(text):
            return base64.urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")
    except binascii.Error:
        pass
    raise ValueError("wanted the id of an event of this store")
