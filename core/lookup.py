"""Which gate somebody means who typed an id: all of it or a beginning, a gate's or its run's, in any case."""

from __future__ import annotations

import re
from typing import Final

from ulid import ULID

from core.errors import NotFound
from core.gates import Gate
from core.runs import Run
from core.store.store import Store

ULID_CHARS: Final = 26
TIME_CHARS: Final = 10
"""How much of a ULID is its time: ids that begin alike up to there are a range of times."""
LEAST_CHARS: Final = 4
MOST: Final = 5
"""How many candidates are named when a beginning is that of several."""
_TYPED: Final = re.compile(
    r"(?:(?:gate|run)_)?(\d{2,4})_([0-9A-HJKMNP-TV-Z]{1,26})(?:_(\d{1,3}))?", re.IGNORECASE
)

Named = tuple[Run, Gate | None]
"""A run, and the gate of it that was meant; None: the run as a whole."""


async def look_up(store: Store, typed: str) -> list[Named]:
    """What an id, or the beginning of one, may mean: nothing, one thing, or up to `MOST` runs.

    Raises StoreUnavailable.
    """
    found = _TYPED.fullmatch(typed.strip("`'\"“”…. \u200b"))
    if found is None or int(found[1]) >= store.partitions:
        return []
    partition, begins, index = int(found[1]), found[2].upper(), found[3]
    if len(begins) == ULID_CHARS:
        return await _whole(store, f"run_{found[1]}_{begins}", int(index) if index else None)
    if index or len(begins) < LEAST_CHARS:
        return []
    ids = await _beginning(store, partition, begins)
    return [(run, run.gates[0] if len(run.gates) == 1 else None) for run in await store.read_all(ids)]


async def _whole(store: Store, run_id: str, index: int | None) -> list[Named]:
    try:
        run = await store.read(run_id)
    except NotFound:
        return []
    if run is None or (index is not None and index >= len(run.gates)):
        return []
    if index is None:
        return [(run, run.gates[0] if len(run.gates) == 1 else None)]
    return [(run, run.gates[index])]


async def _beginning(store: Store, partition: int, begins: str) -> list[str]:
    """The ids of a partition's runs that begin so: a range of times, and within one ms what fits the rest."""
    try:
        first, last = (
            ULID.from_str(begins[:TIME_CHARS].ljust(ULID_CHARS, filling)).milliseconds for filling in "0Z"
        )
    except ValueError:
        return []
    ids = store.lists.runs_between(partition, int(first), int(last), prefix=f"run_{partition:02d}_{begins}")
    found = []
    async for run_id in ids:
        found.append(run_id)
        if len(found) == MOST:
            break
    return found
