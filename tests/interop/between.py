"""A way to a server on which things get lost: what is sent, or the reply to it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

PASSED = ("Authorization", "Idempotency-Key")
"""The headers that a server is told."""


@dataclass
class Fault:
    """What happens to requests that match, a `METHOD path`.

    `reply`: it gets there, and the caller hears nothing. `request`: it gets nowhere, and the caller hears nothing.
    A number is a status that the caller gets, from nobody who asked the server; with ``location`` it is sent elsewhere.
    None: it is only late, for ``first`` is done before it gets there.
    """

    matches: str
    lost: Literal["reply", "request"] | int | None
    times: int
    location: str = ""
    first: Callable[[], Awaitable[None]] | None = None
    met: int = 0


class Between:
    """Passes everything on to ``url`` that no fault is about."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._faults: list[Fault] = []
        self.url = ""
        self.seen: list[str] = []
        """All that was asked, as `METHOD path`."""

    def fail(
        self, matches: str, lost: Literal["reply", "request"] | int, times: int = 1, *, location: str = ""
    ) -> Fault:
        """Have so many requests fail of those that match a pattern. Returns what counts them."""
        fault = Fault(matches, lost, times, location)
        self._faults.append(fault)
        return fault

    def overtake(self, matches: str, first: Callable[[], Awaitable[None]]) -> None:
        """Have somebody be faster than the next request that matches a pattern."""
        self._faults.append(Fault(matches, None, 1, first=first))

    @contextlib.asynccontextmanager
    async def serving(self, port: int | None = None) -> AsyncIterator[Between]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        async with TestServer(app, port=port) as server:
            self.url = str(server.make_url("")).rstrip("/")
            yield self

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        asked = f"{request.method} {request.path}"
        self.seen.append(asked)
        fault = self._fault(asked)
        if fault and fault.first:
            await fault.first()
        if fault and isinstance(fault.lost, int):
            headers = {"Location": fault.location} if fault.location else None
            return web.json_response({"detail": "for the test"}, status=fault.lost, headers=headers)
        if fault and fault.lost == "request":
            return _nothing(request)
        async with ClientSession() as session:
            body = await request.read()
            headers = {"Content-Type": "application/json"}
            headers |= {name: request.headers[name] for name in PASSED if name in request.headers}
            async with session.request(
                request.method, f"{self._url}{request.path_qs}", data=body or None, headers=headers
            ) as answer:
                data = await answer.read()
        if fault and fault.lost:
            return _nothing(request)
        kind = answer.content_type if data else None
        return web.Response(status=answer.status, body=data, content_type=kind)

    def _fault(self, asked: str) -> Fault | None:
        for fault in self._faults:
            if fault.met < fault.times and re.search(fault.matches, asked):
                fault.met += 1
                return fault
        return None


def _nothing(request: web.Request) -> web.Response:
    assert request.transport
    request.transport.close()
    return web.Response()
