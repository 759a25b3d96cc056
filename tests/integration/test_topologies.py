"""Redis as people run it: what holds on one server holds behind Sentinel, on a cluster, by TLS and for a limited user."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from core.settings import Wait
from tests.failovers import LONGEST_CALL_S, Flight, Seen, compare
from tests.stores import engine_on
from tests.topologies import Cluster, Watched, cluster, watched

ONE = Wait(1, 500)


async def flown(url: str, wait: Wait | None, runs: int, fail_over, seed: int) -> tuple[Seen, object]:
    async with engine_on(url, wait) as one, engine_on(url, wait) as other:
        seen = await Flight((one, other), runs, seed).during(fail_over)
        assert seen.slowest_s < LONGEST_CALL_S
        lost = await compare(one, seen)
        print(seen.away, seen.slowest_s, lost)
        return seen, lost


async def test_s(tmp_path: Path) -> None:
    async with watched(tmp_path) as w:
        old = await w.primary()
        async def kill():
            old.kill()
            await w.failed_over(old)
            old.start()
        await flown(w.url, ONE, 40, kill, 1)

async def test_c(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        async def kill():
            c.nodes[0].kill()
            await c.failed_over(c.nodes[0], c.nodes[3])
            c.nodes[0].start()
        await flown(c.url, ONE, 40, kill, 1)
