"""looprig's list for a store of gates, C27 to C56 (forms, waiting, restarts, many at once), if no other test proves it.

The numbers are those of the table in README.md beside this file, which names the test for every line.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.errors import AlreadySettled, ArgumentsChanged, InvalidDecision, NotWaiting, StoreUnavailable
from core.gates import Action
from core.runs import Run
from core.store import lua
from tests.conftest import ANA, BEN, CHO
from tests.integration.conformance import (
    CI,
    FORM,
    LINK,
    NewEngine,
    answered,
    handed_out,
    listed,
    names,
    opened,
    refusing,
)
from tests.runs import Json, approval, question_call
from tests.stores import Lossy, engine_on, events


@pytest.fixture
async def lossy(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[tuple[ResumeEngine, Lossy]]:
    await redis.script_load(lua.DECIDE.source)
    path = redis_url.removeprefix("unix://").partition("?")[0]
    async with Lossy(path, tmp_path).serving() as losing, engine_on(losing.url) as engine:
        yield engine, losing


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
    """C35, C44, C49, C50: with the outcome and no answer; nothing of a wait that was given up stays behind."""
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
