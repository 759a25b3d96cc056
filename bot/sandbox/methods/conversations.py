"""conversations.* and users.conversations: where people and apps talk."""

from __future__ import annotations

from typing import Any

from bot.sandbox import payloads
from bot.sandbox.messages import Message
from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.world import Channel

Json = dict[str, Any]
KINDS = {"public_channel": "public", "private_channel": "private", "im": "dm"}


@method("conversations.open")
def open_conversation(call: Call) -> Json:
    if call.args.text("channel"):
        channel = call.channel()
    else:
        wanted = call.args.need("users", "users_list_not_supplied").split(",")
        if len(wanted) > 1:
            raise Refused("not_enough_users" if not all(wanted) else "too_many_users")
        if wanted[0] not in call.world.users or not call.meets(call.world.users[wanted[0]]):
            raise Refused("user_not_found")
        if wanted[0] == call.app.bot_user or call.world.users[wanted[0]].app is not None:
            raise Refused("cannot_dm_bot")
        channel = call.world.dm(wanted[0], call.app.bot_user)
    if call.args.flag("return_im"):
        return {"channel": payloads.channel_json(call.world, channel, call.app.bot_user)}
    return {"channel": {"id": channel.id}}


@method("conversations.info")
def info(call: Call) -> Json:
    channel = call.channel(member=False)
    shown = payloads.channel_json(call.world, channel, call.app.bot_user)
    if call.args.flag("include_num_members"):
        shown["num_members"] = len(channel.members)
    return {"channel": shown}


@method("conversations.join")
def join(call: Call) -> Json:
    channel = call.channel(member=False)
    if channel.archived:
        raise Refused("is_archived")
    if channel.kind != "public":
        raise Refused("method_not_supported_for_channel_type")
    if call.app.bot_user not in channel.members:
        channel.members.append(call.app.bot_user)
        call.world.changed()
    return {"channel": payloads.channel_json(call.world, channel, call.app.bot_user)}


@method("conversations.members")
def members(call: Call) -> Json:
    rows, more = call.page(call.channel(member=False).members)
    return {"members": rows, "response_metadata": more}


def _listed(call: Call, channels: list[Channel], default: str) -> Json:
    wanted = call.args.text("types", default).split(",")
    if unknown := [name for name in wanted if name.strip() not in (*KINDS, "mpim")]:
        raise Refused("invalid_types", provided=unknown)
    kinds = {KINDS[name.strip()] for name in wanted if name.strip() in KINDS}
    hidden = call.args.flag("exclude_archived")
    shown = [c for c in channels if c.kind in kinds and not (hidden and c.archived)]
    rows, more = call.page(shown)
    bot = call.app.bot_user
    return {
        "channels": [payloads.channel_json(call.world, channel, bot) for channel in rows],
        "response_metadata": more,
    }


@method("conversations.list")
def list_all(call: Call) -> Json:
    bot = call.app.bot_user
    known = [c for c in call.world.channels.values() if c.kind == "public" or bot in c.members]
    return _listed(call, known, "public_channel")


@method("users.conversations")
def of_user(call: Call) -> Json:
    user = call.user().id if call.args.text("user") else call.app.bot_user
    team, bot = call.team(), call.app.bot_user
    known = [c for c in call.world.channels_of(user) if c.kind == "public" or bot in c.members]
    if call.app.enterprise:
        known = [c for c in known if c.team == team]
    return _listed(call, known, "public_channel")


def _between(call: Call, rows: list[Message]) -> list[Message]:
    """The rows between `oldest` and `latest`; the ends belong to it when `inclusive` says so."""
    oldest, latest = call.args.text("oldest"), call.args.text("latest")
    inclusive = call.args.flag("inclusive")

    def inside(ts: str) -> bool:
        after = not oldest or float(ts) > float(oldest) or (inclusive and float(ts) == float(oldest))
        before = not latest or float(ts) < float(latest) or (inclusive and float(ts) == float(latest))
        return after and before

    try:
        return [message for message in rows if inside(message.ts)]
    except ValueError:
        raise Refused("invalid_ts_oldest" if oldest else "invalid_ts_latest") from None


def _shown(call: Call, rows: list[Message], default: int) -> Json:
    page, more = call.page(rows, default)
    metadata = call.args.flag("include_all_metadata")
    body: Json = {
        "messages": [payloads.message_json(call.world, message, metadata=metadata) for message in page],
        "has_more": bool(more["next_cursor"]),
    }
    return body | {"response_metadata": more} if more["next_cursor"] else body


@method("conversations.history")
def history(call: Call) -> Json:
    channel = call.channel()
    rows = [m for m in call.world.messages.of(channel.id) if m.thread_ts in (None, m.ts) or m.broadcast]
    return _shown(call, _between(call, rows[::-1]), 100)


@method("conversations.replies")
def replies(call: Call) -> Json:
    channel = call.channel()
    parent = call.world.find(channel.id, call.args.need("ts", "thread_not_found"))
    if parent is None or parent.viewer is not None:
        raise Refused("thread_not_found")
    if parent.thread_ts not in (None, parent.ts):
        return _shown(call, [parent], 1000)
    rows = _between(call, call.world.messages.replies(channel.id, parent.ts))
    return _shown(call, [parent, *rows], 1000)
