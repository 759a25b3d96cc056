"""Many runs in flight while a server fails over: people who click until they are told, and a host that claims."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from core.agenda import Worker
from core.engine import ResumeEngine
from core.errors import AlreadySettled, LeaseLost, NotFound, StoreUnavailable
from core.gates import Action, Decision
from core.policy import Key, Person
from core.runs import Run, RunStatus
from core.store.reach import BUDGET_S
from tests.conftest import ANA, BEN, CHO
from tests.runs import FOCUSED, run_request
from tests.stores import events

QUESTION = "Which scope should be used?"
CLICK_AGAIN_S = 0.1
LONGEST_CLICK_S = 3 * BUDGET_S
"""A click reads, decides and reads again; whichever of these fails is its last."""


@dataclass
class Seen:
    """What people and the host were told. All of it counts as promised."""

    opened: list[str] = field(default_factory=list)
    decided: dict[str, Decision] = field(default_factory=dict)
    told: dict[str, list[Decision]] = field(default_factory=dict)
    """Who came too late was told of these."""
    bodies: dict[str, set[str]] = field(default_factory=dict)
    taken_up: Counter[str] = field(default_factory=Counter)
    away: int = 0
    slowest_s: float = 0.0
    cards: int = 0


class Flight:
    """Runs in flight on two engines, as two processes would have them. ``seed`` says who clicks what and when."""

    def __init__(self, engines: tuple[ResumeEngine, ResumeEngine], runs: int, seed: int) -> None:
        self.engines = engines
        self.runs = runs
        self.seen = Seen()
        self._random = random.Random(seed)
        self._decided = asyncio.Condition()

    async def during(self, fail_over: Callable[[], Awaitable[None]]) -> Seen:
        """Open the runs, let people decide them, and fail over when a third is decided.

        ``fail_over`` returns when no server believes any more that it leads, but the one that does.
        """
        self.seen.opened = await asyncio.gather(*(self._open(number) for number in range(self.runs)))
        workers = [Worker(engine.store, engine.bell, {"card": self._card}) for engine in self.engines]
        for worker in workers:
            worker.start()
        over = asyncio.Event()
        host = asyncio.create_task(self._host(over))
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for run_id in self.seen.opened:
                    for person in (ANA, BEN):
                        group.create_task(self._click(run_id, person, self._random.uniform(0, 2)))
                group.create_task(self._fail_over(fail_over))
            await self._decide_what_is_open_again()
            over.set()
            async with asyncio.timeout(60):
                await host
        finally:
            host.cancel()
            for worker in workers:
                await worker.stop(0)
        return self.seen

    async def _fail_over(self, fail_over: Callable[[], Awaitable[None]]) -> None:
        async with self._decided:
            await self._decided.wait_for(lambda: len(self.seen.decided) >= self.runs // 3)
        await fail_over()

    async def _card(self, _run_id: str, _tries: int) -> None:
        self.seen.cards += 1

    async def _insist(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Call until the store takes it."""
        while True:
            try:
                return await call()
            except StoreUnavailable:
                self.seen.away += 1
                await asyncio.sleep(CLICK_AGAIN_S)

    async def _open(self, number: int) -> str:
        engine = self.engines[number % 2]
        run, _ = await self._insist(
            partial(engine.suspend, run_request(), owner="ci", idempotency_key=f"run-{number}")
        )
        return str(run.id)

    async def _click(self, run_id: str, person: Person, after_s: float) -> None:
        await asyncio.sleep(after_s)
        engine = self._random.choice(self.engines)
        label = self._random.choice(["Focused", "Broad"])
        await self._insist(partial(self._decide, engine, run_id, person, label))
        async with self._decided:
            self._decided.notify_all()

    async def _decide(self, engine: ResumeEngine, run_id: str, person: Person, label: str) -> None:
        gate = run_id.replace("run", "gate", 1) + "_0"
        values = {"answers": {QUESTION: label}}
        loop = asyncio.get_running_loop()
        before = loop.time()
        try:
            run = await engine.decide(gate, Action.ANSWER, by=person, via="slack", values=values)
            self.seen.decided[run_id] = decision_of(run)
        except AlreadySettled as refusal:
            self.seen.told.setdefault(run_id, []).append(decision_of(refusal.extra["run"]))
        except NotFound:  # an opened run that is lost
            pass
        finally:
            self.seen.slowest_s = max(self.seen.slowest_s, loop.time() - before)

    async def _decide_what_is_open_again(self) -> None:
        """Somebody finds the cards of lost decisions open."""
        for run_id in self.seen.opened:
            run = await self._insist(partial(self.engines[0].store.read, run_id))
            if run is not None and run.status is RunStatus.WAITING:
                again = partial(
                    self.engines[0].decide,
                    run.gates[0].id,
                    Action.ANSWER,
                    by=CHO,
                    via="slack",
                    values=FOCUSED,
                )
                await self._insist(again)

    async def _host(self, over: asyncio.Event) -> None:
        """Claims and acks until all is over and no run is left that is not taken up."""
        while True:
            engine = self._random.choice(self.engines)
            claimed = await self._insist(
                partial(engine.resumes.claim, "api", limit=20, wait_s=0.2, lease_s=3)
            )
            for resume in claimed:
                self.seen.bodies.setdefault(resume.run.id, set()).add(resume.body)
                try:
                    await self._insist(
                        partial(engine.resumes.ack, resume.run.id, resume.lease, by=Key(key="ci"))
                    )
                except (LeaseLost, NotFound):
                    continue
                self.seen.taken_up[resume.run.id] += 1
            if over.is_set() and not claimed and not await self._insist(partial(self._left, engine)):
                return

    async def _left(self, engine: ResumeEngine) -> bool:
        for run_id in self.seen.opened:
            run = await engine.store.read(run_id)
            if run is not None and run.status is not RunStatus.RESUMED:
                return True
        return False


def decision_of(run: Run) -> Decision:
    decision = run.gates[0].decision
    assert decision is not None
    return decision


@dataclass
class Lost:
    """What was promised and is not in the store."""

    runs: int = 0
    decisions: int = 0
    told: int = 0
    resumed_again: int = 0


async def compare(engine: ResumeEngine, seen: Seen) -> Lost:
    """Hold what the store has against what was promised. What it has must agree with itself in any case."""
    lost = Lost()
    for run_id in seen.opened:
        run = await engine.store.read(run_id)
        if run is None:
            lost.runs += 1
            continue
        assert run.status is RunStatus.RESUMED
        names = Counter(event["event"] for event in await events(engine, run_id))
        assert (names["gate.settled"], names["run.settled"], names["run.resumed"]) == (1, 1, 1), names
        promised = seen.decided.get(run_id)
        lost.decisions += promised is not None and promised != run.gates[0].decision
        lost.told += any(told != decision_of(run) for told in seen.told.get(run_id, ()))
        lost.resumed_again += seen.taken_up[run_id] > 1 or len(seen.bodies[run_id]) > 1
        assert json.dumps(run.results(), ensure_ascii=False) in seen.bodies[run_id]
    return lost
