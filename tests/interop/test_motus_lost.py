"""Motus, the real one, on a way on which things get lost: what was decided gets there once, or it is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory

from core import resumes
from core.conversations import Said, Where
from core.engine import ResumeEngine
from core.gates import Action
from core.hosts import desk
from core.hosts.motus import host
from core.hosts.motus.client import Session
from core.hosts.motus.talker import MotusTalker
from core.hosts.motus.turnclock import MARGIN_S, TurnClock
from core.policy import Key
from core.runs import Run, RunStatus
from tests.conftest import ANA, HOME, now_ms
from tests.interop.between import Between
from tests.interop.conftest import Motus, eventually, served
from tests.stores import events, until

Found = Callable[..., Any]

APPROVAL = {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}
PICKER = {"type": "color_picker"}
RESUME = "POST .*/resume$"
TURN_S = 600


@pytest.fixture
async def between(motus: Motus, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Between]:
    """The way to the server; what did not get there is tried again soon."""
    monkeypatch.setattr(desk, "FIRST_RETRY_S", 0.05)
    monkeypatch.setattr(host, "REREAD_S", 0.05)
    monkeypatch.setattr(resumes, "POLL_S", 0.1)
    async with Between(motus.url).serving() as between:
        yield between


async def approved(engine: ResumeEngine, found: Found) -> None:
    [run] = await found()
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")


def tries(between: Between) -> int:
    return sum(asked.endswith("/resume") for asked in between.seen)


async def test_an_answer_that_got_there_unheard_is_not_sent_again_and_nobody_claims_it(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus, url=between.url):
        between.fail(RESUME, "reply")
        await approved(engine, found)
        [run] = await found(1, RunStatus.LOST)
    assert "Whether Motus took this answer nobody can tell" in run.error
    assert await motus.heard(session) == [{"approved": True}]
    assert tries(between) == 1


@pytest.mark.parametrize("how", ["request", 404, 302])
async def test_an_answer_that_did_not_get_there_is_sent_again_after_a_look(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found, how: Any
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus, url=between.url):
        between.fail(RESUME, how, location=f"{motus.url}/sessions" if how == 302 else "")
        await approved(engine, found)
        await found(1, RunStatus.RESUMED)
    assert await motus.heard(session) == [{"approved": True}]
    first, second = (at for at, asked in enumerate(between.seen) if asked.endswith("/resume"))
    assert f"GET /sessions/{session}" in between.seen[first:second]


async def test_an_answer_that_somebody_overtook_is_lost_and_not_sent_again(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    [interrupt] = (await motus.interrupted(session)).interrupts
    async with served(engine, motus, url=between.url):
        between.overtake(RESUME, lambda: motus.client.resume(session, interrupt.id, {"approved": False}))
        await approved(engine, found)
        [run] = await found(1, RunStatus.LOST)
    assert run.error.startswith("Motus says: ")
    assert await motus.heard(session) == [{"approved": False}]
    assert tries(between) == 1


async def test_a_turn_whose_cancelling_was_not_heard_of_is_cancelled_once(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    session = await motus.turn(in_turn=[PICKER])
    async with served(engine, motus, url=between.url):
        between.fail("DELETE", "reply")
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    [kept] = await motus.client.sessions()
    assert kept.id != session


async def test_a_turn_of_a_conversation_that_could_not_be_ended_at_once_goes_on_as_one_other_session(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    session = await motus.turn(in_turn=[PICKER])
    what = Said(by=ANA, ts="1700000001.000100", thread_ts="1700000000.000100", text="pick", at=now_ms())
    _, talk = await engine.talks.say(Where(HOME, "C1", what.thread_ts), "motus.test", what)
    await engine.talks.put(talk.model_copy(update={"session": session}), indexed=True)
    async with served(engine, motus, url=between.url, talk=True):
        lost = between.fail("DELETE", "request", times=2)
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    [kept] = await motus.client.sessions()
    goes_on = await engine.talks.read(talk.id)
    assert (lost.met, goes_on and goes_on.session) == (2, kept.id)
    assert [e["reason"] for e in await events(engine, run.id) if e["event"] == "run.resumed"] == [
        f"The turn was cancelled; the conversation goes on as session {kept.id}."
    ]


async def test_an_answer_that_may_have_counted_is_not_called_somebody_else_s_when_its_run_is_put_back(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    session = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus, url=between.url):
        between.fail(RESUME, "reply")
        await approved(engine, found)
        [run] = await found(1, RunStatus.LOST)
        await engine.dead_letters.requeue(run.id, by=Key(key="ops"), via="api")
        await until(engine, run, lambda run: "An earlier try may have got there" in (run.error or ""))
    assert await motus.heard(session) == [{"approved": True}]
    assert tries(between) == 1


async def test_a_session_that_cannot_be_read_holds_up_no_other(
    engine: ResumeEngine, motus: Motus, between: Between, found: Found
) -> None:
    first = await motus.turn(in_turn=[APPROVAL])
    async with served(engine, motus, url=between.url):
        [run] = await found()
        failing = between.fail(f"GET /sessions/{first}$", 503, times=1_000_000)
        second = await motus.turn(in_turn=[APPROVAL])
        [other] = [one for one in await found(2) if one.id != run.id]
        await engine.decide(other.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
        await eventually(lambda: failing.met > 2)
        await found(1)  # and what it waits for is not taken for gone
    assert await motus.heard(second) == [{"approved": True}]


@pytest.mark.parametrize("how", ["rejected", "expired"])
async def test_an_offer_to_cancel_that_nobody_takes_up_ends_as_what_it_is_and_the_turn_waits_on(
    engine: ResumeEngine, motus: Motus, found: Found, how: str
) -> None:
    session = await motus.turn(at_once=[{"type": 7}])
    async with served(engine, motus, timeout_s=1 if how == "expired" else 600):
        if how == "rejected":
            [run] = await found()
            await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack")
        [run] = await found(1, RunStatus.FAILED)
        assert "Nothing was sent to Motus: the turn waits on" in run.error
        assert [(s.id, s.status) for s in await motus.client.sessions()] == [(session, "interrupted")]
        if how == "rejected":  # as a dead letter it can be decided again
            await engine.dead_letters.reopen(run.id, by=Key(key="ops"), via="api")
            await approved(engine, found)
            await found(1, RunStatus.RESUMED)


async def test_what_was_picked_and_not_submitted_is_no_answer(
    engine: ResumeEngine, motus: Motus, found: Found
) -> None:
    options = [{"label": label, "description": label} for label in ("Focused", "Broad")]
    asked = [{"question": text, "header": "Q", "options": options} for text in ("Which scope?", "Which way?")]
    session = await motus.turn(in_turn=[{"type": "user_input", "questions": asked}])
    async with served(engine, motus):
        [run] = await found()
        await engine.draft(run.gates[0].id, ANA, [{"picked": [0]}, {}])
        await engine.undeliverable(run.id, "is_archived")
        [said] = await motus.heard(session)
    assert (said["answers"], said["status"]) == ({}, "undeliverable")


async def test_a_deadline_stays_inside_the_server_s_own_time_over_a_restart(
    engine: ResumeEngine, motus: Motus, found: Found, clock: FrozenDateTimeFactory, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    begun_ms = now_ms()
    session = await motus.turn(until=str(go), in_turn=[APPROVAL])
    async with served(engine, motus, turn_timeout_s=TURN_S):
        await eventually(lambda: engine.talks.begun("motus.test", session))
    clock.tick(200)
    go.touch()
    await motus.interrupted(session)
    async with served(engine, motus, turn_timeout_s=TURN_S):
        run: Run
        [run] = await found()
    assert run.gates[0].deadline == begun_ms + 1000 * (TURN_S - MARGIN_S)


async def test_a_turn_counts_from_when_its_message_was_sent(
    engine: ResumeEngine, motus: Motus, clock: FrozenDateTimeFactory
) -> None:
    sender, later = (TurnClock("motus.test", TURN_S, engine.talks, engine.store.clock) for _ in range(2))
    session = await motus.client.create()
    assert await MotusTalker(motus.client, True, sender).say(session, '{"say": "well"}')
    clock.tick(10)
    await later.look([Session(session, "running", 0)], now_ms())
    assert later.left_s(session) == TURN_S - MARGIN_S - 10
