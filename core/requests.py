"""What a run's caller asks for: the body of `POST /api/v1/runs`, and what every host adapter opens a run with."""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    SecretStr,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)

from core import approvals, questions
from core.escalations import Escalation, Seconds
from core.forms import FormRequest
from core.gates import QUESTION_TOOL, Kind
from core.links import LinkRequest
from core.places import Place
from core.policy import Person, PolicyRequest
from core.schemas import check_against, check_schema
from core.strictjson import has_lone_surrogate

MAX_GATES = 128
MAX_STATE_BYTES = 1024 * 1024
MAX_CUSTOM_BYTES = 16 * 1024


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


def _schema(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    check_schema(value)
    return value


ArgsText = BeforeValidator(approvals.parse_args, json_schema_input_type=dict[str, JsonValue] | str)
"""Arguments come as an object, or as the JSON text of one."""
Args = Annotated[dict[str, JsonValue], ArgsText]
JsonSchema = Annotated[dict[str, JsonValue], AfterValidator(_schema)]
CallId = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_not_blank)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_not_blank)]


class QuestionCall(_Request):
    """A call of `ask_user_question`: one to four questions."""

    tool_call_id: CallId
    tool_name: Literal["ask_user_question"]
    args: Annotated[
        questions.AskUserQuestion,
        BeforeValidator(approvals.parse_args, json_schema_input_type=questions.AskUserQuestion | str),
    ]


class CustomCall(_Request):
    """Any other call that wants an answer: its JSON is shown, text or JSON comes back.

    With a ``schema`` the answer is JSON that the schema (JSON Schema 2020-12) allows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)
    kind: Literal["custom"] = "custom"
    tool_call_id: CallId
    tool_name: ToolName
    args: Args
    answer_schema: JsonSchema | None = Field(None, alias="schema")

    @model_validator(mode="after")
    def _small_enough(self) -> Self:
        if len(approvals.canonical(self.args)) > MAX_CUSTOM_BYTES:
            raise ValueError("the arguments of a custom gate may have at most 16 KiB as JSON")
        return self


class FormCall(_Request):
    """A call that a filled-in form answers. Its arguments are the agent's own; the form is what people see."""

    kind: Literal["form"]
    tool_call_id: CallId
    tool_name: ToolName
    args: Args = {}
    form: FormRequest


class LinkCall(_Request):
    """A call that is answered by doing something elsewhere, and saying so."""

    kind: Literal["link"]
    tool_call_id: CallId
    tool_name: ToolName
    args: Args = {}
    link: LinkRequest


def _kind(item: object) -> str:
    given = item if isinstance(item, dict) else vars(item) if isinstance(item, BaseModel) else {}
    if given.get("kind") in (Kind.FORM, Kind.LINK, Kind.CUSTOM):
        return str(given["kind"])
    return Kind.QUESTION if given.get("tool_name") == QUESTION_TOOL and "kind" not in given else Kind.CUSTOM


CallRequest = Annotated[
    Annotated[QuestionCall, Tag("question")]
    | Annotated[CustomCall, Tag("custom")]
    | Annotated[FormCall, Tag("form")]
    | Annotated[LinkCall, Tag("link")],
    Discriminator(_kind),
]


class ApprovalRequest(_Request):
    """A tool call that wants a person's permission."""

    tool_call_id: CallId
    tool_name: ToolName
    args: Args
    reason: str | None = Field(None, max_length=4096)
    risk: Literal["low", "medium", "high", "extra_high"] | None = None
    args_schema: JsonSchema | None = None
    always: list[Annotated[str, StringConstraints(min_length=1, max_length=1024)]] | None = Field(
        None, max_length=32, description="offers “Approve always”; what that saves, a sentence each"
    )

    @cached_property
    def args_digest(self) -> str:
        """That of the arguments: of large ones it takes a second, while everybody else waits."""
        return approvals.digest(self.args)

    @model_validator(mode="after")
    def _has_digest(self) -> Self:
        self.args_digest  # noqa: B018  # raises for what has none
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


def _webhook_url(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("https", "http") or not url.hostname:
        raise ValueError("wanted an https or http URL with a host")
    if url.username or url.password:
        raise ValueError("a user or a password does not belong into a URL")
    return value


def _webhook_secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    try:
        size = len(base64.b64decode(text.removeprefix("whsec_"), validate=True))
    except ValueError:
        size = 0
    if not text.startswith("whsec_") or not 16 <= size <= 64:
        raise ValueError('wanted "whsec_" and the base64 of 16 to 64 bytes (Standard Webhooks)')
    return value


class Callback(_Request):
    """Where a signed `run.settled` is posted. The secret is stored apart, and shown to nobody."""

    url: Annotated[str, StringConstraints(max_length=2048), AfterValidator(_webhook_url)]
    secret: Annotated[SecretStr, AfterValidator(_webhook_secret)]


class RunRequest(_Request):
    """One suspended run: its complete pending batch, and what is to be done with it."""

    host: Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]{1,64}$")] = "api"
    external_id: str | None = Field(None, max_length=255)
    title: str | None = Field(None, max_length=150)
    pending: Pending
    state: Annotated[str, AfterValidator(_state_size)] | None = None
    place: Place | None = None
    requester: Person | None = None
    policy: PolicyRequest = PolicyRequest()
    timeout_s: Seconds | None = None
    remind_after_s: list[Seconds] = Field([], max_length=16)
    escalate: Escalation | None = None
    callback: Callback | None = None

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        quorum = self.policy.quorum
        if self.escalate and self.escalate.place and self.escalate.place.team:
            raise ValueError('"team" belongs into the run\'s own place: an escalation stays in its workspace')
        for item in self.pending.approvals:
            if item.always is not None and quorum > 1:
                raise ValueError('"always" and a quorum of more than one do not go together')
            if item.args_schema is not None:
                check_against(item.args_schema, item.args)
        return self


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
