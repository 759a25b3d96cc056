"""A run: the complete pending batch of one suspended run, and its results."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)

from core import approvals, questions
from core.gates import QUESTION_TOOL, Gate, Kind, result
from core.policy import ChannelId, Person, PolicyRequest, UserId
from core.strictjson import has_lone_surrogate

MAX_GATES = 128
MAX_STATE_BYTES = 1024 * 1024
MAX_CUSTOM_BYTES = 16 * 1024
MAX_TIMEOUT_S = 30 * 24 * 3600


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def _state_size(value: str) -> str:
    if has_lone_surrogate(value):
        raise ValueError("the text has half a surrogate pair")
    if len(value.encode()) > MAX_STATE_BYTES:
        raise ValueError("state may have at most 1 MiB")
    return value


Args = Annotated[dict[str, JsonValue], BeforeValidator(approvals.parse_args)]
CallId = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_not_blank)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_not_blank)]


class QuestionCall(_Request):
    """A call of `ask_user_question`: one to four questions."""

    tool_call_id: CallId
    tool_name: Literal["ask_user_question"]
    args: Annotated[questions.AskUserQuestion, BeforeValidator(approvals.parse_args)]


class CustomCall(_Request):
    """Any other call that wants an answer: its JSON is shown, text or JSON comes back."""

    tool_call_id: CallId
    tool_name: ToolName
    args: Args

    @model_validator(mode="after")
    def _small_enough(self) -> Self:
        if len(approvals.canonical(self.args)) > MAX_CUSTOM_BYTES:
            raise ValueError("the arguments of a custom gate may have at most 16 KiB as JSON")
        return self


def _kind(item: object) -> str:
    name = item.get("tool_name") if isinstance(item, dict) else getattr(item, "tool_name", None)
    return Kind.QUESTION if name == QUESTION_TOOL else Kind.CUSTOM


CallRequest = Annotated[
    Annotated[QuestionCall, Tag("question")] | Annotated[CustomCall, Tag("custom")], Discriminator(_kind)
]


class ApprovalRequest(_Request):
    """A tool call that wants a person's permission."""

    tool_call_id: CallId
    tool_name: ToolName
    args: Args
    reason: str | None = Field(None, max_length=4096)
    risk: Literal["low", "medium", "high", "extra_high"] | None = None

    @model_validator(mode="after")
    def _has_digest(self) -> Self:
        approvals.digest(self.args)
        return self


class Pending(_Request):
    calls: list[CallRequest] = []
    approvals: list[ApprovalRequest] = []

    @model_validator(mode="after")
    def _one_batch(self) -> Self:
        ids = [item.tool_call_id for item in (*self.calls, *self.approvals)]
        if not 1 <= len(ids) <= MAX_GATES:
            raise ValueError(f"wanted 1 to {MAX_GATES} calls and approvals together, got {len(ids)}")
        if len(set(ids)) != len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise ValueError(f"tool_call_id {twice!r} is used twice; ids are unique over both lists")
        return self


class Place(_Request):
    """Where the card goes: a channel (and a thread there), or a person's DM."""

    channel: ChannelId | None = None
    thread_ts: Annotated[str, StringConstraints(pattern=r"^\d{1,12}\.\d{6}$")] | None = None
    user: UserId | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.channel is None) == (self.user is None):
            raise ValueError('wanted either "channel" or "user"')
        if self.thread_ts and not self.channel:
            raise ValueError('"thread_ts" goes with "channel"')
        return self


class RunRequest(_Request):
    """The body of `POST /api/v1/runs`, and what every host adapter opens a run with."""

    host: Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]{1,64}$")] = "api"
    external_id: str | None = Field(None, max_length=255)
    title: str | None = Field(None, max_length=150)
    pending: Pending
    state: Annotated[str, AfterValidator(_state_size)] | None = None
    place: Place | None = None
    requester: Person | None = None
    policy: PolicyRequest = PolicyRequest()
    timeout_s: int | None = Field(None, ge=1, le=MAX_TIMEOUT_S)


class RunStatus(StrEnum):
    WAITING = "waiting"
    SETTLED = "settled"
    RESUMING = "resuming"
    RESUMED = "resumed"
    LOST = "lost"
    FAILED = "failed"


class RunDoc(BaseModel):
    """What never changes about a run. ``owner`` is the API key's name (or the adapter) that opened it."""

    model_config = ConfigDict(frozen=True)
    id: str
    host: str
    owner: str
    external_id: str | None
    title: str | None
    place: Place | None
    requester: Person | None
    created_at: int
    size: int


class Card(BaseModel):
    """One Slack message that shows some of a run's gates (by index). ``shown`` is the digest of what it shows."""

    model_config = ConfigDict(frozen=True)
    channel: str
    ts: str
    gates: tuple[int, ...]
    shown: str = ""


class Run(BaseModel):
    """A run as it is stored. ``rev`` counts every change that a reader could see.

    ``mend``: somebody clicked on a card that no longer says how things are, so it is drawn again in any case.
    """

    model_config = ConfigDict(frozen=True)
    doc: RunDoc
    status: RunStatus
    rev: int
    gates: tuple[Gate, ...]
    cards: tuple[Card, ...] = ()
    mend: bool = False
    error: str | None = None

    @property
    def id(self) -> str:
        return self.doc.id

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


def input_errors(error: ValidationError) -> list[dict[str, Any]]:
    """A pydantic error as `{"loc", "msg", "type"}` items, without the input (it may hold a secret).

    The kind by which a call was told apart is ours, not a part of the caller's path, and is left out.
    """
    return [
        {
            "loc": [p for i, p in enumerate(item["loc"]) if not (i == 3 and item["loc"][1] == "calls")],
            "msg": item["msg"].removeprefix("Value error, "),
            "type": item["type"],
        }
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
