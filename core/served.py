"""How it stands with a host that this process serves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Served:
    """``problem``: why the host cannot be asked now, for operators, without a URL; None if it can.

    ``unopened``: how many of the things that it waits for cannot be put to people.
    """

    problem: str | None
    unopened: int
