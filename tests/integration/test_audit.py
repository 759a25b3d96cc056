"""The audit in the store: who, what and why of every transition and refusal, in one order, in chains that hold."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from freezegun import freeze_time
from redis.asyncio import Redis

from core.audit import ChainBroken, Event, Position, digest
from core.clock import Clock, WallClock
from core.engine import ResumeEngine
from core.errors import (
    AlreadySettled,
    AskgateError,
    CoverageMismatch,
    Invalid,
    LeaseLost,
    NotAllowed,
    NotWaiting,
)
from core.gates import Action
from core.policy import Key, Person
from core.record import Record
from core.redaction import DEFAULT_FIELDS, MASK, Patterns, Redaction
from core.runs import Card, Run
from core.store import lua
from core.store.keys import Keys
from core.store.store import Store
from tests.conftest import ANA, BEN, CHO, HOME
from tests.runs import FOCUSED, approval, question_call, run_request
from tests.stores import Lossy, engine_on, events

CI = Key(key="ci")
ADMIN = Person(team=HOME, user="U9")
NewEngine = Callable[[], ResumeEngine]


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def told(engine: ResumeEngine, after: Position | None = None, page: int = 500) -> list[Event]:
    return [event async for event in engine.store.audit.events(after, page=page)]


def partition_of(run: Run) -> int:
    return int(run.id[4:6])


# one order, and nothing that comes later in an earlier place


class Slow:
    """The clock of a process whose calls arrive late: its present is some time ago."""

    def __init__(self, clock: Clock, behind_ms: int) -> None:
        self._clock = clock
        self._behind_ms = behind_ms

    def now_ms(self) -> int:
        return self._clock.now_ms() - self._behind_ms


async def test_a_late_event_of_another_partition_stands_behind_what_was_read(
    engine: ResumeEngine, redis: Redis
) -> None:
    seen: list[Event] = []
    late = Store(redis, partitions=4, clock=Slow(WallClock(), 5000))
    for number in range(12):
        run = await opened(engine)
        seen += await told(engine, seen[-1].position if seen else None)
        # another partition hears of something that was sent before that read
        await late.refuse(run, run.gates[0].id, by=ANA.model_dump(), via="api", reason=f"late-{number}")
        seen += await told(engine, seen[-1].position)
    assert seen == await told(engine)
    assert [e.position for e in seen] == sorted({e.position for e in seen})
    assert sum("late-" in event.line for event in seen) == 12


async def test_readers_who_follow_while_many_write_miss_nothing(new_engine: NewEngine) -> None:
    reader, writers = new_engine(), [new_engine() for _ in range(3)]
    writing = asyncio.Event()

    async def write(engine: ResumeEngine) -> None:
        for _ in range(15):
            run = await opened(engine)
            await engine.cancel(run.id, None, by=CI, via="api")

    async def follow() -> list[Event]:
        seen: list[Event] = []
        while not writing.is_set():
            seen += await told(reader, seen[-1].position if seen else None, page=7)
        return seen + await told(reader, seen[-1].position if seen else None)

    following = asyncio.create_task(follow())
    await asyncio.gather(*map(write, writers))
    writing.set()
    seen = await following
    assert len(seen) == 3 * 15 * 4
    assert seen == await told(reader)


async def test_what_was_done_before_a_read_is_in_it_whatever_the_clocks_say(
    engine: ResumeEngine, redis: Redis
) -> None:
    ahead = Store(redis, partitions=4, clock=Slow(WallClock(), -60_000))
    run = await opened(engine)
    await ahead.refuse(run, None, by=ANA.model_dump(), via="api", reason="ahead")
    assert "ahead" in (await told(engine))[-1].line
    again = await opened(engine)
    assert [json.loads(line)["run"] for _, line in await told(engine)][-1] == again.id


# a run's own events, also when the run is gone


async def test_a_run_s_events_are_found_after_the_run_was_deleted(engine: ResumeEngine, redis: Redis) -> None:
    runs = [await opened(engine) for _ in range(9)]
    for run in runs:
        await engine.cancel(run.id, "No need", by=CI, via="api")
    run = runs[4]
    kept = [event async for event in engine.store.audit.of_run(run.id)]
    keys = Keys(partition_of(run))
    await redis.delete(keys.run(run.id), keys.trail(run.id))
    for page in (1, 3, 500):
        assert [e async for e in engine.store.audit.of_run(run.id, page=page)] == kept
        assert [e async for e in engine.store.audit.of_run(run.id, kept[1].position, page=page)] == kept[2:]
    assert len(kept) == 4


async def test_an_agent_s_words_pass_for_no_other_run(engine: ResumeEngine, redis: Redis) -> None:
    mine = await opened(engine)
    await redis.delete(Keys(partition_of(mine)).run(mine.id))
    for _ in range(8):  # some of them in the same partition
        await opened(engine, external_id=f'","run":"{mine.id}","gate":"{mine.gates[0].id}"')
    found = [json.loads(line) async for _, line in engine.store.audit.of_run(mine.id)]
    assert [event["event"] for event in found] == ["run.opened", "gate.opened"]


async def test_a_long_trail_is_read_page_by_page(engine: ResumeEngine) -> None:
    run = await opened(engine)
    for _ in range(25):
        with pytest.raises(NotAllowed):
            await engine.decide(run.gates[0].id, Action.DECLINE, by=CI, via="api")
    for page in (1, 9, 27, 100):
        found = [e async for e in engine.store.audit.of_run(run.id, page=page)]
        assert len(found) == 27
        assert [e.position for e in found] == sorted(e.position for e in found)


# the chain


async def a_chain(engine: ResumeEngine) -> tuple[int, list[Event]]:
    """A partition with at least five events."""
    while True:
        run = await opened(engine)
        await engine.cancel(run.id, None, by=CI, via="api")
        events = [e for e in await told(engine) if e.position.partition == partition_of(run)]
        if len(events) > 4:
            return partition_of(run), events


async def rewrite(redis: Redis, partition: int, events: list[Event]) -> None:
    """What somebody may do who can write to Redis: a stream with other events in it."""
    await redis.delete(Keys(partition).audit)
    for position, line in events:
        await redis.xadd(Keys(partition).audit, {"event": line}, id=f"{position.ms}-{position.seq}")


async def test_every_partition_s_chain_holds_after_all_that_can_happen(engine: ResumeEngine) -> None:
    for _ in range(10):
        run = await opened(engine, [question_call()], [approval()])
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack", comment="„Nein“ 🙈")
    chains = [await engine.store.audit.verify(partition) for partition in range(4)]
    assert sum(chain.count for chain in chains) == len(await told(engine)) == 60
    for chain in chains:
        assert chain.last is None or chain.last.partition == chain.partition


async def test_an_event_edited_removed_inserted_or_moved_in_the_store_is_found(
    engine: ResumeEngine, redis: Redis
) -> None:
    partition, events = await a_chain(engine)
    edited = [e._replace(line=e.line.replace('"ci"', '"ic"')) if n == 2 else e for n, e in enumerate(events)]
    more = events[2]._replace(position=events[2].position._replace(seq=events[2].position.seq + 7))
    moved = [
        *events[:1],
        Event(events[1].position, events[2].line),
        Event(events[2].position, events[1].line),
        *events[3:],
    ]
    for tampered, at in (
        (edited, events[3]),
        (events[:2] + events[3:], events[3]),
        (sorted([*events[:3], more, *events[3:]]), more),
        (moved, events[1]),
        (events[1:], events[1]),
    ):
        await rewrite(redis, partition, tampered)
        with pytest.raises(ChainBroken, match=f"Partition {partition}, event {at.position}: its prev is"):
            await engine.store.audit.verify(partition)
    for cut in (events[:-1], []):
        await rewrite(redis, partition, cut)
        with pytest.raises(ChainBroken, match=f"wanted {digest(events[-1].line)}, as the store remembers it"):
            await engine.store.audit.verify(partition)
    await rewrite(redis, partition, events)
    assert (await engine.store.audit.verify(partition)).count == len(events)


async def test_a_trimmed_chain_begins_where_the_trimming_ended(engine: ResumeEngine, redis: Redis) -> None:
    partition, events = await a_chain(engine)
    with freeze_time("2099-01-01", real_asyncio=True):
        far = WallClock().now_ms()
    assert await engine.store.audit.trim(partition, far, 3) == 3
    chain = await engine.store.audit.verify(partition)
    assert (chain.count, chain.first) == (len(events) - 3, events[3].position)
    await redis.xdel(Keys(partition).audit, f"{events[3].position.ms}-{events[3].position.seq}")
    with pytest.raises(ChainBroken, match=digest(events[2].line)):
        await engine.store.audit.verify(partition)
    # with everything trimmed, the next event still links to the last one that there was
    await engine.store.audit.trim(partition, far, 500)
    assert (await engine.store.audit.verify(partition)).count == 0
    _, [first, *_] = await a_chain(engine)
    while first.position.partition != partition:
        _, [first, *_] = await a_chain(engine)
    assert json.loads(first.line)["prev"] == digest(events[-1].line)
    assert (await engine.store.audit.verify(partition)).link == digest(
        [e for e in await told(engine) if e.position.partition == partition][-1].line
    )


async def test_a_chain_can_be_verified_while_it_grows_and_is_trimmed(new_engine: NewEngine) -> None:
    engine, other = new_engine(), new_engine()
    done = asyncio.Event()

    async def grow() -> None:
        for _ in range(40):
            run = await opened(other)
            await other.cancel(run.id, None, by=CI, via="api")
            await other.store.audit.trim(partition_of(run), other.store.clock.now_ms() - 20, 3)
        done.set()

    growing = asyncio.create_task(grow())
    while not done.is_set():
        for partition in range(4):
            await engine.store.audit.verify(partition)
    await growing


# who, what and why


async def test_a_refusal_that_is_about_a_whole_run_is_written_down(engine: ResumeEngine) -> None:
    run = await opened(engine)
    batch = {"calls": {"question-1": {"status": "returned", "value": FOCUSED}}, "approvals": {}}
    refused: list[tuple[type[AskgateError], Any]] = [
        (
            CoverageMismatch,
            lambda: engine.answer_batch(run.id, {"calls": {}, "approvals": {}}, by=CI, via="api"),
        ),
        (LeaseLost, lambda: engine.resumes.ack(run.id, "lease_x", by=CI)),
    ]
    settled: list[tuple[type[AskgateError], Any]] = [
        (AlreadySettled, lambda: engine.answer_batch(run.id, batch, by=CI, via="api")),
        (NotWaiting, lambda: engine.cancel(run.id, "again", by=CI, via="api")),
        (LeaseLost, lambda: engine.resumes.nack(run.id, "lease_x", by=CI)),
    ]
    for error, call in refused:
        with pytest.raises(error):
            await call()
    await engine.cancel(run.id, "No need", by=CI, via="api")
    for error, call in settled:
        with pytest.raises(error):
            await call()
    refusals = [e for e in await events(engine, run.id) if e["event"] == "run.refused"]
    assert [e["reason"] for e in refusals] == [error.slug for error, _ in refused + settled]
    assert {json.dumps(e["by"]) for e in refusals} == {'{"key": "ci"}'}
    assert {e["gate"] for e in refusals} == {None}


async def test_who_may_not_amend_a_gate_is_written_down(engine: ResumeEngine) -> None:
    run = await opened(engine, [], [approval()])
    gate = run.gates[0].id
    attempts: list[tuple[type[AskgateError], Any]] = [
        (NotAllowed, lambda: engine.amendments.extend(gate, 60, by=ANA, via="slack")),
        (NotAllowed, lambda: engine.amendments.reassign(gate, ["U2"], by=BEN, via="slack")),
        (NotAllowed, lambda: engine.amendments.delegate(gate, ANA, by=ADMIN, via="slack")),
        (Invalid, lambda: engine.amendments.extend(gate, 0, by=ADMIN, via="slack")),
        (AlreadySettled, lambda: engine.amendments.extend(gate, 60, by=ADMIN, via="slack")),
    ]
    for error, call in attempts:
        if error is AlreadySettled:
            await engine.cancel(run.id, None, by=CI, via="api")
        with pytest.raises(error):
            await call()
    refusals = [e for e in await events(engine, run.id) if e["event"] == "gate.refused"]
    assert [(e["by"]["user"], e["reason"], e["from"]) for e in refusals] == [
        ("U1", "not-allowed", "slack"),
        ("U2", "not-allowed", "slack"),
        ("U9", "not-allowed", "slack"),
        ("U9", "invalid", "slack"),
        ("U9", "already-settled", "slack"),
    ]


async def test_each_hand_out_to_a_host_and_each_return_is_written_down(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    for error in ("busy", None):
        [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30, by=CI)
        await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=0, error=error)
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30, by=CI)
    await engine.resumes.ack(run.id, resume.lease, by=CI)
    since = [(e["event"], e["by"], e.get("reason")) for e in (await events(engine, run.id))[4:]]
    assert since == [
        ("run.claimed", {"key": "ci"}, None),
        ("run.returned", {"key": "ci"}, "busy"),
        ("run.claimed", {"key": "ci"}, None),
        ("run.returned", {"key": "ci"}, None),
        ("run.claimed", {"key": "ci"}, None),
        ("run.resumed", {"key": "ci"}, None),
    ]


# lost replies


@pytest.fixture
async def lossy(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[tuple[ResumeEngine, Lossy]]:
    path = unquote(redis_url.removeprefix("unix://").partition("?")[0])
    async with contextlib.AsyncExitStack() as stack:
        losing = await stack.enter_async_context(Lossy(path, tmp_path).serving())
        for script in (lua.REFUSE, lua.CARD, lua.START_RESUME, lua.END_RESUME):
            await redis.script_load(script.source)
        yield await stack.enter_async_context(engine_on(losing.url)), losing


async def test_a_lost_reply_writes_a_refusal_or_a_card_once(lossy: tuple[ResumeEngine, Lossy]) -> None:
    engine, losing = lossy
    run = await opened(engine)
    losing.lose(lua.REFUSE.sha)
    with pytest.raises(NotAllowed):
        await engine.decide(run.gates[0].id, Action.DECLINE, by=CI, via="api")
    losing.lose(lua.CARD.sha)
    card = Card(channel="C1", ts="1700000000.000100", gates=(0,))
    await engine.store.set_cards(run, [card], event="card.posted")
    assert losing.lost == 2
    assert (await engine.run(run.id)).cards == (card,)
    names = [e["event"] for e in await events(engine, run.id)]
    assert names == ["run.opened", "gate.opened", "gate.refused", "card.posted"]
    # the same again is another refusal, not the same call
    with pytest.raises(NotAllowed):
        await engine.decide(run.gates[0].id, Action.DECLINE, by=CI, via="api")
    assert [e["event"] for e in await events(engine, run.id)].count("gate.refused") == 2


async def test_a_lost_reply_writes_a_hand_out_and_a_return_once(lossy: tuple[ResumeEngine, Lossy]) -> None:
    engine, losing = lossy
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    losing.lose(lua.START_RESUME.sha)
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    losing.lose(lua.END_RESUME.sha)
    await engine.resumes.nack(run.id, resume.lease, by=CI)
    assert losing.lost == 2
    assert [e["event"] for e in await events(engine, run.id)][4:] == ["run.claimed", "run.returned"]


async def test_what_is_remembered_of_a_call_is_forgotten_within_a_minute(
    engine: ResumeEngine, redis: Redis
) -> None:
    run = await opened(engine)
    with pytest.raises(NotAllowed):
        await engine.decide(run.gates[0].id, Action.DECLINE, by=CI, via="api")
    [name] = [name async for name in redis.scan_iter("ag:*:heard:*")]
    assert 0 < await redis.pttl(name) <= 60_000


# values


SECRET = {"path": "/tmp/old.log", "password": "hunter2", "note": "sk-hunter2"}
CUSTOM = {"tool_call_id": "c", "tool_name": "ask_config", "args": SECRET}


@pytest.fixture
async def keeping(
    redis_url: str, redis: Redis, request: pytest.FixtureRequest
) -> AsyncIterator[ResumeEngine]:
    """An engine that hides things, and keeps values in the audit or not."""
    redaction = Redaction.of(DEFAULT_FIELDS, Patterns(["sk-[a-z0-9]+"]))
    async with engine_on(redis_url, record=Record(redaction, keeps_values=request.param)) as engine:
        yield engine


async def decided(engine: ResumeEngine) -> tuple[Run, list[dict[str, Any]]]:
    """A run in whose arguments, answers, comments and names there are secrets."""
    policy = {"responders": ["anyone"], "approvers": ["U1", "U2", "U3"]}
    calls = [question_call(), CUSTOM]
    run = await opened(engine, calls, [approval(args=SECRET)], policy=policy, external_id="job sk-hunter2")
    question, custom, permission = (gate.id for gate in run.gates)
    await engine.decide(question, Action.ANSWER, by=ANA, via="slack", values=FOCUSED, comment="sk-hunter2!")
    await engine.decide(
        custom, Action.ANSWER, by=BEN, via="slack", values={"token": "hunter2", "n": [1, "sk-hunter2"]}
    )
    await engine.decide(permission, Action.DENY, by=CHO, via="slack", comment="because of sk-hunter2")
    return run, await events(engine, run.id)


@pytest.mark.parametrize("keeping", [False], indirect=True)
async def test_without_the_setting_the_audit_has_digests_alone(keeping: ResumeEngine) -> None:
    run, lines = await decided(keeping)
    assert "hunter" not in json.dumps(lines)
    settled = [e for e in lines if e["event"] == "gate.settled"]
    canonical = b'{"answers":{"Which scope should be used?":"Focused"}}'
    assert settled[0]["values_digest"] == hashlib.sha256(canonical).hexdigest()
    canonical = b'{"n":[1,"sk-hunter2"],"token":"hunter2"}'
    assert settled[1]["values_digest"] == hashlib.sha256(canonical).hexdigest()
    assert (settled[2]["args_digest"], "values_digest" in settled[2]) == (run.gates[2].digest, False)
    assert not any(name in e for e in lines for name in ("args", "values", "comment"))
    assert lines[0]["external_id"] == f"job {MASK}"


@pytest.mark.parametrize("keeping", [True], indirect=True)
async def test_with_the_setting_it_has_the_values_without_what_is_hidden(keeping: ResumeEngine) -> None:
    run, lines = await decided(keeping)
    assert "hunter" not in json.dumps(lines)
    shown = {"path": "/tmp/old.log", "password": MASK, "note": MASK}
    assert [e["args"] for e in lines if e["event"] == "gate.opened"] == [
        question_call()["args"],
        shown,
        shown,
    ]
    first, second, third = [e for e in lines if e["event"] == "gate.settled"]
    assert (first["values"], first["comment"]) == (FOCUSED, f"{MASK}!")
    assert second["values"] == {"token": MASK, "n": [1, MASK]}
    assert (third["comment"], "values" in third) == (f"because of {MASK}", False)
    # the host gets what is real, and the digest is that of what is real
    results = (await keeping.run(run.id)).results()
    assert results is not None
    assert results["calls"]["c"]["value"] == {"token": "hunter2", "n": [1, "sk-hunter2"]}
    assert results["approvals"]["call-2"]["reason"] == "because of sk-hunter2"


@pytest.mark.parametrize("keeping", [False, True], indirect=True)
async def test_reasons_and_errors_that_callers_give_are_masked_by_the_patterns(keeping: ResumeEngine) -> None:
    run = await opened(keeping)
    await keeping.cancel(run.id, "leaked sk-hunter2", by=CI, via="api")
    [resume] = await keeping.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    await keeping.resumes.nack(run.id, resume.lease, by=CI, error="bad key sk-hunter2")
    reasons = [e["reason"] for e in await events(keeping, run.id) if "reason" in e]
    assert reasons == [f"leaked {MASK}", f"bad key {MASK}"]
    stored = await keeping.run(run.id)
    assert stored.error == "bad key sk-hunter2"
    assert stored.gates[0].decision is not None
    assert stored.gates[0].decision.detail == "leaked sk-hunter2"
