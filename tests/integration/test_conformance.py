"""looprig's conformance list for a store of gates, where it applies and no other test proves it.

The numbers are those of the table in README.md beside this file, which names the test for every line. What looprig
calls an append is the one script that checks, settles and writes the audit; a refused append is a server that is told
to refuse writes, an ambiguous one is a reply that is lost.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from freezegun import freeze_time
from pydantic import ValidationError
from redis.asyncio import Redis

from core.agenda import Worker
from core.answers import Answer
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    AskgateError,
    InvalidDecision,
    NotFound,
    NotWaiting,
    StoreUnavailable,
)
from core.escalations import MAX_TIMEOUT_S
from core.gates import Action
from core.policy import Key, Person
from core.runs import Run
from core.store import lua
from core.store.connect import listening_client
from core.store.keys import BELL
from tests.conftest import ANA, BEN, CHO
from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import FOCUSED, Json, approval, body, question_call, run_request
from tests.stores import Lossy, engine_on, events

CI = Key(key="ci")
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NewEngine = Callable[[], ResumeEngine]
Call = Callable[[], Coroutine[Any, Any, Any]]

CONTROLS = ["accept", "decline", "cancel"]
FORM = {
    "kind": "form",
    "tool_call_id": "form-1",
    "tool_name": "book",
    "form": {
        "fields": [
            {"name": "city", "kind": "text", "required": True},
            {"name": "size", "kind": "select", "options": [{"value": "s"}, {"value": "m"}]},
            {"name": "sure", "kind": "confirm"},
        ],
        "controls": CONTROLS,
    },
}
URL = "https://pay.example.com/start?state=not-for-the-record"
LINK = {"kind": "link", "tool_call_id": "l", "tool_name": "pay", "link": {"url": URL, "controls": CONTROLS}}


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def answered(engine: ResumeEngine, run: Run, label: str = "Focused", by: Person = ANA) -> Run:
    values = {"answers": {"Which scope should be used?": label}}
    return await engine.decide(run.gates[0].id, Action.ANSWER, by=by, via="slack", values=values)


async def names(engine: ResumeEngine, run: Run) -> list[str]:
    return [event["event"] for event in await events(engine, run.id)]


async def listed(engine: ResumeEngine) -> set[str]:
    return {gate.id async for _, _, gate in engine.gates(only_open=True)}


async def handed_out(engine: ResumeEngine) -> list[Json]:
    """What the host gets now."""
    resumes = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    return [json.loads(resume.body) for resume in resumes]


@contextlib.asynccontextmanager
async def refusing(redis: Redis, how: str) -> AsyncIterator[None]:
    """The server answers, and takes no write."""
    setting, off, on = {
        "too few replicas": ("min-replicas-to-write", "0", "1"),
        "out of memory": ("maxmemory", "0", "1"),
    }[how]
    await redis.config_set(setting, on)
    try:
        yield
    finally:
        await redis.config_set(setting, off)


REFUSING = pytest.mark.parametrize("how", ["too few replicas", "out of memory"])


@pytest.fixture
async def lossy(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[tuple[ResumeEngine, Lossy]]:
    await redis.script_load(lua.DECIDE.source)
    path = redis_url.removeprefix("unix://").partition("?")[0]
    async with Lossy(path, tmp_path).serving() as losing, engine_on(losing.url) as engine:
        yield engine, losing


# opening


async def test_c01_who_listens_hears_of_a_change_after_it_is_stored_and_never_of_one_that_failed(
    engine: ResumeEngine, redis: Redis, redis_url: str
) -> None:
    """C1: the ring is part of the script that stores, so whoever hears it finds the change."""
    run = await opened(engine)
    async with listening_client(redis_url) as client, client.pubsub() as ear:
        await ear.subscribe(BELL)
        await ear.get_message(timeout=5)
        async with refusing(redis, "too few replicas"):
            with pytest.raises(StoreUnavailable):
                await answered(engine, run)
        assert await ear.get_message(ignore_subscribe_messages=True) is None
        await answered(engine, run)
        while (heard := await ear.get_message(timeout=5)) is not None:
            if heard["data"].startswith("run "):
                break
        assert heard is not None
        assert heard["data"].split()[2] == run.id
        assert (await engine.run(run.id)).status == "settled"


@REFUSING
async def test_c03_c05_a_run_whose_opening_failed_is_nowhere(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    """C3, C5: no entry, no listing, no event, nothing due; the same key opens it afterwards."""
    async with refusing(redis, how):
        with pytest.raises(StoreUnavailable):
            await engine.suspend(run_request(), owner="ci", idempotency_key="k")
    assert await redis.keys() == []
    run, made = await engine.suspend(run_request(), owner="ci", idempotency_key="k")
    assert made
    assert await names(engine, run) == ["run.opened", "gate.opened"]


async def test_c04_c16_what_is_listed_is_open_and_written_down(engine: ResumeEngine) -> None:
    """C4, C16: opening and listing are one step, and so are settling and leaving the list."""
    run = await opened(engine, [question_call("q")], [approval("a")])
    assert await listed(engine) == {gate.id for gate in run.gates}
    opened_ids = [event["gate"] for event in await events(engine, run.id) if event["event"] == "gate.opened"]
    assert opened_ids == [gate.id for gate in run.gates]
    await answered(engine, run)
    assert await listed(engine) == {run.gates[1].id}


async def test_c15_a_deadline_past_the_longest_and_unknown_policies_are_refused_at_the_opening() -> None:
    """C15: nothing but a person answers, and nothing waits for more than 30 days."""
    run_request(timeout_s=MAX_TIMEOUT_S)
    for wrong in (
        {"timeout_s": MAX_TIMEOUT_S + 1},
        {"policy": {"on_timeout": "model_decide"}},
        {"policy": {"on_timeout": "respond"}},
        {"response_policy": {"timeout": 5}},
    ):
        with pytest.raises(ValidationError):
            run_request(**wrong)


# ending


async def test_c08_a_cancelled_gate_is_settled_once_with_its_reason_and_nothing_is_handed_out(
    engine: ResumeEngine,
) -> None:
    """C8: its run waits on for what is still pending."""
    run = await opened(engine, [question_call("q"), question_call("r")])
    await engine.cancel(run.id, "not needed", by=CI, via="api", index=0)
    [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
    assert (settled["outcome"], settled["reason"], settled["by"]) == ("cancelled", "not needed", None)
    assert await handed_out(engine) == []
    assert await listed(engine) == {run.gates[1].id}


@REFUSING
async def test_c09_a_cancel_that_cannot_be_written_leaves_the_gate_open(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    run = await opened(engine)
    async with refusing(redis, how):
        with pytest.raises(StoreUnavailable):
            await engine.cancel(run.id, None, by=CI, via="api")
        with pytest.raises(StoreUnavailable):
            await engine.undeliverable(run.id, "gone")
    assert await engine.run(run.id) == run
    assert await listed(engine) == {run.gates[0].id}
    assert (await answered(engine, run)).status == "settled"


async def test_c13_c48_a_deadline_that_comes_after_an_answer_changes_nothing(engine: ResumeEngine) -> None:
    """C13, C48: one settlement, by the person; what is late on its own account is no error."""
    with freeze_time("2026-03-01T12:00:00Z", real_asyncio=True) as clock:
        run = await opened(engine, timeout_s=60)
        await answered(engine, run)
        clock.tick(timedelta(days=40))
        await Worker(engine.store, engine.bell, {}).run_once()
        await engine.expire(run.id)
        assert await engine.undeliverable(run.id, "gone") == 0
        [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
        assert (settled["outcome"], settled["by"]) == ("answered", ANA.model_dump())


# deciding


@pytest.mark.parametrize(("action", "word"), [(Action.APPROVE, "approve"), (Action.DENY, "deny")])
async def test_c17_c21_an_approval_is_settled_once_written_once_and_handed_out_once(
    engine: ResumeEngine, action: Action, word: str
) -> None:
    """C17, C21: with the exact action; the audit has the digest of the arguments and none of the arguments."""
    run = await opened(engine, [], [approval(args={"path": "/tmp/secret-name"})])
    await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
    told = await events(engine, run.id)
    [settled] = [event for event in told if event["event"] == "gate.settled"]
    assert (settled["outcome"], settled["args_digest"]) == (action.outcome, run.gates[0].digest)
    assert "secret-name" not in json.dumps(told)
    [results] = await handed_out(engine)
    assert results["approvals"]["call-2"]["action"] == word
    assert await handed_out(engine) == []


async def test_c18_an_approval_for_always_says_so_to_the_host_and_in_the_audit(engine: ResumeEngine) -> None:
    """C18: one for once does not."""
    for action, always in ((Action.APPROVE_ALWAYS, True), (Action.APPROVE, False)):
        run = await opened(engine, [], [approval(always=["delete_file in /tmp"])])
        await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
        [settled] = [event for event in await events(engine, run.id) if event["event"] == "gate.settled"]
        assert (settled["action"], settled["outcome"]) == (action, "approved")
        [results] = await handed_out(engine)
        assert results["approvals"]["call-2"].get("always", False) is always


@pytest.mark.parametrize("action", ["Approve", "Deny", "", "APPROVE", "approve always", "approve_always"])
async def test_c19_no_other_word_approves(api: Api, engine: ResumeEngine, action: str) -> None:
    """C19: the three words are exact, and "for always" counts only where it is offered."""
    run = await api.open(body([], [approval()], policy=KEY_POLICY))
    gate = run["gates"][0]["id"]
    response = await api.send("POST", f"/gates/{gate}/decide", json={"action": action})
    assert response.status == 422
    assert (await engine.run(run["id"])).gates[0].pending
    assert await handed_out(engine) == []
    assert (await api.decide(gate, "approve"))["status"] == "approved"


@pytest.mark.parametrize(
    "smuggled", [{"source": {"kind": "classifier"}}, {"via": "slack"}, {"scope": "session"}]
)
async def test_c20_c26_nobody_says_where_a_decision_came_from_or_how_far_it_goes(
    api: Api, engine: ResumeEngine, smuggled: Json
) -> None:
    """C20, C26: where it came from is known from the door; a member that nobody knows is refused."""
    run = await api.open(body([], [approval()], policy=KEY_POLICY))
    gate = run["gates"][0]["id"]
    response = await api.send("POST", f"/gates/{gate}/decide", json={"action": "approve", **smuggled})
    assert response.status == 422
    assert (await engine.run(run["id"])).gates[0].pending
    await api.decide(gate, "approve")
    [settled] = [event for event in await events(engine, run["id"]) if event["event"] == "gate.settled"]
    assert (settled["from"], settled["by"]) == ("api", {"key": "ci"})


async def test_c22_a_second_answer_is_told_of_the_first_and_hands_out_nothing(engine: ResumeEngine) -> None:
    run = await opened(engine)
    await answered(engine, run, "Focused")
    with pytest.raises(AlreadySettled) as late:
        await answered(engine, run, "Broad", by=BEN)
    assert late.value.extra["gate"].decision.by == (ANA,)
    [results] = await handed_out(engine)
    assert results["calls"]["question-1"]["value"] == FOCUSED
    assert await handed_out(engine) == []


@REFUSING
async def test_c23_a_decision_that_cannot_be_written_is_none(
    engine: ResumeEngine, redis: Redis, how: str
) -> None:
    """C23: nothing is handed out, the gate is listed as before, and whoever comes next may decide it."""
    policy = {"approvers": ["U1", "U2", "U3"], "quorum": 2, "edits": True}
    run = await opened(engine, [question_call()], [approval()], policy=policy)
    edited = {"override_args": {"path": "/tmp/new"}}
    calls: list[Call] = [
        lambda: answered(engine, run),
        lambda: engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack"),
        lambda: engine.decide(run.gates[1].id, Action.APPROVE, by=ANA, via="slack", values=edited),
        lambda: engine.decide(run.gates[1].id, Action.DENY, by=ANA, via="slack"),
        lambda: engine.draft(run.gates[0].id, ANA, [1]),
        lambda: engine.amendments.extend(run.gates[0].id, 60, by=CI, via="api"),
        lambda: engine.amendments.reassign(run.gates[0].id, ["U2"], by=CI, via="api"),
    ]
    async with refusing(redis, how):
        for call in calls:
            with pytest.raises(StoreUnavailable):
                await call()
    assert await engine.run(run.id) == run
    assert await names(engine, run) == ["run.opened", "gate.opened", "gate.opened"]
    assert await listed(engine) == {gate.id for gate in run.gates}
    await answered(engine, run, by=BEN)
    await engine.decide(run.gates[1].id, Action.DENY, by=BEN, via="slack")
    assert len(await handed_out(engine)) == 1


async def test_c24_c36_a_decision_counts_although_nobody_waits_for_it_or_can_take_it(
    engine: ResumeEngine,
) -> None:
    """C24, C36: the host is told when it comes; that it is away is no error of who decided."""
    run = await opened(engine)
    async with asyncio.timeout(5):
        assert (await answered(engine, run)).status == "settled"
    assert await listed(engine) == set()
    [resume] = await engine.resumes.claim("api", limit=1, wait_s=0, lease_s=30)
    await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=0, error="down")
    assert (await engine.run(run.id)).gates[0].status == "answered"
    assert len(await handed_out(engine)) == 1


async def test_c25_c45_what_is_wrong_changes_nothing_and_does_not_use_up_what_is_right(
    engine: ResumeEngine,
) -> None:
    """C25, C45: ids of nothing, actions that are not offered, another kind's answer, and then the right one."""
    run = await opened(engine, [question_call()], [approval()])
    other = await opened(engine)
    question, tool = (gate.id for gate in run.gates)
    wrong: list[tuple[Call, type[AskgateError]]] = [
        (lambda: engine.decide(tool[:-1] + "7", Action.APPROVE, by=ANA, via="slack"), NotFound),
        (lambda: engine.decide(f"gate_00_{'0' * 26}_0", Action.APPROVE, by=ANA, via="slack"), NotFound),
        (lambda: engine.decide(question, Action.APPROVE, by=ANA, via="slack"), InvalidDecision),
        (lambda: engine.decide(tool, Action.ANSWER, by=ANA, via="slack", values=FOCUSED), InvalidDecision),
        (lambda: engine.decide(tool, Action.APPROVE_ALWAYS, by=ANA, via="slack"), InvalidDecision),
        (lambda: engine.decide(question, Action.ACCEPT, by=ANA, via="slack", values={}), InvalidDecision),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            await call()
    assert (await engine.run(run.id)).gates == run.gates
    assert (await engine.run(other.id)).gates == other.gates
    answers = [Answer(0, Action.ANSWER, FOCUSED), Answer(1, Action.APPROVE)]
    assert (await engine.decide_all(run.id, answers, by=ANA, via="slack")).status == "settled"


# forms and links


async def test_c27_the_values_of_a_form_reach_the_host_once_and_the_audit_not_at_all(
    engine: ResumeEngine,
) -> None:
    """C27: as they were given; the audit has who and when (looprig has the answers there as well)."""
    run = await opened(engine, [FORM])
    values = {"city": "Bonn am Rhein", "sure": False}
    await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values=values)
    [results] = await handed_out(engine)
    assert results["calls"]["form-1"]["value"] == values
    assert await handed_out(engine) == []
    assert await listed(engine) == set()
    assert "am Rhein" not in json.dumps(await events(engine, run.id))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "missing_required"),
        ({"city": ""}, "missing_required"),
        ({"city": "Bonn", "ghost": "x"}, "unknown_field"),
        ({"city": "x" * 4097}, "too_long"),
        ({"city": "ü" * 2049}, "too_long"),
        ({"city": "Bonn", "size": "xl"}, "option_not_allowed"),
        ({"city": "Bonn", "sure": "true"}, "type_invalid"),
        ({"city": 5}, "type_invalid"),
    ],
)
async def test_c29_a_bad_answer_to_a_form_is_refused_at_its_field_and_the_form_stays_open(
    engine: ResumeEngine, values: Json, kind: str
) -> None:
    """C29: lengths are bytes."""
    run = await opened(engine, [FORM])
    with pytest.raises(InvalidDecision) as wrong:
        await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values=values)
    assert [error["type"] for error in wrong.value.errors] == [kind]
    assert (await engine.run(run.id)).gates == run.gates
    most = {"city": "ü" * 2048}
    await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack", values=most)


