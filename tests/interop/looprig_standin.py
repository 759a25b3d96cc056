"""A stand-in for looprig, which is written in Go: `pkg/serve` and Factory's gates and commands, as they are documented.

It has sessions with a journal, gates that open, resolve and close by its rules, streams that can be broken, and
refuses what the real one refuses, with the same words.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Json = dict[str, Any]

APPROVALS = ("Approve", "Approve always for this workspace", "Deny")


def permission(
    *, always: bool = True, timeout_s: float | None = None, body: str = "Delete /tmp/old.log"
) -> Json:
    """A permission gate as the loop opens it."""
    offered = APPROVALS if always else ("Approve", "Deny")
    nanoseconds = int((timeout_s or 0) * 1e9)
    policy = {"timeout": nanoseconds, "on_timeout": "respond", "response": {"action": "Deny"}}
    return {
        "kind": "harness.permission",
        "resolver": "loop",
        "subject": {"tool_execution_id": str(uuid.uuid4()), "turn_id": "turn-1"},
        "prompt": {
            "title": "Approve tool call",
            "body": body,
            "controls": [{"action": action, "label": action} for action in offered],
        },
        **({"response_policy": policy} if timeout_s else {}),
    }


def ask_user(question: str, *choices: str) -> Json:
    field: Json = {
        "name": "answer",
        "label": question,
        "kind": "select" if choices else "text",
        "required": True,
    }
    if choices:
        field["options"] = [{"value": choice, "label": choice} for choice in choices]
    return {
        "kind": "harness.ask_user",
        "resolver": "loop",
        "subject": {"turn_id": "turn-1"},
        "prompt": {
            "title": "User input requested",
            "body": question,
            "schema": {"fields": [field]},
            "controls": [{"action": "answer", "label": "Answer"}],
        },
    }


def form(*fields: Json, controls: tuple[str, ...] = ("accept", "decline", "cancel")) -> Json:
    return {
        "kind": "harness.form",
        "resolver": "session",
        "prompt": {
            "title": "Release",
            "body": "Which one goes out?",
            "schema": {"fields": list(fields)},
            "controls": [{"action": action, "label": action.title()} for action in controls],
        },
    }


def open_url(origin: str) -> Json:
    return {
        "kind": "harness.open_url",
        "resolver": "session",
        "prompt": {
            "title": "Sign in",
            "origin": origin,
            "controls": [{"action": action, "label": action} for action in ("accept", "decline")],
        },
    }


class Session:
    """One session: its journal, its open gates, and who listens.

    ``names_causes``: whether the journal says by whose command a gate was answered. ``slow``: how often a command is
    still pending when it is asked for. ``before_it_applies``: what happens between taking a command and applying it.
    """

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.journal: list[Json] = []
        self.gates: dict[str, Json] = {}
        self.opened: dict[str, Json] = {}
        self.heard: list[tuple[str, str, Json]] = []
        self.said: list[str] = []
        self.commands: dict[str, Json] = {}
        self.names_causes = True
        self.slow = 0
        self.before_it_applies: Callable[[], None] | None = None
        self.streams: set[asyncio.Queue[tuple[int, Json] | None]] = set()

    def append(self, kind: str, **body: Any) -> Json:
        event = {
            "type": kind,
            "v": 1,
            "session_id": self.id,
            "event_id": str(uuid.uuid4()),
            "created_at": datetime.now(UTC).isoformat().replace("+00:00", "123Z"),
            **body,
        }
        self.journal.append(event)
        for stream in self.streams:
            stream.put_nowait((len(self.journal) - 1, event))
        return event

    def open(self, gate: Json, request: Json | None = None) -> str:
        """Open a gate; with the request that a permission is about, told right behind."""
        gate_id = str(uuid.uuid4())
        self.gates[gate_id] = {"id": gate_id, "blocks": "tool_call", "effect": "resume", **gate}
        self.opened[gate_id] = self.append("GateOpened", turn_id="turn-1", gate=self.gates[gate_id])
        if request is not None:
            execution_id = gate["subject"]["tool_execution_id"]
            self.append("PermissionRequested", tool_execution_id=execution_id, request=request)
        return gate_id

    def resolve(
        self,
        gate_id: str,
        action: str,
        source: str = "user",
        reason: str = "answered",
        cause: str = "",
        values: Json | None = None,
    ) -> None:
        """Somebody answered it, or it was closed."""
        gate = self.gates.pop(gate_id)
        body: Json = {"gate_id": gate_id, "resolver": "loop", "reason": reason, "source": {"kind": source}}
        if action:
            body["action"] = action
        if cause and self.names_causes:
            body["cause"] = {"command_id": cause}
        if values and (audit := _audit(gate["kind"], values)):
            body["audit"] = audit
        self.append("GateResolved", **body)

    def break_streams(self) -> None:
        """Every listener loses its connection."""
        for stream in self.streams:
            stream.put_nowait(None)

    def answer(self, gate_id: str, action: str, values: Json, cause: str = "") -> None:
        """Answer a gate by its rules. Raises web.HTTPException with the real one's word."""
        gate = self.gates.get(gate_id)
        if gate is None:
            raise refused(web.HTTPNotFound, "gate_not_found")
        offered = [control["action"] for control in gate["prompt"]["controls"]]
        if action not in offered or not _fits(gate, action, values):
            raise refused(web.HTTPBadRequest, "gate_action_invalid")
        self.heard.append((gate_id, action, values))
        self.resolve(gate_id, action, cause=cause, values=values)


