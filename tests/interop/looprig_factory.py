"""The routes of looprig's Factory, with its bounds: bodies are taken strictly, and pages go on by cursors."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tests.interop.looprig_gates import Json, refused
from tests.interop.looprig_session import Session

UNAUTHORIZED = "unauthenticated"
OPEN_GATES, ANSWER_BYTES = 16, 64 * 1024
RESPONSE = {"gate_id", "action", "values"}


class Factory:
    """A Factory before any number of processes: whether a session is live is not its caller's affair."""

    def __init__(self, sessions: dict[str, Session]) -> None:
        self._sessions = sessions

    def routes(self) -> list[web.RouteDef]:
        v1 = "/v1/sessions/{sid}"
        return [
            web.get("/v1/sessions", self._list),
            web.get(v1 + "/journal", self._journal),
            web.get(v1 + "/gates", self._gates),
            web.post(v1 + "/input", self._input),
            web.post(v1 + "/gates/{gid}", self._respond),
            web.get(v1 + "/commands/{cid}", self._command),
        ]

    def _of(self, request: web.Request) -> Session:
        if session := self._sessions.get(request.match_info["sid"]):
            return session
        raise refused(web.HTTPNotFound, "session_not_found")

    # reading

    async def _list(self, request: web.Request) -> web.Response:
        limit = min(_number(request, "limit", 50, 1), 200)
        latest = sorted(self._sessions.values(), key=lambda s: (-s.active_at.timestamp(), s.id))
        first = _place(request.query["cursor"], "sessions") if "cursor" in request.query else 0
        body: Json = {"sessions": list(map(_line, latest[first : first + limit]))}
        if first + limit < len(latest):
            body["next_cursor"] = f"sessions:{first + limit}"
        return web.json_response(body)

    async def _journal(self, request: web.Request) -> web.Response:
        session = self._of(request)
        limit = min(_number(request, "limit", 64, 1), 200)
        if "cursor" in request.query and "from_seq" in request.query:
            raise refused(web.HTTPBadRequest, "invalid_request")
        tip = len(session.journal)
        first = _number(request, "from_seq", max(0, tip - limit + 1), 0)  # without a position: the end
        if "cursor" in request.query:
            first = _place(request.query["cursor"], session.id)
        found = session.public(first)
        events = [
            {"event_id": event["event_id"], "journal_seq": seq, "body": event} for seq, event in found[:limit]
        ]
        body: Json = {"events": events, "journal_tip": tip, "covered_through": tip}
        if len(found) > limit:
            body["covered_through"] = found[limit][0] - 1
            body["next_cursor"] = f"{session.id}:{found[limit][0]}"
        return web.json_response(body)

    async def _gates(self, request: web.Request) -> web.Response:
        session = self._of(request)
        items = [_projection(session, gate) for gate in list(session.gates.values())[:OPEN_GATES]]
        body = {"journal_tip": len(session.journal), "open_gate_count": len(items), "gates": items}
        return web.json_response(body)

    async def _command(self, request: web.Request) -> web.Response:
        session = self._of(request)
        known = session.commands.get(request.match_info["cid"])
        if known is None:
            raise refused(web.HTTPNotFound, "command_not_found")
        if session.slow:
            session.slow -= 1
            return web.json_response(_accepted(known["status"]))
        return web.json_response(known["status"])

    # commands

    async def _respond(self, request: web.Request) -> web.Response:
        session, gate_id = self._of(request), request.match_info["gid"]
        body = await _strict(request, RESPONSE, {"expected_open_event_id", "expected_open_journal_seq"})
        if (
            body["gate_id"] != gate_id
            or len(body.keys() & {"expected_open_event_id", "expected_open_journal_seq"}) != 1
        ):
            raise refused(web.HTTPBadRequest, "invalid_request")
        if not isinstance(body["values"], dict) or len(json.dumps(body)) > ANSWER_BYTES:
            raise refused(web.HTTPBadRequest, "invalid_request")

        def admit() -> None:
            if gate_id not in session.gates:
                raise refused(web.HTTPConflict, "gate_resolved")
            opened = session.opened[gate_id]
            named = (body.get("expected_open_event_id"), body.get("expected_open_journal_seq"))
            if named not in ((opened["event"]["event_id"], None), (None, opened["seq"])):
                raise refused(web.HTTPConflict, "command_rejected")

        def apply() -> None:
            if session.before_it_applies:
                session.before_it_applies()
            if gate_id in session.gates:  # else it does nothing, and is applied all the same
                session.answer(gate_id, body["action"], body["values"], cause=body["command_id"])

        return web.json_response(_ordered(session, body, admit, apply), status=202)

    async def _input(self, request: web.Request) -> web.Response:
        session, body = self._of(request), await _strict(request, {"blocks"})
        if not isinstance(body["blocks"], list) or not body["blocks"]:
            raise refused(web.HTTPBadRequest, "invalid_request")

        def apply() -> None:
            if not session.takes_input:
                raise refused(web.HTTPUnprocessableEntity, "runtime_unavailable")
            session.said += [block["text"] for block in body["blocks"]]

        return web.json_response(_ordered(session, body, lambda: None, apply))