@pytest.mark.parametrize("action", [Action.DECLINE, Action.CANCEL])
async def test_c30_decline_and_cancel_carry_no_values(engine: ResumeEngine, action: Action) -> None:
    run = await opened(engine, [FORM])
    with pytest.raises(InvalidDecision, match="takes no values"):
        await engine.decide(run.gates[0].id, action, by=ANA, via="slack", values={"city": "Bonn"})
    await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
    [results] = await handed_out(engine)
    assert results["calls"]["form-1"]["action"] == action
    assert "value" not in results["calls"]["form-1"]


async def test_c31_the_address_of_a_link_is_in_no_record(engine: ResumeEngine) -> None:
    """C31: it is shown to who may open it, and written down nowhere."""
    run = await opened(engine, [LINK])
    await engine.decide(run.gates[0].id, Action.ACCEPT, by=ANA, via="slack")
    assert "not-for-the-record" not in json.dumps(await events(engine, run.id))
    assert "not-for-the-record" not in json.dumps(await handed_out(engine))


# waiting


async def test_c34_an_answer_before_the_wait_is_not_lost(engine: ResumeEngine) -> None:
    """C34: whoever waits reads first; one that was taken up is not handed out again."""
    run = await opened(engine)
    await answered(engine, run)
    async with asyncio.timeout(5):
        assert (await engine.wait(run.id, 60)).status == "settled"
        [resume] = await engine.resumes.claim("api", limit=1, wait_s=60, lease_s=30)
    await engine.resumes.ack(run.id, resume.lease, by=CI)
    assert await handed_out(engine) == []


