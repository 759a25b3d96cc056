"""The routes of looprig's `pkg/serve`, with its bounds: what is not live has no stream, and takes nothing."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

from aiohttp import web

from tests.interop.looprig_gates import Json, refused
from tests.interop.looprig_session import Session

UNAUTHORIZED = "unauthorized"


class Serve:
    """One process that has the sessions that are live."""

    def __init__(self, sessions: dict[str, Session]) -> None:
        self._sessions = sessions

    def routes(self) -> list[web.RouteDef]:
        v1 = "/v1/sessions/{sid}"
        return [
            web.get("/v1/sessions", self._list),
            web.get(v1 + "/journal", self._journal),
            web.get(v1 + "/events", self._events),
            web.post(v1 + "/input", self._input),
            web.post(v1 + "/gates/{gid}", self._respond),
        ]

    def _of(self, request: web.Request, *, live: bool) -> Session:
        session = self._sessions.get(_uuid(request.match_info["sid"]))
        if session is None or (live and not session.live):
            raise refused(web.HTTPNotFound, "session_not_found")
        return session

    async def _list(self, request: web.Request) -> web.Response:
        skip, limit = _number(request, "skip", 0, 0), _number(request, "limit", 100, 1, 1000)
        latest = sorted(self._sessions.values(), key=lambda s: (-s.active_at.timestamp(), s.id))
        page = latest[skip : skip + limit]
        body: Json = {"sessions": list(map(_line, page)), "skip": skip, "limit": limit, "next_skip": 0}
        body["done"] = len(page) < limit
        if not body["done"]:
            body["next_skip"] = skip + len(page)
        return web.json_response(body)

    async def _journal(self, request: web.Request) -> web.Response:
        session = self._of(request, live=False)
        limit = _number(request, "limit", 100, 1, 1000)
        found = session.public(_number(request, "from_journal_seq", 0, 0))
        # an item may come without its event
        events = [{"journal_seq": seq} | ({"event": event} if event else {}) for seq, event in found[:limit]]
        done = len(found) < limit
        following = 0 if done else events[-1]["journal_seq"] + 1
        return web.json_response({"events": events, "next_journal_seq": following, "done": done})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        session, stream = self._of(request, live=True), asyncio.Queue[tuple[int, Json] | None]()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        session.streams.add(stream)
        try:
            await response.prepare(request)
            await response.write(b': ping\n\nevent: ephemeral\ndata: {"v":1,"kind":"token_delta"}\n\n')
            while (item := await stream.get()) is not None:
                seq, event = item
                data = json.dumps({"v": 1, "event": event})
                await response.write(f"event: enduring\nid: {seq}\ndata: {data}\n\n".encode())
        finally:
            session.streams.discard(stream)
        return response

    async def _input(self, request: web.Request) -> web.Response:
        session, body = self._of(request, live=True), await _body(request)
        if not body.get("blocks"):
            raise refused(web.HTTPBadRequest, "invalid_body")
        session.said += [block["text"] for block in body["blocks"]]
        return web.json_response({"command_id": str(uuid.uuid4())})

    async def _respond(self, request: web.Request) -> web.Response:
        gate_id = _uuid(request.match_info["gid"])
        session, body = self._of(request, live=True), await _body(request)
        session.answer(gate_id, body.get("action", ""), body.get("values") or {})
        return web.json_response({}, status=202)


def _line(session: Session) -> Json:
    return {
        "session_id": session.id,
        "state": session.state,
        "created_at": session.created_at.isoformat(),
        "last_active_at": session.active_at.isoformat(),
    }


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise refused(web.HTTPBadRequest, "invalid_parameter") from None


def _number(request: web.Request, name: str, default: int, least: int, most: int = 2**63) -> int:
    text = request.query.get(name, "") or str(default)
    if not text.isdecimal() or not least <= int(text) <= most:
        raise refused(web.HTTPBadRequest, "invalid_parameter")
    return int(text)


async def _body(request: web.Request) -> Json:
    """Members that it does not know it passes over."""
    try:
        body: Any = json.loads(await request.read() or b"{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise refused(web.HTTPBadRequest, "invalid_body")
    return body
