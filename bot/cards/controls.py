"""How a control on a card says what it is for: which gate, which question, what to do.

Ids and opaque values only: labels and arguments are read from the store when the click arrives. The ids of
a pending gate's blocks stay the same from one rendering to the next, because Slack forgets what people have
picked in a block whose id changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from core.gates import Gate, Kind

PICK: Final = "pick"
CHOOSE: Final = "choose"
OTHER: Final = "other"
SUBMIT: Final = "submit"
FORM: Final = "form"
RESPONSE: Final = "response"
DECLINE: Final = "decline"
APPROVE: Final = "approve"
APPROVE_ALL: Final = "approve_all"
REJECT: Final = "reject"
REJECT_REASON: Final = "reject_reason"
ANSWER: Final = "answer"
FILL: Final = "fill"
OPEN: Final = "open"
DONE: Final = "done"
CANCEL: Final = "cancel"
EDIT: Final = "edit"
ALWAYS: Final = "always"
FULL: Final = "full"
PAGE: Final = "page"

VERBS: Final = (
    *(PICK, CHOOSE, OTHER, SUBMIT, FORM, RESPONSE, DECLINE, APPROVE, REJECT, REJECT_REASON, ANSWER),
    *(APPROVE_ALL, FILL, OPEN, DONE, CANCEL, EDIT, ALWAYS, FULL, PAGE),
)
ANY: Final = re.compile(rf"^({'|'.join(VERBS)})(:\d+)?$")


def block_id(gate: str, question: int, row: str) -> str:
    return f"{gate}/{question}/{row}"


@dataclass(frozen=True, slots=True)
class Control:
    """What was clicked: ``verb`` and its number (an option), at a gate's question; a button's ``value``."""

    verb: str
    gate: str
    question: int
    number: int
    value: str
    picked: tuple[int, ...]


def control(action: Mapping[str, Any]) -> Control:
    """Read one item of a payload's `actions`."""
    gate, question, _ = action["block_id"].split("/")
    verb, _, number = action["action_id"].partition(":")
    return Control(
        verb=verb,
        gate=gate,
        question=int(question),
        number=int(number or 0),
        value=action.get("value") or "",
        picked=tuple(int(option["value"]) for option in _options(action)),
    )


def _options(element: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    one = element.get("selected_option")
    return [one] if one else list(element.get("selected_options") or ())


_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys((PICK, CHOOSE, OTHER, SUBMIT, FORM, RESPONSE), Kind.QUESTION),
    **dict.fromkeys((APPROVE, REJECT, REJECT_REASON, EDIT, ALWAYS), Kind.APPROVAL),
    FILL: Kind.FORM,
    DONE: Kind.LINK,
    ANSWER: Kind.CUSTOM,
}
"""Of which kind a gate has to be to have a control; the other controls are of every kind."""


def fits(found: Control, gate: Gate) -> bool:
    """Whether a gate has such a control: of its kind, at its questions, with its options."""
    if gate.doc.kind is not _KINDS.get(found.verb, gate.doc.kind):
        return False
    if gate.doc.kind is not Kind.QUESTION:
        return True
    questions = gate.asks.questions
    if not 0 <= found.question < len(questions):
        return False
    picked = (found.number,) if found.verb == PICK else found.picked
    return all(0 <= index < len(questions[found.question].options) for index in picked)


@dataclass(frozen=True, slots=True)
class Where:
    """What a modal is about: kept in its `private_metadata`."""

    gate: str
    question: int = 0
    page: int = 0
    digest: str = ""

    def control(self, verb: str) -> Control:
        """What opened the modal, or might have."""
        return Control(verb, self.gate, self.question, number=0, value=self.digest, picked=())

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Where:
        return cls(**json.loads(text))


def values_of(view_state: Mapping[str, Any]) -> dict[str, Any]:
    """A modal's values by block id: text as it was typed, a date, a moment in seconds since 1970, ids of people, or the
    indexes of what is chosen. What is empty is an empty text or list.
    """
    found: dict[str, Any] = {}
    for name, elements in view_state.get("values", {}).items():
        for element in elements.values():
            if element["type"] in ("plain_text_input", "number_input"):
                found[name] = element.get("value") or ""
            elif element["type"] == "multi_users_select":
                found[name] = list(element.get("selected_users") or ())
            elif element["type"] == "datepicker":
                found[name] = element.get("selected_date") or ""
            elif element["type"] == "datetimepicker":
                found[name] = element.get("selected_date_time") or ""
            else:
                found[name] = [int(option["value"]) for option in _options(element)]
    return found