def _audit(kind: str, values: Json) -> Json | None:
    """What the journal keeps of an answer: the first 80 bytes of one to a question, all of a form."""
    if kind == "harness.ask_user":
        preview = values["answer"].encode()[:80].decode(errors="replace")
        return {"kind": "ask_user", "data": {"answer_preview": preview}}
    if kind != "harness.form":
        return None
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in values.items()}
    return {"kind": "form", "data": {"values": texts}}


def _fits(gate: Json, action: str, values: Json) -> bool:
    if gate["kind"] == "harness.ask_user":
        return isinstance(values.get("answer", ""), str)
    if gate["kind"] != "harness.form" or action != "accept":
        return True
    fields = {field["name"]: field for field in gate["prompt"]["schema"]["fields"]}
    if values.keys() - fields.keys():
        return False
    return all(_fits_field(field, values.get(name)) for name, field in fields.items())


def _fits_field(field: Json, value: Any) -> bool:
    if value is None:
        return not field.get("required")
    if field["kind"] == "confirm":
        return isinstance(value, bool)
    if not isinstance(value, str) or len(value.encode()) > 4096 or (field.get("required") and not value):
        return False
    return field["kind"] != "select" or value in [option["value"] for option in field["options"]]


def refused(kind: type[web.HTTPException], code: str, *, retryable: bool = False) -> web.HTTPException:
    body = {"error": {"code": code, "message": code, "retryable": retryable}}
    return kind(text=json.dumps(body), content_type="application/json")


