"""The audit as its readers have it: where an event stands, and the chain that holds the events of a partition together.

Each event carries as `prev` the SHA-1 of the line before it in its partition, as that was stored. SHA-1 is the one
digest that a script of Redis can make; the attacks known on it make two texts alike, none makes a text to a digest that
is there already, which is what a forger of a kept event would need.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import AskgateError

_POSITION = re.compile(r"([0-9]{1,15})-([0-9]{1,15})-([0-9]{1,4})")
_LINK = re.compile(r',"prev":"([0-9a-f]{40}|)"\}')
_EXPORTED = re.compile(r'\{"id":"([0-9-]{1,40})",')


class ChainBroken(AskgateError):
    """The audit is not as it was written."""

    slug = "chain-broken"


class Position(NamedTuple):
    """Where an event stands: the ms and the number of its entry in the stream, and its partition.

    The audit is told in this order. As text (`1767225600000-0-7`) it is the event's id, and where a reader goes on.
    """

    ms: int
    seq: int
    partition: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.seq}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises ValueError for what is no position."""
        match = _POSITION.fullmatch(text)
        if not match:
            raise ValueError(f"wanted the id of an event, such as 1767225600000-0-7, not {text[:60]!r}")
        return cls(*map(int, match.groups()))


class Event(NamedTuple):
    """An event: where it stands, and its JSON text as it is stored (which is what the chain is made of)."""

    position: Position
    line: str

    def exported(self) -> str:
        """The text with the id in front, as the API and `askgate audit export` hand it out."""
        return f'{{"id":"{self.position}",{self.line[1:]}'

    @classmethod
    def load(cls, text: str) -> Event:
        """An event as it was exported. Raises ValueError for other text."""
        match = _EXPORTED.match(text)
        if not match:
            raise ValueError('wanted a line of an export: a JSON object that begins with "id"')
        return cls(Position.parse(match[1]), f"{{{text[match.end() :]}")


def digest(line: str) -> str:
    """What the event after this one carries as `prev`."""
    return hashlib.sha1(line.encode(), usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class Chain:
    """Follows the events of one partition, oldest first.

    ``link`` is what the next event has to carry as `prev`; None: nothing is known of what was before it.
    """

    partition: int
    link: str | None = None
    count: int = 0
    first: Position | None = None
    last: Position | None = None

    def follow(self, event: Event) -> None:
        """Take the next event. Raises ChainBroken if it does not belong there."""
        here = event.position
        match = _LINK.search(event.line, max(0, len(event.line) - 60))
        if not match or match.end() != len(event.line):
            raise self._broken(here, 'it does not end in "prev", as every event does')
        if self.last is not None and here <= self.last:
            raise self._broken(here, f"it stands behind {self.last}, which is later")
        if self.link is not None and match[1] != self.link:
            before = f"the event before it, {self.last}" if self.last else "what was before it"
            raise self._broken(
                here,
                f"its prev is {_named(match[1])}, wanted {_named(self.link)}, the digest of {before}: one of the two"
                " was changed, or an event between them was removed or put in",
            )
        self.link = digest(event.line)
        self.count += 1
        self.first = self.first or here
        self.last = here

    def end(self, head: str) -> None:
        """Say that this is all, and what the store remembers as the newest event's digest. Raises ChainBroken."""
        if (self.link or "") != head:
            what = f"the newest event, {self.last}," if self.last else "no event is there, which"
            raise ChainBroken(
                f"Partition {self.partition}: {what} has the digest {_named(self.link or '')}, wanted {_named(head)},"
                " as the store remembers it: it was changed, or newer events were removed or put in."
            )

    def _broken(self, here: Position, why: str) -> ChainBroken:
        return ChainBroken(f"Partition {self.partition}, event {here}: {why}.")


@dataclass(slots=True)
class Chains:
    """Follows an export of any number of partitions."""

    found: dict[int, Chain] = field(default_factory=dict)

    def follow(self, lines: Iterable[str]) -> None:
        """Take an export line by line. Raises ChainBroken for the first that does not belong there."""
        for number, text in enumerate(lines, start=1):
            try:
                event = Event.load(text.removesuffix("\n"))
            except ValueError as error:
                raise ChainBroken(f"Line {number}: {error}.") from None
            partition = event.position.partition
            chain = self.found.setdefault(partition, Chain(partition))
            try:
                chain.follow(event)
            except ChainBroken as broken:
                raise ChainBroken(f"Line {number}. {broken.detail}") from None


def _named(link: str) -> str:
    return link or "empty (the very first event)"
