"""Server-sent events: told as they are committed, none missed and none twice, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse
from dirty_equals import IsPartialDict, IsStr
from redis.asyncio import Redis

from core import feed
from core.api import events
from core.api.views import EventView
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.gates import Action
from core.policy import Key
from core.store.cursors import Cursor
from core.store.keys import Keys
from tests.conftest import ANA
from tests.integration.conftest import KEY_POLICY, SECRETS, Api
from tests.runs import FOCUSED, Json, approval, body, question_call, run_request
from tests.stores import engine_on

CI = Key(key="ci")
NewApi = Callable[[ResumeEngine], Awaitable[Api]]
NewEngine = Callable[..., ResumeEngine]


class Listener:
    """Reads a stream by the rules of the standard. ``last`` is the id that a browser would send when it reconnects."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response
        self.last = ""
        self.comments = 0
        self.silence = asyncio.Event()
        """Three comments came."""

    async def event(self) -> Json:
        """The next event. Raises EOFError at the end of the stream."""
        data, name = "", ""
        while True:
            line = (await self.response.content.readline()).decode()
            if not line:
                raise EOFError
            field, _, value = line.removesuffix("\n").partition(":")
            match field, value.removeprefix(" "):
                case "id", text:
                    self.last = text
                case "event", text:
                    name = text
                case "data", text:
                    data += text
                case "", "":
                    if data:
                        found: Json = json.loads(data)
                        EventView.model_validate(found)
                        assert found["event"] == name
                        return found
                case "", _:
                    self.comments += 1
                    if self.comments == 3:
                        self.silence.set()

    async def take(self, number: int) -> list[Json]:
        async with asyncio.timeout(30):
            return [await self.event() for _ in range(number)]


@contextlib.asynccontextmanager
async def listening(api: Api, last: str | None = None, **params: str) -> AsyncIterator[Listener]:
    headers = {"Last-Event-ID": last} if last else {}
    response = await api.send("GET", "/events", params=params, headers=headers)
    try:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream"
        yield Listener(response)
    finally:
        response.close()


async def settled(api: Api, **more: Any) -> Json:
    run = await api.open(body([question_call()], [approval()], policy=KEY_POLICY, **more))
    answers: Json = {
        "calls": {"question-1": {"status": "returned", "value": FOCUSED}},
        "approvals": {"call-2": {"action": "approve"}},
    }
    settled: Json = await api.post(f"/runs/{run['id']}/resume", answers)
    return settled


def brief(told: list[Json]) -> list[tuple[str, str]]:
    return [(event["event"], event["gate"] or event["run"]) for event in told]


async def test_a_listener_hears_what_happens_to_runs_and_whose_they_are(api: Api) -> None:
    async with listening(api) as listener:
        run = await settled(api, host="motus", external_id="thread-7")
        [resume] = (await api.post("/resumes/claim", {"host": "motus"}))["resumes"]
        await api.post(f"/resumes/{run['id']}/ack", {"lease": resume["lease"]})
        told = await listener.take(6)
    question, permission = (gate["id"] for gate in run["gates"])
    assert brief(told) == [
        ("gate.opened", question),
        ("gate.opened", permission),
        ("gate.settled", question),
        ("gate.settled", permission),
        ("run.settled", run["id"]),
        ("run.resumed", run["id"]),
    ]
    assert {event["run"] for event in told} == {run["id"]}
    assert {(event["host"], event["external_id"]) for event in told} == {("motus", "thread-7")}
    assert told[2] == IsPartialDict(tool_call_id="question-1", kind="question", outcome="answered")
    assert told[3] == IsPartialDict(tool_call_id="call-2", kind="approval", outcome="approved")
    assert told[3] == IsPartialDict({"by": {"key": "ci"}, "from": "api", "at": IsStr, "args_digest": IsStr})


async def test_without_a_cursor_it_begins_with_what_comes(api: Api) -> None:
    await settled(api)
    async with listening(api) as listener:
        later = await settled(api)
        assert {event["run"] for event in await listener.take(5)} == {later["id"]}


async def test_with_a_cursor_it_goes_on_behind_that_event(api: Api) -> None:
    async with listening(api) as first:
        await settled(api)
        told, ids = [], []
        for _ in range(5):
            told += await first.take(1)
            ids.append(first.last)
    assert len(set(ids)) == 5
    for number in range(4):
        async with listening(api, ids[number]) as by_header, listening(api, after=ids[number]) as by_query:
            rest = told[number + 1 :]
            assert await by_header.take(len(rest)) == await by_query.take(len(rest)) == rest
    async with listening(api, ids[3], after=ids[0]) as both:  # as a browser does when it comes back
        assert await both.take(1) == told[4:]


async def test_who_loses_the_connection_before_the_first_event_misses_nothing(api: Api) -> None:
    async with listening(api) as listener:
        while not listener.last:
            line = (await listener.response.content.readline()).decode()
            listener.last = line.removeprefix("id: ").strip() if line.startswith("id: ") else ""
    run = await settled(api)
    async with listening(api, listener.last) as listener:
        assert {event["run"] for event in await listener.take(5)} == {run["id"]}


