"""Python's collector of cycles, set for a process that serves.

By default it looks again and again at all that was ever loaded: a third of what a decision costs.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 20, 100)
"""New objects before the youngest are looked at (a few megabytes), and how many such looks make one at older ones."""


def settle() -> None:
    """Leave what is loaded by now out of all later looks, and look more rarely. Call it when the process is up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
