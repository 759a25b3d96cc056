"""Whom askgate serves: the one workspace whose bot token is set, or all that have installed it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.app import Authorize
from bot.deliveries import Dispatch
from bot.install import Install
from bot.manifest import bot_scopes
from bot.slack.audience import Audience
from bot.slack.client import Slack
from bot.slack.directory import SlackDirectory
from bot.slack.installations import Installations, Renewal, States, quiet_client
from bot.slack.notices import Notices
from bot.workspace import Workspace, workspace
from bot.workspaces import Directories, Installed, end_runs
from core.agenda import Handler
from core.bell import Bell
from core.engine import ResumeEngine
from core.hosts.config import HostsError, load_hosts
from core.hosts.desks import Desks
from core.policy import Person, named
from core.sealing import Seals
from core.settings import Settings, SettingsError
from core.store.store import Store


@dataclass(frozen=True, slots=True)
class Tenancy:
    """The engine, the desks before its hosts, and what connects it with Slack.

    ``handlers`` are the agenda's, ``dispatch`` takes what Slack delivers. ``install``: the doors for workspaces that
    come, where they may.
    """

    engine: ResumeEngine
    desks: Desks
    handlers: Mapping[str, Handler]
    dispatch: Dispatch
    close: Callable[[], Awaitable[None]]
    install: Install | None = None


async def single(settings: Settings, store: Store, bell: Bell, client: AsyncWebClient) -> Tenancy:
    """The workspace of SLACK_BOT_TOKEN. Raises SettingsError when Slack does not know the token."""
    home, directory = await _home(client), SlackDirectory(client, pace=store.pace)
    engine = _engine(settings, store, bell, home=home, directory=directory)
    desks, slack, audience = _desks(settings, engine), Slack(client, store.pace), Audience(engine, directory)

    async def slack_of(_: Person) -> Slack:
        return slack

    async def leave(code: str, _since_s: int) -> None:
        await store.installations.due(f"leave:{home}:{code}", store.clock.now_ms())

    async def left(member: str, _tries: int) -> None:
        team, _, code = member.partition(":")
        if team == home:
            await end_runs(engine, team, code)

    notices = Notices(engine, slack_of, partial(audience.crowd, "admins"))
    only = workspace(
        engine, client, directory, home=home, pace=store.pace, note=notices.note, quiet=settings.quiet_hours,
        signing_secret=_secret(settings), leave=leave, desks=desks,
    )  # fmt: skip
    handlers = {**only.handlers, "notice": notices.notice, "leave": left}
    return Tenancy(engine, desks, handlers, only.app.async_dispatch, only.close)


async def several(settings: Settings, store: Store, bell: Bell, client: AsyncWebClient) -> Tenancy:
    """The workspaces that have installed askgate by OAuth."""
    client_id, secret = settings.slack_client_id or "", settings.slack_client_secret
    assert secret  # noqa: S101  # the settings have been checked
    asking = quiet_client(client)
    installations = Installations(store, seals_of(settings))
    renewal = Renewal(store, installations, asking, client_id, secret.get_secret_value())
    installed = Installed(store, installations, client, renewal, default=settings.default_team)
    directory = Directories(installed)
    engine = _engine(settings, store, bell, home=None, directory=directory, workspaces=installed)
    desks = _desks(settings, engine)

    async def admins() -> list[Person]:
        return named(settings.admins, home=None)

    notices = Notices(engine, installed.slack_of, admins)

    def make(name: str, own: AsyncWebClient, directory: SlackDirectory, authorize: Authorize) -> Workspace:
        return workspace(
            engine, own, directory, home=name, pace=store.pace.of(name), note=notices.note,
            quiet=settings.quiet_hours, signing_secret=_secret(settings), leave=partial(installed.leave, name),
            authorize=authorize, desks=desks, others=installed.slack_in,
        )  # fmt: skip

    installed.make = make
    install = Install(
        asking, installations, States(store), client_id=client_id, client_secret=secret.get_secret_value(),
        scopes=bot_scopes(), done=installed.arrived,
    )  # fmt: skip
    handlers = {**installed.handlers(engine), "notice": notices.notice}
    return Tenancy(engine, desks, handlers, installed.dispatch, installed.close, install)


def seals_of(settings: Settings) -> Seals:
    """What seals the tokens."""
    return Seals([key.get_secret_value().encode() for key in settings.encryption_keys])


def _engine(settings: Settings, store: Store, bell: Bell, **more: Any) -> ResumeEngine:
    return ResumeEngine(
        store,
        bell,
        admins=settings.admins,
        default_channel=settings.default_channel,
        fallback_channel=settings.fallback_channel,
        default_timeout_s=settings.default_timeout_s,
        callback_allow=settings.callback_allow,
        **more,
    )


def _desks(settings: Settings, engine: ResumeEngine) -> Desks:
    """One desk a host that ASKGATE_HOSTS names. Any number of processes may have one before the same host."""
    try:
        return Desks(engine, load_hosts(settings.hosts) if settings.hosts else [])
    except HostsError as error:
        raise SettingsError(f"ASKGATE_HOSTS: {error}") from None


def _secret(settings: Settings) -> str | None:
    secret = settings.slack_signing_secret
    return secret.get_secret_value() if secret else None


async def _home(client: AsyncWebClient) -> str:
    """The team id of the workspace. Raises SettingsError when Slack does not know the token."""
    try:
        return str((await client.auth_test())["team_id"])
    except SlackApiError as error:
        raise SettingsError(f"SLACK_BOT_TOKEN: Slack says {error.response.get('error')}") from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SettingsError(
            f"SLACK_API_URL: {client.base_url} cannot be reached ({type(error).__name__})"
        ) from error
