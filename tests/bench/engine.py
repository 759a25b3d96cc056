"""What the engine costs beside the bare script, how it scales with what is pending, and how late things are."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial
from itertools import repeat
from typing import Any

from core.agenda import Worker
from core.engine import ResumeEngine
from core.errors import NotFound, StoreUnavailable
from core.gates import Action
from core.policy import Key
from core.requests import RunRequest
from core.runs import Run
from core.store import lua
from tests.bench.rows import Row, percentile, rate
from tests.conftest import ANA
from tests.runs import FOCUSED, question_call, run_request

CI = Key(key="ci")
LONE = {"place": None, "policy": {"responders": ["anyone", "key:ci"]}}


async def opened(engine: ResumeEngine, count: int, request: RunRequest | None = None) -> list[Run]:
    request = request or run_request(**LONE)
    runs: list[Run] = []

    async def suspend() -> None:
        runs.append(await suspended(engine, request))

    await rate(repeat(suspend, count))
    return runs


async def filled(engine: ResumeEngine, count: int, request: RunRequest) -> None:
    """As `opened`, keeping nothing: a million runs in this process would be what is measured."""
    await rate(repeat(partial(suspended, engine, request), count))


async def suspended(engine: ResumeEngine, request: RunRequest) -> Run:
    for patience_s in (1, 5):  # a hundred thousand runs at once may be too much for a disk, for a moment
        try:
            return (await engine.suspend(request, owner="ci"))[0]
        except StoreUnavailable:
            await asyncio.sleep(patience_s)
    return (await engine.suspend(request, owner="ci"))[0]


async def decide(engine: ResumeEngine, run: Run) -> None:
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)


class Heard:
    """Takes the place of a script and keeps what it would have been called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], list[Any]]] = []

    async def __call__(self, _client: Any, keys: list[str], args: list[Any]) -> Any:
        self.calls.append((keys, args))
        return ["missing", -1]


async def against_the_bare_script(
    engine: ResumeEngine, client: Any, count: int, rounds: int
) -> AsyncIterator[Row]:
    """Read, check, policy and commit, against the commit's EVALSHA alone on a redis-py client of its own.

    The best of rounds in which all of them take turns: what else the machine does meanwhile is then in none of them.
    """
    request = run_request(**LONE)
    best: dict[str, float] = {}

    def keep(name: str, found: float) -> None:
        best[name] = max(found, best.get(name, 0))

    for _ in range(rounds):
        runs = await opened(engine, 2 * count)
        keep("EVALSHA", await _bare(engine, client, runs[:count]))
        keep("decide, 50 tasks", await rate(partial(decide, engine, run) for run in runs[count:]))
        keep("suspend, 50 tasks", await rate([partial(engine.suspend, request, owner="ci")] * count))
        start = time.perf_counter()
        claimed = []
        while batch := await engine.resumes.claim("api", limit=100, wait_s=0, lease_s=600):
            claimed += batch
        keep("claim, 100 at a time", len(claimed) / (time.perf_counter() - start))
        acks = (partial(engine.resumes.ack, r.run.id, r.lease, by=CI) for r in claimed)
        keep("ack, 50 tasks", await rate(acks))
    baseline = best.pop("EVALSHA")
    for name, found in best.items():
        bound = 0.6 if name.startswith("decide") else None
        yield Row(name, f"{found:,.0f}/s", f"EVALSHA {baseline:,.0f}/s", found / baseline, bound)


async def _bare(engine: ResumeEngine, client: Any, runs: list[Run]) -> float:
    """The rate of the commit alone: the same calls of the script, on the same runs, without what leads to them."""
    heard, script = Heard(), lua.DECIDE
    lua.DECIDE = heard  # type: ignore[assignment]
    try:
        for run in runs:
            with contextlib.suppress(NotFound):  # what it says to a script that did nothing
                await decide(engine, run)
    finally:
        lua.DECIDE = script
    await script(client, *heard.calls[0])

    async def bare(keys: list[str], args: list[Any]) -> None:
        await client.evalsha(script.sha, len(keys), *keys, *args)

    return await rate(partial(bare, *call) for call in heard.calls[1:])


async def in_a_crowd(
    engine: ResumeEngine, client: Any, few: int, many: int, rounds: int
) -> AsyncIterator[Row]:
    """Suspend, decide and list with many pending gates against few."""
    crowd = run_request(host="crowd", policy={"responders": ["U8"]}, timeout_s=30 * 86400)
    mine = run_request(
        host="mine", policy={"responders": ["U7"]}, place={"channel": "C7"}, timeout_s=30 * 86400
    )
    await opened(engine, min(200, few), mine)
    await filled(engine, few, crowd)
    before = await _costs(engine, rounds)
    await filled(engine, many - few, crowd)
    # the server compacts its file now and then: a process beside it, and no cost of a call
    while (await client.info("persistence"))["aof_rewrite_in_progress"]:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0.1)
    after = await _costs(engine, rounds)
    for name, was in before.items():
        now = after[name]
        sizes = f"{many:,} against {few:,} pending"
        yield Row(f"{name}, {sizes}", f"{now * 1e6:,.0f} us", f"{was * 1e6:,.0f} us", now / was, 1.1, False)


