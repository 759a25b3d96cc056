"""What the doctor looks at where workspaces install askgate by OAuth: the app's client, and each installation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.commands.findings import Finding, fault, ok, unknown
from bot.commands.store import engine_of
from bot.manifest import bot_scopes
from bot.service import slack_client
from bot.slack.errors import TROUBLES
from bot.slack.installations import INSTALL, Installations, quiet_client
from bot.tenancy import seals_of
from core.errors import AskgateError
from core.settings import Settings

NO_CODE: Final = "askgate-doctor"
"""No code of Slack's: to a client that is right it says so, and of one that is wrong it says that first."""
FEW: Final = 20
"""How many installations are tried."""


async def check_oauth(settings: Settings) -> AsyncIterator[Finding]:
    """Ask Slack about the client id and its secret, and about the tokens in the store."""
    if settings.slack_client_secret is None or not settings.encryption_keys:
        return  # the line about the settings says so
    async with slack_client(settings) as client:
        yield await _client(settings, quiet_client(client))
        try:
            async with engine_of(settings) as engine:
                kept = Installations(engine.store, seals_of(settings))
                listed = await kept.listed()
        except AskgateError:
            return  # the line about the store says so
        if not listed:
            yield unknown("installed", "in no workspace yet", f"open {INSTALL} at your public address")
        for name, (found, first) in list(listed.items())[:FEW]:
            if found is None:
                mend = (
                    f"put the key that sealed it into ASKGATE_ENCRYPTION_KEYS, or install again at {INSTALL}"
                )
                yield fault(name, "no key opens its token", mend)
                continue
            yield await _token(client, name, found.bot_token or "", found.bot_scopes or ())
            if not first:
                yield unknown(name, "another key than the first seals it", "askgate installations rotate")


async def _client(settings: Settings, client: AsyncWebClient) -> Finding:
    secret = settings.slack_client_secret
    assert secret  # noqa: S101  # looked at before
    try:
        await client.oauth_v2_access(
            client_id=settings.slack_client_id or "", client_secret=secret.get_secret_value(), code=NO_CODE
        )
    except SlackApiError as error:
        code = str(error.response.get("error"))
        if code == "invalid_code":
            return ok("oauth", "Slack knows the client id and its secret")
        return fault("oauth", f"Slack says {code}", "copy both again: app settings, Basic Information")
    except TROUBLES as error:
        said = f"{client.base_url} cannot be reached ({type(error).__name__})"
        return fault("oauth", said, "check the network, a proxy, and SLACK_API_URL")
    return unknown("oauth", "this Slack takes any code")


async def _token(client: AsyncWebClient, name: str, token: str, scopes: object) -> Finding:
    try:
        reply = await client.auth_test(token=token)
    except SlackApiError as error:
        return fault(name, f"Slack says {error.response.get('error')}", f"install again at {INSTALL}")
    except TROUBLES as error:
        return unknown(name, f"Slack cannot be reached ({type(error).__name__})")
    missing = [scope for scope in bot_scopes() if isinstance(scopes, list | tuple) and scope not in scopes]
    if missing:
        return fault(name, f"missing scopes: {', '.join(missing)}", f"install again at {INSTALL}")
    return ok(name, f"{reply.get('user')} in {reply.get('team')}")
