"""Health, readiness and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from core.api import Metrics, build_health, health
from core.engine import ResumeEngine
from core.errors import StoreUnavailable
from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import approval, body, question_call

Client = Any


async def fine() -> None:
    return None


async def away() -> None:
    raise StoreUnavailable("The store\ndoes not answer.")


async def broken() -> None:
    raise RuntimeError("redis://user:hunter2@host")


async def stuck() -> None:
    await asyncio.Event().wait()


async def samples(client: Client) -> dict[tuple[str, ...], float]:
    response = await client.get("/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(await response.text())
        for sample in family.samples
        if "_bucket" not in sample.name and "_created" not in sample.name
    }


async def test_health_and_readiness_need_no_key(api: Api) -> None:
    for path, body_ in (
        ("/healthz", {"status": "ok"}),
        ("/readyz", {"status": "ok", "checks": {"store": "ok"}}),
    ):
        response = await api.client.get(path)
        assert (response.status, await response.json()) == (200, body_)


async def test_readiness_says_what_is_wrong_and_no_secret(
    aiohttp_client: Callable[..., Awaitable[Client]], engine: ResumeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CHECK_S", 0.05)
    server = web.Application()
    checks = {"fine": fine, "away": away, "broken": broken, "stuck": stuck}
    server.add_routes(build_health(checks, Metrics(engine.store)))
    client = await aiohttp_client(server)
    response = await client.get("/readyz")
    assert response.status == 503
    assert await response.json() == {
        "status": "unavailable",
        "checks": {
            "fine": "ok",
            "away": "The store does not answer.",
            "broken": "RuntimeError",
            "stuck": "no answer within 0.05 s",
        },
    }
    assert (await client.get("/healthz")).status == 200


async def test_gates_are_counted_whoever_settles_them(
    api: Api, new_engine: Callable[[], ResumeEngine], engine: ResumeEngine
) -> None:
    run = await api.open(body([question_call()], [approval()], policy=KEY_POLICY))
    await api.decide(run["gates"][1]["id"], "deny")
    await api.refused(
        "POST",
        f"/gates/{run['gates'][1]['id']}/decide",
        {"action": "deny"},
        status=409,
        slug="already-settled",
    )
    await new_engine().undeliverable(run["id"], "The channel is archived")
    for _ in range(2):
        found = await samples(api.client)
        assert found["askgate_gates_opened_total", "question"] == 1
        assert found["askgate_gates_opened_total", "approval"] == 1
        assert found["askgate_gates_settled_total", "denied"] == 1
        assert found["askgate_gates_settled_total", "undeliverable"] == 1
        assert found["askgate_decisions_refused_total", "already-settled"] == 1
    assert found["askgate_api_request_seconds_count", "POST", "/api/v1/runs", "201"] == 1


async def test_calls_of_made_up_routes_and_methods_make_no_series_of_their_own(api: Api) -> None:
    for method in ("PUT", "DELETE", "PROPFIND"):
        await api.client.request(method, f"/api/v1/made-up-{method}")
    counted = {
        name: value for name, value in (await samples(api.client)).items() if name[0].endswith("_count")
    }
    assert counted == {("askgate_api_request_seconds_count", "none", "none", "401"): 3}


async def test_the_agenda_tells_how_late_it_is(
    aiohttp_client: Callable[..., Awaitable[Client]], engine: ResumeEngine
) -> None:
    metrics = Metrics(engine.store)
    behind_ms = 0
    metrics.watch_agenda(lambda: behind_ms)
    server = web.Application()
    server.add_routes(build_health({}, metrics))
    client = await aiohttp_client(server)
    assert (await samples(client))["askgate_agenda_behind_seconds",] == 0
    behind_ms = 2500
    assert (await samples(client))["askgate_agenda_behind_seconds",] == 2.5
