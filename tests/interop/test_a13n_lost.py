"""a13n Service, the real one, where things get lost or come twice: nothing that waits is missed, or answered twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core import resumes
from core.engine import ResumeEngine
from core.gates import Action
from core.hosts import desk
from core.hosts.a13n import host
from core.hosts.a13n.host import A13nHost
from core.hosts.desks import Desks
from core.hosts.door import HostDoor
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.a13n_server import A13n, Door
from tests.interop.between import Between
from tests.interop.conftest import desk_before
from tests.interop.test_a13n import ASK, FOCUSED, SECRET
from tests.stores import until

pytestmark = pytest.mark.timeout(600)

Found = Callable[..., Any]
Json = dict[str, Any]
ADMIN = ANA.model_copy(update={"user": "U9"})
NO = {"status": "failed", "message": "no"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What did not get there is tried again soon."""
    monkeypatch.setattr(desk, "FIRST_RETRY_S", 0.05)
    monkeypatch.setattr(resumes, "POLL_S", 0.1)


async def answered(engine: ResumeEngine, run: Run) -> None:
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)


def call_of(run: Json) -> str:
    return str(run["pending"]["calls"][0]["tool_call_id"])


async def hidden(a13n: A13n, session: str) -> Json:
    """A run that waits in a session in which something else began later, so that no list has it."""
    waiting = await a13n.turn([ASK], session=session)
    assert (await a13n.turn(session=session))["status"] == "completed"
    listed = await a13n.ok("GET", "/sessions?status=waiting")
    assert session not in [item["id"] for item in listed["items"]]
    return waiting


