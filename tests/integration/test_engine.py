"""The engine on a real embedded server: opening, deciding, waiting, listing, texts of every kind, lost replies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from freezegun import freeze_time
from pydantic import ValidationError
from redis.asyncio import Redis
from redis.crc import key_slot

from core.clock import StoreClock
from core.engine import Answer, ResumeEngine
from core.errors import (
    IdempotencyKeyReused,
    LeaseLost,
    NobodyMayDecide,
    NoPlace,
    NotAllowed,
    NotFound,
    StoreMismatch,
)
from core.gates import MAX_COMMENT, Action
from core.ids import run_of
from core.policy import Key
from core.runs import Card, Run
from core.store import lua
from core.store.keys import Keys, leases
from core.store.store import Store
from tests.conftest import ANA, BEN
from tests.runs import FOCUSED, approval, ask, option, question_call, run_request
from tests.stores import Lossy, engine_on, events

CI = Key(key="ci")
# what trips careless code: NUL, controls, a separator, a combining mark, direction, astral characters, our own syntax
ODD = "\u0000\u001f\u2028e\u0301\u202e🧨𝒳\ufffe\"\\/'{}[]:, %s <!here>&amp;"


async def test_an_answer_and_an_approval_resume_the_run(engine: ResumeEngine) -> None:
    run, made = await engine.suspend(run_request([question_call()], [approval()], state="opaque"), owner="ci")
    assert made
    assert run.status == "waiting"
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) == []
    run = await engine.decide(run.gates[1].id, Action.APPROVE, by=BEN, via="slack")
    assert run.status == "settled"
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert resume.state == "opaque"
    assert resume.run.status == "resuming"
    results = resume.run.results()
    assert results is not None
    assert results["calls"]["question-1"]["value"] == FOCUSED
    assert results["approvals"]["call-2"]["action"] == "approve"
    run = await engine.resumes.ack(run.id, resume.lease, by=CI)
    assert run.status == "resumed"
    assert await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) == []
    told = [event["event"] for event in await events(engine, run.id)]
    assert told == [
        "run.opened",
        "gate.opened",
        "gate.opened",
        "gate.settled",
        "gate.settled",
        "run.settled",
        "run.claimed",
        "run.resumed",
    ]


# texts


async def test_every_text_comes_back_as_it_was_given(engine: ResumeEngine) -> None:
    """looprig C28."""
    question = {**ask(), "question": f"x{ODD}x", "options": [option(f"a{ODD}a", f"d{ODD}d"), option("b")]}
    args: dict[str, Any] = {ODD: [ODD, {ODD: ODD}, [], {}, None, 1.0, -0.0, 2**53 - 1]}
    custom = {"tool_call_id": f"id {ODD}", "tool_name": f"tool {ODD}", "args": args}
    run, _ = await engine.suspend(
        run_request(
            [question_call(f"q{ODD}", question), custom],
            [approval(f"a{ODD}", args=args, reason=ODD)],
            title=ODD,
            external_id=ODD,
            state=ODD,
        ),
        owner="ci",
    )
    assert (run.doc.title, run.doc.external_id, run.gates[2].doc.reason) == (ODD, ODD, ODD)
    assert run.gates[1].doc.args == run.gates[2].doc.args == args
    await engine.draft(run.gates[0].id, ANA, {ODD: [ODD]})
    assert (await engine.run(run.id)).gates[0].drafts == {"T1:U1": {ODD: [ODD]}}
    values = {"answers": {f"x{ODD}x": f"a{ODD}a"}, "response": f"r{ODD}r"}
    answers = [Answer(0, Action.ANSWER, values), Answer(1, Action.ANSWER, args)]
    await engine.decide_all(run.id, answers, by=ANA, via="slack")
    comment = "🧨" * MAX_COMMENT
    await engine.decide(run.gates[2].id, Action.DENY, by=ANA, via="slack", comment=comment)
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    results = json.loads(resume.body)
    assert resume.state == ODD
    assert results["calls"][f"q{ODD}"]["value"] == values
    assert results["calls"][f"id {ODD}"]["value"] == args
    assert results["approvals"][f"a{ODD}"]["reason"] == comment
    nacked = await engine.resumes.nack(run.id, resume.lease, by=CI, error=ODD)
    assert nacked.error == ODD
    assert all("prev" in event for event in await events(engine, run.id))


async def test_a_cancel_s_reason_comes_back_as_it_was_given(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(), owner="ci")
    run = await engine.cancel(run.id, ODD, by=CI, via="api")
    assert run.gates[0].decision is not None
    assert run.gates[0].decision.detail == ODD
    assert [e["reason"] for e in await events(engine, run.id) if e["event"] == "gate.settled"] == [ODD]


@pytest.mark.parametrize("place", ["title", "external_id", "state"])
def test_half_a_surrogate_pair_is_refused_before_anything_is_stored(place: str) -> None:
    with pytest.raises(ValidationError, match=place):
        run_request(**{place: "\ud83d"})


async def test_a_draft_with_half_a_surrogate_pair_is_kept_as_it_is(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(), owner="ci")
    run = await engine.draft(run.gates[0].id, ANA, ["\ud83d"])
    assert run.gates[0].drafts == {"T1:U1": ["\ud83d"]}


async def test_an_empty_list_an_empty_object_and_a_float_stay_what_they_are(engine: ResumeEngine) -> None:
    custom = {"tool_call_id": "c", "tool_name": "t", "args": {"l": [], "o": {}, "f": 1.0}}
    values: list[Any] = [[], {}, {"l": [], "o": {}}, 1.0, 0, False, "", 1e300, [[[]]]]
    for value in values:
        run, _ = await engine.suspend(run_request([custom]), owner="ci")
        run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=value)
        assert run.gates[0].doc.args == custom["args"]
        assert run.gates[0].decision is not None
        assert json.dumps(run.gates[0].decision.values) == json.dumps(value)


# drafts


async def test_drafts_are_kept_per_person_and_forgotten_alone(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request([question_call(f"q{n}") for n in range(12)]), owner="ci")
    await engine.draft(run.gates[1].id, ANA, {"0": [1]})
    await engine.draft(run.gates[11].id, ANA, {"0": [0]})
    run = await engine.draft(run.gates[1].id, BEN, [])
    assert run.gates[1].drafts == {"T1:U1": {"0": [1]}, "T1:U2": []}
    assert run.gates[11].drafts == {"T1:U1": {"0": [0]}}
    run = await engine.draft(run.gates[1].id, ANA, None)
    assert run.gates[1].drafts == {"T1:U2": []}


async def test_drafts_go_when_their_gate_is_settled(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request([question_call("q0"), question_call("q1")]), owner="ci")
    for gate in run.gates:
        await engine.draft(gate.id, BEN, {"0": [1]})
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert [gate.drafts for gate in run.gates] == [{}, {"T1:U2": {"0": [1]}}]


# idempotency


async def test_the_same_key_and_body_open_one_run(new_engine: Callable[[], ResumeEngine]) -> None:
    """looprig C6."""
    engines = [new_engine() for _ in range(3)]
    request = run_request(args := [question_call()], state="s")
    opened = await asyncio.gather(
        *(engine.suspend(request, owner="ci", idempotency_key="k 1") for engine in engines * 4)
    )
    assert len({run.id for run, _ in opened}) == 1
    assert sum(made for _, made in opened) == 1
    other, made = await engines[0].suspend(request, owner="other", idempotency_key="k 1")
    assert made
    assert other.id != opened[0][0].id
    with pytest.raises(IdempotencyKeyReused):
        await engines[1].suspend(run_request(args, state="t"), owner="ci", idempotency_key="k 1")


async def test_a_key_is_honoured_for_24_hours(engine: ResumeEngine) -> None:
    with freeze_time("2026-03-01", real_asyncio=True) as clock:
        first, _ = await engine.suspend(run_request(), owner="ci", idempotency_key="k")
        clock.tick(24 * 3600 - 1)
        assert (await engine.suspend(run_request(), owner="ci", idempotency_key="k"))[0].id == first.id
        clock.tick(1)
        second, made = await engine.suspend(run_request(), owner="ci", idempotency_key="k")
        assert made
        assert second.id != first.id


async def test_arguments_as_deep_as_canonical_json_goes_may_have_a_key(engine: ResumeEngine) -> None:
    deep = '{"a":' + "[" * 63 + "]" * 63 + "}"
    request = run_request([], [approval(args=deep)])
    first, _ = await engine.suspend(request, owner="ci", idempotency_key="k")
    assert (await engine.suspend(request, owner="ci", idempotency_key="k"))[0].id == first.id


# what nobody could decide


async def test_what_nobody_could_ever_decide_is_refused_and_not_stored(engine: ResumeEngine) -> None:
    me = {"team": "T1", "user": "U1"}
    engine.admins = ()
    for policy, more in [
        ({}, {}),
        ({"approvers": []}, {}),
        ({"approvers": ["U1", "T1:U1"], "quorum": 2}, {}),
        ({"approvers": ["U1", "T1:U1"]}, {"requester": me}),
        ({"approvers": ["channel"]}, {"place": {"user": "U1"}}),
    ]:
        with pytest.raises(NobodyMayDecide, match="'call-2'"):
            await engine.suspend(run_request([], [approval()], policy=policy, **more), owner="ci")
    with pytest.raises(NobodyMayDecide, match="'question-1'"):
        await engine.suspend(run_request(policy={"responders": []}), owner="ci")
    # the place comes first: without a policy it would be missing, and nobody beside
    for calls, approvals, policy in [
        (None, None, {"responders": ["anyone"]}),
        (None, None, {}),
        ([], [approval()], {}),
    ]:
        with pytest.raises(NoPlace):
            await engine.suspend(run_request(calls, approvals, place=None, policy=policy), owner="ci")
    assert [gate async for gate in engine.gates(only_open=False)] == []


async def test_the_requester_s_namesake_of_another_workspace_may_approve(engine: ResumeEngine) -> None:
    request = run_request(
        [], [approval()], policy={"approvers": ["U1"]}, requester={"team": "T2", "user": "U1"}
    )
    run, _ = await engine.suspend(request, owner="ci")
    run = await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    assert run.gates[0].status == "approved"


# waiting and lists


async def test_a_wait_ends_with_the_commit_of_another_engine(
    new_engine: Callable[[], ResumeEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """looprig C49."""
    monkeypatch.setattr("core.engine.POLL_S", 3600)
    monkeypatch.setattr("core.resumes.POLL_S", 3600)
    here, there = new_engine(), new_engine()
    run, _ = await here.suspend(run_request(), owner="ci")
    await here.bell.listening.wait()
    waiting = asyncio.create_task(here.wait(run.id, 60))
    claiming = asyncio.create_task(here.resumes.claim("api", limit=1, wait_s=60, lease_s=30))
    await there.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    async with asyncio.timeout(10):
        assert (await waiting).status in ("settled", "resuming")
        assert [resume.run.id for resume in await claiming] == [run.id]


async def test_a_wait_ends_with_its_time(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(), owner="ci")
    assert (await engine.wait(run.id, 0)).status == "waiting"
    assert (await engine.wait(run.id, 0.01)).status == "waiting"
    with pytest.raises(NotFound):
        await engine.wait("run_00_01JZ0000000000000000000000", 60)


async def test_gates_are_listed_newest_first_over_all_partitions_and_pages(engine: ResumeEngine) -> None:
    made = []
    with freeze_time(real_asyncio=True) as clock:
        for number in range(6):
            calls = [question_call(f"q{n}") for n in range(60)]
            run, _ = await engine.suspend(run_request(calls), owner="ci")
            made.append(run)
            clock.tick(number % 2)
    listed = [(place, run.id, gate.id) async for place, run, gate in engine.gates(only_open=True)]
    assert sorted(gate for _, _, gate in listed) == sorted(gate.id for run in made for gate in run.gates)
    order = [(ms, run_of(gate)) for (ms, gate), _, _ in listed]
    assert order == sorted(order, reverse=True)
    for cut in (0, 59, 250):
        rest = [gate.id async for _, _, gate in engine.gates(only_open=True, before=listed[cut][0])]
        assert rest == [gate for _, _, gate in listed[cut + 1 :]]
    await engine.cancel(made[0].id, None, by=CI, via="api")
    assert len([gate async for gate in engine.gates(only_open=True)]) == 300
    assert len([gate async for gate in engine.gates(only_open=False)]) == 360


async def test_a_list_leaves_out_nothing_while_others_settle_what_was_listed(engine: ResumeEngine) -> None:
    with freeze_time(real_asyncio=True) as clock:
        runs = []
        for _ in range(12):
            runs.append((await engine.suspend(run_request(), owner="ci"))[0])
            clock.tick(1)
        listed = []
        async for _, run_id in engine.store.run_ids(only_open=True, page=2):
            listed.append(run_id)
            await engine.cancel(run_id, None, by=CI, via="api")
        assert listed == [run.id for run in reversed(runs)]


async def test_the_audit_is_one_chain_a_partition_and_is_read_on_from_any_place(engine: ResumeEngine) -> None:
    for _ in range(6):
        run, _ = await engine.suspend(run_request(), owner="ci")
        await engine.cancel(run.id, None, by=CI, via="api")
    told = [event async for event in engine.store.audit.events(page=3)]
    assert len(told) == 24
    assert [event async for event in engine.store.audit.events(told[9].position)] == told[10:]
    for partition in range(4):
        chain = [line for position, line in told if position.partition == partition]
        assert all(json.loads(line)["prev"] for line in chain[1:])
        assert all(json.loads(line)["prev"] == "" for line in chain[:1])


async def test_cards_are_remembered_and_the_audit_names_nobody_for_them(engine: ResumeEngine) -> None:
    run, _ = await engine.suspend(run_request(), owner="ci")
    card = Card(channel="C1", ts="1700000000.000100", gates=(0,))
    await engine.store.set_cards(run, [card], event="card.posted")
    assert (await engine.run(run.id)).cards == (card,)
    last = (await events(engine, run.id))[-1]
    assert (last["event"], last["by"], last["from"]) == ("card.posted", None, "slack")


async def test_a_store_of_other_partitions_is_refused(engine: ResumeEngine, redis: Redis) -> None:
    await engine.store.check_partitions()
    await engine.store.check_partitions()
    with pytest.raises(StoreMismatch, match="set ASKGATE_PARTITIONS=4"):
        await Store(redis, partitions=8, clock=engine.store.clock).check_partitions()


# lost replies: the server has done it, the caller did not hear of it, and the client asks again


@pytest.fixture
async def lossy(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[tuple[ResumeEngine, Lossy]]:
    path = unquote(redis_url.removeprefix("unix://").partition("?")[0])
    async with contextlib.AsyncExitStack() as stack:
        losing = await stack.enter_async_context(Lossy(path, tmp_path).serving())
        # every script is known to the server, so that the call by digest is the one that does it
        for script in vars(lua).values():
            if isinstance(script, lua.Script):
                await redis.script_load(script.source)
        yield await stack.enter_async_context(engine_on(losing.url)), losing


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def test_a_lost_reply_opens_no_second_run(lossy: tuple[ResumeEngine, Lossy]) -> None:
    """looprig C6."""
    engine, losing = lossy
    for key in (None, "k"):
        losing.lose(lua.SUSPEND.sha)
        run, made = await engine.suspend(run_request(), owner="ci", idempotency_key=key)
        assert made
        assert [e["event"] for e in await events(engine, run.id)] == ["run.opened", "gate.opened"]
    assert losing.lost == 2
    assert len([gate async for gate in engine.gates(only_open=False)]) == 2


async def test_a_lost_reply_takes_no_second_vote_and_loses_no_decision(
    lossy: tuple[ResumeEngine, Lossy],
) -> None:
    """looprig C54."""
    engine, losing = lossy
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    run = await opened(engine, [], [approval()], policy=policy)
    for person, status in ((ANA, "pending"), (BEN, "approved")):
        losing.lose(lua.DECIDE.sha)
        run = await engine.decide(run.gates[0].id, Action.APPROVE, by=person, via="slack")
        assert run.gates[0].status == status
    assert losing.lost == 2
    assert [vote.by for vote in run.gates[0].votes] == [ANA, BEN]
    told = [event["event"] for event in await events(engine, run.id)]
    assert told[2:] == ["gate.voted", "gate.settled", "run.settled"]


async def test_a_cancel_whose_reply_was_lost_did_cancel(lossy: tuple[ResumeEngine, Lossy]) -> None:
    engine, losing = lossy
    one, two = await opened(engine), await opened(engine, [question_call("a"), question_call("b")])
    losing.lose(lua.WITHDRAW.sha)
    assert (await engine.cancel(one.id, None, by=CI, via="api")).gates[0].status == "cancelled"
    losing.lose(lua.WITHDRAW.sha)
    assert await engine.undeliverable(two.id, "gone") == 2
    assert losing.lost == 2
    assert [e["event"] for e in await events(engine, one.id)].count("gate.settled") == 1


async def test_an_extension_whose_reply_was_lost_counts_once(lossy: tuple[ResumeEngine, Lossy]) -> None:
    engine, losing = lossy
    run = await opened(engine)
    gate = run.gates[0]
    losing.lose(lua.AMEND.sha)
    later = await engine.amendments.extend(gate.id, 60, by=CI, via="api")
    assert later.gates[0].deadline == gate.deadline + 60_000
    assert losing.lost == 1
    assert [e["event"] for e in await events(engine, run.id)].count("gate.extended") == 1


async def test_what_was_claimed_by_a_lost_reply_is_not_stranded(lossy: tuple[ResumeEngine, Lossy]) -> None:
    engine, losing = lossy
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    losing.lose(lua.CLAIM.sha)
    # only the first claim's reply is lost: that of the run's own partition is to be it
    partition = int(run.id[4:6])
    queue = engine.store.queues.of(partition, "api")
    [due] = await engine.store.queues.claim(queue, partition, lease_ms=3_600_000, limit=10, token="mine")
    assert (due.member, due.tries, losing.lost) == (run.id, 1, 1)
    assert (
        await engine.store.queues.claim(queue, partition, lease_ms=3_600_000, limit=10, token="other") == []
    )


@pytest.mark.parametrize("word", ["ack", "nack"])
async def test_a_lost_reply_to_a_host_s_word_is_no_lost_lease(
    lossy: tuple[ResumeEngine, Lossy], word: str
) -> None:
    """looprig C54."""
    engine, losing = lossy
    run = await opened(engine)
    await engine.cancel(run.id, None, by=CI, via="api")
    losing.lose(lua.START_RESUME.sha)
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    losing.lose(lua.END_RESUME.sha)
    ended = await getattr(engine.resumes, word)(run.id, resume.lease, by=CI)
    assert ended.status == {"ack": "resumed", "nack": "settled"}[word]
    assert losing.lost == 2
    other = {"ack": engine.resumes.nack, "nack": engine.resumes.ack}[word]
    with pytest.raises(LeaseLost):
        await other(run.id, resume.lease, by=CI)


async def test_an_event_whose_reply_was_lost_is_heard_once_and_not_never(
    lossy: tuple[ResumeEngine, Lossy],
) -> None:
    engine, losing = lossy
    losing.lose("ag:event:")
    events = engine.store.events
    assert await events.begin("Ev1", "token-1") == "first"
    assert losing.lost == 1
    assert await events.begin("Ev1", "token-2") == "doing"
    assert await events.begin("Ev2", "token-3") == "first"


async def test_an_event_that_was_done_is_not_done_again_and_one_that_failed_is(engine: ResumeEngine) -> None:
    events = engine.store.events
    assert await events.begin("Ev1", "token-1") == "first"
    await events.end("Ev1", done=False)
    assert await events.begin("Ev1", "token-2") == "first"
    await events.end("Ev1", done=True)
    assert await events.begin("Ev1", "token-3") == "done"


async def test_a_server_that_lost_its_scripts_is_sent_them_again(engine: ResumeEngine, redis: Redis) -> None:
    run = await opened(engine)
    await redis.script_flush()
    run = await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert run.status == "settled"


# keys and clocks


def test_all_keys_that_one_script_touches_are_in_one_slot_of_a_cluster() -> None:
    run = "run_07_01JZ0000000000000000000000"
    keys = Keys(7)
    names = [
        keys.run(run),
        keys.state(run),
        keys.trail(run),
        keys.idempotency("ci", "k{x}"),
        keys.queue("api"),
        keys.heard("01JZ"),
        keys.settled,
    ]
    names += [keys.agenda, keys.audit, keys.audit_head, keys.runs, keys.open, keys.index("host:api")]
    names += [leases(keys.agenda), leases(keys.queue("a{1}"))]
    assert len({key_slot(name.encode()) for name in names}) == 1
    assert len({key_slot(Keys(partition).agenda.encode()) for partition in range(16)}) == 16


async def test_replicas_with_wrong_wall_clocks_agree_on_the_store_s_time(engine: ResumeEngine) -> None:
    here, there = StoreClock(engine.store.server_ms), StoreClock(engine.store.server_ms)
    with pytest.raises(RuntimeError, match="anchor"):
        here.now_ms()
    await here.anchor()
    with freeze_time("2001-01-01", real_asyncio=True):
        await there.anchor()
        assert abs(there.now_ms() - await engine.store.server_ms()) < 1000
    assert abs(here.now_ms() - await engine.store.server_ms()) < 1000


async def test_what_was_read_a_moment_ago_is_read_again_if_the_gate_is_another_by_now(
    engine: ResumeEngine,
) -> None:
    known = await opened(engine, policy={"responders": ["U1", "U2"]})
    await engine.amendments.reassign(known.gates[0].id, ["U2"], by=CI, via="api")
    with pytest.raises(NotAllowed):
        await engine.decide(
            known.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED, known=known
        )
    run = await engine.decide(
        known.gates[0].id, Action.ANSWER, by=BEN, via="slack", values=FOCUSED, known=known
    )
    assert run.gates[0].decision is not None
    assert run.gates[0].decision.by == (BEN,)
