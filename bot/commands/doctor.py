"""`askgate doctor`: everything that `askgate serve` will need, looked at before it does."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import aiohttp
import click

from bot.commands.findings import Finding, fault, ok
from bot.commands.host_checks import check_hosts
from bot.commands.manifest_checks import CONFIG_TOKEN
from bot.commands.oauth_checks import check_oauth
from bot.commands.shell import pairs, run, set_option
from bot.commands.slack_checks import Asked, check_slack
from bot.commands.store import store_url
from bot.commands.store_checks import check_store
from bot.manifest import public_url
from core.embedded import EmbeddedError
from core.parsing import Bind
from core.settings import Settings, SettingsError, load_settings

HEALTH_S: Final = 2.0


@click.command()
@click.option("--app", metavar="ID", help="The Slack app's id (A…), if its tokens do not tell it.")
@click.option("--url", metavar="URL", help="Your public base URL: knock there, as Slack would.")
@click.option("--blocks", is_flag=True, help="Show sample cards and modals to Slack's own validator.")
@set_option
def doctor(app: str | None, url: str | None, blocks: bool, overrides: tuple[str, ...]) -> None:
    """Check settings, store, tokens, scopes, the live app, hosts, clock and port, a line each. Exit code 1 on a fault.

    With SLACK_CONFIG_TOKEN in the environment, an app configuration token, the live app's events, commands, shortcuts
    and addresses are compared with the manifest.
    """
    run(_doctor(overrides, Asked(app, os.environ.get(CONFIG_TOKEN) or None, url, blocks)))


async def _doctor(overrides: tuple[str, ...], asked: Asked) -> None:
    if asked.url:
        asked = replace(asked, url=public_url(asked.url))
    faults = 0
    async for finding in _findings(pairs(overrides), asked):
        finding.show()
        faults += finding.state == "fault"
    if faults:
        raise SystemExit(1)


async def _findings(given: dict[str, str], asked: Asked) -> AsyncIterator[Finding]:
    try:
        settings = load_settings(given)
    except SettingsError as error:
        yield _wrong(error)
        return  # what would be looked at is not known
    yield _complete(given, settings)
    async for finding in _store(settings):
        yield finding
    if settings.oauth:
        async for finding in check_oauth(settings):
            yield finding
    async for finding in check_slack(settings, asked):
        yield finding
    async for finding in check_hosts(settings):
        yield finding
    yield await _port(settings.bind)


def _complete(given: dict[str, str], settings: Settings) -> Finding:
    """Whether all is set that serving a workspace takes."""
    try:
        load_settings(given, need_slack=True)
    except SettingsError as error:
        return _wrong(error)
    mode = "Socket Mode" if settings.slack_app_token else "HTTP"
    mode += " and OAuth" * settings.oauth
    return ok("settings", f"complete, for {mode}; API keys: {', '.join(settings.api_keys)}")


def _wrong(error: SettingsError) -> Finding:
    problem, _, wanted = error.detail.partition("; ")
    return fault("settings", problem, wanted or "set it")


async def _store(settings: Settings) -> AsyncIterator[Finding]:
    try:
        async with store_url(settings) as url:
            async for finding in check_store(url, settings):
                yield finding
    except SettingsError as error:
        yield _wrong(error)
    except EmbeddedError as error:
        problem, _, mend = error.detail.partition(";")
        yield fault("store", problem, mend.strip() or "see above")


async def _port(bind: Bind) -> Finding:
    """Whether the port is free, or another askgate has it."""
    where = f"{bind.host}:{bind.port}"
    try:
        with socket.create_server((bind.host, bind.port), family=_family(bind)):
            return ok("port", f"{where} is free")
    except OSError as error:
        if await _is_askgate(bind):
            return ok("port", f"an askgate answers at {where}")
        return fault(
            "port", f"cannot listen on {where} ({error.strerror})", "set ASKGATE_BIND to a free address"
        )


def _family(bind: Bind) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in bind.host else socket.AF_INET


async def _is_askgate(bind: Bind) -> bool:
    host = f"[{bind.host}]" if ":" in bind.host else bind.host
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HEALTH_S)) as session,
            session.get(f"http://{host}:{bind.port}/healthz") as response,
        ):
            return response.status == 200 and json.loads(await response.text()) == {"status": "ok"}
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False
