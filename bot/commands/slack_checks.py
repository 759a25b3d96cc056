"""What the doctor looks at in Slack: the tokens, the scopes that were granted, the live app, sample cards."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.commands import samples
from bot.commands.findings import Finding, fault, ok, unknown
from bot.commands.manifest_checks import AWAY, MEND, app_of, check_door, check_manifest
from bot.manifest import bot_scopes
from bot.service import slack_client
from core.settings import Settings

SCOPES_HEADER: Final = "x-oauth-scopes"


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants looked at beside the tokens.

    ``app``: the app's id, if Slack and the tokens do not tell it; ``config_token``: with it Slack shows the live
    app's manifest; ``url``: the public base URL to knock at; ``blocks``: send samples to Slack's validator.
    """

    app: str | None = None
    config_token: str | None = None
    url: str | None = None
    blocks: bool = False


async def check_slack(settings: Settings, asked: Asked) -> AsyncIterator[Finding]:
    """Ask Slack about the tokens that are set, and about the live app. Nothing is posted."""
    async with slack_client(settings) as client:
        app = asked.app
        if settings.slack_bot_token:
            reply, finding = await _bot_token(client)
            yield finding
            if reply is not None:
                app = app or reply.get("app_id")
                yield _scopes(reply)
        if settings.slack_app_token:
            yield await _app_token(client, settings.slack_app_token)
        async for finding in check_manifest(client, settings, app_of(settings, app), asked.config_token):
            yield finding
        if asked.url:
            yield await check_door(asked.url)
        if asked.blocks:
            yield await _blocks(client)


async def _bot_token(client: AsyncWebClient) -> tuple[AsyncSlackResponse | None, Finding]:
    """What Slack says of the token; None if it says nothing good."""
    try:
        reply = await client.auth_test()
    except SlackApiError as error:
        code = error.response.get("error")
        mend = "copy it again: app settings, OAuth & Permissions"
        return None, fault("bot token", f"Slack says {code}", mend)
    except AWAY as error:
        return None, _unreached("bot token", client, error)
    return reply, ok("bot token", f"{reply.get('user')} in {reply.get('team')} ({reply.get('team_id')})")


def _scopes(reply: AsyncSlackResponse) -> Finding:
    said = next((text for name, text in reply.headers.items() if name.lower() == SCOPES_HEADER), None)
    if said is None:
        return unknown("scopes", f"this Slack names none (no {SCOPES_HEADER} header)")
    granted = {scope.strip() for scope in said.split(",")}
    missing = [scope for scope in bot_scopes() if scope not in granted]
    if missing:
        return fault("scopes", f"missing: {', '.join(missing)}", MEND)
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
    except AWAY as error:
        return _unreached("app token", client, error)
    return ok("app token", "opens Socket Mode connections")


async def _blocks(client: AsyncWebClient) -> Finding:
    """Have Slack's own validator look at a card and a modal of every kind."""
    count = 0
    for kind, items in (("message", samples.messages()), ("view", samples.views())):
        for item in items:
            count += 1
            try:
                # as a form: what stands in a URL has to be short
                await client.api_call("blocks.validate", data={kind: json.dumps(item)})
            except SlackApiError as error:
                said = f"Slack says {error.response.get('error')} of {kind} {count}: {_first(error.response)}"
                return fault("blocks", said, "this is a fault of askgate's: report it with this line")
            except AWAY as error:
                return _unreached("blocks", client, error)
    return ok("blocks", f"Slack takes all {count} sample cards and modals")


def _first(reply: Any) -> str:
    """The first thing that the validator found."""
    found = (reply.get("errors") or [{}])[0]
    return f"{found.get('pointer')} {found.get('message')}" if isinstance(found, dict) else str(found)


def _unreached(what: str, client: AsyncWebClient, error: Exception) -> Finding:
    said = f"{client.base_url} cannot be reached ({type(error).__name__})"
    return fault(what, said, "check the network, a proxy, and SLACK_API_URL")
