"""What a list of gates shows: which of them, from where on, and for what. It travels in the list's own buttons."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Self

from core.errors import NotFound

PAGES_BACK: Final = 20
"""How many pages "Previous" leads back, one at a time; then it leads to the first."""

Position = tuple[int, str]
"""Where something stands in a list: its ms there, and its id."""


class Which(StrEnum):
    """Which gates a list shows."""

    ALL = "all"
    """What waits: all of it for admins, for others what they may decide."""
    MINE = "mine"
    """What the person may decide; ``about``: `approvals` or `answers` alone."""
    CHANNEL = "channel"
    """What waits in a channel; ``about`` is its id."""
    THREAD = "thread"
    """What waits in a thread; ``about`` is `C1/<ts>`."""
    HOST = "host"
    """What waits for a host; ``about`` is its name."""
    RUN = "run"
    """The gates of one run; ``about`` is its id."""
    EXPIRING = "expiring"
    """What waits, the nearest deadline first; ``about``: `mine` for what the person may decide, also for an admin."""
    ASKED = "asked"
    """What is asked in the person's name."""
    DECIDED = "decided"
    """What the person has had a word on lately, settled or not."""
    UNDELIVERABLE = "undeliverable"
    """For admins: what could be shown to nobody."""
    OVERVIEW = "overview"
    """For admins: how much there is, and the worst of it. It is no list of its own."""
    DEAD = "dead"
    """For admins: runs that their hosts refused, never took up or had moved on from."""


FOR_ADMINS: Final = frozenset((Which.OVERVIEW, Which.UNDELIVERABLE, Which.DEAD))
APPROVALS: Final = "approvals"
ANSWERS: Final = "answers"
OWN: Final = "mine"


@dataclass(frozen=True, slots=True)
class Query:
    """One page of a list. ``starts``: the last item of each page before it, the nearest last."""

    which: Which
    about: str = ""
    starts: tuple[Position, ...] = ()

    @property
    def after(self) -> Position | None:
        return self.starts[-1] if self.starts else None

    @property
    def first(self) -> Query:
        return replace(self, starts=())

    @property
    def previous(self) -> Query:
        return replace(self, starts=self.starts[:-1])

    def next(self, last: Position) -> Query:
        return replace(self, starts=(*self.starts, last)[-PAGES_BACK:])

    def dump(self) -> str:
        return json.dumps([self.which, self.about, *self.starts], separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Self:
        """Raises NotFound for what no list of ours has (any more)."""
        try:
            which, about, *starts = json.loads(text)
            return cls(Which(which), str(about), tuple((int(ms), str(item)) for ms, item in starts))
        except (TypeError, ValueError) as error:
            raise NotFound("There is no such list.") from error