async def test_c35_c50_a_cancel_wakes_who_waits_and_a_wait_given_up_leaves_the_gate_open(
    new_engine: NewEngine,
) -> None:
    """C35, C44, C50: with the outcome and no answer; nothing of a wait that was given up stays behind."""
    here, there = new_engine(), new_engine()
    await here.bell.listening.wait()
    run = await opened(there)
    for waiting in (here.wait(run.id, 60), here.resumes.claim("api", limit=1, wait_s=60, lease_s=30)):
        task: asyncio.Task[Any] = asyncio.create_task(waiting)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not here.bell._ears
    assert (await there.run(run.id)) == run
    ended = asyncio.create_task(here.wait(run.id, 60))
    await there.cancel(run.id, "over", by=CI, via="api")
    async with asyncio.timeout(5):
        results = (await ended).results()
    assert results is not None
    assert (results["calls"]["question-1"]["outcome"], results["calls"]["question-1"]["by"]) == (
        "cancelled",
        [],
    )
    with pytest.raises(NotWaiting):
        await here.cancel(run.id, "again", by=CI, via="api")


# restarts


async def test_c38_c40_c41_after_a_restart_what_was_open_is_open_and_what_was_settled_is_settled(
    tmp_path: Path,
) -> None:
    """C38, C40, C41: with its votes and drafts; nothing is opened or closed twice, and the chain goes on."""
    policy = {"approvers": ["U1", "U2"], "quorum": 2}
    async with EmbeddedServer(tmp_path) as server:
        async with engine_on(server.url) as engine:
            run = await opened(
                engine, [question_call("q"), question_call("r")], [approval("a")], policy=policy
            )
            await engine.draft(run.gates[1].id, ANA, {"0": [1]})
            await engine.decide(run.gates[2].id, Action.APPROVE, by=ANA, via="slack")
            before = await answered(engine, run)
            told = await events(engine, run.id)
        server.kill()
        await server.start()
        async with engine_on(server.url) as engine:
            assert await engine.run(run.id) == before
            assert await events(engine, run.id) == told
            assert await listed(engine) == {gate.id for gate in before.gates if gate.pending}
            with pytest.raises(AlreadySettled):
                await answered(engine, run)
            await engine.decide(run.gates[2].id, Action.APPROVE, by=BEN, via="slack")
            await engine.decide(run.gates[1].id, Action.DECLINE, by=CHO, via="slack")
            other = await opened(engine)
            assert await names(engine, other) == ["run.opened", "gate.opened"]
            assert len(await handed_out(engine)) == 1
            assert (await names(engine, run)).count("gate.settled") == 3


