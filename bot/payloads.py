"""What the bot reads of Slack's payloads. Whatever lacks it is refused at the door, before a listener sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.policy import TeamId, UserId


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _User(_Part):
    id: UserId
    team_id: TeamId | None = None


class _Team(_Part):
    id: TeamId


class _ByUser(_Part):
    user: _User
    team: _Team | None = None

    @model_validator(mode="after")
    def _whose(self) -> _ByUser:
        if self.user.team_id is None and self.team is None:
            raise ValueError("no team")
        return self


class _Action(_Part):
    type: str
    action_id: str
    block_id: str


class _Click(_ByUser):
    """`block_actions`: a click, or a choice in a menu, of a message or of a modal."""

    actions: Annotated[list[_Action], Field(min_length=1)]


class _View(_Part):
    callback_id: str
    private_metadata: str = ""
    state: dict[str, Any]


class _Submission(_ByUser):
    """`view_submission`: a modal that was sent."""

    view: _View


class _Shortcut(_ByUser):
    """`shortcut`: run from anywhere."""

    callback_id: str
    trigger_id: str


class _Place(_Part):
    id: str


class _Message(_Part):
    ts: str
    thread_ts: str | None = None


class _MessageShortcut(_Shortcut):
    """`message_action`: run on a message."""

    channel: _Place
    message: _Message


class _Command(_Part):
    """A slash command: a form, not JSON."""

    command: str
    user_id: UserId
    team_id: TeamId


class _AnyEvent(_Part):
    type: str


class _Event(_Part):
    """`event_callback`."""

    event: _AnyEvent


class _HomeOpened(_AnyEvent):
    user: UserId


class _Mentioned(_AnyEvent):
    user: UserId | None = None
    channel: str
    thread_ts: str | None = None
    team: TeamId | None = None
    user_team: TeamId | None = None


class _Mention(_Part):
    """`event_callback` of `app_mention`."""

    event: _Mentioned
    team_id: TeamId


class _Home(_Part):
    """`event_callback` of `app_home_opened`."""

    event: _HomeOpened
    team_id: TeamId


_BY_TYPE: Final[Mapping[str, type[_Part]]] = {
    "block_actions": _Click,
    "view_submission": _Submission,
    "event_callback": _Event,
    "shortcut": _Shortcut,
    "message_action": _MessageShortcut,
}
_BY_EVENT: Final[Mapping[str, type[_Part]]] = {"app_home_opened": _Home, "app_mention": _Mention}


def complete(payload: Mapping[str, Any]) -> bool:
    """Whether a payload, an event or a command (as a flat mapping) has all that is read of it."""
    kind = payload.get("type")
    shape = _Command if "command" in payload else _BY_TYPE.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return isinstance(kind, str)
    event = payload.get("event")
    if shape is _Event and isinstance(event, Mapping):
        shape = _BY_EVENT.get(str(event.get("type")), _Event)
    try:
        shape.model_validate(payload)
    except ValidationError:
        return False
    return True