async def test_nothing_is_missed_and_nothing_comes_twice_with_two_replicas_and_reconnects(
    new_engine: NewEngine, new_api: NewApi
) -> None:
    """Two replicas write while listeners of both come and go, each going on from its last event. (looprig C1)"""
    replicas = [new_engine(), new_engine()]
    apis = [await new_api(engine) for engine in replicas]
    chance = random.Random(7)
    count = 24
    heard: list[list[Json]] = [[], [], []]

    async def write(engine: ResumeEngine) -> None:
        for _ in range(count // 2):
            run, _ = await engine.suspend(run_request(), owner="ci")
            await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)

    async def listen(number: int, start: str) -> None:
        last, told = start, heard[number]
        while len(told) < 3 * count:
            async with listening(chance.choice(apis), last) as listener:
                for _ in range(chance.randint(1, 9)):
                    told.append(await listener.event())
                    last = listener.last
                    if len(told) == 3 * count:
                        return

    start = str(await replicas[0].feed.end())
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(listen(number, start))
        for engine in replicas:
            tasks.create_task(write(engine))
    lines = [json.loads(event.line) async for event in replicas[0].store.audit.events()]
    kinds = ("gate.opened", "gate.settled", "run.settled")
    written = sorted((event["event"], event["run"]) for event in lines if event["event"] in kinds)
    for told in heard:
        assert sorted((event["event"], event["run"]) for event in told) == written
        for run in {event["run"] for event in told}:
            order = [event["event"] for event in told if event["run"] == run]
            assert order == ["gate.opened", "gate.settled", "run.settled"]


async def test_an_event_that_reaches_its_partition_late_is_told_all_the_same(
    engine: ResumeEngine, api: Api, redis: Redis
) -> None:
    """The other partitions' cursors have gone past its time by then."""
    async with listening(api) as listener:
        new = await settled(api)
        await listener.take(5)
        other = next(p for p in range(4) if p != int(new["id"][4:6]))
        run = f"run_{other:02d}_01KDVDNA00THY64V5P245N2EM2"
        line = {
            "event": "run.settled",
            "at": "2026-01-01T00:00:00.000Z",
            "run": run,
            "gate": None,
            "by": None,
        }
        await redis.xadd(
            Keys(other).audit, {"event": json.dumps({**line, "from": "clock", "prev": ""})}, id="5-0"
        )
        engine.bell.ring("events")
        [late] = await listener.take(1)
    # nothing is known of the run any more
    assert late == {**line, "from": "clock", "prev": "", "host": None, "external_id": None}


async def test_a_listener_that_is_further_than_the_reader_gets_nothing_twice(
    engine: ResumeEngine, new_engine: NewEngine
) -> None:
    """It comes from another replica, and this one's reader has not heard of the last events yet."""
    await engine.bell.stop()
    early = engine.feed.listen(await engine.feed.end())
    async with contextlib.aclosing(early), asyncio.timeout(30):
        first = asyncio.create_task(_next(early))
        for _ in range(20):  # by then the reader has found nothing, and waits for a ring
            await engine.store.ping()
        other = new_engine()
        await other.suspend(run_request(), owner="ci")
        late = engine.feed.listen(await other.feed.end())
        async with contextlib.aclosing(late):
            second = asyncio.create_task(_next(late))
            for _ in range(20):
                await engine.store.ping()
            engine.bell.ring("events")
            await first
            new, _ = await other.suspend(run_request(), owner="ci")
            engine.bell.ring("events")
            assert (await second).event["run"] == new.id


async def _next(told: AsyncIterator[feed.Told]) -> feed.Told:
    return await anext(told)


async def test_it_goes_on_over_a_restart_of_the_server(tmp_path: Path, new_api: NewApi) -> None:
    server = EmbeddedServer(tmp_path)
    await server.start()
    async with engine_on(server.url) as engine:
        api = await new_api(engine)
        async with listening(api) as listener:
            await settled(api)
            await listener.take(2)
    await server.stop()
    server = EmbeddedServer(tmp_path)
    await server.start()
    try:
        async with engine_on(server.url) as engine:
            api = await new_api(engine)
            async with listening(api, listener.last) as again:
                rest = await again.take(3)
        assert [event["event"] for event in rest] == ["gate.settled", "gate.settled", "run.settled"]
    finally:
        await server.stop()


async def test_a_listener_stays_while_the_store_is_away(tmp_path: Path, new_api: NewApi) -> None:
    server = EmbeddedServer(tmp_path)
    await server.start()
    async with engine_on(server.url) as engine:
        api = await new_api(engine)
        async with listening(api) as listener:
            await server.stop()
            assert await engine.feed._read_on(engine.feed._reader) == 0
            server = EmbeddedServer(tmp_path)
            await server.start()
            try:
                run = await settled(api)
                assert {event["run"] for event in await listener.take(5)} == {run["id"]}
            finally:
                await server.stop()