# many at once


async def test_c43_each_run_is_handed_out_under_a_key_of_its_own(engine: ResumeEngine) -> None:
    """C43: and each time under a lease of its own, with one event for each that was taken up."""
    runs = [await opened(engine) for _ in range(8)]
    for run in runs:
        await answered(engine, run)
    resumes = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert len({resume.key for resume in resumes}) == len(runs)
    for resume in resumes:
        await engine.resumes.ack(resume.run.id, resume.lease, by=CI)
        assert (await names(engine, resume.run)).count("run.resumed") == 1


async def test_c51_of_two_people_at_once_one_decides_and_the_other_is_told_so(new_engine: NewEngine) -> None:
    """C51, with people: over 40 rounds, what is stored, written down and handed out is the winner's."""
    engines = [new_engine(), new_engine()]
    winners = set()
    for number in range(40):
        run = await opened(engines[0])
        calls = [answered(engines[0], run, "Focused", ANA), answered(engines[1], run, "Broad", BEN)]
        calls = calls if number % 2 else calls[::-1]
        said = await asyncio.gather(*calls, return_exceptions=True)
        [lost] = [error for error in said if isinstance(error, BaseException)]
        assert isinstance(lost, AlreadySettled)
        [winner] = (await engines[0].run(run.id)).gates[0].decision.by  # type: ignore[union-attr]
        told = await events(engines[1], run.id)
        assert [event["by"] for event in told if event["event"] == "gate.settled"] == [winner.model_dump()]
        [resume] = await engines[number % 2].resumes.claim("api", limit=10, wait_s=0, lease_s=30)
        label = "Focused" if winner == ANA else "Broad"
        value = json.loads(resume.body)["calls"]["question-1"]["value"]
        assert value == {"answers": {"Which scope should be used?": label}}
        await engines[0].resumes.ack(run.id, resume.lease, by=CI)
        winners.add(winner)
    assert winners <= {ANA, BEN}


