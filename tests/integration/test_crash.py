"""SIGKILL at the worst moments, of processes and of the server: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time

from core.agenda import LEASE_MS, Worker
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.errors import AlreadySettled, LeaseLost, StoreUnavailable
from core.gates import Action
from core.policy import Key
from core.runs import Run
from tests.conftest import ANA
from tests.runs import FOCUSED, question_call, run_request
from tests.stores import engine_on, events

CI = Key(key="ci")
ROOT = Path(__file__).parents[2]
NewEngine = Callable[[], ResumeEngine]


class Doomed:
    """A process that does something and is killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> dict[str, Any]:
        """What it says next. Fails if it ended instead."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        assert line, "the process ended by itself"
        said: dict[str, Any] = json.loads(line)
        return said

    async def kill(self) -> list[dict[str, Any]]:
        """SIGKILL it. Returns what it had said that nobody read."""
        self._process.kill()
        rest, _ = await self._process.communicate()
        assert self._process.returncode == -9
        # the last line may have been cut off
        return [json.loads(line) for line in rest.decode().splitlines(keepends=True) if line.endswith("\n")]


@contextlib.asynccontextmanager
async def doomed(url: str, *what: str) -> AsyncIterator[Doomed]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crashing", url, *what, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    try:
        yield Doomed(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def later(ms: int) -> Any:
    """The engines' clock, so much later than it is."""
    return freeze_time(datetime.now(UTC) + timedelta(milliseconds=ms + 1000), real_asyncio=True)


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def test_a_process_killed_between_decide_and_resume_is_finished_by_another(
    redis_url: str, new_engine: NewEngine
) -> None:
    run = await opened(new_engine(), state="opaque")
    async with doomed(redis_url, "decide", run.gates[0].id) as process:
        assert (await process.said())["status"] == "settled"
        await process.kill()
    engine = new_engine()
    with pytest.raises(AlreadySettled):
        await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert (resume.run.id, resume.state, resume.tries) == (run.id, "opaque", 1)
    assert json.loads(resume.body)["calls"]["question-1"]["value"] == FOCUSED
    assert (await engine.resumes.ack(run.id, resume.lease, by=CI)).status == "resumed"
    told = [event["event"] for event in await events(engine, run.id)]
    assert [told.count(name) for name in ("gate.settled", "run.settled", "run.resumed")] == [1, 1, 1]


async def test_a_process_killed_in_the_middle_of_a_claim_loses_the_run_with_its_lease(
    redis_url: str, new_engine: NewEngine
) -> None:
    """looprig C44."""
    engine = new_engine()
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    partition = int(run.id[4:6])
    queue = engine.store.queues.of(partition, "api")
    async with doomed(redis_url, "take", queue, str(partition)) as process:
        assert (await process.said())["members"] == [run.id]
        await process.kill()
    assert await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) == []
    assert (await engine.run(run.id)).status == "settled"
    with later(30_000):
        [resume] = await new_engine().resumes.claim("api", limit=10, wait_s=0, lease_s=30)
        assert (resume.run.id, resume.tries) == (run.id, 2)
        with pytest.raises(LeaseLost):
            await engine.resumes.ack(run.id, "lease_of_the_dead", by=CI)
        assert (await engine.resumes.ack(run.id, resume.lease, by=CI)).status == "resumed"


async def test_a_resume_in_the_hand_of_a_killed_process_comes_again_with_the_same_bytes(
    redis_url: str, new_engine: NewEngine
) -> None:
    engine = new_engine()
    run = await opened(engine)
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    async with doomed(redis_url, "claim", "api") as process:
        first = await process.said()
        await process.kill()
    assert (await engine.run(run.id)).status == "resuming"
    with later(30_000):
        [resume] = await new_engine().resumes.claim("api", limit=10, wait_s=0, lease_s=30)
        assert (resume.body, resume.key) == (first["body"], first["key"])
        assert resume.lease != first["lease"]
        await engine.resumes.ack(run.id, resume.lease, by=CI)
    assert [event["event"] for event in await events(engine, run.id)].count("run.resumed") == 1


