"""What Slack tells an app and how it shows things: the JSON of messages, views, people and interactions."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.sandbox import blocks
from bot.sandbox.files import file_json
from bot.sandbox.messages import Message, Values
from bot.sandbox.world import TEAM, App, Channel, User, View, World

Json = dict[str, Any]
TOKEN = "local-verification-token"  # noqa: S105 - a field of every payload; signatures are what counts


def message_json(world: World, message: Message, *, metadata: bool = False) -> Json:
    """A message as conversations.history gives it."""
    author = world.users[message.user]
    body: Json = {
        "type": "message",
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "team": author.team,
    }
    if message.app is not None:
        app = world.apps[message.app]
        body |= {"bot_id": app.bot_id, "app_id": app.api_id}
        body["bot_profile"] = {
            "id": app.bot_id,
            "app_id": app.api_id,
            "name": app.name,
            "team_id": author.team,
            "deleted": False,
        }
    if message.blocks:
        body["blocks"] = message.blocks
    if message.files:
        body["files"] = [file_json(world.url, file) for f in message.files if (file := world.files.find(f))]
        body["upload"] = True
    if not message.mrkdwn:
        body["mrkdwn"] = False
    if message.edited:
        body["edited"] = message.edited
    if message.subtype or message.broadcast:
        body["subtype"] = message.subtype or "thread_broadcast"
    if metadata and message.metadata:
        body["metadata"] = message.metadata
    replies = [] if message.viewer else world.messages.replies(message.channel, message.ts)
    if replies:
        people = list(dict.fromkeys(reply.user for reply in replies))
        body |= {
            "thread_ts": message.ts, "reply_count": len(replies), "reply_users": people,
            "reply_users_count": len(people), "latest_reply": replies[-1].ts,
        }  # fmt: skip
    elif message.thread_ts is not None:
        body["thread_ts"] = message.thread_ts
        if parent := world.find(message.channel, message.thread_ts):
            body["parent_user_id"] = parent.user
    return body


def view_json(world: World, view: View) -> Json:
    app = world.apps[view.app]
    return {
        "id": view.id, "team_id": app.team or world.users[view.user].team, "app_id": app.api_id,
        "app_installed_team_id": app.place, "bot_id": app.bot_id,
        "private_metadata": "", "callback_id": "", "external_id": "", "title": None, "submit": None,
        "close": None, "clear_on_close": False, "notify_on_close": False,
        **view.body,
        "state": {"values": blocks.values(view.body["blocks"], view.picks)},
        "hash": view.hash, "root_view_id": view.root, "previous_view_id": view.previous,
    }  # fmt: skip


def user_json(world: World, user: User) -> Json:
    """A person as users.info gives them."""
    body: Json = {
        "id": user.id, "team_id": user.team, "name": user.name, "real_name": user.real_name, "deleted": user.deleted,
        "is_bot": user.app is not None, "is_admin": user.admin, "is_owner": False, "is_app_user": False,
        "tz": user.tz, "tz_offset": _offset(world, user), "updated": 0,
        "profile": {"real_name": user.real_name, "display_name": user.name, "team": user.team},
    }  # fmt: skip
    if user.team != TEAM:
        body["is_stranger"] = True
    if user.app is not None:
        body["profile"]["api_app_id"] = user.app
        body["profile"]["bot_id"] = world.apps[user.app].bot_id
    return body


def _offset(world: World, user: User) -> int:
    """Seconds by which the person's clock is ahead of UTC."""
    offset = datetime.fromtimestamp(world.clock(), ZoneInfo(user.tz)).utcoffset()
    return int(offset.total_seconds()) if offset else 0


def channel_json(world: World, channel: Channel, user: str) -> Json:
    """A conversation as `user` meets it in conversations.info and its lists."""
    foreign = sorted({world.users[member].team for member in channel.members} - {channel.team})
    body: Json = {
        "id": channel.id, "created": channel.created, "is_im": channel.kind == "dm",
        "is_archived": channel.archived, "is_ext_shared": bool(foreign), "is_org_shared": False,
        "context_team_id": channel.team,
    }  # fmt: skip
    if foreign:
        body["connected_team_ids"] = foreign
    if channel.kind == "dm":
        other = next((member for member in channel.members if member != user), user)
        return body | {"user": other, "is_mpim": False, "is_open": True}
    return body | {
        "name": channel.name, "name_normalized": channel.name, "is_channel": channel.kind == "public",
        "is_group": channel.kind == "private", "is_private": channel.kind == "private", "is_mpim": False,
        "is_general": False, "is_member": user in channel.members,
    }  # fmt: skip


def _from(world: World, app: App, user: User) -> Json:
    return {
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
        "api_app_id": app.api_id,
        "token": TOKEN,
        "team": _team(world, app.team),
        "enterprise": _enterprise(world, app),
        "is_enterprise_install": bool(app.enterprise),
        "trigger_id": world.trigger(app, user.id),
    }