async def test_c52_whoever_comes_while_nothing_can_be_written_loses_nothing_for_the_next(
    new_engine: NewEngine, redis: Redis
) -> None:
    """C52: there is no claim that outlives a step, so a failed one leaves nothing to be freed."""
    one, two = new_engine(), new_engine()
    run = await opened(one)
    async with refusing(redis, "too few replicas"):
        both = await asyncio.gather(
            answered(one, run, "Focused", ANA), answered(two, run, "Broad", BEN), return_exceptions=True
        )
        assert [type(error) for error in both] == [StoreUnavailable, StoreUnavailable]
    assert await one.run(run.id) == run
    run = await answered(two, run, "Broad", CHO)
    decision = run.gates[0].decision
    assert decision is not None
    assert decision.by == (CHO,)


@pytest.mark.parametrize("landed", [True, False])
async def test_c53_when_nobody_knows_whether_it_was_written_the_record_decides(
    lossy: tuple[ResumeEngine, Lossy], engine: ResumeEngine, landed: bool
) -> None:
    """C53: the person is told that it did not work; if it is there all the same, nothing can contradict it."""
    here, losing = lossy
    run = await opened(engine, [], [approval()])
    gate = run.gates[0].id
    losing.lose(lua.DECIDE.sha, 2, requests=not landed)
    with pytest.raises(StoreUnavailable):
        await here.decide(gate, Action.APPROVE, by=ANA, via="slack")
    assert losing.lost == 2
    if landed:
        for action, person in ((Action.APPROVE, ANA), (Action.DENY, ANA), (Action.DENY, BEN)):
            with pytest.raises(AlreadySettled) as late:
                await here.decide(gate, action, by=person, via="slack")
            assert late.value.extra["gate"].decision.by == (ANA,)
    else:
        assert await engine.run(run.id) == run
        await here.decide(gate, Action.DENY, by=BEN, via="slack")
    [results] = await handed_out(engine)
    assert results["approvals"]["call-2"]["action"] == ("approve" if landed else "deny")
    assert (await names(engine, run)).count("gate.settled") == 1


