"""a13n Service, the real one on PostgreSQL: what waits is opened once, answered once under one key, and followed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from core.engine import ResumeEngine
from core.gates import Action, Gate, Kind, Outcome
from core.hosts.a13n import webhook
from core.hosts.a13n.client import A13nClient
from core.hosts.desks import Desks
from core.hosts.door import HostDoor
from core.runs import Run, RunStatus
from tests.conftest import ANA, BEN
from tests.interop.a13n_model import FAIL
from tests.interop.a13n_server import PATIENCE_S, A13n
from tests.interop.conftest import desk_before
from tests.stores import until

pytestmark = pytest.mark.timeout(600)
"""The first one makes the environment of the real system."""

Json = dict[str, Any]
Found = Callable[..., Any]

SECRET = "whsec_0123456789abcdef0123456789abcdef"
QUESTIONS = [
    {
        "question": " Which scope? ",
        "header": "Scope",
        "options": [
            {"label": "Focused ", "description": "One file"},
            {"label": "Broad, with tests", "description": "All of it"},
        ],
    }
]
ASK = {"name": "ask_user_question", "arguments": {"questions": QUESTIONS}}
FETCH = {"name": "fetch", "arguments": {"url": "http://127.0.0.1:9/x"}}
LOOK_UP = {"name": "look_up", "arguments": {"city": "Wien"}}
FOCUSED = {"answers": {"Which scope?": "Focused"}}
FAILING = {"answers": {"Which scope?": FAIL}}


def gate_of(run: Run, tool: str) -> Gate:
    [gate] = [gate for gate in run.gates if gate.doc.tool_name == tool]
    return gate


async def test_a_batch_is_opened_as_it_is_and_answered_in_one_step(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK, FETCH, LOOK_UP])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        asked, fetched, looked = (gate_of(run, name) for name in ("ask_user_question", "fetch", "look_up"))
        assert (run.doc.external_id, run.doc.title) == (waiting["id"], "Release agent")
        assert [gate.doc.kind for gate in (asked, fetched, looked)] == [
            Kind.QUESTION,
            Kind.APPROVAL,
            Kind.CUSTOM,
        ]
        assert fetched.doc.reason == (
            "Tool permission configuration requires approval. · url: http://127.0.0.1:9/x"
        )
        assert not fetched.policy.edits
        await engine.decide(asked.id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        await engine.decide(looked.id, Action.ANSWER, by=ANA, via="slack", values={"country": "AT"})
        assert (await a13n.thread(waiting))["current_run_id"] is None
        await engine.decide(fetched.id, Action.DENY, by=ANA, via="slack", comment="not from there")
        await found(1, RunStatus.RESUMED)
        heard = await a13n.heard(waiting)
    assert [json.loads(text) for text in heard if text.startswith("{")] == [
        {"answers": {"Which scope?": "Focused"}},
        {"country": "AT"},
    ]
    assert any("not from there" in text for text in heard)


@pytest.mark.slow
async def test_an_approval_runs_the_tool(engine: ResumeEngine, a13n: A13n, found: Found) -> None:
    waiting = await a13n.turn([FETCH])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        [heard] = await a13n.heard(waiting)
    assert "denied" not in heard.lower()
    successor = (await a13n.last(waiting))["resume"]
    assert successor["approvals"] == {
        waiting["pending"]["approvals"][0]["tool_call_id"]: {"action": "approve"}
    }


@pytest.mark.slow
async def test_silence_is_an_explicit_failure_for_each_of_them(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK, FETCH])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await engine.undeliverable(run.id, "is_archived")
        asked, fetched = await a13n.heard(waiting)
    assert json.loads(asked) == {"error": "Undeliverable: is_archived"}
    assert "Undeliverable: is_archived" in fetched


@pytest.mark.slow
async def test_the_longest_reasons_are_taken(engine: ResumeEngine, a13n: A13n, found: Found) -> None:
    waiting = await a13n.turn([ASK, FETCH])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        asked, fetched = gate_of(run, "ask_user_question"), gate_of(run, "fetch")
        await engine.decide(asked.id, Action.DECLINE, by=ANA, via="slack", comment="x" * 4096)
        await engine.decide(fetched.id, Action.DENY, by=ANA, via="slack", comment="y" * 4096)
        assert len(await a13n.heard(waiting)) == 2


@pytest.mark.slow
async def test_what_waits_again_is_a_run_of_its_own_and_found_at_once(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK], [LOOK_UP])
    async with desk_before(engine, a13n.config(poll_s=3600)):
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        [second] = await found()
        assert second.gates[0].doc.tool_name == "look_up"
        await engine.decide(second.gates[0].id, Action.DECLINE, by=ANA, via="slack")
        assert len(await a13n.heard(waiting)) == 2


async def test_a_successor_that_failed_is_decided_again_by_people_under_another_key(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FAILING)
        again = await until(engine, run, lambda run: run.attempt == 2)
        assert (again.status, again.open) == (RunStatus.WAITING, True)
        assert (again.error or "").startswith("The run failed in a13n")
        await engine.decide(run.gates[0].id, Action.ANSWER, by=BEN, via="slack", values=FOCUSED)
        assert json.loads((await a13n.heard(waiting))[0]) == {"answers": {"Which scope?": "Focused"}}
        await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
    assert [r["status"] for r in await a13n.runs(waiting)].count("failed") == 1


@pytest.mark.slow
async def test_what_nobody_decided_and_then_failed_is_a_dead_letter(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await engine.undeliverable(run.id, FAIL)
        failed = await until(engine, run, lambda run: run.status is RunStatus.FAILED)
    assert (failed.attempt, failed.open) == (1, False)
    assert (await a13n.thread(waiting))["head_run_id"] == waiting["id"]


@pytest.mark.slow
async def test_what_somebody_else_answered_is_superseded(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    waiting = await a13n.turn([FETCH])
    async with desk_before(engine, a13n.config()):
        [run] = await found()
        await a13n.answer(waiting, {waiting["pending"]["approvals"][0]["tool_call_id"]: {"action": "deny"}})
        [run] = await found(1, RunStatus.LOST)
    assert run.gates[0].status == Outcome.SUPERSEDED
    assert "answered elsewhere" in (run.gates[0].decision.detail or "")
    assert len(await a13n.runs(waiting)) == 2


@pytest.mark.slow
async def test_other_agents_and_client_tools_are_left_alone_when_told_so(
    engine: ResumeEngine, a13n: A13n, found: Found
) -> None:
    await a13n.turn([LOOK_UP])
    mine = await a13n.turn([ASK])
    async with desk_before(engine, a13n.config(client_tools=False)):
        [run] = await found()
        assert run.doc.external_id == mine["id"]
    async with desk_before(engine, a13n.config(name="a13n.others", agents=["agent_other"])) as desk:
        client = A13nClient(a13n.url, SecretStr(a13n.key))
        assert [session async for session, _ in client.waiting_sessions()]
        await client.close()
        assert len(await found()) == 1
        assert desk.problem is None


@pytest.mark.slow
async def test_several_desks_open_and_answer_once(engine: ResumeEngine, a13n: A13n, found: Found) -> None:
    waiting = [await a13n.turn([FETCH]) for _ in range(3)]
    config = a13n.config()
    async with desk_before(engine, config), desk_before(engine, config), desk_before(engine, config):
        for run in await found(3):
            await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack")
        await found(3, RunStatus.RESUMED)
    for run in waiting:
        assert len(await a13n.heard(run)) == 1
        assert len(await a13n.runs(run)) == 2


@pytest.mark.slow
async def test_a_service_that_is_away_is_a_problem_with_a_name(engine: ResumeEngine, a13n: A13n) -> None:
    async with desk_before(engine, a13n.config(url="http://127.0.0.1:9")) as desk:
        async with asyncio.timeout(PATIENCE_S):
            while desk.problem is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert desk.problem == "it cannot be reached (ClientConnectorError)"


# webhooks


@pytest.fixture
async def door(engine: ResumeEngine, a13n: A13n) -> AsyncIterator[TestServer]:
    """The webhook's route of a process that only listens: nothing polls."""
    desks = Desks(engine, [a13n.config(webhook_secret=SECRET)])
    app = web.Application()
    app.add_routes(HostDoor(desks, engine.store.events).routes())
    async with TestServer(app) as server:
        yield server
    await desks.stop(0)


