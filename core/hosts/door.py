"""Where hosts call: `POST /hosts/{name}/webhook`, for those that tell by themselves what waits."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from aiohttp import web

from core.errors import StoreUnavailable
from core.hosts.base import Calls, HostAway, NotGenuine
from core.hosts.desk import Desk
from core.hosts.desks import Desks
from core.ids import new_token
from core.store.events import DONE, Events

MAX_BYTES: Final = 1024 * 1024
ANSWER_S: Final = 8.0
"""How long a delivery may take: hosts hang up after 10 s, and what they did not hear of they bring again."""

log = structlog.get_logger(__name__)


class HostDoor:
    """Checks that a delivery is the host's own, and opens what it is about before it is acknowledged."""

    def __init__(self, desks: Desks, events: Events) -> None:
        self._desks = desks
        self._events = events

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/hosts/{name}/webhook", self.handle)]

    async def handle(self, request: web.Request) -> web.Response:
        """Answers 204 (heard), 401 (not the host's), 404 (no such host calls here), 413, or 503 (bring it again)."""
        name = request.match_info["name"]
        desk = self._desks.get(name)
        if desk is None or desk.calls is None:
            return _no(404, "no host of this name calls here")
        body = await _read(request)
        if body is None:
            return _no(413, "the body is too large")
        try:
            delivery = desk.calls.delivery(request.headers, body)
        except NotGenuine as error:
            log.warning("host.call_refused", host=name, reason=str(error))
            return _no(401, str(error))
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._once(f"{name}:{delivery}", desk, desk.calls, body)
        except (HostAway, StoreUnavailable, TimeoutError) as error:
            log.warning("host.call_later", host=name, delivery=delivery, error=type(error).__name__)
            return _no(503, "not now")

    async def _once(self, delivery: str, desk: Desk, calls: Calls, body: bytes) -> web.Response:
        """A delivery that was heard already is only acknowledged; one that is being heard comes again."""
        word = await self._events.begin(delivery, new_token())
        if word != "first":
            return web.Response(status=204) if word == DONE else _no(503, "it is being heard")
        done = False
        try:
            for wait in await calls.heard(body):
                await desk.open(wait)
            done = True
            log.info("host.called", delivery=delivery)
        finally:
            await self._events.end(delivery, done=done)
        return web.Response(status=204)


async def _read(request: web.Request) -> bytes | None:
    """All of the body, or None if it is too large."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)


def _no(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status)
