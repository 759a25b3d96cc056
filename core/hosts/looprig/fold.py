"""What a session's events say of its gates. A pure fold: the same events, in order, give the same gates.

A session's status names at most one gate, the last one written; only the events of the journal tell of all of them.
Members that are zero are left out of the events, and unknown ones have to be borne.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]

TURN_ENDS = {"turndone", "turnfailed", "turninterrupted"}
MAX_CLOSED = 1000


@dataclass(frozen=True, slots=True)
class OpenGate:
    """A gate that is open. ``seq`` is its event's number; ``opened_ms`` is 0 if that does not say when."""

    id: str
    gate: Json
    seq: int
    event_id: str
    opened_ms: int
    turn_id: str

    @property
    def execution_id(self) -> str:
        """What a permission's request goes by."""
        return str(_dict(self.gate.get("subject")).get("tool_execution_id") or "")


@dataclass(frozen=True, slots=True)
class Closed:
    """How a gate ended: why, by which kind of source, with which action, and by whose command if anyone's.

    ``audit``: what of the answer stands in the journal.
    """

    reason: str
    source: str = ""
    action: str = ""
    command_id: str = ""
    audit: Json = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """For people."""
        match self.reason, self.source:
            case "answered", "policy":
                return f"looprig's own policy answered it ({self.action})."
            case "answered", "classifier":
                return f"looprig's own review answered it ({self.action})."
            case "answered", _:
                return f"It was answered elsewhere ({self.action})."
            case "restore_unavailable", _:
                return "The session was restored, and this could not be."
            case "turn_ended", _:
                return "The turn ended."
            case reason, _:
                return f"looprig closed it ({reason})."


@dataclass(slots=True)
class Fold:
    """The gates of one session, as of ``next_seq``."""

    open: dict[str, OpenGate] = field(default_factory=dict)
    closed: dict[str, Closed] = field(default_factory=dict)
    requests: dict[str, Json] = field(default_factory=dict)
    next_seq: int = 0

    def add(self, seq: int, event: Json) -> None:
        """Take the next event. One that was had before is passed over."""
        if seq < self.next_seq:
            return
        self.next_seq = seq + 1
        kind = re.sub(r"[^a-z]", "", str(event.get("type", "")).lower())
        if kind == "gateopened":
            self._opened(seq, event)
        elif kind == "gateresolved":
            self._resolved(event)
        elif kind == "permissionrequested":
            self._requested(str(event.get("tool_execution_id", "")), _dict(event.get("request")))
        elif kind in TURN_ENDS and (turn_id := event.get("turn_id")):
            for gate in [gate for gate in self.open.values() if gate.turn_id == turn_id]:
                self._close(gate.id, Closed("turn_ended"))

    def _opened(self, seq: int, event: Json) -> None:
        gate = _dict(event.get("gate"))
        gate_id = str(gate.get("id", ""))
        turn_id = _dict(gate.get("subject")).get("turn_id") or event.get("turn_id") or ""
        opened_ms = _ms(event.get("created_at"))
        self.closed.pop(gate_id, None)
        event_id = str(event.get("event_id", ""))
        self.open[gate_id] = OpenGate(gate_id, gate, seq, event_id, opened_ms, str(turn_id))

    def _requested(self, execution_id: str, request: Json) -> None:
        # it comes behind its gate, and there is one also of what wants no permission
        if any(gate.execution_id == execution_id for gate in self.open.values()):
            self.requests[execution_id] = request

    def _resolved(self, event: Json) -> None:
        source, cause = _dict(event.get("source")), _dict(event.get("cause"))
        closed = Closed(
            str(event.get("reason") or "answered"),
            str(source.get("kind", "")),
            str(event.get("action", "")),
            str(cause.get("command_id", "")),
            _dict(_dict(event.get("audit")).get("data")),
        )
        self._close(str(event.get("gate_id", "")), closed)

    def _close(self, gate_id: str, closed: Closed) -> None:
        if gate := self.open.pop(gate_id, None):
            self.requests.pop(gate.execution_id, None)
        self.closed[gate_id] = closed
        while len(self.closed) > MAX_CLOSED:
            del self.closed[next(iter(self.closed))]


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _ms(text: Any) -> int:
    # Go writes up to nine digits of a second
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", str(text)))
    except ValueError:
        return 0
    return int(moment.timestamp() * 1000) if moment.tzinfo else 0
