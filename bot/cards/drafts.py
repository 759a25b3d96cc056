"""Drafts: what a person has picked on a gate but not submitted, and the answer that becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.gates import Gate
from core.questions import Question


@dataclass(frozen=True, slots=True)
class Entry:
    """A draft's word on one question: picked options by index, or a text of one's own."""

    picked: tuple[int, ...] = ()
    other: str | None = None

    @property
    def given(self) -> bool:
        return bool(self.picked) or self.other is not None

    def value(self, question: Question) -> str | list[str] | None:
        """The answer's value: exact labels, or the text alone. Labels and text never mix."""
        if self.other is not None:
            return self.other
        labels = [question.options[index].label for index in self.picked]
        return labels if question.multi_select else labels[0] if labels else None


@dataclass(frozen=True, slots=True)
class Draft:
    """One entry a question."""

    entries: tuple[Entry, ...]

    @property
    def answered(self) -> int:
        return sum(entry.given for entry in self.entries)

    def having(self, question: int, entry: Entry) -> Draft:
        entries = list(self.entries)
        entries[question] = entry
        return replace(self, entries=tuple(entries))

    def answers(self, gate: Gate) -> dict[str, str | list[str]]:
        """`answers` by question text, for the questions that have one."""
        found = {}
        for question, entry in zip(gate.asks.questions, self.entries, strict=True):
            value = entry.value(question)
            if entry.given and value is not None:
                found[question.question] = value
        return found

    def dump(self) -> list[dict[str, Any]]:
        """As it is stored: by index, so that it holds no agent text twice."""
        return [
            {"picked": list(entry.picked)} | ({"other": entry.other} if entry.other is not None else {})
            for entry in self.entries
        ]


def load_draft(gate: Gate, stored: object) -> Draft:
    """A stored draft of a gate; an empty one for None, or for what does not fit the gate."""
    questions = gate.asks.questions
    rows: Sequence[Any] = stored if isinstance(stored, list) and len(stored) == len(questions) else ()
    return Draft(
        tuple(
            _entry(row, question)
            for row, question in zip(rows or [{}] * len(questions), questions, strict=True)
        )
    )


def _entry(row: Mapping[str, Any], question: Question) -> Entry:
    picked = tuple(index for index in row.get("picked", ()) if index < len(question.options))
    return Entry(picked, row.get("other"))


def drafts_of(gate: Gate) -> dict[str, Draft]:
    """Everybody's draft of a gate that has an entry, by speaker (`T1:U1`), in an order that stays the same."""
    loaded = {speaker: load_draft(gate, stored) for speaker, stored in sorted(gate.drafts.items())}
    return {speaker: draft for speaker, draft in loaded.items() if draft.answered}