async def test_an_answer_whose_reply_was_lost_is_sent_again_as_it_was_and_counts_once(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with Between(a13n.url).serving() as between, desk_before(engine, a13n.config(url=between.url)):
        lost = between.fail("POST .*/resume$", "reply", times=2)
        [run] = await found()
        await answered(engine, run)
        await found(1, RunStatus.RESUMED)
        assert json.loads((await a13n.heard(waiting))[0]) == {"answers": {"Which scope?": "Focused"}}
    assert lost.met == 2
    assert sum(asked.endswith("/resume") for asked in between.seen) == 3
    assert len(await a13n.runs(waiting)) == 2


async def test_an_answer_that_comes_second_is_lost_and_says_so(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
    await a13n.answer(waiting, calls={call_of(waiting): NO})
    await answered(engine, run)
    async with desk_before(engine, a13n.config()):
        [run] = await found(1, RunStatus.LOST)
    assert "answered elsewhere" in (run.error or "")
    assert len(await a13n.runs(waiting)) == 2


async def decided_under(engine: ResumeEngine, found: Found, a13n: A13n) -> tuple[Run, str]:
    """A run that is decided and not yet handed over, and the key under which it will be."""
    async with desk_before(engine, a13n.config()):
        [run] = await found()
    await answered(engine, run)
    [resume] = await engine.resumes.claim("a13n.test", limit=1, wait_s=5, lease_s=0.2)
    return run, f"slack:{resume.key}"


def use(a13n: A13n, key: str, about: Json) -> None:
    """Answer a run by askgate's own account under that key."""
    account = Door(a13n.url, {"Authorization": f"Bearer {a13n.key}"})
    body = {"approvals": {}, "calls": {call_of(about): NO}}
    account.ok("POST", f"/runs/{about['id']}/resume", body, **{"Idempotency-Key": key})


async def test_a_key_under_which_the_run_had_another_answer_leaves_open_which_of_them_counts(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    run, key = await decided_under(engine, found, a13n)
    use(a13n, key, waiting)
    async with desk_before(engine, a13n.config()):
        lost = await until(engine, run, lambda run: run.status is RunStatus.LOST)
    assert "other answers under this decision's key" in (lost.error or "")
    assert len(await a13n.runs(waiting)) == 2


async def test_a_key_that_was_used_for_another_run_is_refused_and_the_next_decision_has_another(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    run, key = await decided_under(engine, found, a13n)
    use(a13n, key, await a13n.turn([ASK]))
    async with desk_before(engine, a13n.config()):
        failed = await until(engine, run, lambda run: run.status is RunStatus.FAILED)
        assert "knows this decision's key for something else" in (failed.error or "")
        await engine.dead_letters.reopen(run.id, by=ADMIN, via="api")
        await answered(engine, run)
        await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
        assert json.loads((await a13n.heard(waiting))[0]) == {"answers": {"Which scope?": "Focused"}}


async def test_an_archived_thread_closes_its_card_and_refuses_what_was_decided(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    first, second = await a13n.turn([ASK]), await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        runs = {run.doc.external_id: run for run in await found(2)}
        await a13n.archive(first)
        [closed] = await found(1, RunStatus.LOST)
        assert closed.doc.external_id == first["id"]
        assert "archived" in (closed.gates[0].decision.detail or "")
    await a13n.archive(second)
    await answered(engine, runs[second["id"]])
    async with desk_before(engine, a13n.config()):
        [failed] = await found(1, RunStatus.FAILED)
    assert "The thread is archived in a13n" in (failed.error or "")


async def test_an_archived_agent_is_named_and_the_same_decision_goes_through_afterwards(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await a13n.set_archived(True)
        try:
            await answered(engine, run)
            [failed] = await found(1, RunStatus.FAILED)
            assert "The agent is archived in a13n" in (failed.error or "")
        finally:
            await a13n.set_archived(False)
        await engine.dead_letters.requeue(run.id, by=ADMIN, via="api")
        await found(1, RunStatus.RESUMED)
        await a13n.heard(waiting)


# what no list has


async def test_a_wait_behind_a_later_run_of_its_session_stays_open(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await hidden(a13n, waiting["session_id"])
        await found(2)
    async with desk_before(engine, a13n.config()) as desk:
        await answered(engine, run)
        assert await a13n.heard(waiting)
        assert desk.problem is None


async def test_a_lost_webhook_loses_nothing_that_waits_in_a_session_in_which_something_waited_before(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    first = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await answered(engine, run)
        await a13n.heard(first)
    later = await hidden(a13n, first["session_id"])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        assert run.doc.external_id == later["id"]


async def test_a_session_that_a_delivery_told_of_is_remembered_by_all_processes(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    # a process that only listens: nothing polls
    desks = Desks(engine, [a13n.config(webhook_secret=SECRET)])
    app = web.Application()
    app.add_routes(HostDoor(desks, engine.store.events).routes())
    async with TestServer(app) as server:
        await a13n.subscribe(str(server.make_url("/hosts/a13n.test/webhook")), SECRET)
        first = await a13n.turn([ASK])
        await found()
    await desks.stop(0)
    later = await hidden(a13n, first["session_id"])
    async with desk_before(engine, a13n.config()):
        assert {run.doc.external_id for run in await found(2)} == {first["id"], later["id"]}


async def test_the_sessions_that_no_list_has_are_read_a_few_at_a_time_in_turn(
    engine: ResumeEngine, a13n: A13n, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "AT_A_TIME", 1)
    over = [await a13n.turn(), await a13n.turn()]
    await engine.talks.met("a13n.test", [*(run["session_id"] for run in over), "ses_nobody_knows"])
    later = {(await hidden(a13n, run["session_id"]))["id"] for run in over}
    service = A13nHost(a13n.config(), engine.store.clock, engine.talks)
    found = [[wait.external_id for wait in await service._found()] for _ in range(6)]
    await service.close()
    assert all(len(waits) < 2 for waits in found)
    for each in (found[:3], found[3:]):
        assert {external_id for waits in each for external_id in waits} == later


async def test_a_child_that_waits_is_answered_by_itself_while_its_parent_goes_on(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    task = {"subagent_name": "helper", "prompt": json.dumps({"turns": [[ASK]]})}
    delegate = {"name": "delegate", "arguments": task}
    wait = {"name": "wait_subagent", "arguments": {"timeout_seconds": 30}}
    parent = await a13n.begin([delegate], [wait], agent=a13n.lead)
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        assert (run.doc.external_id == parent["id"], run.doc.title) == (False, "Release agent")
        assert (await a13n.ok("GET", f"/runs/{parent['id']}"))["status"] == "running"
        await answered(engine, run)
        await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
        heard = await a13n.heard(await a13n.ok("GET", f"/runs/{run.doc.external_id}"))
    assert json.loads(heard[0]) == {"answers": {"Which scope?": "Focused"}}
