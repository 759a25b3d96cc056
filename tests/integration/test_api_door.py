"""What every call passes: the key, the request id, sizes, media types, strict JSON, and a store that is away."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from dirty_equals import IsPartialDict
from redis.asyncio import Redis
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from core.api.call import Work
from core.bell import Bell
from core.clock import WallClock
from core.engine import ResumeEngine
from core.errors import StoreUnavailable
from core.store.connect import fast_client, listening_client
from core.store.store import Store
from tests.integration.conftest import KEY_POLICY, SECRETS, Api
from tests.runs import body

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024

# the key


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong-secret-01234"},
        {"Authorization": f"Basic {SECRETS['ci']}"},
        {"Authorization": SECRETS["ci"]},
        {"Authorization": f"Bearer {SECRETS['ci']}x"},
        {"Authorization": f"Bearer {SECRETS['ci'][:-1]}"},
        {"Authorization": "Bearer ключ-не-тот-ключ"},
    ],
)
async def test_without_the_secret_of_a_key_nothing_is_told(api: Api, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/runs"), ("GET", "/gates"), ("GET", "/no-such-route"), ("PUT", "/runs")):
        response = await api.client.request(method, f"/api/v1{path}", json=body(), headers=headers)
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        problem = await response.json(content_type="application/problem+json")
        assert problem["type"] == "/problems/unauthorized"
    assert not await api.audit()


async def test_each_key_opens_the_door_and_is_the_caller_in_the_audit(api: Api) -> None:
    for name in SECRETS:
        run = await api.as_key(name).open(body())
        assert (await api.audit(run=run["id"]))[0]["by"] == {"key": name}


async def test_the_scheme_is_bearer_in_any_case(api: Api) -> None:
    response = await api.client.get("/api/v1/gates", headers={"Authorization": f"bearer {SECRETS['ci']}"})
    assert response.status == 200


# the request id


async def test_a_request_id_comes_back_and_is_on_the_log_line_with_the_run_and_the_gate(api: Api) -> None:
    run = await api.open(body())
    gate = run["gates"][0]["id"]
    with capture_logs(processors=[merge_contextvars]) as logs:
        response = await api.send("GET", f"/gates/{gate}", headers={"X-Request-Id": "req.7_a-B"})
        await api.get("/gates")
    assert response.headers["X-Request-Id"] == "req.7_a-B"
    read, listed = [line for line in logs if line["event"] == "api.called"]
    assert read == IsPartialDict(
        method="GET",
        route="/api/v1/gates/{gate_id}",
        status=200,
        key="ci",
        request_id="req.7_a-B",
        run=run["id"],
        gate=gate,
    )
    assert not {"run", "gate"} & set(listed)


@pytest.mark.parametrize("sent", ["", "two words", "x" * 129, "a\tb", "é"])
async def test_a_request_id_that_is_none_is_replaced(api: Api, sent: str) -> None:
    response = await api.send("GET", "/audit", headers={"X-Request-Id": sent})
    assert response.headers["X-Request-Id"] != sent
    assert response.headers["X-Request-Id"].isalnum()


# routes


async def test_an_unknown_route_or_method_is_a_problem(api: Api) -> None:
    await api.refused("GET", "/no-such-route", status=404, slug="not-found")
    await api.refused("GET", "/runs/", status=404, slug="not-found")
    await api.refused("DELETE", "/runs", status=405, slug="method-not-allowed")
    response = await api.send("GET", "/resumes/claim")
    assert response.headers["Allow"] == "POST"


# bodies


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"title": "\xff"}',
        b'{"title": "a", "title": "b"}',
        b'{"pending": {"calls": [], "calls": []}}',
        b'{"timeout_s": NaN}',
        b'{"timeout_s": -Infinity}',
        b'{"timeout_s": 1e999}',
        b'{"title": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"title": "a"} {}',
        b"[" * 100 + b"]" * 100,
        b"[" * 500_000,
        b"\xef\xbb\xbf{}",
        '{"title": "a"}'.encode("utf-16"),
    ],
    ids=range(16),
)
async def test_what_two_parsers_could_read_differently_is_malformed(api: Api, raw: bytes) -> None:
    await api.refused("POST", "/runs", data=raw, headers=JSON, status=400, slug="malformed")
    assert not await api.audit()


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "multipart/form-data",
        "",
    ],
)
async def test_a_body_that_is_not_said_to_be_json_is_refused(api: Api, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    await api.refused("POST", "/runs", data=b"{}", headers=headers, status=415, slug="unsupported-media-type")


async def test_json_may_say_its_charset(api: Api) -> None:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    await api.refused("POST", "/runs", data=b"{}", headers=headers, status=422, slug="invalid")


def padded(size: int) -> bytes:
    return b'{"title": 1' + b" " * (size - 12) + b"}"


async def chunks(raw: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(raw), 65_536):
        yield raw[start : start + 65_536]


async def test_a_body_of_2_mib_is_read_and_one_byte_more_is_not(api: Api) -> None:
    for chunked in (False, True):
        fits, over = padded(2 * MIB), padded(2 * MIB + 1)
        sent = [chunks(fits), chunks(over)] if chunked else [fits, over]
        await api.refused("POST", "/runs", data=sent[0], headers=JSON, status=422, slug="invalid")
        await api.refused("POST", "/runs", data=sent[1], headers=JSON, status=413, slug="too-large")


async def test_a_packed_body_is_measured_unpacked(api: Api) -> None:
    bomb = gzip.compress(padded(64 * MIB), 1)
    headers = {**JSON, "Content-Encoding": "gzip"}
    await api.refused("POST", "/runs", data=bomb, headers=headers, status=413, slug="too-large")


async def raw_answer(api: Api, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.client.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_body_that_is_packed_wrongly_is_malformed(api: Api) -> None:
    head = f"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRETS['ci']}\r\nConnection: close\r\n"
    head += "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n"
    answer = await raw_answer(api, head.encode() + b"no gzip!!")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"/problems/malformed" in answer


# the store away


@pytest.fixture
async def away_engine() -> AsyncIterator[ResumeEngine]:
    """An engine on a port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        client = fast_client(url)
        bell = Bell(listening_client(url))
        yield ResumeEngine(Store(client, partitions=4, clock=WallClock()), bell)
        await bell.stop()
        await client.aclose()


