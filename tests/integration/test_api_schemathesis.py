"""Every route, called with what the OpenAPI document allows and what it forbids: no 5xx, no answer outside it."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks as openapi_checks

from core.api import PREFIX, Metrics, build_api
from tests.integration.conftest import DOCUMENT, KEY_POLICY, KEYS, SECRETS
from tests.runs import approval, ask, body, question_call
from tests.stores import engine_on

Json = dict[str, Any]
AUTH = {"Authorization": f"Bearer {SECRETS['ci']}"}
LONGEST_WAIT_S = 0.01
CHECKS = [
    not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]


class Server:
    """The real API on a real store, in a thread with a loop of its own, for the callers here block."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._up, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="api")
        self._loop: asyncio.AbstractEventLoop
        self.url = ""

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._up.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        redis = Redis.from_url(self._redis_url)
        await redis.flushall()
        await redis.aclose()
        async with engine_on(self._redis_url) as engine:
            app = web.Application()
            app.add_subapp(PREFIX, build_api(engine, KEYS, Metrics(engine.store)))
            runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._up.set()
            await self._stop.wait()
            await runner.cleanup()

    def call(self, path: str, given: Json) -> Any:
        """POST something that is right."""
        headers = {**AUTH, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", json.dumps(given).encode(), headers)
        with urllib.request.urlopen(request) as response:
            return json.load(response)


SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
SCHEMA.config.generation.with_security_parameters = False  # the key is not what is tried here
ENDLESS = f"{PREFIX}/v1/events"
"""An answer without end, of which no client waits for the whole; it has tests of its own."""
OPERATIONS = {
    SCHEMA[path][method].label: SCHEMA[path][method]
    for path, item in DOCUMENT["paths"].items()
    for method in item
    if path != ENDLESS
}
RUN = body(
    [
        question_call("q", ask(multi=True)),
        {
            "tool_call_id": "c",
            "tool_name": "any",
            "args": {"a": [1, {"b": None}]},
            "schema": {"type": "object"},
        },
        {
            "kind": "form",
            "tool_call_id": "f",
            "tool_name": "fill",
            "form": {"fields": [{"name": "n", "kind": "text"}]},
        },
        {"kind": "link", "tool_call_id": "l", "tool_name": "look", "link": {"url": "https://example.com/a"}},
    ],
    [approval("a", args_schema={"type": "object", "required": ["path"]})],
    policy={**KEY_POLICY, "edits": True},
)
POOL = 20
MODES = {"allowed": GenerationMode.POSITIVE, "forbidden": GenerationMode.NEGATIVE}
STREAM = "text/event-stream"


def _can(operation: Any, mode: str) -> bool:
    """Whether an operation takes anything that could be wrong, or gives an answer that comes to an end."""
    if mode == "forbidden":
        return bool(operation.query or operation.body)
    return STREAM not in operation.definition.raw["responses"]["200"]["content"]


CALLS = [(label, mode) for label, operation in OPERATIONS.items() for mode in MODES if _can(operation, mode)]
FEW, MANY = 12, 1500


@pytest.fixture(scope="module")
def server(redis_url: str) -> Iterator[Server]:
    with Server(redis_url) as found:
        yield found


@pytest.fixture(scope="module")
def runs(server: Server) -> list[Json]:
    """Runs of every kind of gate, for ids that are there; some are settled."""
    found = [server.call("/runs", RUN) for _ in range(POOL)]
    for run in found[::4]:
        server.call(f"/runs/{run['id']}/cancel", {})
    return found


def fuzz(label: str, mode: str, count: int, server: Server, runs: list[Json]) -> None:
    """Make so many calls of one operation, and look at each answer."""
    known = st.sampled_from(runs).flatmap(lambda run: st.sampled_from(run["gates"])) | st.none()

    @seed(zlib.crc32(label.encode()))
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[label].as_strategy(generation_mode=MODES[mode]), gate=known)
    def call(case: Case[Any], gate: Json | None) -> None:
        _about(case, gate)
        _impatient(case)
        case.call_and_validate(base_url=server.url, headers=AUTH, checks=CHECKS)

    call()


def _about(case: Case[Any], gate: Json | None) -> None:
    """Call it for a run or a gate that is there, or open one that has gates, else as it is."""
    given, opened = case.path_parameters, case.body
    if gate and isinstance(opened, dict) and "pending" in opened:
        opened |= {"pending": RUN["pending"], "policy": RUN["policy"]}
    if gate and isinstance(given, dict) and "run_id" in given:
        given["run_id"] = gate["run_id"]
    if gate and isinstance(given, dict) and "gate_id" in given:
        given["gate_id"] = gate["id"]


def _impatient(case: Case[Any]) -> None:
    """Wait for nothing: what is allowed is as long as a minute."""
    parts: list[tuple[Any, str]] = [(case.query, "wait"), (case.body, "wait_s")]
    for part, name in parts:
        if isinstance(part, dict) and isinstance(part.get(name), int | float):
            part[name] = min(part[name], LONGEST_WAIT_S)


@pytest.mark.parametrize(("label", "mode"), CALLS)
def test_no_call_gets_an_answer_outside_the_document(
    label: str, mode: str, server: Server, runs: list[Json]
) -> None:
    fuzz(label, mode, FEW, server, runs)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("label", "mode"), CALLS)
def test_no_call_of_very_many_gets_an_answer_outside_the_document(
    label: str, mode: str, server: Server, runs: list[Json]
) -> None:
    fuzz(label, mode, MANY, server, runs)
