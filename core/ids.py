"""Ids of runs and gates. A run's id carries its partition, a gate's id its run: no look-up is needed.

``run_07_01JZ…`` is in partition 7; ``gate_07_01JZ…_2`` is that run's third gate.
"""

from __future__ import annotations

import re

from ulid import ULID

from core.errors import NotFound

# a ULID has 128 bits, so the first of its 26 digits of 5 bits is at most 7
_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_RUN = re.compile(rf"run_([0-9]{{2,4}})_({_ULID})")
_GATE = re.compile(rf"gate_([0-9]{{2,4}})_({_ULID})_(0|[1-9][0-9]{{0,2}})")


def new_token() -> str:
    """A unique word that sorts by the time it was made."""
    return str(ULID())


def new_run_id(partition: int, now_ms: int) -> str:
    return f"run_{partition:02d}_{ULID.from_timestamp(now_ms)}"


def made_ms(run_id: str) -> int:
    """When a run's id was made, in ms: none of its events is from before. Raises NotFound for what is no run's id."""
    match = _RUN.fullmatch(run_id)
    if not match:
        raise NotFound("There is no such run.")
    return int(ULID.from_str(match[2]).milliseconds)


def gate_id(run_id: str, index: int) -> str:
    return f"gate{run_id[3:]}_{index}"


def partition_of(run_id: str, partitions: int) -> int:
    """The partition that a run's id names.

    Raises NotFound for anything that is not a run's id of a store with so many partitions.
    """
    match = _RUN.fullmatch(run_id)
    if not match or int(match[1]) >= partitions:
        raise NotFound("There is no such run.")
    return int(match[1])


def run_of(gate: str) -> tuple[str, int]:
    """A gate's run and its index there. Raises NotFound for anything that is not a gate's id."""
    match = _GATE.fullmatch(gate)
    if not match:
        raise NotFound("There is no such gate.")
    return f"run_{match[1]}_{match[2]}", int(match[3])
