"""The workspace: people, channels, messages and views, with their ids, kept in a file if asked."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from bot.sandbox.changes import Changes
from bot.sandbox.files import File, Files
from bot.sandbox.messages import Message, Messages, Values

Json = dict[str, Any]

TEAM = "T0LOCAL"
SAVE_AFTER_S = 0.05


@dataclass(slots=True)
class User:
    id: str
    name: str
    real_name: str
    team: str = TEAM
    admin: bool = False
    app: str | None = None
    """The app whose bot this is."""
    deleted: bool = False
    """Whether an admin of the workspace has deactivated the account."""
    tz: str = "Etc/UTC"
    """The time zone that the person has set."""


@dataclass(slots=True)
class Channel:
    id: str
    name: str
    kind: Literal["public", "private", "dm"]
    members: list[str]
    created: int = 0
    archived: bool = False
    team: str = TEAM
    read: dict[str, str] = field(default_factory=dict)
    """user -> ts of the last message that person has seen."""


@dataclass(slots=True)
class Group:
    id: str
    handle: str
    members: list[str]
    team: str = TEAM


@dataclass(slots=True)
class Command:
    command: str
    description: str
    usage: str
    should_escape: bool = True
    """Whether mentions come as `<@U1|ana>` and `&`, `<`, `>` as entities (Slack: slash commands)."""


@dataclass(slots=True)
class Shortcut:
    """What people run from a menu: anywhere (`global`), or on a `message`."""

    name: str
    callback_id: str
    type: Literal["global", "message"]
    description: str = ""


@dataclass(slots=True)
class App:
    """An installed app. `request_url` may change at any time; without one, Socket Mode reaches it."""

    id: str
    name: str
    bot_user: str
    bot_id: str
    bot_token: str = ""
    app_token: str | None = None
    signing_secret: str = ""
    request_url: str | None = None
    commands: list[Command] = field(default_factory=list)
    shortcuts: list[Shortcut] = field(default_factory=list)
    events: frozenset[str] = frozenset(("message", "app_mention", "app_home_opened"))
    """The event types that the app subscribes to."""
    scopes: frozenset[str] | None = None
    """What its bot token may do; None for an app that was installed without a word about it, which may do all."""
    manifest: Json | None = None
    """What the app was made from."""
    team: str = TEAM
    """The workspace that it is installed in; empty if it is in all of an ``enterprise``."""
    enterprise: str = ""
    of: str = ""
    """The id of the app that this is another installation of."""
    client_id: str = ""
    client_secret: str = ""
    redirect_urls: list[str] = field(default_factory=list)
    expires_at: float | None = None
    """When the bot token ends, where tokens rotate."""
    refresh_token: str = ""
    old_tokens: dict[str, float] = field(default_factory=dict)
    """Tokens that were renewed, and when they end."""

    @property
    def api_id(self) -> str:
        """The id that Slack tells."""
        return self.of or self.id

    @property
    def place(self) -> str:
        return self.enterprise or self.team


@dataclass(slots=True)
class Code:
    """What an app gets a token for, once somebody has allowed it (Slack: OAuth)."""

    code: str
    app: str
    place: str
    user: str
    scopes: tuple[str, ...]
    redirect_uri: str
    at: float
    used: bool = False


@dataclass(slots=True)
class View:
    id: str
    app: str
    user: str
    body: Json
    hash: str
    root: str
    previous: str | None = None
    picks: Values = field(default_factory=dict)


@dataclass(slots=True)
class ResponseUrl:
    id: str
    app: str
    user: str
    channel: str
    at: float
    ts: str | None = None
    uses: int = 0


@dataclass(slots=True)
class Trigger:
    id: str
    app: str
    user: str
    at: float
    used: bool = False


class Follower(Protocol):
    """Somebody who goes by the workspace's clock."""

    async def before_skip(self) -> None:
        """Finish what is in hand."""

    async def after_skip(self) -> None:
        """Do what has fallen due."""


