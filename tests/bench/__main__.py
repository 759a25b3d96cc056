"""Runs the benchmarks on an embedded server of their own and prints one table; exit 1 if a bound is not kept."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.store.connect import fast_client
from tests.bench import engine as bench
from tests.bench.rows import Row
from tests.stores import engine_on

Bench = Callable[[ResumeEngine, Any], AsyncIterator[Row]]


def benches(full: bool) -> list[Bench]:
    """Each on an empty store. ``full``: at the sizes that the bounds are meant for."""
    crowd, due, memory = (1_000_000, 100_000, 20_000) if full else (20_000, 10_000, 5_000)
    return [
        lambda e, c: bench.against_the_bare_script(e, c, 5_000 if full else 2_000),
        lambda e, c: bench.hand_over(e, 200),
        lambda e, c: bench.memory(e, c, memory),
        lambda e, _: bench.due_at_once(e, due),
        lambda e, _: bench.due_steadily(e, 10 if full else 3),
        lambda e, _: bench.in_a_crowd(e, 1_000, crowd),
    ]


async def run(full: bool) -> bool:
    table = Table("what", "measured", "baseline", "ratio", "bound", title="askgate bench")
    good = True
    for number, one in enumerate(benches(full)):
        with tempfile.TemporaryDirectory() as folder:
            async with EmbeddedServer(Path(folder) / str(number)) as server, engine_on(server.url) as engine:
                client = fast_client(server.url)
                async for row in one(engine, client):
                    bound = "" if row.bound is None else f"{'≥' if row.at_least else '≤'} {row.bound:g}"
                    table.add_row(
                        row.name,
                        row.measured,
                        row.baseline,
                        f"{row.ratio:.2f}",
                        bound + ("" if row.ok else " ✗"),
                    )
                    good = good and row.ok
                await client.aclose()
    Console(width=140).print(table)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(prog="askgate bench")
    parser.add_argument("--full", action="store_true", help="a million pending gates; takes minutes")
    raise SystemExit(0 if asyncio.run(run(parser.parse_args().full)) else 1)


if __name__ == "__main__":
    main()
