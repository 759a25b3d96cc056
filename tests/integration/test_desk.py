"""The desk before a host: what waits unseen stays open, and what came to nothing is decided again by people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from core import resumes
from core.agenda import TryAgain, Worker
from core.conversations import Conversation, Said, Stage, Unopened, Where
from core.engine import ResumeEngine
from core.gates import Action
from core.hosts import desk as desks_desk
from core.hosts.base import (
    AsksAgain,
    Course,
    HostAway,
    Look,
    Present,
    Reply,
    Seen,
    Sequel,
    Standing,
    Wait,
    Word,
)
from core.hosts.desk import Desk
from core.hosts.turns import Turns
from core.policy import Key
from core.requests import RunRequest
from core.resumes import Resume
from core.runs import Run, RunStatus
from tests.conftest import ANA, BEN, HOME, now_ms
from tests.integration.test_talks import Server, stored
from tests.runs import FOCUSED, approval, body, question_call
from tests.stores import events, until

PATIENCE_S = 10


HERE = Where(HOME, "C1", "1700000000.000100")
DIRECT = Where(HOME, "D1", "")


class Scripted:
    """A host that does as it is told."""

    name = "scripted"

    def __init__(self) -> None:
        self.talker = Server()
        self.approvers = ["U1"]
        self.fails: list[Exception] = []
        self.hangs = False
        self.seen: asyncio.Queue[Seen] = asyncio.Queue()
        self.heard: list[Resume] = []
        self.word = Word.APPLIED
        self.sequel: Sequel | HostAway = Course.OVER

    async def watch(self) -> AsyncIterator[Seen]:
        while True:
            yield await self.seen.get()
            self.seen.task_done()

    def describe(self, wait: Wait) -> RunRequest:
        if wait.facts.get("strange"):
            raise TypeError("nobody thought of this")
        calls, approvals = ((), [approval()]) if wait.facts.get("approval") else ([question_call()], ())
        asked = body(calls, approvals, external_id=wait.external_id, host=self.name)
        policy = {"approvers": self.approvers, "quorum": wait.facts.get("quorum", 1)}
        return RunRequest.model_validate({**asked, "place": {"channel": "C1"}, "policy": policy})

    async def resume(self, resume: Resume) -> Reply:
        self.heard.append(resume)
        if self.fails:
            raise self.fails.pop()
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()
        return Reply(self.word, "so it goes", follow=True)

    async def follow(self, external_id: str) -> Sequel:
        assert external_id.startswith("w")
        if isinstance(self.sequel, HostAway):
            raise self.sequel
        return self.sequel

    async def close(self) -> None:
        return


@pytest.fixture
def host() -> Scripted:
    return Scripted()


@pytest.fixture
async def desk(engine: ResumeEngine, host: Scripted) -> AsyncIterator[Desk]:
    desk = Desk(engine, host)
    desk.start()
    yield desk
    await desk.stop(1)


async def open_runs(engine: ResumeEngine) -> list[Run]:
    return [run async for _, run, _ in engine.gates(only_open=True)]


async def see(host: Scripted, *seen: Seen) -> None:
    for item in seen:
        await host.seen.put(item)
    # one more, so that the one before was seen to its end
    await host.seen.put(Present(frozenset(), 0, _still_there))
    async with asyncio.timeout(PATIENCE_S):
        await host.seen.join()


async def _still_there(_: str) -> str | None:
    return None


async def resumed(engine: ResumeEngine, host: Scripted, status: RunStatus = RunStatus.RESUMED) -> Run:
    """A run that a person answered and the host heard of."""
    await see(host, Wait("w1", {}))
    [run] = await open_runs(engine)
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    return await until(engine, run, lambda run: run.status is status)


async def test_what_is_missing_is_closed_unless_the_host_says_that_it_waits_all_the_same(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    await see(host, Wait("w1", {}), Wait("w2", {}))
    one, two = sorted(await open_runs(engine), key=lambda run: run.doc.external_id or "")

    async def why(external_id: str) -> str | None:
        return "answered elsewhere" if external_id == "w1" else None

    later = engine.store.clock.now_ms() + 1000
    for _ in range(2):
        await see(host, Present(frozenset(), later, why))
        assert [run.id for run in await open_runs(engine)] == [two.id]
    assert (await engine.run(one.id)).gates[0].status == "superseded"


async def test_a_look_at_a_part_of_a_host_closes_nothing_of_another_part(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    await see(host, Wait("a/1", {}), Wait("b/1", {}))

    async def why(_: str) -> str:
        return "answered elsewhere"

    later = engine.store.clock.now_ms() + 1000
    await see(host, Present(frozenset(), later, why, prefix="a/"))
    assert [run.doc.external_id for run in await open_runs(engine)] == ["b/1"]


async def test_what_was_opened_after_the_host_was_asked_is_not_missing(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    async def why(_: str) -> str:
        return "answered elsewhere"

    before = engine.store.clock.now_ms() - 1000
    await see(host, Wait("w1", {}), Present(frozenset(), before, why))
    assert [run.doc.external_id for run in await open_runs(engine)] == ["w1"]


async def test_what_was_taken_for_gone_and_yet_waits_is_opened_anew(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    await see(host, Wait("w1", {}))
    [first] = await open_runs(engine)
    await engine.supersede(first.id, "it was not among what waits")
    for one in (Desk(engine, host), Desk(engine, host)):
        await one.open(Wait("w1", {}))
    [second] = await open_runs(engine)
    assert (second.id == first.id, second.doc.external_id) == (False, "w1")


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_resume_in_which_the_adapter_fails_or_hangs_is_tried_again_with_the_same_key(
    engine: ResumeEngine, host: Scripted, desk: Desk, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(desks_desk, "RESUME_S", 0.1)
    monkeypatch.setattr(desks_desk, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(resumes, "POLL_S", 0.05)
    host.fails, host.hangs = ([TypeError()] if how == "fails" else []), how == "hangs"
    run = await resumed(engine, host)
    said = "the adapter failed (TypeError)" if how == "fails" else "no answer within 0.1 s"
    returned = [event for event in await events(engine, run.id) if event["event"] == "run.returned"]
    assert [event["reason"] for event in returned] == [said]
    first, second = host.heard
    assert (first.key, first.body) == (second.key, second.body)


async def test_what_a_host_did_about_a_run_is_in_the_audit(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    run = await resumed(engine, host)
    [told] = [event for event in await events(engine, run.id) if event["event"] == "run.resumed"]
    assert told["reason"] == "so it goes"
    assert run.error is None


async def test_what_an_adapter_cannot_describe_holds_up_nothing_else_and_is_said_once(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    with capture_logs() as said:
        await see(host, Wait("w1", {"strange": True}), Wait("w2", {}), Wait("w1", {"strange": True}))
    assert [run.doc.external_id for run in await open_runs(engine)] == ["w2"]
    [told] = [line for line in said if line["event"] == "host.not_opened"]
    assert told["error"].startswith("the adapter failed (TypeError: desk.py:")
    assert desk.problem is None


async def test_what_was_taken_up_is_looked_after_by_the_agenda(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    run = await resumed(engine, host)
    looked: asyncio.Queue[str] = asyncio.Queue()

    async def follow(run_id: str, _tries: int) -> None:
        await looked.put(run_id)

    worker = Worker(engine.store, engine.bell, {"follow": follow})
    worker.start()
    async with asyncio.timeout(PATIENCE_S):
        assert await looked.get() == run.id
    await worker.stop(1)


async def test_a_sequel_is_waited_for_while_it_goes_on_and_opened_if_it_waits(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    run = await resumed(engine, host)
    for host.sequel in (Course.GOES_ON, HostAway("it cannot be reached")):
        with pytest.raises(TryAgain):
            await desk.follow(run, 1)
    host.sequel = Wait("w2", {})
    await desk.follow(run, 2)
    [second] = await open_runs(engine)
    assert second.doc.external_id == "w2"


@pytest.mark.parametrize("word", [Word.APPLIED, Word.LOST])
async def test_what_came_to_nothing_is_decided_again_once_with_another_key(
    engine: ResumeEngine, host: Scripted, desk: Desk, word: Word
) -> None:
    host.word = word
    run = await resumed(engine, host, RunStatus.LOST if word is Word.LOST else RunStatus.RESUMED)
    host.sequel = AsksAgain("the model was away")
    for _ in range(2):  # a worker may die in between, and another one does it again
        await desk.follow(run, 1)
    again = await engine.run(run.id)
    assert (again.status, again.attempt, again.error) == (RunStatus.WAITING, 2, "the model was away")
    told = [event["event"] for event in await events(engine, run.id)]
    assert told[-3:] == ["run.failed", "run.reopened", "gate.opened"]
    host.word = Word.APPLIED
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
    first, second = host.heard
    assert (first.body == second.body, first.key == second.key) == (False, False)


async def test_a_worker_that_died_before_it_asked_again_is_finished_by_the_next(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    run = await resumed(engine, host)
    assert await engine.dead_letters.relapse(run.id, "the model was away", by=Key(key="ci"), via="host")
    assert not await engine.dead_letters.relapse(run.id, "again", by=Key(key="ci"), via="host")
    assert [letter.id async for _, letter in engine.dead_letters.listed()] == [run.id]
    host.sequel = AsksAgain("the model was away")
    await desk.follow(await engine.run(run.id), 2)
    assert (await engine.run(run.id)).status is RunStatus.WAITING


async def test_what_nobody_decided_ends_as_a_dead_letter_and_is_not_asked_for_ever(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    await see(host, Wait("w1", {}))
    [run] = await open_runs(engine)
    await engine.undeliverable(run.id, "is_archived")
    run = await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
    host.sequel = AsksAgain("the model was away")
    await desk.follow(run, 1)
    failed = await engine.run(run.id)
    assert (failed.status, failed.error) == (RunStatus.FAILED, "the model was away")


async def test_what_nobody_can_tell_is_no_success_and_is_looked_after(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    host.word = Word.UNKNOWN
    run = await resumed(engine, host, RunStatus.LOST)
    assert (run.status, run.error) == (RunStatus.LOST, "so it goes")
    host.sequel = Wait("w2", {})
    await desk.follow(run, 1)
    [second] = await open_runs(engine)
    assert second.doc.external_id == "w2"


# in a conversation


async def said(engine: ResumeEngine, host: Scripted, where: Where = HERE) -> Conversation:
    """ANA said something, and the host has it."""
    what = Said(by=ANA, ts="1700000001.000100", thread_ts=where.thread_ts, text="delete it", at=now_ms())
    await engine.talks.say(where, host.name, what)
    return await Turns(engine).send(await stored(engine, where), host.talker)


def asks(talk: Conversation, what: str = "w1", **facts: Any) -> Wait:
    return Wait(what, {"approval": True, **facts}, talk.session)


async def test_an_approval_that_only_who_asked_could_give_is_told_in_the_conversation_once(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    talk = await said(engine, host)
    other = Desk(engine, host)
    for one in (desk, desk, other):
        await one.open(asks(talk))
    await desk.open(asks(talk, "w2", quorum=2))
    lacking = Unopened(what="w1", tool="delete_file", besides=ANA)
    too_few = Unopened(what="w2", tool="delete_file", need=2)
    assert (await stored(engine)).unopened == (lacking, too_few)
    assert await open_runs(engine) == []
    host.approvers = ["U1", "U2"]
    await other.open(asks(talk))
    [run] = await open_runs(engine)
    assert (run.doc.requester, run.doc.place) == (ANA, talk.place)
    assert (await stored(engine)).unopened == (too_few,)
    await engine.decide(run.gates[0].id, Action.APPROVE, by=BEN, via="slack")


async def test_what_cannot_be_described_is_told_in_its_conversation_until_the_turn_gets_over_it(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    talk = await said(engine, host)
    await desk.open(asks(talk, strange=True))
    await desk.open(Wait("w2", {"strange": True}, "a session of somebody else's"))
    [told] = (await stored(engine)).unopened
    assert (told.what, told.tool, told.told) == ("w1", "", False)
    assert told.why.startswith("the adapter failed (TypeError: desk.py:")
    host.talker.standing[talk.session] = Look(Standing.WAITING)
    assert (await Turns(engine).look(await stored(engine), host.talker))[0].unopened == (told,)
    host.talker.standing[talk.session] = Look(Standing.RUNNING)
    assert (await Turns(engine).look(await stored(engine), host.talker))[0].unopened == ()
    await desk.open(asks(talk, "w3", strange=True))
    host.talker.turn_fails(talk.session)
    ended, _ = await Turns(engine).look(await stored(engine), host.talker)
    assert (ended.stage, ended.unopened) == (Stage.TELLING, ())


async def test_in_a_direct_message_the_members_of_the_channel_are_who_talks_there(
    engine: ResumeEngine, host: Scripted, desk: Desk
) -> None:
    host.approvers = ["channel"]
    talk = await said(engine, host, DIRECT)
    await desk.open(asks(talk))
    [told] = (await stored(engine, DIRECT)).unopened
    assert (told.tool, told.besides) == ("delete_file", ANA)
    here = await said(engine, host)
    await desk.open(asks(here, "w2"))
    assert [run.doc.external_id for run in await open_runs(engine)] == ["w2"]
