"""A run as it is stored: the complete pending batch of one suspended run, and its results."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from core.escalations import Escalation
from core.gates import Gate
from core.places import Place
from core.policy import Person
from core.results import result


class RunStatus(StrEnum):
    WAITING = "waiting"
    SETTLED = "settled"
    RESUMING = "resuming"
    RESUMED = "resumed"
    LOST = "lost"
    FAILED = "failed"


class RunDoc(BaseModel):
    """What never changes about a run. ``owner`` is the API key's name (or the adapter) that opened it.

    ``fallback`` is the channel where its card goes if it cannot be shown in its place. ``team`` is the workspace (or
    the organisation) that it takes place in.
    """

    model_config = ConfigDict(frozen=True)
    id: str
    host: str
    owner: str
    external_id: str | None = None
    title: str | None = None
    place: Place | None = None
    requester: Person | None = None
    created_at: int
    size: int
    remind_after_s: tuple[int, ...] = ()
    escalate: Escalation | None = None
    fallback: str | None = None
    team: str | None = None


class CardFile(BaseModel):
    """The file with the arguments of one gate (by index), in the thread of a card: too long to be read elsewhere.

    ``digest`` is that of the arguments in it. ``shared``: it is in the thread; ``refused``: why it will not be.
    """

    model_config = ConfigDict(frozen=True)
    gate: int
    digest: str
    id: str = ""
    shared: bool = False
    refused: str = ""


class Card(BaseModel):
    """One Slack message that shows some of a run's gates (by index). ``shown`` is the digest of what it shows.

    ``copy_of`` is the number of the place that it stands in (see `core/copies.py`). ``refused`` is the chat
    system's word for why it will not change the message any more; with no ``ts``, why it will not take the rest of this
    copy. ``url`` is its address, once somebody had to know it.
    """

    model_config = ConfigDict(frozen=True)
    channel: str
    ts: str
    gates: tuple[int, ...]
    shown: str = ""
    copy_of: int = 0
    refused: str = ""
    url: str = ""
    files: tuple[CardFile, ...] = ()


class Copies(BaseModel):
    """Who gets a copy of the card of their own: people (``to``) who would not see it where it stands.

    ``seen`` are the principals that were looked up for that. Both only grow, so the number of a copy stays.
    """

    model_config = ConfigDict(frozen=True)
    to: tuple[Person, ...] = ()
    seen: tuple[str, ...] = ()


class Run(BaseModel):
    """A run as it is stored. ``rev`` counts every change that a reader could see.

    ``attempt`` counts how often people were asked to decide it; ``reopened_at`` is when they last were, again (ms).
    ``index``: the indexes in which it stands while it waits. ``escalated``: whether the escalation has taken place.
    ``reminded``: how many reminders were given. ``mend``: somebody clicked on a card that no longer says how things
    are, so it is drawn again in any case. ``resend``: somebody asked for the card to be sent again, in the place of the
    messages that show it; ``resent``: how often that was done.
    """

    model_config = ConfigDict(frozen=True)
    doc: RunDoc
    status: RunStatus
    rev: int
    gates: tuple[Gate, ...]
    cards: tuple[Card, ...] = ()
    copies: Copies = Copies()
    mend: bool = False
    resend: bool = False
    resent: int = 0
    escalated: bool = False
    reminded: int = 0
    error: str | None = None
    attempt: int = 1
    reopened_at: int | None = None
    index: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.doc.id

    @property
    def opened_at(self) -> int:
        return self.reopened_at or self.doc.created_at

    @property
    def open(self) -> bool:
        return any(gate.pending for gate in self.gates)

    def results(self) -> dict[str, dict[str, Any]] | None:
        """One result for each gate, in its own category and under its own id; None while one is pending."""
        if self.open:
            return None
        found: dict[str, dict[str, Any]] = {"calls": {}, "approvals": {}}
        for gate in self.gates:
            found[gate.doc.category][gate.doc.tool_call_id] = result(gate)
        return found
