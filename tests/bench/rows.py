"""One line of the table of benchmarks, and how things are timed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

TASKS = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A figure with its baseline. ``bound`` is what it is held to, ``at_least`` says from which side."""

    name: str
    measured: str
    baseline: str
    ratio: float
    bound: float | None = None
    at_least: bool = True

    @property
    def ok(self) -> bool:
        if self.bound is None:
            return True
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound


async def rate(calls: Iterable[Callable[[], Awaitable[object]]], tasks: int = TASKS) -> float:
    """Calls a second, made by so many tasks that each make one after the other."""
    rest, done = iter(calls), 0

    async def work() -> None:
        nonlocal done
        for call in rest:
            await call()
            done += 1

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(tasks)))
    return done / (time.perf_counter() - start)


def best_p50(values: list[float], size: int) -> float:
    """The lowest median of the rounds of that size, one after the other: of when the machine did the least besides."""
    rounds = [values[start : start + size] for start in range(0, len(values), size)]
    return min(percentile(found, 0.5) for found in rounds)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
