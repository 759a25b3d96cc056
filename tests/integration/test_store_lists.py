"""The lists beside the newest runs first: kept by the scripts, bounded, and right after every transition."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action
from core.lookup import look_up
from core.policy import Key, Person
from core.runs import Run
from core.store.homes import WATCHED_MS
from core.store.keys import Keys
from core.store.store import SAID_MOST
from tests.runs import FOCUSED, approval, question_call, run_request

ANA, CI = Person(team="T1", user="U1"), Key(key="ci")


@pytest.fixture(autouse=True)
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(real_asyncio=True) as frozen:
        assert isinstance(frozen, FrozenDateTimeFactory)
        yield frozen


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def said(engine: ResumeEngine, who: str = "T1:U1") -> list[str]:
    return [gate async for _, gate in engine.store.lists.said(who)]


async def test_what_somebody_had_a_word_on_is_listed_latest_first_settled_or_not(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    voted = await opened(engine, [], [approval()], policy=policy)
    answered = await opened(engine, policy={"responders": ["U1"]})
    await engine.decide(voted.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    clock.tick(1)
    await engine.decide(answered.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert await said(engine) == [answered.gates[0].id, voted.gates[0].id]
    clock.tick(1)
    await engine.decide(voted.gates[0].id, Action.DENY, by=ANA, via="slack")
    assert await said(engine) == [voted.gates[0].id, answered.gates[0].id]
    assert await said(engine, "T1:U2") == []


async def test_no_more_is_kept_of_what_somebody_said_than_is_of_use(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    calls = [question_call(f"q{number}") for number in range(SAID_MOST + 5)]
    run = await opened(engine, calls, policy={"responders": ["U1"]})
    for gate in run.gates:
        await engine.decide(gate.id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        clock.tick(timedelta(milliseconds=1))
    assert await said(engine) == [gate.id for gate in run.gates[: -SAID_MOST - 1 : -1]]
    key = Keys(int(run.id[4:6])).said("T1:U1")
    assert 0 < await redis.pttl(key) <= 30 * 86_400_000


async def test_undeliverable_runs_are_listed_until_people_are_asked_again(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await engine.undeliverable(run.id, "channel_not_found")
    assert [run_id async for _, run_id in engine.store.lists.undeliverable()] == [run.id]
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    await engine.resumes.refuse(run.id, resume.lease, by=CI, error="no")
    assert (await engine.store.lists.counts(0)).dead == 1
    await engine.dead_letters.reopen(run.id, by=CI, via="api")
    assert [run_id async for _, run_id in engine.store.lists.undeliverable()] == []


async def test_what_expires_is_listed_soonest_first_and_counted(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    late, soon = await opened(engine, timeout_s=7200), await opened(engine, timeout_s=600)
    rows = [row async for row in engine.store.lists.expiring()]
    assert [run_id for _, run_id in rows] == [soon.id, late.id]
    assert [row async for row in engine.store.lists.expiring(rows[0])] == rows[1:]
    counts = await engine.store.lists.counts(3_600_000)
    assert (counts.open, counts.due_soon, counts.dead, counts.undeliverable) == (2, 1, 0, 0)
    assert counts.oldest is not None
    assert counts.oldest[0] == late.doc.created_at
    clock.tick(601)
    await engine.expire(soon.id)
    assert [run_id async for _, run_id in engine.store.lists.expiring()] == [late.id]


async def test_an_id_is_found_by_its_beginning_and_several_are_told(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    first = await opened(engine, [question_call("a"), question_call("b")])
    clock.tick(3600)
    second = await opened(engine)
    assert await look_up(engine.store, first.id) == [(first, None)]
    assert await look_up(engine.store, f"`{first.gates[1].id.lower()}`") == [(first, first.gates[1])]
    assert await look_up(engine.store, second.id[:-8]) == [(second, second.gates[0])]
    same = [run for run in (first, second) if run.id[:6] == second.id[:6]]
    assert {run.id for run, _ in await look_up(engine.store, second.id[:12])} == {run.id for run in same}
    for typed in ("", "gate_99_01JZ", "gate_00_0", f"{first.id}_7", "gate_00_ZZZZZZZZZZ", "nonsense", "*"):
        assert await look_up(engine.store, typed) == []


async def test_a_change_is_told_to_homes_only_while_somebody_looks_at_one(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    async def told(run: Run) -> bool:
        agenda = Keys(int(run.id[4:6])).agenda
        return await redis.zscore(agenda, f"home:{run.id}") is not None

    assert not await told(await opened(engine))
    await engine.store.homes.opened("T1:U1")
    run = await opened(engine)
    assert await told(run)
    assert await engine.store.homes.watchers(int(run.id[4:6])) == ["T1:U1"]
    clock.tick(timedelta(milliseconds=WATCHED_MS + 1))
    assert await engine.store.homes.watchers(int(run.id[4:6])) == []


async def test_a_home_is_due_once_and_sooner_when_that_is_asked_for(
    engine: ResumeEngine, redis: Redis
) -> None:
    async def due() -> list[float]:
        scores = [
            await redis.zscore(engine.store.queues.agenda(p), "person:T1:U1")
            for p in range(engine.store.partitions)
        ]
        return [score - engine.store.clock.now_ms() for score in scores if score is not None]

    for in_ms, wanted in ((400, 400), (900, 400), (0, 0)):
        await engine.store.homes.due("T1:U1", in_ms)
        assert await due() == [wanted]
