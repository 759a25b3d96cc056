"""files.*: the two ends of an upload. What lies between them goes to the address that the first one gives."""

from __future__ import annotations

import secrets
from typing import Any

from bot.sandbox.files import File
from bot.sandbox.messages import Message
from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.world import Channel

Json = dict[str, Any]
ALT_TEXT = 1000
SNIPPET_BYTES = 1024 * 1024


@method("files.getUploadURLExternal")
def get_upload_url(call: Call) -> Json:
    if call.json_body:
        raise Refused("invalid_arguments")
    name, size = call.args.need("filename"), call.args.number("length", 0)
    if size < 1:
        raise Refused("missing_argument")
    if len(call.args.text("alt_txt")) > ALT_TEXT:
        raise Refused("alt_txt_too_large")
    if call.args.text("snippet_type") and size > SNIPPET_BYTES:
        raise Refused("snippet_too_large")
    world, ticket = call.world, secrets.token_urlsafe(24)
    now = int(world.clock())
    file = world.files.keep(File(world.new_id("F"), call.app.id, call.app.bot_user, name, size, ticket, now))
    world.changed()
    return {"upload_url": f"{world.url}/upload/v1/{ticket}", "file_id": file.id}


@method("files.completeUploadExternal")
def complete_upload(call: Call) -> Json:
    """Give uploaded files their titles, and share them by one message if a conversation is named."""
    files = _uploaded(call)
    channels = _channels(call)
    thread_ts = call.args.text("thread_ts") or None
    if thread_ts and len(channels) != 1:
        raise Refused("invalid_arguments")
    if thread_ts:
        parent = call.world.find(channels[0].id, thread_ts)
        if parent is None:
            raise Refused("thread_not_found")
        if parent.thread_ts not in (None, parent.ts):
            # a reply is no thread (Slack: "never use a reply's ts value; use its parent instead")
            raise Refused("invalid_thread_ts")
    for file, title in files:
        file.title = title
    for channel in channels:
        call.world.add(
            Message(
                channel.id,
                call.world.new_ts(),
                call.app.bot_user,
                call.args.text("initial_comment"),
                thread_ts=thread_ts,
                app=call.app.id,
                subtype="file_share",
                files=[file.id for file, _ in files],
            )
        )
    call.world.changed()
    return {"files": [{"id": file.id, "title": file.title} for file, _ in files]}


def _uploaded(call: Call) -> list[tuple[File, str]]:
    """The files with their titles, all of them the app's own and with their bytes there."""
    named = call.args.json("files", "invalid_arguments")
    if not isinstance(named, list) or not named:
        raise Refused("invalid_arguments")
    found = []
    for item in named:
        if not isinstance(item, dict) or not isinstance(item.get("id"), str):
            raise Refused("invalid_arguments")
        file = call.world.files.find(item["id"])
        if file is None or file.app != call.app.id or file.content is None:
            raise Refused("file_not_found")
        found.append((file, str(item.get("title") or file.name)))
    return found


def _channels(call: Call) -> list[Channel]:
    """Where the files are shared: one conversation, several, or none."""
    one, several = call.args.text("channel_id"), call.args.text("channels")
    found = []
    for wanted in [one] if one else [name for name in several.split(",") if name]:
        channel = call.world.channels.get(wanted)
        if channel is None or (channel.kind != "public" and call.app.bot_user not in channel.members):
            raise Refused("channel_not_found")
        if call.app.bot_user not in channel.members:
            raise Refused("not_in_channel")
        if channel.archived:
            raise Refused("is_archived")
        found.append(channel)
    return found
