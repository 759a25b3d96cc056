"""LocalSlack: a Slack workspace on one loopback port, for the demo and for tests."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from bot.sandbox import payloads
from bot.sandbox.acts import Acts
from bot.sandbox.browser import Browser
from bot.sandbox.delivery import RETRY_DELAYS_S, Courier
from bot.sandbox.door import same_origin
from bot.sandbox.faults import Fault
from bot.sandbox.files import FileRoutes
from bot.sandbox.links import Links
from bot.sandbox.oauth import Consent
from bot.sandbox.person import Person
from bot.sandbox.responses import ResponseUrls
from bot.sandbox.webapi import Recorded, WebApi
from bot.sandbox.words import Words
from bot.sandbox.world import TEAM, App, Channel, Command, Follower, Group, Shortcut, User, World

Json = dict[str, Any]
T = TypeVar("T")

BODY_BYTES = 16 * 1024 * 1024
"""Of one request, an upload among them."""


def wall_clock() -> float:
    """Seconds since 1970, looked up at each call so that a frozen clock is seen."""
    return time.time()


class LocalSlack:
    """A local stand-in for Slack that a real Bolt app and the real slack_sdk talk to.

    Point the app's Web API at `api_url` with the token `bot_token`, and let deliveries reach it:
    `request_url` gets signed HTTP requests, unless the app is connected by Socket Mode with
    `app_token`. `persist` names a file that keeps the workspace over a restart. `clock` returns
    seconds since 1970; all of Slack's time limits follow it, except how long an answer may take.
    `retry_delays` are the seconds before each further try of an event that the app did not take.

        async with LocalSlack(request_url="http://127.0.0.1:3000/slack/events") as slack:
            ana = slack.as_user(slack.add_user("ana"))
            slack.add_channel("general", ["ana"])
    """

    def __init__(
        self,
        bind: str = "127.0.0.1",
        port: int = 0,
        *,
        request_url: str | None = None,
        signing_secret: str = "local-signing-secret",  # noqa: S107 - for a server on this machine only
        bot_token: str = "xoxb-test",  # noqa: S107
        app_token: str | None = "xapp-test",  # noqa: S107
        config_token: str = "xoxe.xoxp-test",  # noqa: S107
        persist: Path | None = None,
        clock: Callable[[], float] = wall_clock,
        retry_delays: Sequence[float] = RETRY_DELAYS_S,
    ) -> None:
        self._bind = bind
        self._port = port
        self.world = World(clock, persist)
        self.world.config_token = config_token
        self.links = Links(self.world.changes)
        self.courier = Courier(self.world, self.links, retry_delays)
        self.acts = Acts(self.world, self.courier)
        self.api = WebApi(self.world, self.links)
        self.words = Words(self.world)
        self.world.on_message = self.acts.announce
        self._runner: web.AppRunner | None = None
        self.app = self.add_app(
            "askgate",
            bot_token,
            "askgate",
            request_url=request_url,
            signing_secret=signing_secret,
            app_token=app_token,
            shortcuts=[
                Shortcut("Gates", "gates", "global", "What waits for a decision"),
                Shortcut("Gates here", "gates_here", "message", "What is open in this thread"),
            ],
            commands=[
                Command(
                    "/gates",
                    "What waits for a decision",
                    "[list | show ID | decide ID | new TEXT | stop | help]",
                )
            ],
        )

    # running

    async def start(self) -> None:
        """Listen. `url` and `api_url` are known from here on."""
        door = same_origin({"127.0.0.1", "localhost", self._bind})
        files = FileRoutes(self.world)
        app = web.Application(client_max_size=BODY_BYTES, middlewares=[door])
        app.add_routes(
            [
                web.route("*", "/api/{method}", self.api.serve),
                web.post("/response/{app}/{id}", ResponseUrls(self.world).serve),
                web.get("/link", self.links.serve),
                web.post("/upload/v1/{ticket}", files.upload),
                web.get("/files/{id}/{name}", files.download),
                *Consent(self.world).routes(),
                *Browser(self.world, self.acts).routes(),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._bind, self._port).start()
        self._port = self._runner.addresses[0][1]
        self.world.url = f"http://{self._bind}:{self._port}"
        self.world.live = True
        self.world.changed()

    async def close(self) -> None:
        """Stop listening, drop what is on its way, and save."""
        self.world.closed = True
        self.world.sights.ring()
        await self.links.close()
        await self.courier.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self.world.live = False
        self.world.save()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The page, e.g. `http://127.0.0.1:40123`."""
        return self.world.url

    @property
    def api_url(self) -> str:
        """The base URL of the Web API, with a slash at its end."""
        return f"{self.world.url}/api/"

    # furnishing; each of these finds what is there already, so a restart may say them again

    def add_app(
        self,
        name: str,
        bot_token: str,
        bot_user: str,
        *,
        request_url: str | None = None,
        signing_secret: str = "local-signing-secret",  # noqa: S107
        app_token: str | None = None,
        commands: Iterable[Command] = (),
        shortcuts: Iterable[Shortcut] = (),
    ) -> App:
        """Install an app with its bot user."""
        world = self.world
        app = world.app_by(name=name)
        if app is None:
            app = App(world.new_id("A"), name, world.new_id("U"), world.new_id("B"))
            world.apps[app.id] = app
            world.users[app.bot_user] = User(app.bot_user, bot_user, name, app=app.id)
        app.bot_token, app.app_token, app.signing_secret = bot_token, app_token, signing_secret
        app.request_url, app.commands, app.shortcuts = request_url, list(commands), list(shortcuts)
        world.changed()
        return app

    def install(self, manifest: Json, app: App | None = None) -> None:
        """Make an app what its manifest says: its commands and shortcuts, its events, and no more scopes than those.

        A method that wants another scope then answers `missing_scope`. Where deliveries go stays as it is.
        """
        app = app or self.app
        features, settings = manifest.get("features", {}), manifest.get("settings", {})
        app.manifest = copy.deepcopy(manifest)
        app.scopes = frozenset(manifest["oauth_config"]["scopes"]["bot"])
        app.redirect_urls = list(manifest["oauth_config"].get("redirect_urls", ()))
        app.events = frozenset(settings.get("event_subscriptions", {}).get("bot_events", ()))
        app.commands = [
            Command(
                command["command"],
                command["description"],
                command.get("usage_hint", ""),
                command.get("should_escape", False),
            )
            for command in features.get("slash_commands", ())
        ]
        app.shortcuts = [
            Shortcut(item["name"], item["callback_id"], item["type"], item.get("description", ""))
            for item in features.get("shortcuts", ())
        ]
        self.world.changed()

    def add_user(
        self, name: str, real_name: str = "", admin: bool = False, team: str = TEAM, tz: str = "Etc/UTC"
    ) -> str:
        """Add a person and return the id. Another `team` makes a stranger of a connected workspace."""
        user = self.world.user_named(name)
        if user is None:
            user = User(self.world.new_id("U"), name, real_name or name.capitalize(), team, admin, tz=tz)
            self.world.users[user.id] = user
            self.world.teams.setdefault(team, f"Team {team}")
            self.world.changed()
        return user.id

    def add_channel(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        bot: bool = True,
        private: bool = False,
        team: str = TEAM,
    ) -> str:
        """Add a channel with members (names or ids) and return the id. `bot`: askgate is in it, by the app that its
        `team` has."""
        channel = self.world.channel_named(name)
        if channel is None:
            now = int(self.world.clock())
            channel = Channel(self.world.new_id("C"), name, "private" if private else "public", [], now)
            channel.team = team
            self.world.channels[channel.id] = channel
        own = [app.bot_user for app in self.world.apps.values() if self.world.in_reach(app, team)][:1]
        for member in [self._id(member) for member in members] + (own if bot else []):
            if member not in channel.members:
                channel.members.append(member)
        self.world.changed()
        return channel.id

    def offer(
        self,
        redirect_url: str,
        *,
        client_id: str = "1.2",
        client_secret: str = "local-client-secret",  # noqa: S107 - for a server on this machine only
    ) -> None:
        """Let workspaces install the app by OAuth. It is installed nowhere until somebody does."""
        self.app.client_id, self.app.client_secret = client_id, client_secret
        self.app.redirect_urls, self.app.bot_token = [redirect_url], ""
        self.world.changed()

    def add_org(self, org: str, name: str, teams: Iterable[str]) -> None:
        """Make workspaces those of one organisation (Slack: Enterprise Grid)."""
        self.world.orgs[org] = (name, list(teams))
        for team in self.world.orgs[org][1]:
            self.world.teams.setdefault(team, f"Team {team}")
        self.world.changed()

    def installation(self, place: str = TEAM) -> App:
        """The app as it is installed in a workspace or an organisation."""
        return next(app for app in self.world.apps.values() if app.place == place)

    def uninstall(self, place: str = TEAM) -> None:
        """Take the app away from there: its tokens end, and it is told (Slack: app_uninstalled, tokens_revoked)."""
        app = self.installation(place)
        app.bot_token, app.refresh_token, app.expires_at = "", "", None
        app.old_tokens.clear()
        self.world.changed()
        self.courier.event(app, {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [app.bot_user]}})
        self.courier.event(app, {"type": "app_uninstalled"})

    def add_group(self, handle: str, members: Iterable[str], *, team: str = TEAM) -> str:
        """Add a user group (or give it other members) and return the id."""
        people = [self._id(member) for member in members]
        group = next((g for g in self.world.groups.values() if g.handle == handle), None)
        if group is None:
            group = Group(self.world.new_id("S"), handle, people, team)
            self.world.groups[group.id] = group
        group.members = people
        self.world.changed()
        return group.id

    def deactivate(self, name: str) -> None:
        """Deactivate a person's account, which stays in channels and groups. What they do as `as_user` still arrives,
        as what was on its way does."""
        self.world.users[self._id(name)].deleted = True
        self.world.changed()

    def archive(self, channel: str) -> None:
        """Archive a channel: nothing can be posted in it any more."""
        self._channel(channel).archived = True
        self.world.changed()

    # acting and looking

    def as_user(self, name: str) -> Person:
        """Act as a person, by name or id."""
        return Person(self.world, self.acts, self.words, self._id(name))

    @property
    def calls(self) -> list[Recorded]:
        """Every call of the Web API so far, oldest first."""
        return self.api.calls

    def called(self, method: str) -> list[Recorded]:
        """The calls of one method, oldest first."""
        return [call for call in self.api.calls if call.method == method]

    def messages(self, channel: str, thread_ts: str | None = None) -> list[Json]:
        """What everybody sees in a channel (all of it) or in one thread, oldest first, with metadata."""
        rows = self.world.messages.of(self._channel(channel).id)
        if thread_ts is not None:
            rows = [m for m in rows if thread_ts in (m.ts, m.thread_ts)]
        shown = (payloads.message_json(self.world, m, metadata=True) | {"channel": m.channel} for m in rows)
        return copy.deepcopy(list(shown))

    def file(self, file_id: str) -> bytes:
        """What an uploaded file holds."""
        file = self.world.files.find(file_id)
        if file is None:
            raise KeyError(f"no such file: {file_id}")
        return file.data

    def text_of(self, thing: Json) -> str:
        """All visible text of a message or a view, as a person reads it, dates in UTC."""
        return self.words.of(thing)

    async def wait_for(self, predicate: Callable[[], T], timeout: float = 10) -> T:
        """Return `predicate()` as soon as it is true; it is looked at after each change.

        Raises `TimeoutError` after `timeout` seconds.
        """
        return await self.world.changes.until(predicate, timeout)

    async def quiet(self) -> None:
        """Return when every event has been delivered or given up."""
        await self.courier.quiet()

    async def verify_url(self, app: App | None = None) -> bool:
        """Whether the app's request URL echoes Slack's challenge, as it must when it is entered."""
        return await self.courier.verify_url(app or self.app)

    # time

    async def skip(self, seconds: float) -> None:
        """Let time pass at once: days turn, triggers end, and who follows `now` does what has fallen due."""
        await self.world.skip(seconds)

    @property
    def skipped(self) -> float:
        """How many seconds the workspace is ahead of the time outside."""
        return self.world.skipped

    @property
    def followers(self) -> list[Follower]:
        """Who goes by the workspace's clock, and is told of each skip."""
        return self.world.followers

    def now(self) -> float:
        """The workspace's time, in seconds since 1970."""
        return self.world.clock()

    # mischief

    def fail(
        self,
        method: str,
        *,
        status: int | None = None,
        retry_after: int | None = None,
        error: str | None = None,
        delay: float = 0,
        reset_after_accept: bool = False,
        times: int = 1,
    ) -> None:
        """Make the next `times` calls of `method` (`*`: any) fail. See `Fault`."""
        self.api.faults.add(Fault(method, status, retry_after, error, delay, reset_after_accept, times))

    def mend(self) -> None:
        """Forget all faults that have not happened yet."""
        self.api.faults.clear()

    def connections(self, app: App | None = None) -> int:
        """How many Socket Mode connections of an app are open."""
        return len(self.links.open_links((app or self.app).id))

    async def disconnect_sockets(self, reason: str = "refresh_requested", app: App | None = None) -> int:
        """Ask an app's Socket Mode connections to reconnect; returns how many there were."""
        return await self.links.disconnect((app or self.app).id, reason)

    def hush_sockets(self, app: App | None = None, *, dead: bool = False) -> int:
        """Stop pinging over an app's open Socket Mode connections; returns how many there are.

        ``dead``: they read nothing any more either, as when a network drops everything and says so to nobody.
        """
        links = self.links.open_links((app or self.app).id)
        for link in links:
            link.silent, link.dead = True, dead
        return len(links)

    def _id(self, name: str) -> str:
        user = self.world.user_named(name)
        if user is None:
            raise KeyError(f"no such person: {name}; add_user comes first")
        return user.id

    def _channel(self, name: str) -> Channel:
        channel = self.world.channel_named(name)
        if channel is None:
            raise KeyError(f"no such channel: {name}; add_channel comes first")
        return channel
