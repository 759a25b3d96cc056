"""`askgate installations …`: the workspaces that have installed askgate by OAuth."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import click
from slack_sdk.oauth.installation_store import Installation

from bot.commands.shell import pairs, run, set_option, show_table
from bot.commands.store import engine_of
from bot.service import slack_client
from bot.slack.errors import TROUBLES
from bot.slack.installations import Installations, name_of, quiet_client
from bot.tenancy import seals_of
from core.errors import NotFound
from core.sealing import Unsealable
from core.settings import Settings, SettingsError, load_settings


@click.group()
def installations() -> None:
    """List the workspaces that have installed askgate, seal their tokens with another key, remove one."""


@installations.command("list")
@set_option
def listed(overrides: tuple[str, ...]) -> None:
    """Where askgate is installed, since when, until when the token is good, and which key seals it."""
    run(_listed(overrides))


@installations.command()
@set_option
def rotate(overrides: tuple[str, ...]) -> None:
    """Seal with the first of ASKGATE_ENCRYPTION_KEYS what another one sealed."""
    run(_rotate(overrides))


@installations.command()
@click.argument("team")
@set_option
def remove(team: str, overrides: tuple[str, ...]) -> None:
    """Revoke a workspace's token, forget it, and end what waits there as undeliverable."""
    run(_remove(team, overrides))


async def _listed(overrides: tuple[str, ...]) -> None:
    async with _open(overrides) as (_, kept):
        rows = []
        for name, (found, first) in (await kept.listed()).items():
            rows.append((name, *_described(found), "first key" if first else "another key"))
        show_table(("id", "name", "installed", "token until", "sealed with"), rows)


def _described(found: Installation | None) -> tuple[str, str, str]:
    if found is None:
        return "?", "?", "?"
    name = found.enterprise_name if found.is_enterprise_install else found.team_name
    until = found.bot_token_expires_at
    return name or "", _day(found.installed_at), _day(until) if until else "for good"


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


async def _rotate(overrides: tuple[str, ...]) -> None:
    async with _open(overrides) as (_, kept):
        click.echo(f"{await kept.reseal()} sealed anew")


async def _remove(team: str, overrides: tuple[str, ...]) -> None:
    async with _open(overrides) as (settings, kept):
        revoked = ""
        try:
            if found := await kept.find(team):
                revoked = await _revoked(settings, found)
        except Unsealable as error:
            revoked = error.detail
        if not await kept.remove(team):
            raise NotFound(f"askgate is not installed in {team}.")
        click.echo(f"{team} removed; {revoked}")


async def _revoked(settings: Settings, found: Installation) -> str:
    """Revoke the token; what Slack says does not hold up the rest."""
    async with slack_client(settings) as client:
        try:
            await quiet_client(client).auth_revoke(token=found.bot_token)
        except TROUBLES as error:
            return f"its token was not revoked ({type(error).__name__}): uninstall the app in Slack"
    return f"the token of {name_of(found)} is revoked"


@contextlib.asynccontextmanager
async def _open(overrides: tuple[str, ...]) -> AsyncIterator[tuple[Settings, Installations]]:
    settings = load_settings(pairs(overrides))
    if not settings.encryption_keys:
        raise SettingsError("ASKGATE_ENCRYPTION_KEYS: not set; wanted the keys that seal the tokens")
    async with engine_of(settings) as engine:
        yield settings, Installations(engine.store, seals_of(settings))