async def test_a_store_that_is_away_is_a_503_to_try_again(
    new_api: Callable[[ResumeEngine], Awaitable[Api]], away_engine: ResumeEngine
) -> None:
    api = await new_api(away_engine)
    run = "run_00_01M8MPM8FY82Y0KET4SETX4WP4"
    gate = "gate_00_01M8MPM8FY82Y0KET4SETX4WP4_0"
    sent: list[tuple[str, str, object]] = [
        ("POST", "/runs", body(policy=KEY_POLICY)),
        ("GET", f"/runs/{run}", ...),
        ("GET", f"/runs/{run}?wait=60", ...),
        ("POST", f"/runs/{run}/cancel", {}),
        ("POST", f"/runs/{run}/resume", {}),
        ("GET", "/gates", ...),
        ("GET", f"/gates/{gate}", ...),
        ("POST", f"/gates/{gate}/decide", {"action": "deny"}),
        ("POST", "/resumes/claim", {"wait_s": 60}),
        ("POST", f"/resumes/{run}/ack", {"lease": "x"}),
        ("POST", f"/resumes/{run}/nack", {"lease": "x"}),
        ("GET", "/audit", ...),
        ("GET", f"/audit?run={run}", ...),
    ]
    for method, path, given in sent:
        await api.refused(method, path, given, status=503, slug="store-unavailable")
    away = await api.send("GET", f"/runs/{run}")
    assert (away.status, away.headers["Retry-After"]) == (503, "1")


# callers that hang up, servers that stop


async def test_a_caller_that_hangs_up_ends_its_wait(api: Api) -> None:
    run = await api.open(body())
    assert await api.traffic.left.get() == 201
    for path, sent in ((f"/runs/{run['id']}?wait=60", None), ("/resumes/claim", {"wait_s": 60})):
        method = "POST" if sent else "GET"
        call = asyncio.create_task(api.send(method, path, json=sent))
        while path.partition("?")[0] not in await api.traffic.arrived.get():
            pass
        call.cancel()
        async with asyncio.timeout(10):
            assert await api.traffic.left.get() is None


@pytest.mark.parametrize("fails", [False, True])
async def test_a_commit_goes_on_when_its_caller_hangs_up_and_a_failure_is_logged(fails: bool) -> None:
    work, begun, told = Work(), asyncio.Event(), asyncio.Event()
    done = []

    async def change() -> None:
        begun.set()
        await told.wait()
        if fails:
            raise StoreUnavailable
        done.append("committed")

    call = asyncio.create_task(work.commit(change()))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    [commit] = work.commits
    told.set()
    with capture_logs() as logs:
        await asyncio.wait({commit})
    assert done == ([] if fails else ["committed"])
    assert [line["error"] for line in logs] == (["StoreUnavailable"] if fails else [])
    assert not work.commits


async def test_a_server_that_stops_lets_nobody_wait(api: Api) -> None:
    run = await api.open(body())
    await api.traffic.arrived.get()
    waits = [
        asyncio.create_task(api.send("GET", f"/runs/{run['id']}?wait=60")),
        asyncio.create_task(api.send("POST", "/resumes/claim", json={"wait_s": 60})),
    ]
    for _ in waits:
        await api.traffic.arrived.get()
    async with asyncio.timeout(10):
        await api.client.server.runner.cleanup()
        run_read, claimed = await asyncio.gather(*waits)
    assert (await run_read.json())["status"] == "waiting"
    assert await claimed.json() == {"resumes": []}


async def test_nothing_that_was_sent_is_logged(api: Api, redis: Redis) -> None:
    with capture_logs() as logs:
        run = await api.open(body(title="hunter2", state="hunter2"))
        await api.post(f"/runs/{run['id']}/cancel", {"reason": "hunter2"})
        await api.refused("POST", "/runs", {"title": ["hunter2"]}, status=422, slug="invalid")
    assert logs
    assert "hunter2" not in str(logs)
    assert not any(secret in str(logs) for secret in SECRETS.values())
