"""A server that answers as it is told: what a real one is hardly made to say."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = Callable[[], web.Response]


def said(status: int, body: Any) -> Answer:
    """An answer of this status; a body that is no text is JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda: web.Response(status=status, text=text)


class Odd:
    """Answers each path, or path with its query, by what stands in ``answers``; any other one by ``usual``."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.heard: list[Any] = []
        self.held = asyncio.Event()
        """Long polls (`wait=true`) are answered when this is set."""
        self.url = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[Odd]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        async with TestServer(app) as server:
            self.url = str(server.make_url("")).rstrip("/")
            yield self
            self.held.set()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.method == "POST":
            self.heard.append(await request.json())
        if request.query.get("wait"):
            await self.held.wait()
        found = self.answers.get(request.path_qs, self.answers.get(request.path, self.usual))
        return found() if callable(found) else web.json_response(found)
