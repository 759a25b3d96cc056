"""chat.*: posting, changing and deleting messages."""

from __future__ import annotations

from typing import Any

from bot.cards import limits
from bot.sandbox import blocks, payloads
from bot.sandbox.messages import Message
from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.world import Channel

Json = dict[str, Any]
METADATA_BYTES = 16_000


def checked_blocks(raw: Any, *, budget: bool) -> list[Json]:
    """Blocks as they are kept, or Slack's refusal. `budget` holds their text to what Slack posts."""
    if not raw:
        return []
    if not isinstance(raw, list):
        raise Refused("invalid_blocks_format")
    if problems := limits.check_blocks(raw):
        raise Refused.blocks("invalid_blocks", problems)
    if budget and limits.text_bytes(raw) > limits.REFUSED_BYTES:
        raise Refused("msg_blocks_too_long")
    return blocks.dress_blocks(raw)


def _metadata(call: Call) -> Json | None:
    metadata: Json | None = call.args.json("metadata", "invalid_metadata_format")
    if metadata is None or metadata == {}:
        return metadata
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_payload"), dict):
        raise Refused("invalid_metadata_format")
    if not metadata.get("event_type"):
        raise Refused("invalid_metadata_format")
    if len(str(metadata).encode()) > METADATA_BYTES:
        raise Refused("metadata_too_large")
    return metadata


def _target(call: Call) -> Channel:
    """Where to post: a channel by id or name, or a person, whose conversation with the bot is opened."""
    wanted = call.args.need("channel", "channel_not_found")
    if wanted in call.world.users and wanted != call.app.bot_user:
        return call.world.dm(wanted, call.app.bot_user)
    return call.channel()


def _thread(call: Call, channel: Channel) -> str | None:
    thread_ts = call.args.text("thread_ts") or None
    if thread_ts is None:
        return None
    parent = call.world.find(channel.id, thread_ts)
    if parent is None:
        raise Refused("thread_not_found")
    return parent.thread_ts or parent.ts


def _compose(call: Call, channel: Channel, viewer: str | None = None) -> Message:
    if channel.archived:
        raise Refused("is_archived")
    text = call.args.text("text")[: limits.POST_TEXT]
    body = checked_blocks(call.args.json("blocks", "invalid_blocks_format"), budget=True)
    if not text and not body:
        raise Refused("no_text")
    thread_ts = _thread(call, channel)
    return Message(
        channel.id,
        call.world.new_ts(),
        call.app.bot_user,
        text,
        body,
        thread_ts,
        call.app.id,
        _metadata(call) or None,
        viewer=viewer,
        broadcast=thread_ts is not None and call.args.flag("reply_broadcast"),
        mrkdwn=call.args.flag("mrkdwn", default=True),
    )


@method("chat.postMessage")
def post_message(call: Call) -> Json:
    channel = _target(call)
    message = call.world.add(_compose(call, channel))
    shown = payloads.message_json(call.world, message, metadata=True)
    return {"channel": channel.id, "ts": message.ts, "message": shown}


@method("chat.postEphemeral")
def post_ephemeral(call: Call) -> Json:
    channel = call.channel()
    user = call.args.need("user", "user_not_in_channel")
    if user not in channel.members:
        raise Refused("user_not_in_channel")
    message = call.world.add(_compose(call, channel, viewer=user))
    return {"message_ts": message.ts}


def _own(call: Call, channel: Channel, foreign: str) -> Message:
    """The message that `ts` names, which must be the app's own and no ephemeral one."""
    message = call.world.find(channel.id, call.args.need("ts", "message_not_found"))
    if message is None or message.subtype == "tombstone":
        raise Refused("message_not_found")
    if message.app != call.app.id:
        raise Refused(foreign)
    return message


@method("chat.update")
def update(call: Call) -> Json:
    channel = call.channel()
    message = _own(call, channel, "cant_update_message")
    raw = call.args.json("blocks", "invalid_blocks_format")
    text = call.args.text("text")
    if len(text) > limits.UPDATE_TEXT:
        raise Refused("msg_too_long")
    metadata = _metadata(call)
    body = checked_blocks(raw, budget=False)
    if text or body:
        if raw is None:
            # Text alone takes the blocks away and shows "edited" (Slack: chat.update).
            message.edited = {"user": call.app.bot_user, "ts": call.world.new_ts()}
        message.text, message.blocks = text, body
    elif metadata is None:
        raise Refused("no_text")
    if metadata is not None:
        message.metadata = metadata or None
    call.world.changed()
    shown = payloads.message_json(call.world, message, metadata=True)
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": shown}


@method("chat.delete")
def delete(call: Call) -> Json:
    channel = call.channel()
    message = _own(call, channel, "cant_delete_message")
    if call.world.messages.replies(channel.id, message.ts):
        message.text, message.blocks, message.metadata = "This message was deleted.", [], None
        message.subtype = "tombstone"
        call.world.changed()
    else:
        call.world.remove(message)
    return {"channel": channel.id, "ts": message.ts}


@method("chat.getPermalink")
def permalink(call: Call) -> Json:
    channel = call.channel(member=False)
    message = call.world.find(channel.id, call.args.need("message_ts", "message_not_found"))
    if message is None:
        raise Refused("message_not_found")
    link = f"{call.world.url}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts is not None:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}
