"""What callers send, besides `core.runs.RunRequest`: the bodies and the query parameters, each with its bounds."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from core.escalations import Seconds
from core.gates import MAX_COMMENT
from core.policy import ChannelId, Person

MAX_WAIT_S = 60
MAX_CLAIM = 100
MAX_LEASE_S = 3600
MAX_RETRY_S = 24 * 3600
MAX_PAGE = 200

Comment = Annotated[str, StringConstraints(max_length=MAX_COMMENT)]
HostName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]{1,64}$")]
Lease = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Status = Literal[
    "pending",
    "answered",
    "approved",
    "denied",
    "declined",
    "expired",
    "cancelled",
    "undeliverable",
    "superseded",
]
UserRef = Annotated[str, StringConstraints(pattern=r"^([TE][A-Z0-9]{1,31}:)?[UW][A-Z0-9]{1,31}$")]


class Body(BaseModel):
    """A body. Strict: a number is a number, no text of one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Query(BaseModel):
    """Query parameters. An unknown one is refused: a filter with a typing error would find too much."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CancelBody(Body):
    reason: Comment | None = None


class DecideBody(Body):
    """One person's word on a gate. ``by`` is the person a trusted key acts for.

    ``action`` is one that the gate offers; ``values`` belong to answer and accept, and to an approve with edited
    arguments: `{"override_args": {…}}`.
    ``args_digest`` is that of the arguments which were shown; without it those that are stored count as shown.
    """

    action: Literal["answer", "accept", "decline", "cancel", "approve", "approve_always", "deny"]
    values: JsonValue = None
    comment: Comment | None = None
    by: Person | None = None
    args_digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class CallReturnedAnswer(Body):
    status: Literal["returned"]
    value: JsonValue


class CallFailedAnswer(Body):
    """Declines a call, or with ``action`` cancel dismisses it (not a question); the message is the reason."""

    status: Literal["failed"]
    message: Comment
    action: Literal["decline", "cancel"] = "decline"


CallAnswer = Annotated[
    CallReturnedAnswer | CallFailedAnswer,
    Discriminator(
        "status",
        custom_error_type="status",
        custom_error_message='wanted an object with "status": "returned" and "value", or "failed" and "message"',
    ),
]


class ApprovalAnswer(Body):
    """``override_args`` are edited arguments, where the policy allows edits."""

    action: Literal["approve", "approve_always", "deny"]
    reason: Comment | None = None
    override_args: dict[str, JsonValue] | None = None


class ResumeBody(Body):
    """The complete batch, each answer in its category and under its tool_call_id."""

    calls: dict[str, CallAnswer] = {}
    approvals: dict[str, ApprovalAnswer] = {}


class ClaimBody(Body):
    """``wait_s``: how long to wait for the first run; ``lease_s``: how long the caller has for each."""

    host: HostName = "api"
    limit: int = Field(10, ge=1, le=MAX_CLAIM, alias="max")
    wait_s: float = Field(0, ge=0, le=MAX_WAIT_S, allow_inf_nan=False)
    lease_s: float = Field(60, ge=1, le=MAX_LEASE_S, allow_inf_nan=False)


class AckBody(Body):
    lease: Lease


class NackBody(Body):
    """``final``: the host refuses the run for good, and says why; ``lost``: it had already moved on."""

    lease: Lease
    retry_in_s: float = Field(1, ge=0, le=MAX_RETRY_S, allow_inf_nan=False)
    error: Comment | None = None
    final: bool = False
    lost: bool = False

    @model_validator(mode="after")
    def _one_word(self) -> Self:
        if self.final and self.lost:
            raise ValueError('wanted "final" or "lost", not both')
        if self.final and not (self.error or "").strip():
            raise ValueError('"final" wants an "error" that says why')
        return self


class ReopenBody(Body):
    """``timeout_s``: how long people have this time; else each gate has as long as it had before."""

    timeout_s: Seconds | None = None


class RunQuery(Query):
    wait: float = Field(
        0,
        ge=0,
        le=MAX_WAIT_S,
        allow_inf_nan=False,
        description="Seconds to wait for the run to be no longer waiting",
    )


class RunsQuery(Query):
    """Dead letters: the runs that their hosts refused, did not take up, or had moved on from."""

    status: Literal["failed", "lost"] | None = None
    host: HostName | None = None
    cursor: str | None = Field(None, description="The next_cursor of the page before")
    limit: int = Field(50, ge=1, le=MAX_PAGE)


class GatesQuery(Query):
    status: Status | None = None
    channel: ChannelId | None = None
    host: HostName | None = None
    user: UserRef | None = Field(None, description="Among those who may decide or did, or the requester")
    q: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Part of the title, the tool's name or the external_id",
    )
    cursor: str | None = Field(None, description="The next_cursor of the page before")
    limit: int = Field(50, ge=1, le=MAX_PAGE)


class AuditQuery(Query):
    run: str | None = None
    gate: str | None = None
    after: str | None = Field(None, description="The id of the last line that is known")


class EventsQuery(Query):
    after: str | None = Field(
        None, description="The id of the last event that is known; without one, from now on"
    )
