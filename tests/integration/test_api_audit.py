"""The audit over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from dirty_equals import IsPartialDict, IsStr
from redis.asyncio import Redis

from core.bell import Bell
from core.clock import WallClock
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.store.connect import fast_client, listening_client
from core.store.store import Store
from tests.integration.conftest import KEY_POLICY, SECRETS, Api
from tests.runs import Json, approval, body, question_call


async def settled(api: Api) -> Json:
    run = await api.open(body([question_call()], [approval()], policy=KEY_POLICY))
    await api.as_key("bo.t_2").refused(
        "POST",
        f"/gates/{run['gates'][1]['id']}/decide",
        {"action": "approve"},
        status=403,
        slug="not-allowed",
    )
    await api.decide(run["gates"][1]["id"], "approve")
    cancelled: Json = await api.post(f"/runs/{run['id']}/cancel", {"reason": "No need"})
    return cancelled


async def test_everything_that_happened_is_told_oldest_first(api: Api) -> None:
    run = await settled(api)
    question, permission = (gate["id"] for gate in run["gates"])
    by = {"key": "ci"}
    lines = await api.audit()
    assert lines == [
        IsPartialDict({"event": "run.opened", "gate": None, "by": by, "from": "api"}),
        IsPartialDict({"event": "gate.opened", "gate": question, "by": by}),
        IsPartialDict(
            {"event": "gate.opened", "gate": permission, "args_digest": IsStr(regex="[0-9a-f]{64}")}
        ),
        IsPartialDict({"event": "gate.refused", "by": {"key": "bo.t_2"}, "reason": "not-allowed"}),
        IsPartialDict({"event": "gate.settled", "gate": permission, "by": by, "outcome": "approved"}),
        IsPartialDict({"event": "gate.settled", "outcome": "cancelled", "reason": "No need"}),
        IsPartialDict({"event": "run.settled", "gate": None}),
    ]
    assert {line["run"] for line in lines} == {run["id"]}


async def test_a_line_begins_with_its_id_and_is_else_as_it_is_stored(api: Api, engine: ResumeEngine) -> None:
    run = await settled(api)
    text = await (await api.send("GET", "/audit")).text()
    assert text.endswith("\n")
    stored = [event async for event in engine.store.audit.of_run(run["id"])]
    assert text.splitlines() == [f'{{"id":"{position}",{line[1:]}' for position, line in stored]


async def test_filters_tell_what_happened_to_one_run_or_gate(api: Api) -> None:
    first, second = await settled(api), await settled(api)
    assert len(await api.audit()) == 14
    assert {line["run"] for line in await api.audit(run=second["id"])} == {second["id"]}
    gate = first["gates"][0]["id"]
    events = [line["event"] for line in await api.audit(gate=gate)]
    assert events == ["gate.opened", "gate.settled"]
    assert await api.audit(gate=gate, run=first["id"]) == await api.audit(gate=gate)
    assert await api.audit(gate=gate, run=second["id"]) == []


async def test_after_goes_on_where_the_last_reader_stopped(api: Api) -> None:
    for _ in range(3):
        run = await settled(api)
    for filters in ({}, {"run": run["id"]}):
        lines = await api.audit(**filters)
        for number, line in enumerate(lines):
            assert await api.audit(after=line["id"], **filters) == lines[number + 1 :]


async def test_more_than_a_page_of_the_store_is_told_whole(api: Api) -> None:
    for _ in range(5):
        await api.open(body([question_call(f"q{n}") for n in range(128)]))
    lines = await api.audit()
    assert len(lines) == 5 * 129
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)


async def test_a_run_and_a_gate_are_found_after_retention_deleted_the_run(
    api: Api, engine: ResumeEngine, redis: Redis
) -> None:
    run = await settled(api)
    for _ in range(3):
        await settled(api)
    every, gate = await api.audit(run=run["id"]), run["gates"][1]["id"]
    of_gate = await api.audit(gate=gate)
    later = engine.store.clock.now_ms() + 1
    for partition in range(4):
        await engine.store.forget(partition, later, 500)
    await api.refused("GET", f"/runs/{run['id']}", status=404, slug="not-found")
    lost = await api.audit(run=run["id"], after=every[-1]["id"])
    assert [(line["event"], line["reason"], line["by"]) for line in lost] == [("run.lost", "retention", None)]
    assert await api.audit(run=run["id"]) == every + lost
    assert await api.audit(gate=gate) == of_gate
    assert await api.audit(gate=gate, after=of_gate[0]["id"]) == of_gate[1:]


async def test_a_run_that_never_was_has_no_lines(api: Api) -> None:
    assert await api.audit(run="run_00_01M8MPM8FY82Y0KET4SETX4WP4") == []
    assert await api.audit(gate="gate_00_01M8MPM8FY82Y0KET4SETX4WP4_0") == []


@pytest.mark.parametrize(
    "after", ["", "x", "1-2", "1-2-3-4", "-1-2-3", "1-2-99999999", f"{10**20}-0-0", "١-٢-٣"]
)
async def test_a_cursor_that_is_none_is_malformed(api: Api, after: str) -> None:
    problem = await api.refused("GET", "/audit", params={"after": after}, status=400, slug="malformed")
    assert problem["errors"][0]["loc"] == ["after"]


NO_ULID = f"01_{'Z' * 26}"
"""It has the right signs, and says more than 128 bits."""


@pytest.mark.parametrize(
    "params",
    [
        {"run": "7"},
        {"gate": "7"},
        {"run": ""},
        {"gate": ""},
        {"run": f"run_{NO_ULID}"},
        {"gate": f"gate_{NO_ULID}_0"},
        {"gate": "gate_01_01M8MPM8FY82Y0KET4SETX4WP4_00"},
    ],
)
async def test_an_id_that_is_none_is_not_found(api: Api, params: dict[str, str]) -> None:
    await api.refused("GET", "/audit", params=params, status=404, slug="not-found")


async def test_no_answer_and_no_argument_is_in_the_audit(api: Api) -> None:
    run = await api.open(
        body([{"tool_call_id": "c", "tool_name": "t", "args": {"a": "hunter2"}}], policy=KEY_POLICY)
    )
    await api.decide(run["gates"][0]["id"], "answer", values="hunter3")
    assert "hunter" not in json.dumps(await api.audit())


@pytest.fixture
async def own_server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    server = EmbeddedServer(tmp_path)
    await server.start()
    yield server
    await server.stop()


async def test_lines_that_cannot_be_read_break_the_connection(
    own_server: EmbeddedServer, new_api: Callable[[ResumeEngine], Awaitable[Api]]
) -> None:
    client = fast_client(own_server.url)
    store = Store(client, partitions=1, clock=WallClock())
    # more than one page of the store, and more than the sockets between take while nobody reads
    line = json.dumps({"event": "run.opened", "reason": "x" * 30_000})
    for number in range(1, 601):
        await client.xadd("ag:{00}:audit", {"event": line}, id=f"{number}-0")
    api = await new_api(ResumeEngine(store, Bell(listening_client(own_server.url))))

    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", api.client.port))
    head = f"GET /api/v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRETS['ci']}\r\n\r\n"
    await loop.sock_sendall(connection, head.encode())
    got = await loop.sock_recv(connection, 65_536)
    assert got.startswith(b"HTTP/1.1 200 ")
    await own_server.stop()
    async with asyncio.timeout(20):
        with contextlib.suppress(ConnectionResetError):
            while more := await loop.sock_recv(connection, 65_536):
                got = more
    assert not got.endswith(b"0\r\n\r\n")
    connection.close()
    await client.aclose()
