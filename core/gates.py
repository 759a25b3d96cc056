"""A gate: one thing a person must settle, and the decision that settled it."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from core import questions
from core.forms import FormRequest
from core.links import LinkRequest
from core.policy import Actor, Person, Policy

QUESTION_TOOL = "ask_user_question"
MAX_COMMENT = 4096
"""Characters of a comment or a reason: what the strictest host takes for a denial's reason."""


class Kind(StrEnum):
    QUESTION = "question"
    APPROVAL = "approval"
    FORM = "form"
    LINK = "link"
    CUSTOM = "custom"


class Outcome(StrEnum):
    """How a gate ended. The last four name nobody: no person did it."""

    ANSWERED = "answered"
    APPROVED = "approved"
    DENIED = "denied"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    UNDELIVERABLE = "undeliverable"
    SUPERSEDED = "superseded"


class Action(StrEnum):
    """What a person may do with a gate. Forms and links have the three of MCP: accept, decline, cancel."""

    ANSWER = "answer"
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    APPROVE = "approve"
    APPROVE_ALWAYS = "approve_always"
    DENY = "deny"

    @property
    def outcome(self) -> Outcome:
        return _OUTCOMES[self]

    @property
    def approves(self) -> bool:
        return self in (Action.APPROVE, Action.APPROVE_ALWAYS)


_OUTCOMES = {
    Action.ANSWER: Outcome.ANSWERED,
    Action.ACCEPT: Outcome.ANSWERED,
    Action.DECLINE: Outcome.DECLINED,
    Action.CANCEL: Outcome.DECLINED,
    Action.APPROVE: Outcome.APPROVED,
    Action.APPROVE_ALWAYS: Outcome.APPROVED,
    Action.DENY: Outcome.DENIED,
}


class GateDoc(BaseModel):
    """What never changes about a gate. ``offered`` are its controls; ``saves``: what "Approve always" would save."""

    model_config = ConfigDict(frozen=True)
    id: str
    index: int
    kind: Kind
    category: Literal["calls", "approvals"]
    tool_call_id: str
    tool_name: str
    args: JsonValue
    args_digest: str | None = None
    reason: str | None = None
    risk: Literal["low", "medium", "high", "extra_high"] | None = None
    policy: Policy
    offered: tuple[Action, ...]
    form: FormRequest | None = None
    link: LinkRequest | None = None
    answer_schema: dict[str, JsonValue] | None = None
    args_schema: dict[str, JsonValue] | None = None
    saves: tuple[str, ...] = ()

    @property
    def asks(self) -> questions.AskUserQuestion:
        """The questions of a question gate."""
        args, asks = self.parsed
        # a copy with other arguments brings along what was parsed of the first ones
        return asks if args is self.args else questions.AskUserQuestion.model_validate(self.args)

    @cached_property
    def parsed(self) -> tuple[JsonValue, questions.AskUserQuestion]:
        """The arguments and the questions in them: a document is read again and again, and never changes."""
        return self.args, questions.AskUserQuestion.model_validate(self.args)

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of an approval or a custom call, in the order in which they were given."""
        return self.args if isinstance(self.args, dict) else {}


class Vote(BaseModel):
    """A word on a gate: of a person, or of a key, which may name a person (``by``).

    ``token`` is the one call that brought it, so that a retried call knows itself.
    """

    model_config = ConfigDict(frozen=True)
    action: Action
    by: Actor
    at: int
    via: str
    token: str
    comment: str | None = None
    digest: str | None = None


class Decision(BaseModel):
    """The record that settled a gate: outcome, values, by whom, when, from where.

    ``via`` is ``slack``, ``api``, ``clock`` or ``host``; ``at`` is in ms; ``votes`` is empty when nobody did it.
    """

    model_config = ConfigDict(frozen=True)
    outcome: Outcome
    at: int
    via: str
    votes: tuple[Vote, ...] = ()
    values: JsonValue = None
    digest: str | None = None
    detail: str | None = None

    @property
    def action(self) -> Action | None:
        """What the people who decided did; None when nobody did it."""
        return self.votes[-1].action if self.votes else None

    @property
    def by(self) -> tuple[Actor, ...]:
        return tuple(vote.by for vote in self.votes)

    @property
    def comment(self) -> str | None:
        return "; ".join(vote.comment for vote in self.votes if vote.comment) or None


class Edit(BaseModel):
    """A change of the arguments that an approver made. ``diff`` lists `{"path", "old"?, "new"?}` items."""

    model_config = ConfigDict(frozen=True)
    by: Actor
    at: int
    from_digest: str
    to_digest: str
    diff: list[dict[str, JsonValue]]


class Gate(BaseModel):
    """A gate as it is stored.

    ``policy`` is the present one (the caller's until somebody reassigned or escalated the gate); ``edited`` are the
    arguments as the last edit left them. ``created_at`` and ``deadline`` are in ms, as is ``reopened_at``, when people
    were last asked to decide it again. ``hidden``: how many of the values that a person sees are masked (none, as it is
    stored).
    """

    model_config = ConfigDict(frozen=True)
    doc: GateDoc
    policy: Policy
    edited: dict[str, JsonValue] | None = None
    edits: tuple[Edit, ...] = ()
    status: Literal["pending"] | Outcome
    rev: int
    deadline: int
    created_at: int
    reopened_at: int | None = None
    votes: tuple[Vote, ...] = ()
    drafts: dict[str, JsonValue] = {}
    decision: Decision | None = None
    hidden: int = 0

    @property
    def id(self) -> str:
        return self.doc.id

    @property
    def pending(self) -> bool:
        return self.status == "pending"

    @property
    def asks(self) -> questions.AskUserQuestion:
        """The questions of a question gate."""
        return self.doc.asks

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments that are to be approved at this moment."""
        return self.doc.arguments if self.edited is None else self.edited

    @property
    def digest(self) -> str | None:
        """The digest of those arguments; None for what is no approval."""
        return self.edits[-1].to_digest if self.edits else self.doc.args_digest

    @property
    def opened_at(self) -> int:
        return self.reopened_at or self.created_at

    @property
    def timeout_s(self) -> int:
        return round((self.deadline - self.opened_at) / 1000)


def speaker(actor: Actor) -> str:
    """An actor as one word: `T1:U1` or `key:ci`. One vote and one draft a speaker."""
    return f"{actor.team}:{actor.user}" if isinstance(actor, Person) else f"key:{actor.key}"
