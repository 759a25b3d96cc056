"""The Slack app's manifest, made from what the code calls, answers and listens to (Slack: app manifest reference)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from bot.install import REDIRECT
from bot.listeners.commands import COMMAND
from bot.listeners.shortcuts import GATES, GATES_HERE
from core.settings import SettingsError

PATH: Final = "/slack/events"
"""Where the door takes everything from Slack."""
EXAMPLE_URL: Final = "https://askgate.example.com"
_CONVERSATIONS: Final = ("channels", "groups", "im", "mpim")
"""A run names a conversation by its id, which does not tell its kind: so each right goes for every kind."""


def _for_each_kind(right: str) -> tuple[str, ...]:
    return tuple(f"{kind}:{right}" for kind in _CONVERSATIONS)


SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "api.test": (),
    "auth.teams.list": (),
    "auth.test": (),
    "chat.delete": ("chat:write",),
    "chat.getPermalink": (),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": _for_each_kind("history"),
    "conversations.members": _for_each_kind("read"),
    "conversations.open": ("im:write",),
    "conversations.replies": _for_each_kind("history"),
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "usergroups.users.list": ("usergroups:read",),
    "users.conversations": _for_each_kind("read"),
    "users.info": ("users:read",),
    "views.open": (),
    "views.publish": (),
    "views.push": (),
    "views.update": (),
}
"""Every method of the Web API that is called with the bot token, and the scopes that Slack wants for it."""

EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "app_home_opened": (),
    "app_mention": ("app_mentions:read",),
    "app_uninstalled": (),
    **{f"message.{kind}": (f"{kind}:history",) for kind in _CONVERSATIONS},
    "tokens_revoked": (),
}
"""The events that a listener of ours exists for, and the scopes that Slack wants to send them."""

APP_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {"apps.connections.open": ("connections:write",)}
"""The methods that are called with the app-level token of Socket Mode, and that token's scopes."""


def bot_scopes() -> list[str]:
    """The scopes that the bot token needs, sorted."""
    wanted = [*SCOPES.values(), *EVENTS.values()]
    return sorted({"commands", *(scope for scopes in wanted for scope in scopes)})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an app is made for beside how deliveries come.

    ``redirect``: the public base URL to which Slack sends back who installs by OAuth, where deliveries come by Socket
    Mode; ``org``: organisations may install it as a whole; ``rotation``: its tokens expire and are renewed, for good.
    """

    redirect: str | None = None
    org: bool = False
    rotation: bool = False


PLAIN: Final = Wanted()


def manifest(url: str | None, wanted: Wanted = PLAIN) -> dict[str, Any]:
    """The manifest for HTTP at a public base URL, or with None for Socket Mode."""
    back = url or wanted.redirect
    redirects = {"redirect_urls": [back + REDIRECT]} if back else {}
    address = {} if url is None else {"request_url": url + PATH}
    command = {
        "command": COMMAND,
        "description": "What waits for a decision",
        "usage_hint": "[list | show ID | decide ID | new TEXT | stop | help]",
        "should_escape": True,
    }
    return {
        "display_information": {
            "name": "askgate",
            "description": "Agents ask, people decide, in the thread where the work is.",
            "background_color": "#1f3a5f",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": True,
            },
            "bot_user": {"display_name": "askgate", "always_online": True},
            "shortcuts": [
                {
                    "name": "Gates",
                    "type": "global",
                    "callback_id": GATES,
                    "description": "What waits for a decision",
                },
                {
                    "name": "Gates here",
                    "type": "message",
                    "callback_id": GATES_HERE,
                    "description": "What is open in this thread",
                },
            ],
            "slash_commands": [command if url is None else {**command, "url": url + PATH}],
        },
        "oauth_config": {**redirects, "scopes": {"bot": bot_scopes()}},
        "settings": {
            "event_subscriptions": {**address, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": wanted.org,
            "socket_mode_enabled": url is None,
            "token_rotation_enabled": wanted.rotation,
        },
    }


def written(url: str | None, wanted: Wanted = PLAIN) -> str:
    """The manifest as YAML, to be pasted into “Create an app, from a manifest”."""
    how = "--socket" if url is None else f"--url {url}"
    how += f" --redirect {wanted.redirect}" if wanted.redirect else ""
    how += " --org" * wanted.org + " --rotation" * wanted.rotation
    text: str = yaml.safe_dump(manifest(url, wanted), sort_keys=False, allow_unicode=True, width=100)
    return f"# Made by `askgate manifest {how}`.\n{text}"


def public_url(text: str) -> str:
    """The base URL without a slash at its end. Raises SettingsError for what Slack could not call."""
    url = text.rstrip("/").removesuffix(PATH)
    scheme, found, host = url.partition("://")
    if scheme != "https" or not found or not host or any(c.isspace() or c in "?#" for c in host):
        raise SettingsError(f"--url: got {text!r}; wanted the public base URL, such as {EXAMPLE_URL}")
    return url