async def test_the_work_of_a_killed_worker_is_done_by_another_when_its_lease_is_over(
    redis_url: str, new_engine: NewEngine
) -> None:
    engine = new_engine()
    run = await opened(engine)
    done: list[tuple[str, int]] = []

    async def handler(member: str, tries: int) -> None:
        done.append((member, tries))

    worker = Worker(engine.store, engine.bell, {"card": handler})
    async with doomed(redis_url, "work", "card") as process:
        assert await process.said() == {"member": run.id, "tries": 1}
        assert await worker.run_once() == 0  # it lives, and has the lease
        await process.kill()
    assert await worker.run_once() == 0
    with later(LEASE_MS):
        assert await worker.run_once() == 1
        assert done == [(run.id, 2)]
        assert await worker.run_once() == 0


async def test_every_answer_that_was_acknowledged_before_the_kill_is_there_and_no_other_is_half_done(
    redis_url: str, new_engine: NewEngine
) -> None:
    engine = new_engine()
    run = await opened(engine, [question_call(f"q{n}") for n in range(128)])
    async with doomed(redis_url, "decide", *(gate.id for gate in run.gates)) as process:
        acknowledged = [await process.said() for _ in range(10)]
        acknowledged += await process.kill()
    run = await engine.run(run.id)
    answered = {gate.id for gate in run.gates if gate.status == "answered"}
    assert {said["gate"] for said in acknowledged} <= answered
    assert len(answered) <= len(acknowledged) + 1  # the last may have been done and not yet said
    settled = [event["gate"] for event in await events(engine, run.id) if event["event"] == "gate.settled"]
    assert sorted(settled) == sorted(answered)
    assert all((gate.decision is not None) == (gate.id in answered) for gate in run.gates)
    still_open = {gate.id async for _, _, gate in engine.gates(only_open=True)}
    assert still_open == {gate.id for gate in run.gates} - answered
    await engine.cancel(run.id, None, by=CI, via="api")  # the count of what is open is right
    assert (await engine.run(run.id)).status == "settled"


async def test_a_server_killed_between_acknowledged_decisions_has_all_of_them_afterwards(
    tmp_path: Path,
) -> None:
    async with EmbeddedServer(tmp_path) as server, engine_on(server.url) as engine:
        run = await opened(engine, [question_call(f"q{n}") for n in range(40)])

        async def decide(gate: str) -> str | None:
            with contextlib.suppress(StoreUnavailable):
                await engine.decide(gate, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
                return gate
            return None

        acknowledged = set()
        for number, gate in enumerate(run.gates):
            deciding = asyncio.create_task(decide(gate.id))
            if number % 10 == 9:  # at whatever point of this decision
                await asyncio.sleep(0)
                server.kill()
            acknowledged.add(await deciding)
            if server.pid is None:
                await server.start()
                found = {gate.id for gate in (await engine.run(run.id)).gates if gate.status == "answered"}
                assert acknowledged - {None} <= found <= acknowledged | {gate.id}
        told = [event["gate"] for event in await events(engine, run.id) if event["event"] == "gate.settled"]
        found = {gate.id for gate in (await engine.run(run.id)).gates if gate.status == "answered"}
        assert sorted(told) == sorted(found)
        assert len(found) >= 36


async def test_waiters_and_the_bell_go_on_after_the_server_was_killed(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(tmp_path) as server,
        engine_on(server.url) as here,
        engine_on(server.url) as there,
    ):
        run = await opened(here)
        await here.bell.listening.wait()
        server.kill()
        with pytest.raises(StoreUnavailable):
            await here.wait(run.id, 60)
        await server.start()
        waiting = asyncio.create_task(here.wait(run.id, 60))
        await there.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        async with asyncio.timeout(10):
            assert (await waiting).status == "settled"
            await here.bell.listening.wait()