def _team(world: World, team: str) -> Json | None:
    """A workspace; null where an app is installed in all of an organisation (Slack: org-ready apps)."""
    return {"id": team, "domain": world.teams[team].lower()} if team else None


def _enterprise(world: World, app: App) -> Json | None:
    return {"id": app.enterprise, "name": world.orgs[app.enterprise][0]} if app.enterprise else None


def message_action_json(
    world: World, app: App, user: User, message: Message, action: Json, picks: Values
) -> Json:
    """block_actions from a message. An ephemeral one brings no copy of the message."""
    channel = world.channels[message.channel]
    container: Json = {
        "type": "message", "message_ts": message.ts, "channel_id": channel.id,
        "is_ephemeral": message.viewer is not None,
    }  # fmt: skip
    if message.thread_ts is not None:
        container["thread_ts"] = message.thread_ts
    payload = {
        "type": "block_actions",
        **_from(world, app, user),
        "container": container,
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "state": {"values": blocks.values(message.blocks, picks)},
        "response_url": world.response_url(app, user.id, channel.id, message.ts),
        "actions": [action],
    }
    if message.viewer is None:
        payload["message"] = message_json(world, message)
    return payload


def view_action_json(world: World, app: App, user: User, view: View, action: Json) -> Json:
    shown = view_json(world, view)
    return {
        "type": "block_actions",
        **_from(world, app, user),
        "container": {"type": "view", "view_id": view.id},
        "view": shown,
        "state": shown["state"],
        "actions": [action],
    }


def view_submission_json(world: World, app: App, user: User, view: View) -> Json:
    # For a stranger this is the stranger's own team; the view says where the app is installed.
    team = None if app.enterprise else _team(world, user.team)
    return {
        "type": "view_submission",
        **_from(world, app, user),
        "team": team,
        "view": view_json(world, view),
        "response_urls": [],
    }


def view_closed_json(world: World, app: App, user: User, view: View, *, cleared: bool) -> Json:
    payload = {
        "type": "view_closed",
        **_from(world, app, user),
        "view": view_json(world, view),
        "is_cleared": cleared,
    }
    del payload["trigger_id"]
    return payload


def shortcut_json(world: World, app: App, user: User, callback_id: str, message: Message | None) -> Json:
    """A global shortcut, or a message shortcut (`message_action`) when a message is given."""
    action_ts = world.new_ts()
    common = {**_from(world, app, user), "callback_id": callback_id, "action_ts": action_ts}
    if message is None:
        return {"type": "shortcut", **common}
    channel = world.channels[message.channel]
    return {
        "type": "message_action",
        **common,
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "message_ts": message.ts,
        "message": message_json(world, message),
        "response_url": world.response_url(app, user.id, channel.id, message.ts),
    }


def command_form(
    world: World, app: App, user: User, channel: Channel, command: str, text: str
) -> dict[str, str]:
    return {
        "token": TOKEN,
        "team_id": app.team or user.team,
        "team_domain": world.teams[app.team or user.team].lower(),
        **({"enterprise_id": app.enterprise} if app.enterprise else {}),
        "channel_id": channel.id,
        "channel_name": channel.name or "directmessage",
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": app.api_id,
        "is_enterprise_install": "true" if app.enterprise else "false",
        "response_url": world.response_url(app, user.id, channel.id),
        "trigger_id": world.trigger(app, user.id),
    }


def event_json(world: World, app: App, event: Json) -> Json:
    """The envelope that the Events API puts around `event`."""
    author = world.users.get(str(event.get("user")))
    team = app.team or (author.team if author else world.orgs[app.enterprise][1][0])
    return {
        "token": TOKEN,
        "team_id": team,
        "context_team_id": team,
        **(
            {"enterprise_id": app.enterprise, "context_enterprise_id": app.enterprise}
            if app.enterprise
            else {}
        ),
        "api_app_id": app.api_id,
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{secrets.token_hex(5).upper()}",
        "event_time": int(world.clock()),
        "is_ext_shared_channel": _shared(world, event.get("channel")),
        "authorizations": [
            {
                "enterprise_id": app.enterprise or None,
                "team_id": app.team or None,
                "user_id": app.bot_user,
                "is_bot": True,
                "is_enterprise_install": bool(app.enterprise),
            }
        ],
    }


def _shared(world: World, channel: str | None) -> bool:
    found = world.channels.get(channel) if channel else None
    return any(world.users[member].team != found.team for member in found.members) if found else False


def message_event(world: World, message: Message) -> Json:
    """The `message` event of a message that was just posted."""
    channel = world.channels[message.channel]
    kinds = {"public": "channel", "private": "group", "dm": "im"}
    body = message_json(world, message)
    body.pop("bot_profile", None)
    return {**body, "channel": channel.id, "channel_type": kinds[channel.kind], "event_ts": message.ts}


def avatar_color(user: str) -> str:
    """A steady colour for a person's picture, `#rrggbb`, dark enough for white letters."""
    digest = hashlib.sha256(user.encode()).digest()
    return "#" + "".join(f"{40 + byte % 110:02x}" for byte in digest[:3])
