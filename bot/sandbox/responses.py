"""response_url and the answers to slash commands: messages that an app sends without its token."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from bot.sandbox.messages import Message
from bot.sandbox.methods import Refused
from bot.sandbox.methods.chat import checked_blocks
from bot.sandbox.world import App, ResponseUrl, World

Json = dict[str, Any]
USES = 5
LIFE_S = 30 * 60


def say(world: World, app: App, user: str, channel: str, body: Json) -> Message:
    """Post `body` as the app, to one person or (`response_type: in_channel`) to all.

    Raises `Refused` like chat.postMessage; membership of the app is not asked for.
    """
    text = str(body.get("text") or "")
    blocks = checked_blocks(body.get("blocks"), budget=False)
    if not text and not blocks:
        raise Refused("no_text")
    thread_ts = body.get("thread_ts")
    if thread_ts is not None and world.find(channel, thread_ts) is None:
        raise Refused("thread_not_found")
    viewer = None if body.get("response_type") == "in_channel" else user
    message = Message(channel, world.new_ts(), app.bot_user, text, blocks, thread_ts, app.id, viewer=viewer)
    return world.add(message)


class ResponseUrls:
    """Serves `POST /response/<app>/<id>`: 5 uses within 30 minutes (Slack: handling user interaction)."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def serve(self, request: web.Request) -> web.Response:
        entry = self.world.response_urls.get(request.match_info["id"])
        if entry is None or entry.app != request.match_info["app"]:
            return _refuse(404, "invalid_url")
        if self.world.clock() - entry.at > LIFE_S:
            return _refuse(404, "expired_url")
        if entry.uses >= USES:
            return _refuse(404, "used_url")
        try:
            body = json.loads(await request.text())
        except ValueError:
            return _refuse(400, "invalid_payload")
        if not isinstance(body, dict):
            return _refuse(400, "invalid_payload")
        try:
            self._apply(entry, body)
        except Refused as refusal:
            return _refuse(404 if refusal.error == "message_not_found" else 400, refusal.error)
        entry.uses += 1
        self.world.changed()
        return web.Response(text="ok")

    def _apply(self, entry: ResponseUrl, body: Json) -> None:
        app = self.world.apps[entry.app]
        if not body.get("delete_original") and not body.get("replace_original"):
            say(self.world, app, entry.user, entry.channel, body)
            return
        original = self.world.find(entry.channel, entry.ts or "", entry.user)
        if original is None or original.app != app.id:
            raise Refused("message_not_found")
        if body.get("delete_original"):
            self.world.remove(original)
            return
        text, blocks = str(body.get("text") or ""), checked_blocks(body.get("blocks"), budget=False)
        if not text and not blocks:
            raise Refused("no_text")
        original.text, original.blocks = text, blocks


def _refuse(status: int, error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error}, status=status)