async def _costs(engine: ResumeEngine, rounds: int) -> dict[str, float]:
    """Seconds each thing takes, the best of some rounds."""
    request, count = run_request(**LONE), 200
    found: dict[str, float] = {}
    for _ in range(rounds):
        made = 1 / await rate([partial(engine.suspend, request, owner="ci")] * count)
        found["suspend"] = min(made, found.get("suspend", made))
        runs = await opened(engine, count)
        took = 1 / await rate(partial(decide, engine, run) for run in runs)
        found["decide"] = min(took, found.get("decide", took))
        for name in ("by:U7", "channel:C7", "host:mine"):
            what = f"list 50 by {name.partition(':')[0].replace('by', 'user')}"
            took = 1 / await rate([partial(_page, engine, name)] * 4, tasks=1)
            found[what] = min(took, found.get(what, took))
    return found


async def _page(engine: ResumeEngine, name: str) -> None:
    left = 50
    async for _ in engine.gates(only_open=True, names=[name]):
        left -= 1
        if not left:
            return


async def memory(engine: ResumeEngine, client: Any, count: int) -> AsyncIterator[Row]:
    """Bytes of a pending gate beside its payload: the JSON of what its caller sent."""
    for gates in (1, 4):
        request = run_request([{**call, "tool_call_id": f"q{i}"} for i, call in enumerate(_calls(gates))])
        payload = len(request.model_dump_json(exclude_defaults=True)) / gates
        await opened(engine, 10, request)
        before = (await client.info("memory"))["used_memory"]
        await opened(engine, count // gates, request)
        used = ((await client.info("memory"))["used_memory"] - before) / (count // gates * gates)
        own = used - payload
        yield Row(
            f"memory of a pending gate, {gates} a run",
            f"{own:,.0f} B + payload {payload:,.0f} B",
            "1.5 KiB + payload",
            own / 1536,
            1.0,
            False,
        )


def _calls(count: int) -> list[dict[str, Any]]:
    return [question_call(f"q{i}") for i in range(count)]


async def due_at_once(engine: ResumeEngine, count: int) -> AsyncIterator[Row]:
    """Gates that are due in the same second, expired by one worker."""
    await opened(engine, count, run_request(**LONE, timeout_s=1))
    await asyncio.sleep(1)
    worker = Worker(engine.store, engine.bell, {})
    start = time.perf_counter()
    while await worker.run_once():
        pass
    took = time.perf_counter() - start
    bound = max(10 * count / 100_000, 0.1)
    name = f"{count:,} gates due in one second"
    yield Row(name, f"all expired in {took:.1f} s", f"{bound:.1f} s", took / bound, 1.0, False)


async def due_steadily(engine: ResumeEngine, seconds: float, each: int = 100) -> AsyncIterator[Row]:
    """Ten times ``each`` gates a second, each due 2 s after it was opened, one worker: how late is each heard of?"""
    request, late, heard, slots = run_request(**LONE, timeout_s=2), [], [], round(10 * seconds)

    async def hear(run: Run) -> None:
        with engine.bell.heard(f"run:{run.id}") as rung:
            late_ms = -1
            while late_ms < 0:
                await rung.wait()
                rung.clear()
                late_ms = engine.store.clock.now_ms() - run.gates[0].deadline
            late.append(float(late_ms))

    await engine.bell.listening.wait()
    worker = Worker(engine.store, engine.bell, {})
    worker.start()
    start = time.perf_counter()
    for slot in range(slots):
        await asyncio.sleep(max(0, start + slot / 10 - time.perf_counter()))
        heard += [asyncio.create_task(hear(run)) for run in await opened(engine, each, request)]
    rate_due = len(heard) / (time.perf_counter() - start)
    await asyncio.gather(*heard)
    await worker.stop(1)
    p99 = percentile(late, 0.99)
    yield Row(f"lateness at {rate_due:,.0f}/s due, p99", f"{p99:,.0f} ms", "1 s", p99 / 1000, 1.0, False)


async def hand_over(engine: ResumeEngine, count: int) -> AsyncIterator[Row]:
    """From the commit of the last decision to the run in the hands of a host that waits for it."""
    late = []
    for run in await opened(engine, count):
        waiting = asyncio.create_task(engine.resumes.claim("api", limit=1, wait_s=30, lease_s=60))
        await asyncio.sleep(0.002)
        await decide(engine, run)
        start = time.perf_counter()
        await waiting
        late.append((time.perf_counter() - start) * 1000)
    p50 = percentile(late, 0.5)
    yield Row("commit to claimed by a waiting host, p50", f"{p50:.1f} ms", "5 ms", p50 / 5, 1.0, False)
