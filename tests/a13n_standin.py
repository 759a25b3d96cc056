"""A stand-in for an a13n Service where no real one is wanted: its sessions, threads and runs can only be read."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Json = dict[str, Any]


class A13nStandin:
    """Each run that waits has a session and a thread of its own. ``status``: what every call is answered with."""

    def __init__(self) -> None:
        self.status = 200
        self.pending: dict[str, Json] = {}
        self.url = ""

    def wait(self, name: str, tool: str, arguments: Json) -> None:
        """Have a run wait for a client tool's result."""
        call = {"tool_call_id": "c", "tool_name": tool, "arguments": arguments, "presentation": None}
        self.pending[name] = {"approvals": [], "calls": [call]}

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[A13nStandin]:
        app = web.Application(middlewares=[self._answered])
        app.add_routes(
            [
                web.get("/api/v1/sessions", self._sessions),
                web.get("/api/v1/threads", self._threads),
                web.get("/api/v1/threads/{id}", self._thread),
                web.get("/api/v1/runs/{id}", self._run),
                web.get("/api/v1/agents/{id}", self._agent),
            ]
        )
        async with TestServer(app) as server:
            self.url = str(server.make_url("")).rstrip("/")
            yield self

    @web.middleware
    async def _answered(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.status != 200:
            return _refused(self.status, "unavailable")
        try:
            return web.json_response(await handler(request))
        except web.HTTPNotFound:
            return _refused(404, "not_found")

    async def _sessions(self, _: web.Request) -> Json:
        return {"items": [{"id": name, "last_run_id": name} for name in self.pending], "next_cursor": None}

    async def _threads(self, request: web.Request) -> Json:
        found = [_thread(name) for name in self.pending if name == request.query["session_id"]]
        return {"items": found, "next_cursor": None}

    async def _thread(self, request: web.Request) -> Json:
        return _thread(request.match_info["id"])

    async def _run(self, request: web.Request) -> Json:
        name = request.match_info["id"]
        if name not in self.pending:
            raise web.HTTPNotFound
        ids = {"id": name, "thread_id": name, "session_id": name, "agent_id": "a"}
        return {**ids, "status": "waiting", "pending": self.pending[name], "failure": None}

    async def _agent(self, _: web.Request) -> Json:
        return {"name": "Release agent"}


def _refused(status: int, code: str) -> web.Response:
    return web.json_response({"error": {"code": code, "message": "for the test"}}, status=status)


def _thread(name: str) -> Json:
    return {"id": name, "head_run_id": name, "current_run_id": None, "last_run_id": name, "archived_at": None}