def _ordered(session: Session, body: Json, admit: Callable[[], None], apply: Callable[[], None]) -> Json:
    """Take a command, once: what it came to is read by its id, and the same bytes again have the same answer."""
    if (known := session.commands.get(body["command_id"])) is not None:
        if known["body"] != body:
            raise refused(web.HTTPConflict, "command_rejected")
        return dict(known["status"])
    admit()
    status: Json = {"command_id": body["command_id"], "status": "applied", "accepted_order": 1}
    try:
        apply()
    except web.HTTPException as error:
        status |= {"status": "rejected", "error": json.loads(error.text or "{}")["error"]}
    session.commands[body["command_id"]] = {"body": body, "status": status}
    return _accepted(status)


def _accepted(status: Json) -> Json:
    return {"command_id": status["command_id"], "status": "accepted", "accepted_order": 1}


def _line(session: Session) -> Json:
    return {
        "session_id": session.id,
        "agent_id": "agent-1",
        "state": session.state if session.state == "stopped" else "idle",  # gates do not show here
        "created_at": session.created_at.isoformat(),
        "last_active_at": session.active_at.isoformat(),
    }


def _projection(session: Session, gate: Json) -> Json:
    opened = session.opened[gate["id"]]
    return {
        "gate_id": gate["id"],
        "kind": gate["kind"],
        "prompt": {"schema": {}, **gate["prompt"]},
        "opened_event_id": opened["event"]["event_id"],
        "opened_journal_seq": opened["seq"],
        "deadline": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
        "answerability": gate.get("answerability", "resident"),
    }


def _number(request: web.Request, name: str, default: int, least: int) -> int:
    values = request.query.getall(name, [str(default)])
    if len(values) > 1 or not values[0].isdecimal() or int(values[0]) < least:
        raise refused(web.HTTPBadRequest, "invalid_request")
    return int(values[0])


def _place(cursor: str, kind: str) -> int:
    of, _, place = cursor.partition(":")
    if of != kind or not place.isdecimal():
        raise refused(web.HTTPBadRequest, "invalid_request")
    return int(place)


async def _strict(request: web.Request, wanted: set[str], allowed: set[str] | None = None) -> Json:
    """A command's body: of exactly these members, each once, for the session that the path names."""
    if request.content_type != "application/json":
        raise refused(web.HTTPUnsupportedMediaType, "unsupported_media_type")
    wanted = wanted | {"version", "command_id", "session_id"}
    try:
        body: Any = json.loads(await request.read(), object_pairs_hook=_once)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not wanted <= body.keys() <= wanted | (allowed or set()):
        raise refused(web.HTTPBadRequest, "invalid_request")
    ids_fit = body["version"] == 1 and body["session_id"] == request.match_info["sid"]
    if not ids_fit or not 1 <= len(str(body["command_id"]).encode()) <= 256:
        raise refused(web.HTTPBadRequest, "invalid_request")
    return body


def _once(pairs: list[tuple[str, Any]]) -> Json:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a member comes twice")
    return dict(pairs)