async def test_a_store_that_is_away_at_the_beginning_is_said_so(tmp_path: Path, new_api: NewApi) -> None:
    server = EmbeddedServer(tmp_path)
    await server.start()
    async with engine_on(server.url) as engine:
        api = await new_api(engine)
        await server.stop()
        await api.refused("GET", "/events", status=503, slug="store-unavailable")


async def test_many_listeners_share_one_reader_that_ends_with_the_last(
    engine: ResumeEngine, new_api: NewApi
) -> None:
    api = await new_api(engine)
    async with contextlib.AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(listening(api)) for _ in range(20)]
        run = await settled(api)
        for told in await asyncio.gather(*(listener.take(5) for listener in listeners)):
            assert {event["run"] for event in told} == {run["id"]}
        readers = [task for task in asyncio.all_tasks() if task.get_name() == "feed"]
        assert len(readers) == 1
    for _ in range(2 + 20):
        await api.traffic.left.get()
    await asyncio.gather(*readers, return_exceptions=True)
    assert engine.feed._reader is None


async def test_a_listener_that_does_not_read_holds_nobody_up_and_misses_nothing(
    engine: ResumeEngine, new_api: NewApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "ROOM", 4)
    api = await new_api(engine)
    cursor = await engine.feed.end()
    slow = engine.feed.listen(cursor)
    async with contextlib.aclosing(slow), listening(api) as quick:
        runs = [await settled(api)]
        told = [(await anext(slow)).event]  # then it reads no more for a while
        runs += [await settled(api) for _ in range(6)]
        had = await quick.take(5 * len(runs))
        told += [(await anext(slow)).event for _ in range(5 * len(runs) - 1)]
    assert sorted(brief(told)) == sorted(brief(had))


async def test_a_socket_that_nobody_reads_from_holds_up_nobody(engine: ResumeEngine, new_api: NewApi) -> None:
    api = await new_api(engine)
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((api.client.host, api.client.port))
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRETS['ci']}\r\n\r\n"
        idle.sendall(head.encode())
        async with listening(api) as quick:
            for _ in range(4):
                await api.open(body([question_call(f"q{n}") for n in range(128)], policy=KEY_POLICY))
            assert len(await quick.take(4 * 128)) == 4 * 128


async def test_silence_is_filled_with_comments(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert events.KEEPALIVE_S == 15
    monkeypatch.setattr(events, "KEEPALIVE_S", 0.01)
    async with listening(api) as listener:
        waiting = asyncio.create_task(listener.take(5))
        async with asyncio.timeout(10):
            await listener.silence.wait()
        await settled(api)
        assert len(await waiting) == 5
    assert listener.comments >= 3


async def test_the_end_of_the_server_is_the_end_of_the_stream(api: Api) -> None:
    async with listening(api) as listener:
        await settled(api)
        await listener.take(5)
        ending = asyncio.create_task(api.client.server.close())
        with pytest.raises(EOFError):
            await listener.take(1)
        await ending


async def test_what_is_not_for_listeners_is_not_told(api: Api) -> None:
    async with listening(api) as listener:
        run = await api.open(body([question_call()], policy=KEY_POLICY))
        gate = run["gates"][0]["id"]
        other = api.as_key("bo.t_2")
        for _ in range(3):
            await other.refused(
                "POST", f"/gates/{gate}/decide", {"action": "decline"}, status=403, slug="not-allowed"
            )
        await api.decide(gate, "decline")
        assert [event["event"] for event in await listener.take(3)] == [
            "gate.opened",
            "gate.settled",
            "run.settled",
        ]


@pytest.mark.parametrize("text", ["x", "1-2-3", "AAAA", "é"])
async def test_a_cursor_that_is_none_is_malformed(api: Api, text: str) -> None:
    problem = await api.refused("GET", "/events", params={"after": text}, status=400, slug="malformed")
    assert problem["errors"][0]["loc"] == ["after"]
    problem = await api.refused(
        "GET", "/events", headers={"Last-Event-ID": text}, status=400, slug="malformed"
    )
    assert problem["errors"][0]["loc"] == ["Last-Event-ID"]


async def test_a_cursor_of_another_store_is_malformed(api: Api, engine: ResumeEngine) -> None:
    places = (await engine.feed.end()).places
    other = str(Cursor((*places, *places)))
    await api.refused("GET", "/events", params={"after": other}, status=400, slug="malformed")


async def test_a_reopened_run_is_told_as_opened_again(engine: ResumeEngine, api: Api) -> None:
    run = await settled(api)
    [resume] = (await api.post("/resumes/claim", {}))["resumes"]
    await api.post(f"/resumes/{run['id']}/nack", {"lease": resume["lease"], "final": True, "error": "no"})
    async with listening(api) as listener:
        await engine.dead_letters.reopen(run["id"], by=CI, via="api")
        told = await listener.take(2)
    assert brief(told) == [("gate.opened", gate["id"]) for gate in run["gates"]]
