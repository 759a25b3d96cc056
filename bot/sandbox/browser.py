"""The routes of the page: what one person sees, a stream of changes, and that person's acts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.sandbox import blocks, payloads
from bot.sandbox.acts import Acts, Done, Impossible, Spot
from bot.sandbox.door import refuse
from bot.sandbox.messages import Message
from bot.sandbox.world import TEAM, Channel, World

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PAGE = Path(__file__).parent / "page"
KEEPALIVE_S = 15
MOST_SKIPPED_S = 31 * 86_400
KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}


class MissingFieldError(Exception):
    """A request of the page lacks the field of this name."""


class Body(dict[str, Any]):
    """A JSON object that says which field is missing."""

    def __missing__(self, name: str) -> Any:
        raise MissingFieldError(name)


class Browser:
    """Serves the page and its `/ui` routes."""

    def __init__(self, world: World, acts: Acts) -> None:
        self.world = world
        self.acts = acts

    def routes(self) -> list[web.RouteDef]:
        posts = {
            "action": self._action,
            "input": self._input,
            "submit": self._submit,
            "close": self._close,
            "say": self._say,
            "home": self._home,
            "dm": self._dm,
            "shortcut": self._shortcut,
            "read": self._read,
            "skip": self._skip,
        }
        return [
            web.get("/", self._index),
            web.get("/archives/{rest:.*}", self._index),
            web.get("/static/{name:.+}", self._static),
            web.get("/ui/state", self._state),
            web.get("/ui/stream", self._stream),
            *(web.post(f"/ui/{name}", self._act(act)) for name, act in posts.items()),
        ]

    # the way in

    def _act(self, act: Callable[[Json, str], Awaitable[Json]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            # A form of another page can send any type but this one without asking first.
            if request.content_type != "application/json":
                return refuse(415, "send application/json")
            try:
                body = json.loads(await request.text(), object_hook=Body)
            except ValueError:
                body = None
            if not isinstance(body, Body):
                return refuse(400, "send a JSON object")
            try:
                return web.json_response(await act(body, str(body["user"])))
            except MissingFieldError as missing:
                return refuse(400, f"missing field: {missing}")
            except Impossible as slip:
                return refuse(409, str(slip))

        return handle

    # files

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return _file(PAGE / "index.html")

    async def _static(self, request: web.Request) -> web.StreamResponse:
        path = (PAGE / request.match_info["name"]).resolve()
        if not path.is_relative_to(PAGE.resolve()) or not path.is_file() or path.suffix not in KINDS:
            return refuse(404, "no such file")
        return _file(path)

    # what a person sees

    async def _state(self, request: web.Request) -> web.StreamResponse:
        user = request.query.get("user") or next(
            (user.id for user in self.world.users.values() if user.app is None), ""
        )
        if user not in self.world.users:
            return refuse(404, f"no such person: {user}")
        return web.json_response(self.state(user), headers={"Cache-Control": "no-store"})

    def state(self, user: str) -> Json:
        """Everything `user` sees, as the page takes it."""
        world = self.world
        channels = list(world.channels_of(user))
        top = world.top_view(user)
        homes = (world.home(user, app.id) for app in world.apps_of(user))
        home = next((view for view in homes if view is not None), None)
        return {
            "team": {"id": TEAM, "name": world.teams[TEAM]},
            "you": user,
            "users": [
                {
                    "id": person.id,
                    "name": person.name,
                    "real_name": person.real_name,
                    "avatar_color": payloads.avatar_color(person.id),
                    "is_bot": person.app is not None,
                    "team": person.team,
                }
                for person in world.users.values()
            ],
            "groups": [{"id": group.id, "handle": group.handle} for group in world.groups.values()],
            "channels": [self._channel(channel, user) for channel in channels],
            # what others may know of a channel by its mention (Slack: a private one stays nameless)
            "elsewhere": {
                channel.id: channel.name
                for channel in world.channels.values()
                if channel.kind == "public" and user not in channel.members
            },
            "messages": {channel.id: self._messages(channel, user) for channel in channels},
            "modal": payloads.view_json(world, top) if top else None,
            "modal_depth": len(world.stacks.get(user, ())),
            "home": payloads.view_json(world, home) if home else None,
            "commands": [
                {"command": c.command, "description": c.description, "usage": c.usage}
                for app in world.apps_of(user)
                for c in app.commands
            ],
            "shortcuts": [
                {
                    "app": app.name,
                    "name": item.name,
                    "callback_id": item.callback_id,
                    "type": item.type,
                    "description": item.description,
                }
                for app in world.apps_of(user)
                for item in app.shortcuts
            ],
            "rev": world.sights.rev,
            "now": int(world.clock() * 1000),
            "skipped_s": int(world.skipped),
        }

    def _channel(self, channel: Channel, user: str) -> Json:
        other = next((member for member in channel.members if member != user), user)
        is_dm = channel.kind == "dm"
        read = channel.read.get(user, "")
        return {
            "id": channel.id,
            "name": self.world.users[other].name if is_dm else channel.name,
            "kind": "dm" if is_dm else "channel",
            "with": other if is_dm else None,
            "unread": sum(
                message.ts > read and message.user != user
                for message in self.world.messages.of(channel.id, user)
            ),
        }

    def _messages(self, channel: Channel, user: str) -> list[Json]:
        return [self._message(message, user) for message in self.world.messages.of(channel.id, user)]

    def _message(self, message: Message, user: str) -> Json:
        body = payloads.message_json(self.world, message)
        picks = message.picks.get(user, {})
        names = ("ts", "thread_ts", "user", "text", "mrkdwn", "blocks", "files", "latest_reply")
        shown = {name: body[name] for name in names if name in body}
        if message.app is not None:
            shown["bot_name"] = self.world.apps[message.app].name
        return shown | {
            "ephemeral": message.viewer is not None,
            "edited": message.edited is not None,
            "reply_count": body.get("reply_count", 0),
            "deleted": message.subtype == "tombstone",
            "state": blocks.values(message.blocks, picks),
        }

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await stream.prepare(request)
        rev = self.world.sights.rev
        await stream.write(b"retry: 500\n\n")
        while not self.world.closed:
            try:
                rev = await asyncio.wait_for(self.world.sights.after(rev), KEEPALIVE_S)
                frame = f"event: changed\ndata: {json.dumps({'rev': rev})}\n\n"
            except TimeoutError:
                frame = ": still here\n\n"
            try:
                await stream.write(frame.encode())
            except ConnectionError:
                break
        return stream

    # acts

    async def _action(self, body: Json, user: str) -> Json:
        spot, value = _spot(body["container"]), body.get("value")
        return _told(await self.acts.use(user, spot, body["block_id"], body["action_id"], value))

    async def _input(self, body: Json, user: str) -> Json:
        spot = _spot(body["container"])
        return _told(self.acts.enter(user, spot, body["block_id"], body["action_id"], body.get("value")))

    async def _submit(self, body: Json, user: str) -> Json:
        return _told(await self.acts.submit(user, body["view_id"], body.get("values") or {}))

    async def _close(self, body: Json, user: str) -> Json:
        return _told(await self.acts.close(user, body["view_id"]))

    async def _say(self, body: Json, user: str) -> Json:
        channel, text = body["channel"], str(body["text"])
        if text.startswith("/"):
            command, _, rest = text.partition(" ")
            return _told(await self.acts.command(user, channel, command, rest.strip()))
        message = await self.acts.say(user, channel, text, body.get("thread_ts"))
        return {"ok": True, "ts": message.ts}

    async def _home(self, body: Json, user: str) -> Json:
        return _told(self.acts.open_home(user, self.world.apps_of(user)[0]))

    async def _shortcut(self, body: Json, user: str) -> Json:
        on = (body["channel"], body["ts"]) if "ts" in body else None
        return _told(await self.acts.shortcut_named(user, body["callback_id"], on))

    async def _dm(self, body: Json, user: str) -> Json:
        return {"ok": True, "channel": self.acts.open_dm(user, body["with"]).id}

    async def _read(self, body: Json, user: str) -> Json:
        self.acts.read(user, body["channel"])
        return {"ok": True}

    async def _skip(self, body: Json, user: str) -> Json:
        seconds = body["seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 < seconds <= MOST_SKIPPED_S:
            raise Impossible(f"seconds must be a whole number from 1 to {MOST_SKIPPED_S}")
        await self.world.skip(seconds)
        return {"ok": True}


def _spot(container: Json) -> Spot:
    if container["type"] == "view":
        return Spot(view_id=container["view_id"])
    return Spot(container["channel"], container["ts"])


def _told(done: Done) -> Json:
    body: Json = {"ok": done.ok}
    if done.error is not None:
        body["error"] = done.error
    if done.errors:
        body["errors"] = dict(done.errors)
    return body


def _file(path: Path) -> web.FileResponse:
    headers = {"Content-Type": f"{KINDS[path.suffix]}; charset=utf-8", "Cache-Control": "no-store"}
    return web.FileResponse(path, headers=headers)
