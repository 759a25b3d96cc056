"""A caller of the HTTP API, on a real server. Each of its answers must be one that the OpenAPI document names."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient
from aiohttp.typedefs import Handler
from pydantic import SecretStr

from core.api import PREFIX, Metrics, build_api, build_health
from core.api.events import MEDIA_TYPE as EVENTS
from core.api.openapi import build_openapi
from core.api.routes import ROUTES, Route
from core.api.views import Problem
from core.engine import ResumeEngine
from tests.runs import Json

SECRETS = {"ci": "ci-secret-0123456789", "bo.t_2": "other-secret-0123456789"}
KEYS = {name: SecretStr(secret) for name, secret in SECRETS.items()}
DOCUMENT = build_openapi(ROUTES, prefix=PREFIX, here="/v1/openapi.json", version="1")


class Traffic:
    """The calls as the server sees them come and go, so that a test need not guess when."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        self.left: asyncio.Queue[int | None] = asyncio.Queue()
        """The status of each answer; None for a caller that hung up."""

    @web.middleware
    async def watch(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.arrived.put_nowait(request.path)
        status = None
        try:
            response = await handler(request)
            status = response.status
        finally:
            self.left.put_nowait(status)
        return response


class Api:
    """Calls as one key. Paths are those behind `/api/v1`."""

    def __init__(self, client: TestClient[Any, Any], traffic: Traffic, key: str = "ci") -> None:
        self.client = client
        self.traffic = traffic
        self._key = key

    def as_key(self, name: str) -> Api:
        return Api(self.client, self.traffic, name)

    async def send(self, method: str, path: str, **more: Any) -> ClientResponse:
        """Send a request and look whether the answer is a documented one."""
        headers = {"Authorization": f"Bearer {SECRETS[self._key]}", **more.pop("headers", {})}
        response = await self.client.request(method, f"/api/v1{path}", headers=headers, **more)
        route = _route(method, path.partition("?")[0])
        if route:
            await _check_documented(route, response)
        return response

    async def get(self, path: str, **params: str) -> Any:
        response = await self.send("GET", path, params=params or None)
        assert response.status == 200, await response.text()
        return await response.json()

    async def post(self, path: str, body: object = None, status: int = 200, **headers: str) -> Any:
        response = await self.send("POST", path, json=body, headers=headers)
        assert response.status == status, await response.text()
        return await response.json()

    async def open(self, body: Json) -> Any:
        return await self.post("/runs", body, status=201)

    async def decide(self, gate: str, action: str, **more: object) -> Any:
        return await self.post(f"/gates/{gate}/decide", {"action": action, **more})

    async def refused(
        self, method: str, path: str, body: object = ..., *, status: int, slug: str, **more: Any
    ) -> Any:
        """A request that must fail: returns the problem, after a look at its form."""
        if body is not ...:
            more["json"] = body
        response = await self.send(method, path, **more)
        assert response.status == status, await response.text()
        assert response.headers["Content-Type"] == "application/problem+json"
        problem = await response.json()
        assert problem["type"] == f"/problems/{slug}"
        assert problem["status"] == status
        assert problem["title"]
        assert problem["detail"]
        assert problem["request_id"] == response.headers["X-Request-Id"]
        return problem

    async def audit(self, **params: str) -> list[Json]:
        response = await self.send("GET", "/audit", params=params)
        assert response.status == 200, await response.text()
        return [json.loads(line) for line in (await response.text()).splitlines()]


def _route(method: str, path: str) -> Route | None:
    for route in ROUTES:
        if route.method == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), f"/v1{path}"):
            return route
    return None


async def _check_documented(route: Route, response: ClientResponse) -> None:
    operation = DOCUMENT["paths"][PREFIX + route.path][route.method.lower()]
    documented = operation["responses"].get(str(response.status))
    assert documented, f"{route.method} {route.path} answered {response.status}: {await response.text()}"
    assert response.headers["Content-Type"] in documented["content"]
    assert set(documented["headers"]) <= {"X-Request-Id", "Location", "WWW-Authenticate", "Retry-After"}
    assert all(name in response.headers for name in documented["headers"])
    if response.headers["Content-Type"] == EVENTS:
        return  # without end; whoever reads it checks what comes
    texts = [await response.text()]
    if route.media_type == response.headers["Content-Type"] != "application/json":
        texts = texts[0].splitlines()
    model = route.gives.get(response.status, Problem)
    for text in texts:
        model.model_validate_json(text)


@pytest.fixture
def new_api(aiohttp_client: Callable[..., Awaitable[Any]]) -> Callable[[ResumeEngine], Awaitable[Api]]:
    """Makes a server for an engine, as the bot does, and a caller of it."""

    async def make(engine: ResumeEngine) -> Api:
        async def store() -> None:
            await engine.store.ping()

        metrics = Metrics(engine.store)
        traffic = Traffic()
        server = web.Application(middlewares=[traffic.watch])
        server.add_subapp(PREFIX, build_api(engine, KEYS, metrics))
        server.add_routes(build_health({"store": store}, metrics))
        return Api(await aiohttp_client(server, server_kwargs={"handler_cancellation": True}), traffic)

    return make


@pytest.fixture
async def api(new_api: Callable[[ResumeEngine], Awaitable[Api]], engine: ResumeEngine) -> Api:
    return await new_api(engine)


KEY_POLICY: Json = {"approvers": ["key:ci"], "responders": ["key:ci"]}
"""A policy under which the key `ci` may decide everything."""


@pytest.fixture
async def two_engines(new_engine: Callable[[], ResumeEngine]) -> list[ResumeEngine]:
    return [new_engine(), new_engine()]
