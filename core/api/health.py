"""Health, readiness and metrics: for whatever keeps the process alive, without a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from core.api.metrics import Metrics
from core.errors import AskgateError
from core.served import Served

log = structlog.get_logger(__name__)
CHECK_S = 5.0

Check = Callable[[], Awaitable[None]]
"""Raises an AskgateError, whose one-line detail is shown, when something is not as it should be."""


def build_health(
    checks: Mapping[str, Check], metrics: Metrics, served: Callable[[], Mapping[str, Served]] = dict
) -> list[web.RouteDef]:
    """The routes `/healthz`, `/readyz` and `/metrics`, for `Application.add_routes`.

    ``served`` are the hosts that this process serves: they are told of, and decide nothing, for people can go on
    deciding while one of them is away.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        words = await asyncio.gather(*(_checked(name, check) for name, check in checks.items()))
        ready = all(word == "ok" for word in words)
        body: dict[str, object] = {
            "status": "ok" if ready else "unavailable",
            "checks": dict(zip(checks, words, strict=True)),
        }
        if hosts := served():
            body["hosts"] = {
                name: {"status": host.problem or "ok", "unopened": host.unopened}
                for name, host in hosts.items()
            }
        return web.json_response(body, status=200 if ready else 503)

    async def exposed(_: web.Request) -> web.Response:
        return web.Response(body=await metrics.exposed(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposed)]


async def _checked(name: str, check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_S):
            await check()
    except TimeoutError:
        return f"no answer within {CHECK_S:g} s"
    except AskgateError as error:
        return " ".join(error.detail.split())
    except Exception as error:  # noqa: BLE001  # whatever a check raises makes it fail
        # the text of a foreign error may hold a token or a URL with a password
        log.warning("health.check_failed", check=name, error=type(error).__name__)
        return type(error).__name__
    return "ok"
