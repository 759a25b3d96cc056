"""Two engines on one server, driven side by side with the model: whatever happens, they agree.

Replies get lost, the server refuses writes, workers and claimers die with what they hold, people speak at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis.asyncio import Redis

from core.agenda import LEASE_MS, Worker
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.ids import new_token
from core.requests import RunRequest
from core.resumes import MAX_TRIES, Resume
from core.store import lua
from core.store.keys import Keys, leases
from tests import model
from tests.agreement import TOLD, expected, in_some_order, index_of, seen
from tests.conftest import HOME, Members
from tests.histories import FAULTS, OPENINGS, STEPS, Opening
from tests.model import Json, Run, World, iso
from tests.steps import (
    AWAY,
    CI,
    DONE,
    Said,
    Step,
    actor,
    hear,
)
from tests.stores import Lossy, engine_on, events

START = "2026-03-01T12:00:00Z"
START_MS = 1_772_366_400_000
PARTITIONS = 4
T = TypeVar("T")
ENDS = {
    "ack": ("resumed", None),
    "nack": ("settled", "busy"),
    "refuse": ("failed", "never"),
    "lose": ("lost", None),
}
"""What a host says of a run: its status then, and the error."""


class Machine(RuleBasedStateMachine):
    """``url``: a server of our own. ``clock``: what all engines go by."""

    def __init__(self, url: str, folder: Path, clock: FrozenDateTimeFactory) -> None:
        super().__init__()
        self.clock = clock
        clock.move_to(START)
        self.world = World(START_MS, HOME, ("U9",), {"C1": {"U1", "U2", "U3"}}, {"S1": {"U2", "U3"}})
        self.runs: dict[str, Run] = {}
        self.requests: dict[str, tuple[RunRequest, str]] = {}
        self.leases: list[tuple[str, str]] = [("run_00_01JZ0000000000000000000000", "lease_of_nobody")]
        self.bodies: dict[str, tuple[str, str]] = {}
        self.drawn: dict[str, Any] = {}
        self.loop = asyncio.new_event_loop()
        self.stack = contextlib.AsyncExitStack()
        self.url = url
        self.failed = False
        self.does(self.begin(folder))

    def does(self, work: Awaitable[T]) -> T:
        async def doing() -> T:
            return await work

        try:
            return self.loop.run_until_complete(doing())
        except BaseException:
            self.failed = True
            raise

    async def begin(self, folder: Path) -> None:
        self.redis: Redis = Redis.from_url(self.url, decode_responses=True)
        self.stack.push_async_callback(self.redis.aclose)
        await self.redis.config_set("appendfsync", "no")  # nothing here is about the disk
        await self.redis.flushall()
        for script in vars(lua).values():
            if isinstance(script, lua.Script):
                await self.redis.script_load(script.source)
        server = unquote(self.url.removeprefix("unix://").partition("?")[0])
        self.lossy = await self.stack.enter_async_context(Lossy(server, folder).serving())
        self.lives: list[contextlib.AsyncExitStack] = []
        self.engines: list[ResumeEngine] = []
        for url in (self.url, self.lossy.url):
            life = contextlib.AsyncExitStack()
            self.lives.append(life)
            self.engines.append(await self.live(life, url))

    async def live(self, life: contextlib.AsyncExitStack, url: str) -> ResumeEngine:
        engine = await life.enter_async_context(engine_on(url))
        directory = Members()
        directory.channels, directory.groups = self.world.channels, self.world.groups
        engine.directory = engine.amendments._directory = directory
        return engine

    def teardown(self) -> None:
        try:
            if not self.failed:
                self.does(self.to_the_end())
        finally:
            for life in (*self.lives, self.stack):
                self.does(life.aclose())
            self.loop.close()

    # opening

    @initialize(opening=OPENINGS)
    def first(self, opening: Opening) -> None:
        self.does(self.opening(opening, "none"))

    @precondition(lambda self: len(self.runs) < 4 or not any(run.pending for run in self.runs.values()))
    @rule(opening=OPENINGS, fault=FAULTS)
    def suspend(self, opening: Opening, fault: str) -> None:
        self.does(self.opening(opening, fault))

    async def opening(self, opening: Opening, fault: str) -> None:
        run, request, key = opening.run(self.world.now), opening.request(), f"k{len(self.requests)}"

        def suspend() -> Awaitable[Any]:
            return self.engines[1].suspend(request, owner="ci", idempotency_key=key)

        said = await self.faulty(fault, lua.SUSPEND, suspend)
        if not all(self.world.decidable(run, gate, gate.deciders) for gate in run.gates):
            assert said.word == "nobody-may-decide"
            return
        if said.word == AWAY:
            assert fault in ("lost twice", "refused")
            said = await hear(suspend())
            assert said.result[1] == (fault == "refused")
        else:
            assert said.result[1]
        stored = said.result[0]
        self.runs[stored.id] = run
        self.requests[stored.id] = (request, key)
        self.world.open(run)
        await self.opened_again(stored.id)
        await self.check(stored.id)

    async def opened_again(self, run_id: str) -> None:
        """The same key and body open nothing more; another body is refused."""
        request, key = self.requests[run_id]
        said = await hear(self.engines[0].suspend(request, owner="ci", idempotency_key=key))
        assert (said.result[0].id, said.result[1]) == (run_id, False)
        request = request.model_copy(update={"title": "another"})
        said = await hear(self.engines[0].suspend(request, owner="ci", idempotency_key=key))
        assert said.word == "idempotency-key-reused"

    # settling

    @precondition(lambda self: any(run.pending for run in self.runs.values()))
    @rule(number=st.integers(0, 9), step=STEPS)
    def one(self, number: int, step: Step) -> None:
        self.does(self.stepping(self.a_run(number), step, "none"))

    @precondition(lambda self: self.runs)
    @rule(number=st.integers(0, 9), step=STEPS, fault=st.sampled_from(["lost", "lost twice", "refused"]))
    def one_in_trouble(self, number: int, step: Step, fault: str) -> None:
        self.does(self.stepping(self.a_run(number), step, fault))

    async def stepping(self, run_id: str, step: Step, fault: str) -> None:
        run = self.runs[run_id]
        step = step.aimed(run)
        engine = self.engines[1 if fault.startswith("lost") else 0]
        said = await self.faulty(fault, step.script, lambda: step.call(engine, run_id, run))
        if said.word != AWAY:
            step.heard(self.world, run, said)
        elif fault == "lost twice":
            step.unheard(self.world, run)
        else:
            assert fault == "refused"
        await self.check(run_id)

    @precondition(lambda self: any(run.pending for run in self.runs.values()))
    @rule(number=st.integers(0, 9), one=STEPS, two=STEPS)
    def two_at_once(self, number: int, one: Step, two: Step) -> None:
        """Both come to the same as if one had come after the other, whichever that was."""
        self.does(self.racing(self.a_run(number), one, two))

    async def racing(self, run_id: str, *anywhere: Step) -> None:
        run = self.runs[run_id]
        steps = [step.aimed(run) for step in anywhere]
        calls = (step.call(engine, run_id, run) for step, engine in zip(steps, self.engines, strict=True))
        said = await asyncio.gather(*map(hear, calls))
        stored, told = await self.stored(run_id)
        wrong = []
        for order in ((0, 1), (1, 0)):
            candidate = copy.deepcopy(run)
            try:
                for number in order:
                    steps[number].heard(self.world, candidate, said[number])
                assert stored == expected(candidate)
                assert in_some_order(told) == in_some_order(candidate.told)
            except AssertionError as error:
                wrong.append(error)
                continue
            candidate.told = told
            self.runs[run_id] = candidate
            return
        raise ExceptionGroup(f"{steps} came to {said}", wrong)

    # the agenda

    @rule(
        seconds=st.sampled_from([0, 0, 0.001, 1, 1, 10, 29, 31, 61, 600, 3600]),
        worker=st.sampled_from([None, 0, 1]),
    )
    def time_passes(self, seconds: float, worker: int | None) -> None:
        self.tick(seconds)
        if worker is not None:
            self.does(self.working(self.engines[worker]))

    def tick(self, seconds: float) -> None:
        self.clock.tick(seconds)
        self.world.now += round(seconds * 1000)

    async def working(self, engine: ResumeEngine) -> None:
        async def draw(run_id: str, _tries: int) -> None:
            self.drawn[run_id] = (await engine.run(run_id)).gates

        handlers = {"escalate": engine.escalate, "card": draw}
        await Worker(engine.store, engine.bell, handlers).run_once()
        for run_id, run in self.runs.items():
            self.world.work(run)
            await self.check(run_id)
            if self.world.free(run, "card"):
                assert self.drawn[run_id] == (await engine.run(run_id)).gates
        for partition in range(PARTITIONS):
            due = await engine.store.queues.next_due(engine.store.queues.agenda(partition))
            assert due is None or due > self.world.now

    async def dying(self, number: int) -> None:
        engine, token = self.engines[number], new_token()
        for partition in range(PARTITIONS):
            agenda = engine.store.queues.agenda(partition)
            for due in await engine.store.queues.claim(
                agenda, partition, lease_ms=LEASE_MS, limit=5, token=token
            ):
                what, _, run_id = due.member.partition(":")
                assert self.world.free(self.runs[run_id], what)
                self.runs[run_id].held[what] = self.world.now + LEASE_MS

    @rule(number=st.integers(0, 1), what=st.sampled_from(["engine", "worker", "claimer"]))
    def somebody_dies(self, number: int, what: str) -> None:
        """An engine and another is started; a worker with what it holds; a claimer before it begins."""
        deaths = {"engine": self.restarting, "worker": self.dying, "claimer": self.dying_claim}
        self.does(deaths[what](number))

    async def restarting(self, number: int) -> None:
        await self.lives[number].aclose()
        self.lives[number] = contextlib.AsyncExitStack()
        self.engines[number] = await self.live(self.lives[number], (self.url, self.lossy.url)[number])

    # resuming

    @rule(
        limit=st.integers(0, 3),
        lease_s=st.sampled_from([1, 30, 600]),
        fault=st.sampled_from(["none", "none", "lost", "refused"]),
    )
    def a_host_claims(self, limit: int, lease_s: int, fault: str) -> None:
        self.does(self.claiming(limit, lease_s, fault) if limit else self.claiming_at_once())

    async def claiming(self, limit: int, lease_s: int, fault: str) -> None:
        due = self.due()
        script = lua.START_RESUME if fault == "lost" and limit % 2 else lua.CLAIM
        said = await self.faulty(
            fault,
            script,
            lambda: self.engines[1].resumes.claim("api", limit=limit, wait_s=0, lease_s=lease_s),
        )
        if said.word == AWAY:
            assert fault == "refused"
            assert due
        else:
            assert len(said.result) == min(limit, len(due))
            for resume in said.result:
                await self.handed_out(resume, lease_s)

    def due(self) -> list[str]:
        due = [run_id for run_id, run in self.runs.items() if self.world.claimable(run)]
        assume(all(self.runs[run_id].tries < MAX_TRIES - 1 for run_id in due))
        return due

    async def handed_out(self, resume: Resume, lease_s: int) -> None:
        run = self.runs[resume.run.id]
        self.world.claim(run, resume.lease, lease_s * 1000, started=True)
        assert (resume.tries, resume.lease_until, resume.state) == (run.tries, run.due, "opaque")
        assert json.loads(resume.body) == model.results(run)
        first = self.bodies.setdefault(resume.run.id, (resume.body, resume.key))
        assert (resume.body, resume.key) == first
        self.leases.append((resume.run.id, resume.lease))
        await self.check(resume.run.id)

    async def claiming_at_once(self) -> None:
        due = self.due()
        claims = (engine.resumes.claim("api", limit=100, wait_s=0, lease_s=30) for engine in self.engines)
        had = [resume for claim in await asyncio.gather(*claims) for resume in claim]
        assert Counter(resume.run.id for resume in had) == Counter(due)
        for resume in had:
            await self.handed_out(resume, 30)

    async def dying_claim(self, number: int) -> None:
        engine, lease = self.engines[number], new_token()
        for partition in range(PARTITIONS):
            queue = engine.store.queues.of(partition, "api")
            for due in await engine.store.queues.claim(
                queue, partition, lease_ms=30_000, limit=1, token=lease
            ):
                self.world.claim(self.runs[due.member], lease, 30_000, started=False)
                self.leases.append((due.member, lease))
                await self.check(due.member)

    @rule(
        back=st.integers(0, 3),
        word=st.sampled_from(["ack", "nack", "ack", "nack", "refuse", "lose"]),
        retry_s=st.sampled_from([0, 5]),
        fault=FAULTS,
    )
    def a_host_says(self, back: int, word: str, retry_s: int, fault: str) -> None:
        run_id, lease = self.leases[max(0, len(self.leases) - 1 - back)]
        self.does(self.ending(run_id, lease, word, retry_s, fault))

    async def ending(self, run_id: str, lease: str, word: str, retry_s: int, fault: str) -> None:
        resumes = self.engines[1].resumes
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "ack": lambda: resumes.ack(run_id, lease, by=actor(CI)),
            "nack": lambda: resumes.nack(run_id, lease, by=actor(CI), retry_in_s=retry_s, error="busy"),
            "refuse": lambda: resumes.refuse(run_id, lease, by=actor(CI), error="never"),
            "lose": lambda: resumes.lose(run_id, lease, by=actor(CI)),
        }
        said = await self.faulty(fault, lua.END_RESUME, calls[word])
        if run_id not in self.runs:
            assert said.word == "not-found"
            return
        run = self.runs[run_id]
        status, error = ENDS[word]
        if why := self.world.why_not_end(run, lease, status):
            assert said.word in why or (said.word == AWAY and fault in ("lost twice", "refused"))
            if said.word != AWAY:
                self.world.refused(run, None, CI, "host", said.word)
        elif said.word == AWAY:
            assert fault in ("lost twice", "refused")
        else:
            assert said.word == DONE
        if not why and (said.word == DONE or fault == "lost twice"):
            self.world.end(run, lease, status, CI, retry_s * 1000, error)
        await self.check(run_id)

    # looking

    def a_run(self, number: int) -> str:
        """One of the runs; mostly one in which something can still happen."""
        waiting = [run_id for run_id, run in self.runs.items() if run.pending and number % 4]
        ids = waiting or list(self.runs)
        return ids[-1 - number % len(ids)]

    async def faulty(self, fault: str, script: lua.Script, call: Callable[[], Awaitable[Any]]) -> Said:
        """A call in which replies to the script are lost, or the server refuses to write."""
        if fault == "refused":
            await self.redis.config_set("min-replicas-to-write", 1)
            try:
                return await hear(call())
            finally:
                await self.redis.config_set("min-replicas-to-write", 0)
        self.lossy.lose(script.sha, {"lost": 1, "lost twice": 2}.get(fault, 0))
        try:
            return await hear(call())
        finally:
            self.lossy.lose("", 0)

    async def stored(self, run_id: str) -> tuple[Json, list[Json]]:
        run = await self.engines[len(self.leases) % 2].run(run_id)
        told = [
            {key: event.get(key) for key in TOLD} | {"gate": index_of(event["gate"])}
            for event in await events(self.engines[0], run_id)
        ]
        return seen(run), told

    async def check(self, run_id: str) -> None:
        """The store, the lists, the queue and the audit have of this run what the model has."""
        run = self.runs[run_id]
        stored, told = await self.stored(run_id)
        assert stored == expected(run)
        assert told == run.told
        keys = Keys(int(run_id[4:6]))
        assert await self.redis.zscore(keys.queue("api"), run_id) == run.due
        record = json.loads(await self.redis.hget(leases(keys.queue("api")), run_id) or "{}")
        assert record.get("token") == run.lease
        settled = Counter(event["gate"] for event in told if event["event"] == "gate.settled")
        assert settled == Counter(n for n, gate in enumerate(run.gates) if not gate.pending)

    async def check_all(self) -> None:
        for run_id in self.runs:
            await self.check(run_id)
        open_ids = {gate.id async for _, _, gate in self.engines[0].gates(only_open=True)}
        pending = {
            (run_id, n) for run_id, run in self.runs.items() for n, g in enumerate(run.gates) if g.pending
        }
        assert open_ids == {f"gate{run_id[3:]}_{n}" for run_id, n in pending}
        for partition in range(PARTITIONS):
            await self.check_chain(Keys(partition))

    async def check_chain(self, keys: Keys) -> None:
        link = ""
        entries: Any = await self.redis.xrange(keys.audit)
        for _, entry in entries:
            assert json.loads(entry["event"])["prev"] == link
            link = hashlib.sha1(entry["event"].encode()).hexdigest()
        assert (await self.redis.hget(keys.audit_head, "digest") or "") == link

    async def to_the_end(self) -> None:
        """Whatever is left comes to its end by itself: it expires, is handed out, and is taken up once."""
        await self.check_all()
        self.tick(31 * 86_400)
        await self.working(self.engines[0])
        assert not any(run.pending for run in self.runs.values())
        await self.claiming_at_once()
        for run_id, lease in self.leases:
            if run_id in self.runs and self.runs[run_id].lease == lease:
                await self.ending(run_id, lease, "ack", 0, "none")
        assert {run.status for run in self.runs.values()} <= {"resumed", "failed", "lost"}
        await self.working(self.engines[1])
        await self.check_all()
        for run in self.runs.values():
            told = Counter(event["event"] for event in run.told)
            assert told["run.settled"] == 1
            assert told["run.resumed"] + told["run.failed"] + told["run.lost"] == 1
        for partition in range(PARTITIONS):
            keys = Keys(partition)
            for key in (
                keys.agenda,
                leases(keys.agenda),
                keys.queue("api"),
                leases(keys.queue("api")),
                keys.open,
            ):
                assert not await self.redis.exists(key)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with other things is no fault of the store: the model knows of no other than its own."""
    monkeypatch.setattr("core.store.reach.BUDGET_S", 60)
    for name in ("REPLY_TIMEOUT_S", "POOL_TIMEOUT_S"):
        monkeypatch.setattr(f"core.store.connect.{name}", 60)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = EmbeddedServer(tmp_path_factory.mktemp("machine"))
    asyncio.run(server.start())
    yield server.url
    asyncio.run(server.stop())


def drive(url: str, folder: Path, **how: Any) -> None:
    assert iso(START_MS)[:19] == START[:19]
    with freeze_time(START, real_asyncio=True) as clock:
        assert isinstance(clock, FrozenDateTimeFactory)
        run_state_machine_as_test(
            lambda: Machine(url, folder, clock),  # type: ignore[arg-type]  # any factory will do
            settings=settings(deadline=None, suppress_health_check=list(HealthCheck), **how),
        )


@pytest.mark.timeout(300)
def test_engines_and_model_agree_whatever_happens(own_server: str, tmp_path: Path) -> None:
    """The same histories each time, told as they are; the slow form looks for others and for the shortest."""
    drive(
        own_server,
        tmp_path,
        max_examples=25,
        stateful_step_count=40,
        derandomize=True,
        phases=[Phase.generate],
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_engines_and_model_agree_in_thousands_of_steps(own_server: str, tmp_path: Path) -> None:
    drive(own_server, tmp_path, max_examples=1000, stateful_step_count=60, derandomize=False)
