"""Builds the HTTP API as an aiohttp sub-application."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import SecretStr

from core.api.call import Call, Work
from core.api.door import CALLER, keyed, observed, problems, tell_request_id
from core.api.metrics import Metrics
from core.api.openapi import build_openapi
from core.api.routes import ROUTES, Route
from core.engine import ResumeEngine

PREFIX = "/api"
"""Where the sub-application belongs: `server.add_subapp(PREFIX, build_api(…))`."""
OPENAPI = "/v1/openapi.json"


def build_api(
    engine: ResumeEngine, keys: Mapping[str, SecretStr], metrics: Metrics | None = None
) -> web.Application:
    """The API for this engine, to be mounted at PREFIX. ``keys`` are the secrets of the API keys, by name.

    The server wants ``handler_cancellation=True``: then a caller that hangs up ends its wait. Commits go on.
    """
    work, metrics = Work(), metrics or Metrics(engine.store)
    door = keyed(keys, open_paths=frozenset({PREFIX + OPENAPI}))
    app = web.Application(middlewares=[observed(metrics), problems, door])
    for route in ROUTES:
        app.router.add_route(route.method, route.path, _handler(route, engine, work))
    document = json.dumps(
        build_openapi(ROUTES, prefix=PREFIX, here=OPENAPI, version=version("askgate"))
    ).encode()

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(body=document, headers={"Content-Type": "application/json"})

    app.router.add_get(OPENAPI, openapi, allow_head=False)
    app.on_response_prepare.append(tell_request_id)
    app.on_shutdown.append(work.stop)
    return app


def _handler(route: Route, engine: ResumeEngine, work: Work) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await route.call(Call(request, engine, request[CALLER], work))

    return handle
