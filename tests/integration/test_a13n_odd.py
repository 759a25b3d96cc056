"""a13n as a real Service is hardly made to be: each refusal is told as what it is, and a page is not taken for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from core.engine import ResumeEngine
from core.gates import Action
from core.hosts.a13n.client import A13nAway, A13nClient, A13nRefused
from core.hosts.a13n.host import GONE, A13nHost
from core.hosts.base import AsksAgain, Word
from core.hosts.config import A13nConfig
from core.hosts.desk import Desk
from core.resumes import Resume
from tests.conftest import ANA
from tests.odd import Odd, said

Json = dict[str, Any]
API = "/api/v1"
CALL = {"tool_call_id": "c", "tool_name": "look_up", "arguments": {"city": "Wien"}, "presentation": None}
RUN: Json = {
    "id": "r1",
    "status": "waiting",
    "thread_id": "t1",
    "session_id": "s1",
    "agent_id": "a1",
    "name": "Release agent",
    "pending": {"approvals": [], "calls": [CALL]},
    "failure": None,
}
THREAD: Json = {
    "id": "t1",
    "head_run_id": "r1",
    "current_run_id": None,
    "last_run_id": "r1",
    "archived_at": None,
}


def refused(status: int, code: str, **details: Any) -> Any:
    return said(status, {"error": {"code": code, "message": "no", "details": details}})


@pytest.fixture
async def odd() -> AsyncIterator[Odd]:
    """A Service with one run, which waits; its agent, too, is answered as that run."""
    odd = Odd(RUN)
    odd.answers[f"{API}/threads/t1"] = THREAD
    async with odd.serving():
        yield odd


@pytest.fixture
async def host(odd: Odd, engine: ResumeEngine) -> AsyncIterator[A13nHost]:
    block = {"name": "a13n.test", "url": odd.url, "api_key": "k", "channel": "C1"}
    host = A13nHost(A13nConfig.model_validate(block), engine.store.clock, engine.talks)
    yield host
    await host.close()


@pytest.fixture
async def resume(engine: ResumeEngine, host: A13nHost) -> Resume:
    """The run, decided by people and claimed."""
    desk = Desk(engine, host)
    for wait in await host.heard(b'{"type": "run.waiting", "run": {"id": "r1"}}'):
        await desk.open(wait)
    [run] = [run async for _, run, _ in engine.gates(only_open=True)]
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values={"country": "AT"})
    [resume] = await engine.resumes.claim("a13n.test", limit=1, wait_s=5, lease_s=30)
    return resume


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        *((refused(status, "denied"), A13nAway) for status in (401, 403, 408, 425, 429, 500, 503)),
        (said(502, "<html>"), A13nAway),
        (said(404, "not a13n"), A13nAway),
        (said(200, ["no", "run"]), A13nAway),
        *((refused(status, "no"), A13nRefused) for status in (400, 404, 409, 422)),
    ],
)
async def test_what_passes_is_told_from_what_is_refused_for_good(
    odd: Odd, answer: Any, error: type[Exception]
) -> None:
    odd.answers[f"{API}/runs/r1"] = answer
    client = A13nClient(odd.url, SecretStr("k"))
    with pytest.raises(error):
        await client.run("r1")
    await client.close()


REFUSALS = [
    (refused(404, "not_found", kind="run", id="r1"), Word.LOST, GONE),
    (refused(404, "not_found"), Word.LOST, GONE),
    (refused(404, "not_found", kind="agent"), Word.REFUSED, "no longer has the agent that this run needs"),
    (refused(422, "disabled", kind="agent"), Word.REFUSED, "The agent is archived in a13n. Unarchive it"),
    (refused(422, "disabled", kind="model"), Word.REFUSED, "The model is disabled in a13n. Enable it"),
    (refused(422, "disabled", kind="memory_provider"), Word.REFUSED, "The memory provider is disabled"),
    (refused(409, "conflict", reason="archived"), Word.REFUSED, "The thread is archived"),
    (refused(400, "invalid_argument"), Word.REFUSED, "a13n says: invalid_argument (400)"),
    (refused(429, "rate_limited"), Word.RETRYABLE, "it answered 429, rate_limited"),
]


async def test_each_refusal_of_an_answer_is_told_as_what_it_is(
    odd: Odd, host: A13nHost, resume: Resume
) -> None:
    for answer, word, reason in REFUSALS:
        odd.answers[f"{API}/runs/r1/resume"] = answer
        reply = await host.resume(resume)
        assert (reply.word, reason in (reply.reason or "")) == (word, True), reply


async def test_a_successor_that_was_cancelled_asks_again(odd: Odd, host: A13nHost) -> None:
    odd.answers[f"{API}/threads/t1"] = {**THREAD, "last_run_id": "r2"}
    odd.answers[f"{API}/runs/r2"] = {**RUN, "id": "r2", "status": "cancelled", "pending": None}
    assert await host.follow("r1") == AsksAgain("The run was cancelled in a13n.")


async def test_every_page_of_a_list_is_read(odd: Odd) -> None:
    query = f"{API}/sessions?status=waiting&limit=100"
    first, second = ({"id": f"s{n}", "last_run_id": f"r{n}"} for n in (1, 2))
    odd.answers[query] = {"items": [first], "next_cursor": "more"}
    odd.answers[f"{query}&cursor=more"] = {"items": [second], "next_cursor": None}
    client = A13nClient(odd.url, SecretStr("k"))
    assert [found async for found in client.waiting_sessions()] == [("s1", "r1"), ("s2", "r2")]
    await client.close()