async def test_a_delivery_opens_what_waits(
    engine: ResumeEngine, a13n: A13n, found: Found, door: TestServer
) -> None:
    await a13n.subscribe(str(door.make_url("/hosts/a13n.test/webhook")), SECRET)
    waiting = await a13n.turn([ASK])
    [run] = await found()
    assert run.doc.external_id == waiting["id"]


async def test_a_delivery_counts_once_and_only_if_it_is_the_service_s_own(
    engine: ResumeEngine, a13n: A13n, found: Found, door: TestServer
) -> None:
    waiting = await a13n.turn([ASK])
    gone = await a13n.turn([ASK])
    await a13n.answer(
        gone, calls={gone["pending"]["calls"][0]["tool_call_id"]: {"status": "failed", "message": "no"}}
    )
    now = engine.store.clock.now_ms() // 1000

    async def post(
        run: Json, *, secret: str = SECRET, at: int = now, name: str = "a13n.test", **more: str
    ) -> int:
        delivery, body = (
            more.pop("delivery", uuid4().hex),
            json.dumps({"type": "run.waiting", "run": run}).encode(),
        )
        headers = {
            webhook.DELIVERY: delivery,
            webhook.TIMESTAMP: str(at),
            webhook.SIGNATURE: webhook.signature(secret, str(at), delivery, body),
        }
        async with (
            ClientSession() as session,
            session.post(
                door.make_url(f"/hosts/{name}/webhook"), data=body, headers={**headers, **more}
            ) as answer,
        ):
            return answer.status

    assert await post(waiting, secret=SECRET + "x") == 401
    assert await post(waiting, at=now - 301) == 401
    assert await post(waiting, **{webhook.SIGNATURE: "v1=é"}) == 401
    assert await post(waiting, name="motus.test") == 404
    assert await post({**waiting, "fat": "x" * 2**20}) == 413
    assert await post(gone) == 204
    assert await post({"id": "run_nobody_knows"}) == 204
    assert await found(0) == []
    assert await post(waiting, delivery="d1") == 204
    [run] = await found()
    await engine.supersede(run.id, "another one would be opened for it")
    assert await post(waiting, delivery="d1") == 204
    assert await found(0) == []
