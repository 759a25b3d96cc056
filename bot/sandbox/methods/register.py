"""The register of Web API methods, and what a method gets and may answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.cards import limits
from bot.sandbox.links import Links
from bot.sandbox.world import App, Channel, User, World

Json = dict[str, Any]


class Refused(Exception):
    """The method answers `ok: false` with this `error` and what else Slack tells beside it."""

    def __init__(self, error: str, **more: Any) -> None:
        self.error = error
        self.more = more
        super().__init__(error)

    @classmethod
    def blocks(cls, error: str, problems: Sequence[limits.Problem]) -> Refused:
        messages = [problem.message for problem in problems]
        return cls(error, errors=messages, response_metadata={"messages": [f"[ERROR] {m}" for m in messages]})


class Arguments:
    """The arguments of a call, from a form, a query or JSON; structured ones may come as JSON text."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = {name: value for name, value in raw.items() if name != "token" and value is not None}

    def text(self, name: str, default: str = "") -> str:
        value = self.raw.get(name, default)
        return value if isinstance(value, str) else str(value)

    def need(self, name: str, error: str = "invalid_arguments") -> str:
        if not (value := self.text(name)):
            messages = [f"[ERROR] missing required field: {name}"]
            raise Refused(error, response_metadata={"messages": messages})
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        return str(self.raw.get(name, default)).lower() in ("1", "true")

    def number(self, name: str, default: int) -> int:
        try:
            return int(self.raw.get(name, default))
        except ValueError:
            raise Refused("invalid_arguments") from None

    def json(self, name: str, error: str) -> Any:
        """A structured argument or None. Refuses with `error` when its text is not JSON."""
        value = self.raw.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise Refused(error) from None


@dataclass(slots=True)
class Call:
    """One call of a method by an app."""

    world: World
    links: Links
    app: App
    args: Arguments
    headers: dict[str, str] = field(default_factory=dict)
    json_body: bool = False
    """Whether the arguments came as JSON, which some methods do not take."""

    def channel(self, name: str = "channel", *, member: bool = True) -> Channel:
        """The conversation an argument names, if the app may know it; else Slack's refusal."""
        wanted = self.args.need(name, "channel_not_found")
        channel = self.world.channel_named(wanted)
        seen = channel and channel.kind == "public" and self.world.in_reach(self.app, channel.team)
        if channel is None or not (seen or self.app.bot_user in channel.members):
            raise Refused("channel_not_found")
        if member and self.app.bot_user not in channel.members:
            raise Refused("not_in_channel")
        return channel

    def user(self, name: str = "user") -> User:
        user = self.world.users.get(self.args.need(name, "user_not_found"))
        if user is None or not self.meets(user):
            raise Refused("user_not_found")
        return user

    def team(self) -> str:
        """The workspace that a call is about: an organisation's token has to say it (Slack: ``team_id``)."""
        team = self.args.text("team_id") or self.app.team
        if not team:
            raise Refused("missing_argument", argument="team_id")
        if not self.world.in_reach(self.app, team):
            raise Refused("team_not_found")
        return team

    def meets(self, user: User) -> bool:
        """Whether the app may know somebody: of a workspace where it is installed, or of a channel that it shares."""
        shared = self.world.channels_of(user.id)
        return self.world.in_reach(self.app, user.team) or any(
            self.app.bot_user in channel.members for channel in shared
        )

    def page(self, rows: Sequence[Any], default: int = 100) -> tuple[list[Any], Json]:
        """The rows that `cursor` and `limit` ask for, and the `response_metadata` with the next cursor."""
        cursor = self.args.text("cursor")
        if cursor and not cursor.removeprefix("at:").isdigit():
            raise Refused("invalid_cursor")
        start = int(cursor.removeprefix("at:")) if cursor else 0
        size = min(max(self.args.number("limit", default), 1), 1000)
        end = start + size
        return list(rows[start:end]), {"next_cursor": f"at:{end}" if end < len(rows) else ""}


Method = Callable[[Call], Json]
METHODS: dict[str, Method] = {}


def method(name: str) -> Callable[[Method], Method]:
    """Register a function as the Web API method `name`."""

    def keep(function: Method) -> Method:
        METHODS[name] = function
        return function

    return keep
