"""How much there is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is, in runs: open, of those due within the time asked for, dead letters, undeliverable.

    ``oldest`` is when the oldest open one was made (ms), and its id; None if there is none.
    """

    open: int
    due_soon: int
    dead: int
    undeliverable: int
    oldest: tuple[int, str] | None