class World:
    """All state of the local Slack. Every change goes through `changed()`, which rings and saves."""

    def __init__(self, clock: Callable[[], float], persist: Path | None = None) -> None:
        self.wall = clock
        """The time outside, in seconds since 1970: what a signature bears."""
        self.skipped = 0.0
        """How many seconds the workspace is ahead of it."""
        self.followers: list[Follower] = []
        self.changes = Changes()
        """Rings after everything that happens, calls of the Web API included."""
        self.sights = Changes()
        """Rings only after what somebody could see."""
        self.url = ""
        self.config_token = ""
        """A configuration token, with which manifests are read (Slack: app manifests)."""
        self.teams: dict[str, str] = {TEAM: "Local"}
        self.orgs: dict[str, tuple[str, list[str]]] = {}
        """The name of each organisation, and its workspaces."""
        self.codes: dict[str, Code] = {}
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.groups: dict[str, Group] = {}
        self.apps: dict[str, App] = {}
        self.messages = Messages()
        self.files = Files()
        self.views: dict[str, View] = {}
        self.stacks: dict[str, list[str]] = {}
        """user -> ids of the open modal's views, the visible one last."""
        self.homes: dict[str, str] = {}
        """`user:app` -> id of the App Home view."""
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.on_message: Callable[[Message], None] = lambda message: None
        self.live = False
        """Whether changes are saved: from start to close."""
        self.closed = False
        self._ids = 0
        self._last_us = 0
        self._persist = persist
        self._saving: asyncio.TimerHandle | None = None
        if persist is not None and persist.exists():
            self._load(json.loads(persist.read_text("utf-8")))

    # ids and time

    def clock(self) -> float:
        """The workspace's time, in seconds since 1970."""
        return self.wall() + self.skipped

    async def skip(self, seconds: float) -> None:
        """Let time pass at once, and whoever follows this clock do what has fallen due meanwhile."""
        if seconds <= 0:
            raise ValueError(f"time goes forward only, by more than {seconds} seconds")
        for follower in self.followers:
            await follower.before_skip()
        self.skipped += seconds
        self.changed()
        for follower in self.followers:
            await follower.after_skip()

    def new_id(self, prefix: str) -> str:
        """An id that looks like Slack's, e.g. `U0LOCAL007`."""
        self._ids += 1
        return f"{prefix}0LOCAL{self._ids:03d}"

    def new_ts(self) -> str:
        """A message timestamp: the clock in microseconds, never the same twice."""
        self._last_us = max(self._last_us + 1, int(self.clock() * 1_000_000))
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"

    # looking up

    def user_named(self, name: str) -> User | None:
        return next((u for u in self.users.values() if name in (u.id, u.name)), None)

    def channel_named(self, name: str) -> Channel | None:
        bare = name.removeprefix("#")
        return next((c for c in self.channels.values() if c.id == name or (c.name and c.name == bare)), None)

    def app_by(self, **known: str) -> App | None:
        [(name, value)] = known.items()
        return next((app for app in self.apps.values() if getattr(app, name) == value), None)

    def in_reach(self, app: App, team: str) -> bool:
        """Whether an app is installed in a workspace, by itself or with all of its organisation."""
        return team == app.team or (bool(app.enterprise) and team in self.orgs[app.enterprise][1])

    def apps_of(self, user: str) -> list[App]:
        """The apps that somebody has in their menus; a stranger sees those of the workspace."""
        team = self.users[user].team if user in self.users else TEAM
        own = [app for app in self.apps.values() if self.in_reach(app, team)]
        return own or [app for app in self.apps.values() if app.team == TEAM]

    def find(self, channel: str, ts: str, viewer: str | None = None) -> Message | None:
        """The message at `ts`; an ephemeral one only for its viewer."""
        return self.messages.find(channel, ts, viewer)

    def channels_of(self, user: str) -> Iterator[Channel]:
        return (c for c in self.channels.values() if user in c.members)

    def dm(self, one: str, other: str) -> Channel:
        """The direct conversation of two people (or a person and a bot), opened if need be."""
        for channel in self.channels.values():
            if channel.kind == "dm" and set(channel.members) == {one, other}:
                return channel
        channel = Channel(self.new_id("D"), "", "dm", [one, other], int(self.clock()))
        self.channels[channel.id] = channel
        self.changed()
        return channel

    def top_view(self, user: str) -> View | None:
        stack = self.stacks.get(user)
        return self.views[stack[-1]] if stack else None

    def home(self, user: str, app: str) -> View | None:
        view = self.homes.get(f"{user}:{app}")
        return self.views[view] if view else None

    # one-time tokens

    def trigger(self, app: App, user: str) -> str:
        """A trigger id, good for one view within 3 seconds (Slack: modals)."""
        now = self.clock()
        self.triggers = {key: t for key, t in self.triggers.items() if now - t.at < 60}
        trigger = Trigger(
            f"{int(now * 1000)}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}", app.id, user, now
        )
        self.triggers[trigger.id] = trigger
        return trigger.id

    def response_url(self, app: App, user: str, channel: str, ts: str | None = None) -> str:
        """A URL that takes 5 messages within 30 minutes (Slack: handling user interaction)."""
        now = self.clock()
        self.response_urls = {key: e for key, e in self.response_urls.items() if now - e.at < 3600}
        entry = ResponseUrl(secrets.token_urlsafe(18), app.id, user, channel, now, ts)
        self.response_urls[entry.id] = entry
        return f"{self.url}/response/{app.id}/{entry.id}"

    # changing and keeping

    def add(self, message: Message) -> Message:
        self.messages.add(message)
        if message.viewer is None:
            self.channels[message.channel].read[message.user] = message.ts
        self.changed()
        if message.viewer is None:
            self.on_message(message)
        return message

    def remove(self, message: Message) -> None:
        self.messages.remove(message)
        self.changed()

    def changed(self) -> None:
        self.sights.ring()
        self.changes.ring()
        if self._persist is not None and self.live and self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(SAVE_AFTER_S, self.save)

    async def saved(self) -> None:
        """Return when every change so far is in the file."""
        if self._saving is not None:
            await asyncio.sleep(max(0.0, self._saving.when() - asyncio.get_running_loop().time()))
        if self._saving is not None:
            self.save()

    def save(self) -> None:
        """Write everything at once: a reader of the file finds the old world or the new one."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if self._persist is None:
            return
        self._persist.parent.mkdir(parents=True, exist_ok=True)
        draft = self._persist.with_suffix(self._persist.suffix + ".part")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(self._dump(), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._persist)

    def _dump(self) -> Json:
        secret = {"bot_token", "app_token", "signing_secret", "request_url", "commands", "events"}
        secret |= {"scopes", "manifest", "shortcuts", "client_secret", "refresh_token", "old_tokens"}
        return {
            "ids": self._ids,
            "last_us": self._last_us,
            "skipped": self.skipped,
            "teams": self.teams,
            "users": [asdict(user) for user in self.users.values()],
            "channels": [asdict(channel) for channel in self.channels.values()],
            "groups": [asdict(group) for group in self.groups.values()],
            "apps": [
                {name: value for name, value in asdict(app).items() if name not in secret}
                for app in self.apps.values()
            ],
            "messages": [asdict(message) for message in self.messages],
            "files": [asdict(file) for file in self.files],
            "views": [asdict(view) for view in self.views.values()],
            "stacks": self.stacks,
            "homes": self.homes,
            "response_urls": [asdict(entry) for entry in self.response_urls.values()],
        }

    def _load(self, saved: Json) -> None:
        self._ids, self._last_us, self.skipped = saved["ids"], saved["last_us"], saved.get("skipped", 0.0)
        self.teams, self.stacks, self.homes = saved["teams"], saved["stacks"], saved["homes"]
        self.users = {row["id"]: User(**row) for row in saved["users"]}
        self.channels = {row["id"]: Channel(**row) for row in saved["channels"]}
        self.groups = {row["id"]: Group(**row) for row in saved["groups"]}
        self.apps = {row["id"]: App(**row) for row in saved["apps"]}
        self.views = {row["id"]: View(**row) for row in saved["views"]}
        self.response_urls = {row["id"]: ResponseUrl(**row) for row in saved["response_urls"]}
        for row in saved["messages"]:
            self.messages.add(Message(**row))
        for row in saved.get("files", ()):
            self.files.keep(File(**row))
