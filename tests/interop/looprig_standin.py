"""A stand-in for looprig, which is written in Go: `pkg/serve` and Factory, as their published sources have them.

It has sessions with a journal, gates that open, resolve and close by its rules, streams that can be broken, and
refuses what the real one refuses, with the same words. Each dialect has its own routes, shapes and bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.interop import looprig_factory, looprig_serve
from tests.interop.looprig_gates import Json, ask_user, form, open_url, permission, refused
from tests.interop.looprig_session import Session

__all__ = ["Json", "Looprig", "Session", "ask_user", "form", "open_url", "permission", "refused"]


class Looprig:
    """The server, of both dialects on the same sessions.

    ``faults``: what the next calls answer instead, or what happens before, by `METHOD word` (the route's last), also of
    one session alone: `METHOD word ID`. ``asked``: what was asked, as `METHOD word`, and of which session.
    """

    def __init__(self, token: str = "looprig-test-token") -> None:
        self.token = token
        self.sessions: dict[str, Session] = {}
        self.faults: dict[str, list[web.HTTPException | Callable[[], None] | str]] = {}
        self.asked: list[tuple[str, str]] = []
        app = web.Application()
        serve, factory = looprig_serve.Serve(self.sessions), looprig_factory.Factory(self.sessions)
        self._mount(app, "serve", serve.routes(), looprig_serve.UNAUTHORIZED)
        self._mount(app, "factory", factory.routes(), looprig_factory.UNAUTHORIZED)
        self.server = TestServer(app)

    def _mount(self, app: web.Application, dialect: str, routes: list[web.RouteDef], code: str) -> None:
        @web.middleware
        async def door(request: web.Request, handler: Any) -> web.StreamResponse:
            if request.headers.get("Authorization") != f"Bearer {self.token}":
                raise refused(web.HTTPUnauthorized, code)
            return await self._faulty(request, handler)

        part = web.Application(middlewares=[door])
        part.add_routes(routes)
        app.add_subapp(f"/{dialect}", part)

    def at(self, dialect: str) -> str:
        """The URL of a dialect."""
        return str(self.server.make_url(f"/{dialect}"))

    def session(self) -> Session:
        session = Session()
        self.sessions[session.id] = session
        return session

    def times(self, asked: str, session: Session) -> int:
        """How often that was asked of a session."""
        return self.asked.count((asked, session.id))

    async def _faulty(self, request: web.Request, handler: Any) -> web.StreamResponse:
        words = request.path.split("/")
        asked = f"{request.method} {words[5] if len(words) > 5 else 'sessions'}"
        session_id = request.match_info.get("sid", "")
        self.asked.append((asked, session_id))
        fault = (self.faults.get(f"{asked} {session_id}") or self.faults.get(asked) or [None]).pop(0)
        if isinstance(fault, web.HTTPException):
            raise fault
        if callable(fault):
            fault()
        response: web.StreamResponse = await handler(request)
        if fault == "lose the reply" and request.transport:
            request.transport.close()
        return response
