"""Motus as a real server is hardly made to be: what it says then has a name, and nobody's decision is lost on it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action
from core.hosts.base import HostAway, Look, Present, Standing
from core.hosts.config import MotusConfig
from core.hosts.desk import Desk
from core.hosts.motus import host
from core.hosts.motus.client import Gone, MotusClient, MotusError, Moved, Refused, Unreadable
from core.hosts.motus.host import MotusHost
from core.hosts.motus.talker import MotusTalker
from core.hosts.motus.turnclock import TurnClock
from core.runs import Run, RunStatus
from core.store.keys import Keys
from tests.conftest import ANA
from tests.odd import Odd, said
from tests.stores import until

Json = dict[str, Any]
IDLE: Json = {"session_id": "s", "status": "idle", "response": None, "error": None, "interrupts": None}
CALL = {"tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}


@pytest.fixture
async def odd() -> AsyncIterator[Odd]:
    """Its one session, `s`, is idle unless it is told otherwise."""
    async with Odd(IDLE).serving() as odd:
        yield odd


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (said(404, {"detail": "Session not found"}), Gone),
        (said(404, {"detail": "Session deleted"}), Gone),
        (said(404, {"detail": "Unknown interrupt_id: 7"}), Moved),
        (said(409, {"detail": "Session is running"}), Moved),
        (said(422, {"detail": [{"loc": ["body"], "msg": "no", "type": "x"}]}), Refused),
        (said(500, "Internal Server Error"), Unreadable),
        (said(200, "[" * 100_000), Unreadable),
        (said(502, "<html>"), MotusError),
        (said(502, {"detail": "http://ana:hush@db.internal is away"}), MotusError),
        (said(200, {"status": "asleep"}), MotusError),
        (said(200, ["no", "session"]), MotusError),
    ],
)
async def test_each_answer_of_the_server_has_a_name(odd: Odd, answer: Any, name: type[Exception]) -> None:
    odd.answers["/sessions/s"] = answer
    client = MotusClient(odd.url)
    with pytest.raises(HostAway) as raised:
        await client.read("s")
    assert type(raised.value) is name
    assert "hush" not in str(raised.value), "operators read it, and it stands in the log"
    await client.close()


async def test_a_long_poll_says_how_long_so_that_no_call_waits_for_ever(odd: Odd) -> None:
    odd.held.set()
    client = MotusClient(odd.url)
    await client.read("s", wait=True)
    assert odd.asked == ["/sessions/s?wait=true&timeout=25"]
    await client.close()


async def test_so_many_sessions_and_no_more_are_waited_for_at_a_time(
    odd: Odd, engine: ResumeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "MAX_LONG_POLLS", 3)
    monkeypatch.setattr(host, "SOON_S", 0.01)
    running = [{"session_id": f"s{n}", "total_messages": 0, "status": "running"} for n in range(9)]
    odd.answers["/sessions"] = running
    config = MotusConfig.model_validate({"name": "motus.test", "url": odd.url})
    motus = MotusHost(config, engine.store.clock, engine.talks)
    looks = 0
    async for seen in motus.watch():
        looks += isinstance(seen, Present)
        waited = [path for path in odd.asked if "wait=true" in path]
        if looks > 3 and len(waited) >= 3:
            break
    assert len(waited) == 3
    await motus.close()


async def test_a_reply_without_content_is_no_reply(odd: Odd, engine: ResumeEngine) -> None:
    odd.answers["/sessions/s"] = {**IDLE, "response": {"role": "assistant", "content": None}}
    client = MotusClient(odd.url)
    turns = TurnClock("motus.test", None, engine.talks, engine.store.clock)
    assert await MotusTalker(client, True, turns).look("s") == Look(Standing.ENDED, None)
    await client.close()


async def test_an_approval_of_other_arguments_than_were_shown_is_denied_to_the_agent(
    odd: Odd, engine: ResumeEngine, redis: Redis
) -> None:
    interrupt = {"interrupt_id": "i", "type": "tool_approval", "payload": CALL}
    odd.answers["/sessions"] = [{"session_id": "s", "total_messages": 0, "status": "interrupted"}]
    odd.answers["/sessions/s"] = {**IDLE, "status": "interrupted", "interrupts": [interrupt]}
    odd.answers["/sessions/s/resume"] = {"session_id": "s", "status": "running"}
    block = {"name": "motus.test", "url": odd.url, "channel": "C1", "approvers": ["U1"]}
    motus = MotusHost(MotusConfig.model_validate(block), engine.store.clock, engine.talks)
    desk = Desk(engine, motus)
    [wait] = [wait async for wait in _first(motus)]
    await desk.open(wait)
    run = await _the_run(engine)
    await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
    key = Keys(int(run.id[4:6])).run(run.id)
    stored = json.loads(await redis.hget(key, "0:doc") or "")
    await redis.hset(key, "0:doc", json.dumps({**stored, "args": {"path": "/"}}))
    desk.start()
    await until(engine, run, lambda run: run.status is RunStatus.RESUMED)
    await desk.stop(1)
    [heard] = odd.heard
    assert (heard["interrupt_id"], heard["value"]["approved"]) == ("i", False)
    assert "not those that were approved" in heard["value"]["reason"]


async def _first(motus: MotusHost) -> AsyncIterator[Any]:
    async with contextlib.aclosing(motus.watch()) as watch:
        async for seen in watch:
            if isinstance(seen, Present):
                return
            yield seen


async def _the_run(engine: ResumeEngine) -> Run:
    [run] = [run async for _, run, _ in engine.gates(only_open=True)]
    return run