class Looprig:
    """The server. ``faults``: what the next calls of a route's last word answer instead, or what happens before."""

    def __init__(self, token: str = "looprig-test-token") -> None:
        self.token = token
        self.sessions: dict[str, Session] = {}
        self.faults: dict[str, list[web.HTTPException | Callable[[], None] | str]] = {}
        app = web.Application(middlewares=[self._door])
        v1 = "/v1/sessions/{sid}"
        app.add_routes(
            [
                web.get("/v1/sessions", self._list),
                web.get(v1 + "/journal", self._journal),
                web.get(v1 + "/events", self._events),
                web.post(v1 + "/input", self._input),
                web.get(v1 + "/gates", self._gates),
                web.post(v1 + "/gates/{gid}", self._respond),
                web.get(v1 + "/commands/{cid}", self._command),
            ]
        )
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return str(self.server.make_url("/")).rstrip("/")

    def session(self) -> Session:
        session = Session()
        self.sessions[session.id] = session
        return session

    @web.middleware
    async def _door(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise refused(web.HTTPUnauthorized, "unauthorized")
        if "sid" in request.match_info and request.match_info["sid"] not in self.sessions:
            raise refused(web.HTTPNotFound, "session_not_found")
        name = request.path.split("/")[4] if request.path.count("/") > 3 else "sessions"
        fault = (self.faults.get(f"{request.method} {name}") or [None]).pop(0)
        if isinstance(fault, web.HTTPException):
            raise fault
        if callable(fault):
            fault()
        response: web.StreamResponse = await handler(request)
        if fault == "lose the reply" and request.transport:
            request.transport.close()
        return response

    def _of(self, request: web.Request) -> Session:
        return self.sessions[request.match_info["sid"]]

    async def _list(self, request: web.Request) -> web.Response:
        skip, limit = int(request.query["skip"]), int(request.query["limit"])
        items = [{"session_id": session_id} for session_id in self.sessions][skip : skip + limit]
        return web.json_response({"sessions": items})

    async def _journal(self, request: web.Request) -> web.Response:
        journal, first = self._of(request).journal, int(request.query["from_journal_seq"])
        last = min(
            len(journal), first + min(int(request.query["limit"]), 3)
        )  # small pages, so that there are many
        events = [{"journal_seq": seq, "event": journal[seq]} for seq in range(first, last)]
        return web.json_response(
            {"events": events, "next_journal_seq": max(first, last), "done": last >= len(journal)}
        )

    async def _events(self, request: web.Request) -> web.StreamResponse:
        session, stream = self._of(request), asyncio.Queue[tuple[int, Json] | None]()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        session.streams.add(stream)
        try:
            await response.prepare(request)
            await response.write(b': ping\n\nevent: ephemeral\ndata: {"v":1,"event":{"type":"Delta"}}\n\n')
            while (item := await stream.get()) is not None:
                seq, event = item
                data = json.dumps({"v": 1, "event": event})
                await response.write(f"event: enduring\nid: {seq}\ndata: {data}\n\n".encode())
        finally:
            session.streams.discard(stream)
        return response

    async def _input(self, request: web.Request) -> web.Response:
        body = await request.json()
        self._of(request).said += [block["text"] for block in body["blocks"]]
        return web.json_response({"command_id": str(uuid.uuid4())})

    async def _gates(self, request: web.Request) -> web.Response:
        session = self._of(request)
        items = [
            {
                "gate_id": gate_id,
                "kind": gate["kind"],
                "prompt": gate["prompt"],
                "opened_event_id": session.opened[gate_id]["event_id"],
                "deadline": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
                "answerability": gate.get("answerability", "resident"),
            }
            for gate_id, gate in session.gates.items()
        ]
        return web.json_response({"journal_tip": len(session.journal), "gates": items})

    async def _respond(self, request: web.Request) -> web.Response:
        session, body, gate_id = self._of(request), await request.json(), request.match_info["gid"]
        if "command_id" in body:
            return self._order(session, gate_id, body)
        if body.keys() - {"action", "values"}:
            raise refused(web.HTTPBadRequest, "invalid_request")
        session.answer(gate_id, body["action"], body["values"])
        return web.json_response({}, status=202)

    def _order(self, session: Session, gate_id: str, body: Json) -> web.Response:
        wanted = {
            "version",
            "command_id",
            "session_id",
            "gate_id",
            "action",
            "values",
            "expected_open_event_id",
        }
        if body.keys() != wanted or (body["session_id"], body["gate_id"]) != (session.id, gate_id):
            raise refused(web.HTTPBadRequest, "invalid_request")
        if (known := session.commands.get(body["command_id"])) is not None:
            if known["body"] != body:
                raise refused(web.HTTPConflict, "command_rejected")
            return web.json_response(known["status"], status=202)
        if gate_id not in session.gates:
            raise refused(web.HTTPConflict, "gate_resolved")
        if session.opened[gate_id]["event_id"] != body["expected_open_event_id"]:
            raise refused(web.HTTPConflict, "command_rejected")
        status = {"command_id": body["command_id"], "status": "applied"}
        if session.before_it_applies:
            session.before_it_applies()
        try:
            if gate_id in session.gates:  # else it does nothing, and is applied all the same
                session.answer(gate_id, body["action"], body["values"], cause=body["command_id"])
        except web.HTTPException as error:
            status |= {"status": "rejected", "error": json.loads(error.text or "{}")["error"]}
        session.commands[body["command_id"]] = {"body": body, "status": status}
        return web.json_response({**status, "status": "accepted"}, status=202)

    async def _command(self, request: web.Request) -> web.Response:
        session = self._of(request)
        known: Mapping[str, Any] | None = session.commands.get(request.match_info["cid"])
        if known is None:
            raise refused(web.HTTPNotFound, "command_not_found")
        if session.slow:
            session.slow -= 1
            return web.json_response({**known["status"], "status": "pending"})
        return web.json_response(known["status"])
