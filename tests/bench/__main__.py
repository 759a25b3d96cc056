"""Runs the benchmarks, each on an embedded server of its own, and prints one table; exit 1 if a bound is not kept."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bot import collector, logs
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.store.connect import fast_client
from tests.bench import engine as bench
from tests.bench.clicks import clicks
from tests.bench.rows import Row
from tests.stores import engine_on

Bench = Callable[[str], AsyncIterator[Row]]
"""Gets the URL of an empty store."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything. The bounds are meant for `FULL`; `TINY` is for the test of the benchmarks themselves."""

    calls: int
    rounds: int
    handed: int
    kept: int
    due: int
    seconds: float
    each: int
    few: int
    many: int
    clicks: int


TINY = Sizes(20, 1, 3, 40, 40, 0.2, 5, 20, 40, 2)
QUICK = Sizes(500, 5, 100, 5_000, 10_000, 3, 100, 1_000, 20_000, 60)
FULL = Sizes(1_000, 10, 200, 20_000, 100_000, 10, 100, 1_000, 1_000_000, 200)


def benches(sizes: Sizes) -> dict[str, Bench]:
    s = sizes
    return {
        "script": _with_engine(lambda e, c: bench.against_the_bare_script(e, c, s.calls, s.rounds)),
        "handover": _with_engine(lambda e, _: bench.hand_over(e, s.handed)),
        "memory": _with_engine(lambda e, c: bench.memory(e, c, s.kept)),
        "due": _with_engine(lambda e, _: bench.due_at_once(e, s.due)),
        "late": _with_engine(lambda e, _: bench.due_steadily(e, s.seconds, s.each)),
        "crowd": _with_engine(lambda e, c: bench.in_a_crowd(e, c, s.few, s.many, s.rounds)),
        "clicks": lambda url: clicks(url, s.clicks),
    }


def _with_engine(one: Callable[[ResumeEngine, Any], AsyncIterator[Row]]) -> Bench:
    async def run(url: str) -> AsyncIterator[Row]:
        async with engine_on(url) as engine:
            client = fast_client(url)
            try:
                async for row in one(engine, client):
                    yield row
            finally:
                await client.aclose()

    return run


async def measured(sizes: Sizes, names: Sequence[str]) -> list[Row]:
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            async with EmbeddedServer(Path(folder) / name) as server:
                rows += [row async for row in benches(sizes)[name](server.url)]
    return rows


def report(rows: Sequence[Row], caption: str) -> int:
    """Print the table. Returns the exit code: 1 if a bound is not kept."""
    table = Table("what", "measured", "baseline", "ratio", "bound", title="askgate bench", caption=caption)
    for row in rows:
        bound = "" if row.bound is None else f"{'≥' if row.at_least else '≤'} {row.bound:g}"
        table.add_row(
            row.name, row.measured, row.baseline, f"{row.ratio:.2f}", bound + ("" if row.ok else " ✗")
        )
    Console(width=140).print(table)
    return 0 if all(row.ok for row in rows) else 1


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="askgate bench")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full", action="store_true", help="a million pending gates; takes a quarter of an hour"
    )
    size.add_argument(
        "--tiny", action="store_true", help="too little to measure anything: whether all of it runs"
    )
    parser.add_argument("--only", nargs="+", choices=list(benches(TINY)), help="these benchmarks alone")
    asked = parser.parse_args(words)
    logs.set_up("error")
    collector.settle()  # as a process that serves
    sizes = FULL if asked.full else TINY if asked.tiny else QUICK
    before = os.getloadavg()[0]
    rows = asyncio.run(measured(sizes, asked.only or list(benches(sizes))))
    load = f"{before:.1f} before and {os.getloadavg()[0]:.1f} after, on {os.cpu_count()} processors"
    return report(rows, f"The machine's load was {load}.")


if __name__ == "__main__":
    raise SystemExit(main())