async def test_c55_a_vote_on_what_is_changed_at_that_moment_does_not_count(new_engine: NewEngine) -> None:
    """C55: whichever comes first, the vote is void or refused; with the edit alone two are still wanted."""
    one, two = new_engine(), new_engine()
    policy = {"approvers": ["U1", "U2"], "quorum": 2, "edits": True}
    for number in range(10):
        run = await opened(one, [], [approval()], policy=policy)
        gate = run.gates[0]
        edit = {"override_args": {"path": "/tmp/other"}}
        calls = [
            one.decide(gate.id, Action.APPROVE, by=ANA, via="slack", digest=gate.digest),
            two.decide(gate.id, Action.APPROVE, by=BEN, via="slack", digest=gate.digest, values=edit),
        ]
        said = await asyncio.gather(*(calls if number % 2 else calls[::-1]), return_exceptions=True)
        assert all(isinstance(word, Run | ArgumentsChanged) for word in said)
        [found] = (await one.run(run.id)).gates
        assert found.pending
        assert [vote.by for vote in found.votes] == [BEN]
        assert found.arguments == edit["override_args"]


# the table


def rows() -> dict[int, str]:
    found = re.findall(r"^\| C(\d+) \|(.*)\|$", (HERE / "README.md").read_text(), flags=re.MULTILINE)
    return {int(number): rest for number, rest in found}


def test_the_table_has_every_line_of_the_list_with_a_test_or_a_reason() -> None:
    table = rows()
    assert list(table) == list(range(1, 57))
    for number, rest in table.items():
        promise, proof = (cell.strip() for cell in rest.split("|"))
        assert promise
        assert "::test_" in proof or proof.startswith("Does not apply: "), f"C{number}: {proof}"


def test_the_table_names_only_tests_that_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", (HERE / "README.md").read_text())
    assert named
    for path, name in named:
        assert name in functions_of(ROOT / "tests" / path), f"{path} has no {name}"
    own = {name for name in functions_of(Path(__file__)) if re.match(r"test_c\d", name)}
    assert own == {name for path, name in named if path == "integration/test_conformance.py"}


@functools.cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
