"""Which scopes a bot token needs for a method (Slack: the methods' own pages), and whether an app has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot.sandbox.world import App, World

KINDS: Final = {"public": "channels", "private": "groups", "dm": "im"}
"""What a conversation is called in a scope."""

NEEDED: Final[Mapping[str, str]] = {
    "bots.info": "users:read",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "{kind}:history",
    "conversations.info": "{kind}:read",
    "conversations.join": "channels:join",
    "conversations.list": "{kind}:read",
    "conversations.members": "{kind}:read",
    "conversations.open": "im:write",
    "conversations.replies": "{kind}:history",
    "files.completeUploadExternal": "files:write",
    "files.delete": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "users.conversations": "{kind}:read",
    "users.info": "users:read",
    "users.list": "users:read",
}
"""The scope of each method that wants one. `{kind}` is that of the conversation; for a list any kind will do."""


def lacking(world: World, app: App, method: str, channel: Any) -> list[str]:
    """The scopes of which the app would need one for this call; empty if it has it, or was given no list at all."""
    scope = NEEDED.get(method)
    if scope is None or app.scopes is None:
        return []
    found = world.channel_named(channel) if isinstance(channel, str) else None
    kinds = [KINDS[found.kind]] if found else list(KINDS.values())
    wanted = list(dict.fromkeys(scope.format(kind=kind) for kind in kinds))
    return [] if app.scopes & set(wanted) else wanted
