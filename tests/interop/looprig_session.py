"""A session of looprig: its journal, its open gates, and who listens. Both dialects speak of the same one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.interop.looprig_gates import Json, audit_of, fits, refused

STATES = {
    "GateOpened": "waiting_on_gate",
    "GateResolved": "running",
    "TurnDone": "idle",
    "TurnFailed": "failed",
    "TurnInterrupted": "interrupted",
    "SessionStopped": "stopped",
}
"""What an event makes of a session in `pkg/serve`'s list."""


class Session:
    """``live``: whether the process has it; one that is not is in the list, and in the journal, all the same.

    ``names_causes``: whether the journal says by whose command a gate was answered. ``slow``: how often a command is
    still accepted, and not more, when it is asked for. ``takes_input``: whether a process is there to apply an input.
    ``before_it_applies``: what happens between taking an answer and applying it.
    """

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.live = True
        self.state = "idle"
        self.created_at = self.active_at = datetime.now(UTC)
        self.journal: list[Json | None] = []
        self.gates: dict[str, Json] = {}
        self.opened: dict[str, Json] = {}
        self.heard: list[tuple[str, str, Json]] = []
        self.said: list[str] = []
        self.commands: dict[str, Json] = {}
        self.names_causes = True
        self.slow = 0
        self.takes_input = True
        self.before_it_applies: Callable[[], None] | None = None
        self.streams: set[asyncio.Queue[tuple[int, Json] | None]] = set()

    def append(self, kind: str, **body: Any) -> Json:
        """A public event. Its number in the journal is that of its place, from 1."""
        event = {
            "type": kind,
            "v": 1,
            "session_id": self.id,
            "event_id": str(uuid.uuid4()),
            "created_at": datetime.now(UTC).isoformat().replace("+00:00", "123Z"),
            **body,
        }
        self.journal.append(event)
        self.state = STATES.get(kind, self.state)
        for stream in self.streams:
            stream.put_nowait((len(self.journal), event))
        return event

    def public(self, from_seq: int) -> list[tuple[int, Json]]:
        """The events from that number on that anybody may read."""
        return [
            (seq, event) for seq, event in enumerate(self.journal, 1) if event is not None and seq >= from_seq
        ]

    def open(self, gate: Json, request: Json | None = None) -> str:
        """Open a gate; with the request that a permission is about, told right behind."""
        gate_id = str(uuid.uuid4())
        self.gates[gate_id] = {"id": gate_id, "blocks": "tool_call", "effect": "resume", **gate}
        self.journal.append(None)  # the private record of its payload
        event = self.append("GateOpened", turn_id="turn-1", gate=self.gates[gate_id])
        self.opened[gate_id] = {"seq": len(self.journal), "event": event}
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
        if values and (audit := audit_of(gate["kind"], values)):
            body["audit"] = audit
        self.append("GateResolved", **body)

    def answer(self, gate_id: str, action: str, values: Json, cause: str = "") -> None:
        """Answer a gate by its rules. Raises web.HTTPException with the real one's word."""
        gate = self.gates.get(gate_id)
        if gate is None:
            raise refused(web.HTTPNotFound, "gate_not_found")
        if not fits(gate, action, values):
            raise refused(web.HTTPBadRequest, "gate_action_invalid")
        self.heard.append((gate_id, action, values))
        self.resolve(gate_id, action, cause=cause, values=values)

    def break_streams(self) -> None:
        """Every listener loses its connection."""
        for stream in self.streams:
            stream.put_nowait(None)

    def crash(self) -> None:
        """The process that had it is gone."""
        self.live = False
        self.break_streams()

    def restore(self) -> None:
        """A process has it again, and of its gates those that can be restored."""
        for gate_id in [gate_id for gate_id, gate in self.gates.items() if not gate.get("restorable")]:
            self.resolve(gate_id, "", reason="restore_unavailable")
        self.live, self.active_at = True, datetime.now(UTC)
        self.append("RestoreDone")
