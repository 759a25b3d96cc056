"""What the doctor looks at in Slack: the tokens, and the scopes that were granted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from pydantic import SecretStr
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.commands.findings import Finding, fault, ok, unknown
from bot.manifest import bot_scopes
from bot.service import slack_client
from core.settings import Settings

SCOPES_HEADER: Final = "x-oauth-scopes"
_AWAY = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError)
_REINSTALL: Final = "put the manifest into the app's settings (App Manifest) and install the app again"


async def check_slack(settings: Settings) -> AsyncIterator[Finding]:
    """Ask Slack about the tokens that are set. Nothing is posted."""
    async with slack_client(settings) as client:
        if settings.slack_bot_token:
            async for finding in _bot_token(client):
                yield finding
        if settings.slack_app_token:
            yield await _app_token(client, settings.slack_app_token)


async def _bot_token(client: AsyncWebClient) -> AsyncIterator[Finding]:
    try:
        reply = await client.auth_test()
    except SlackApiError as error:
        code = error.response.get("error")
        yield fault("bot token", f"Slack says {code}", "copy it again: app settings, OAuth & Permissions")
        return
    except _AWAY as error:
        yield _unreached("bot token", client, error)
        return
    yield ok("bot token", f"{reply.get('user')} in {reply.get('team')} ({reply.get('team_id')})")
    yield _scopes(reply)


def _scopes(reply: AsyncSlackResponse) -> Finding:
    said = next((text for name, text in reply.headers.items() if name.lower() == SCOPES_HEADER), None)
    if said is None:
        return unknown("scopes", f"this Slack names none (no {SCOPES_HEADER} header)")
    granted = {scope.strip() for scope in said.split(",")}
    missing = [scope for scope in bot_scopes() if scope not in granted]
    if missing:
        return fault("scopes", f"missing: {', '.join(missing)}", _REINSTALL)
    more = sorted(granted - {*bot_scopes(), ""})
    also = f"; not needed: {', '.join(more)}" if more else ""
    return ok("scopes", f"all that the manifest asks for{also}")


async def _app_token(client: AsyncWebClient, token: SecretStr) -> Finding:
    try:
        await client.apps_connections_open(app_token=token.get_secret_value())
    except SlackApiError as error:
        return fault(
            "app token",
            f"Slack says {error.response.get('error')}",
            "make one with the scope connections:write (Basic Information), and switch Socket Mode on",
        )
    except _AWAY as error:
        return _unreached("app token", client, error)
    return ok("app token", "opens Socket Mode connections")


def _unreached(what: str, client: AsyncWebClient, error: Exception) -> Finding:
    said = f"{client.base_url} cannot be reached ({type(error).__name__})"
    return fault(what, said, "check the network, a proxy, and SLACK_API_URL")
