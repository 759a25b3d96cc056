"""A receiver of callbacks: a real server that checks each signature, and answers as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from socket import AF_INET, AddressFamily

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.test_utils import TestServer
from standardwebhooks import Webhook

from tests.runs import Json

SECRET = "whsec_" + "c2VjcmV0LW9mLXRoZS1yZWNlaXZlcg=="


@dataclass(frozen=True)
class Post:
    """One request. ``message`` is its body, once its signature was found to be right."""

    raw: bytes
    headers: dict[str, str]
    message: Json

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """``script`` says how the next requests are answered: with a status, or `drop`, `hang`, `flood`, `redirect`.

    After it, with 204.
    """

    script: list[int | str] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    sent: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=in-the-url"

    @contextlib.asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
        app = web.Application(client_max_size=8 << 20)
        app.router.add_post("/hook", self._hook)
        app.router.add_route("*", "/{other:.*}", self._other)
        server = TestServer(app, host="127.0.0.1", scheme="https" if tls else "http")
        await server.start_server(ssl=tls)
        assert server.port
        self.port = server.port
        try:
            yield self
        finally:
            self.go_on.set()
            await server.close()

    async def _hook(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        Webhook(SECRET).verify(raw, headers)
        self.posts.append(Post(raw, headers, json.loads(raw)))
        self.arrived.set()
        match self.script.pop(0) if self.script else 204:
            case "drop":
                assert request.transport
                request.transport.abort()
                return web.Response()
            case "hang":
                await self.go_on.wait()
                return web.Response(status=204)
            case "redirect":
                return web.Response(status=307, headers={"Location": "/elsewhere"})
            case "flood":
                return await self._flood(request)
            case int() as status:
                return web.Response(status=status, text="secret words of the receiver")
        raise AssertionError(self.script)

    async def _flood(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _ in range(2000):
                await response.write(b"x" * 64 * 1024)
                self.sent += 64 * 1024
        return response

    async def _other(self, request: web.Request) -> web.Response:
        self.others.append(request.path)
        return web.Response()


@dataclass
class Names(AbstractResolver):
    """A resolver by script: each look-up gets the next of the answers, the last one for ever."""

    answers: list[list[str]]
    asked: int = 0

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AddressFamily.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            ResolveResult(hostname=host, host=address, port=port, family=AF_INET, proto=0, flags=0)
            for address in found
        ]

    async def close(self) -> None:
        """There is nothing to close."""
