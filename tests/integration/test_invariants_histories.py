"""Invariants 4 to 6 together: whatever happens in whatever order, the store agrees with itself."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from freezegun.api import FrozenDateTimeFactory
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action
from core.store.keys import Keys
from tests.conftest import ANA
from tests.integration.invariants import CI, opened, outcome_of
from tests.runs import FOCUSED, approval, question_call
from tests.stores import events

EVENTS = [
    "answer",
    "approve",
    "deny",
    "decline",
    "draft",
    "cancel",
    "undeliverable",
    "expire",
    "wait",
    "claim",
    "ack",
    "nack",
]


class History:
    """Does things to one run of two calls and an approval, and checks after each that all parts of the store agree."""

    def __init__(self, engines: list[ResumeEngine], redis: Redis, clock: FrozenDateTimeFactory) -> None:
        self.engines, self.redis, self.clock = engines, redis, clock
        self.lease = "none"
        self.bodies: set[tuple[str, str]] = set()
        self.decisions: dict[int, object] = {}

    async def open(self) -> None:
        calls = [question_call("q"), question_call("r")]
        self.run = await opened(self.engines[0], calls, [approval("a")], timeout_s=60)
        self.keys = Keys(int(self.run.id[4:6]))

    async def do(self, event: str, index: int) -> None:
        engine, gate = self.engines[index % 2], self.run.gates[index].id
        values = FOCUSED if event == "answer" else None
        call: Coroutine[Any, Any, Any]
        match event:
            case "answer" | "approve" | "deny" | "decline":
                call = engine.decide(gate, Action(event), by=ANA, via="slack", values=values)
            case "draft":
                call = engine.draft(gate, ANA, [index])
            case "cancel":
                call = engine.cancel(self.run.id, None, by=CI, via="api", index=index)
            case "undeliverable":
                call = engine.undeliverable(self.run.id, "gone")
            case "expire":
                call = engine.expire(self.run.id)
            case "claim":
                call = self.claim(engine)
            case "ack":
                call = engine.resumes.ack(self.run.id, self.lease, by=CI)
            case "nack":
                call = engine.resumes.nack(self.run.id, self.lease, by=CI, retry_in_s=5)
            case _:
                self.clock.tick(25)
                return
        await outcome_of(call)

    async def claim(self, engine: ResumeEngine) -> None:
        for resume in await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=20):
            self.lease = resume.lease
            self.bodies.add((resume.body, resume.key))

    async def check(self) -> None:
        run = await self.engines[0].run(self.run.id)
        fields = await self.redis.hgetall(self.keys.run(run.id))
        pending = {gate.id for gate in run.gates if gate.pending}
        assert fields["open"] == str(len(pending))
        for index in (self.keys.open, self.keys.index("host:api")):
            assert await self.redis.zrange(index, 0, -1) == [run.id] * bool(pending)
        assert (run.status == "waiting") == run.open == (run.results() is None)
        deadlines = [gate.deadline for gate in run.gates if gate.pending]
        assert await self.redis.zscore(self.keys.expiries, run.id) == min(deadlines, default=None)
        queued = await self.redis.zscore(self.keys.queue("api"), run.id) is not None
        assert queued == (run.status in ("settled", "resuming"))
        assert len(self.bodies) <= 1
        for gate in run.gates:  # settled once, and for good
            if gate.decision is not None:
                assert self.decisions.setdefault(gate.doc.index, gate.decision) == gate.decision
                assert gate.status == gate.decision.outcome
                assert (gate.decision.by == ()) == (gate.status in NOBODY)
            else:
                assert gate.pending
                assert gate.doc.index not in self.decisions
        told = await events(self.engines[1], run.id)
        settled = [event["gate"] for event in told if event["event"] == "gate.settled"]
        assert sorted(settled) == sorted(gate.id for gate in run.gates if not gate.pending)
        assert sum(event["event"] == "run.settled" for event in told) == (not run.open)
        assert sum(event["event"] == "run.resumed" for event in told) == (run.status == "resumed")


NOBODY = {"expired", "cancelled", "undeliverable"}


@given(history=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 2)), max_size=14))
@example(
    [
        ("answer", 0),
        ("cancel", 1),
        ("deny", 2),
        ("claim", 0),
        ("nack", 0),
        ("wait", 0),
        ("claim", 1),
        ("ack", 1),
    ]
)
@example(
    [
        ("answer", 0),
        ("wait", 0),
        ("wait", 0),
        ("wait", 0),
        ("decline", 1),
        ("claim", 0),
        ("wait", 0),
        ("claim", 1),
    ]
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_invariant_04_to_06_any_history_leaves_a_store_that_agrees_with_itself(
    two_engines: list[ResumeEngine],
    redis: Redis,
    clock: FrozenDateTimeFactory,
    history: list[tuple[str, int]],
) -> None:
    await redis.flushall()
    told = History(two_engines, redis, clock)
    await told.open()
    await told.check()
    for event, index in history:
        await told.do(event, index)
        await told.check()
