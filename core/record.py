"""What the audit says of runs, gates and decisions: names and digests, and no text that is to be hidden."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import rfc8785
from pydantic import JsonValue

from core.gates import GateDoc, Kind
from core.redaction import NOTHING, Redaction
from core.runs import RunDoc

Fields = dict[str, Any]
"""Members of an event, behind those that every event has. One that is None is left out."""


@dataclass(frozen=True, slots=True)
class Record:
    """Makes the fields of audit events.

    ``keeps_values``: answers, comments and arguments stand in the audit themselves, redacted; else their digests alone.
    """

    redaction: Redaction = NOTHING
    keeps_values: bool = False

    def run_opened(self, doc: RunDoc) -> Fields:
        return {"host": doc.host, "external_id": self.text(doc.external_id)}

    def gate_opened(self, gate: GateDoc) -> Fields:
        args = self._values(gate, gate.args) if self.keeps_values else None
        return {"kind": gate.kind, "args_digest": gate.args_digest, "args": args}

    def decided(self, gate: GateDoc, *, digest: str | None, values: JsonValue, comment: str | None) -> Fields:
        """A vote or a decision. ``digest`` is that of the arguments of an approval, ``values`` are an answer's."""
        fields: Fields = {"args_digest": digest}
        if values is not None:
            fields["values_digest"] = hashlib.sha256(rfc8785.dumps(values)).hexdigest()
        if self.keeps_values:
            fields |= {"values": self._values(gate, values), "comment": self.text(comment)}
        return fields

    def edited(self, gate: GateDoc, *, was: str, digest: str, args: JsonValue) -> Fields:
        """An approver changed the arguments: both digests."""
        kept = self._values(gate, args) if self.keeps_values else None
        return {"args_digest": digest, "was": was, "args": kept}

    def text(self, text: str | None) -> str | None:
        """A reason, an error or a name that somebody gave, without what the patterns find in it."""
        return self.redaction.text(text) if text else text

    def _values(self, gate: GateDoc, values: JsonValue) -> JsonValue:
        # the members of questions and their answers have names of ours; only their texts may have something to hide
        by = Redaction(patterns=self.redaction.patterns) if gate.kind is Kind.QUESTION else self.redaction
        return by.value(values)
