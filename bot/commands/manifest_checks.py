"""What the doctor compares: the app as Slack has it, and the manifest that this askgate would make."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.commands.findings import Finding, fault, ok, unknown
from bot.install import REDIRECT
from bot.manifest import PATH, manifest
from core.settings import Settings

Json = Mapping[str, Any]

CONFIG_TOKEN: Final = "SLACK_CONFIG_TOKEN"  # noqa: S105  # the name of a variable
ROTATION: Final = ("settings", "token_rotation_enabled")
DOOR_S: Final = 5.0
"""How long the public address may take to answer."""
AWAY: Final = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError)
MEND: Final = "put the manifest into the app's settings (App Manifest) and install the app again"

_APP_TOKEN: Final = re.compile(r"xapp-\d+-(A[A-Z0-9]+)-.+")
"""An app-level token has the app's id in it."""


def app_of(settings: Settings, said: str | None) -> str | None:
    """The app's id: as Slack said it, or out of the app-level token."""
    token = settings.slack_app_token
    found = _APP_TOKEN.fullmatch(token.get_secret_value()) if token else None
    return said or (found[1] if found else None)


async def check_manifest(
    client: AsyncWebClient, settings: Settings, app_id: str | None, config_token: str | None
) -> AsyncIterator[Finding]:
    """Compare the live app with the manifest. Only a configuration token may read it."""
    if not config_token:
        how = f"set {CONFIG_TOKEN} (api.slack.com/apps, Your App Configuration Tokens)"
        yield unknown("manifest", "Slack shows an app's manifest to a configuration token alone", how)
        return
    if app_id is None:
        yield unknown("manifest", "it is not known which app this is", "give --app A… (Basic Information)")
        return
    try:
        reply = await client.apps_manifest_export(app_id=app_id, token=config_token)
    except SlackApiError as error:
        said = f"Slack says {error.response.get('error')} of {app_id}"
        yield fault("manifest", said, f"make another {CONFIG_TOKEN} (they last 12 hours), or give --app")
        return
    except AWAY as error:
        yield unknown("manifest", f"{client.base_url} cannot be reached ({type(error).__name__})")
        return
    live: Json = reply["manifest"]
    for finding in compared(live, socket=settings.slack_app_token is not None, oauth=settings.oauth):
        yield finding
    if (url := request_url(live)) and settings.slack_app_token is None:
        yield await check_door(url.removesuffix(PATH))


def compared(live: Json, *, socket: bool, oauth: bool = False) -> Iterator[Finding]:
    """A line each for the parts of a live manifest: what lacks, what is too much, what is switched off."""
    url = request_url(live)
    wanted = manifest(None if socket else (url or "").removesuffix(PATH))
    yield _lists("events", _events(wanted), _events(live))
    yield _lists("commands", _commands(wanted), _commands(live))
    yield _lists("shortcuts", _shortcuts(wanted), _shortcuts(live))
    yield _switches(wanted, live, url, may_rotate=oauth)
    if oauth:
        yield _redirects(live)


def _lists(what: str, wanted: set[str], found: set[str]) -> Finding:
    if missing := sorted(wanted - found):
        return fault(what, f"missing: {', '.join(missing)}", MEND)
    more = sorted(found - wanted)
    return ok(
        what, (", ".join(sorted(wanted)) or "none") + (f"; not needed: {', '.join(more)}" if more else "")
    )


def _redirects(live: Json) -> Finding:
    """Slack sends back who installs to the first of these."""
    found = [str(url) for url in _at(live, ("oauth_config", "redirect_urls")) or ()]
    if not found or not found[0].endswith(REDIRECT):
        said = f"the first redirect URL is {found[0] if found else 'not set'}"
        return fault("redirect", said, f"make the first one your public address with {REDIRECT}")
    return ok("redirect", found[0])


def _switches(wanted: Json, live: Json, url: str | None, *, may_rotate: bool) -> Finding:
    """Interactivity, Home and Socket Mode are on or off as wanted; over HTTP everything comes to one address."""
    wrong = [
        f"{path[-1]} is {_at(live, path)}"
        for path in (
            ("settings", "interactivity", "is_enabled"),
            ("settings", "socket_mode_enabled"),
            ("features", "app_home", "home_tab_enabled"),
            ROTATION,
        )
        if bool(_at(live, path)) != _at(wanted, path) and not (may_rotate and path == ROTATION)
    ]
    if not wanted["settings"]["socket_mode_enabled"]:
        wrong += [
            f"{name} is {found}" for name, found in _urls(live) if found != url or not found.endswith(PATH)
        ]
    if wrong:
        return fault("switches", "; ".join(wrong), MEND)
    return ok("switches", "Socket Mode" if wanted["settings"]["socket_mode_enabled"] else f"all to {url}")


def request_url(live: Json) -> str | None:
    """Where Slack sends interactions."""
    found = _at(live, ("settings", "interactivity", "request_url"))
    return str(found) if found else None


def _urls(live: Json) -> Iterator[tuple[str, str]]:
    yield "interactivity's request_url", str(_at(live, ("settings", "interactivity", "request_url")))
    yield (
        "event_subscriptions' request_url",
        str(_at(live, ("settings", "event_subscriptions", "request_url"))),
    )
    for command in _at(live, ("features", "slash_commands")) or ():
        yield f"{command['command']}'s url", str(command.get("url"))


def _events(found: Json) -> set[str]:
    return set(_at(found, ("settings", "event_subscriptions", "bot_events")) or ())


def _commands(found: Json) -> set[str]:
    return {command["command"] for command in _at(found, ("features", "slash_commands")) or ()}


def _shortcuts(found: Json) -> set[str]:
    """By kind and callback id, which is what reaches the app."""
    return {f"{s['type']} {s['callback_id']}" for s in _at(found, ("features", "shortcuts")) or ()}


def _at(found: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


async def check_door(url: str) -> Finding:
    """Whether an askgate answers at the public address: it asks whoever knocks for Slack's signature."""
    address = url + PATH
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DOOR_S)) as session,
            session.post(address, data=b"{}", allow_redirects=False) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return fault(
            "url",
            f"{address} cannot be reached ({type(error).__name__})",
            "start askgate; check TLS, DNS, proxy",
        )
    if status != 401:
        return fault(
            "url",
            f"{address} answers {status}, not askgate's 401",
            "have the proxy pass this path on to askgate",
        )
    return ok("url", f"{address} answers, and asks for Slack's signature")
