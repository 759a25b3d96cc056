"""Socket Mode: the WebSocket links of apps, and the envelopes that go over them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from typing import Any

from aiohttp import WSMsgType, web

from bot.sandbox.changes import Changes

Json = dict[str, Any]
MOST_LINKS = 10
"""Connections of one app at a time (Slack: Socket Mode)."""
PING_S = 5.0
"""How often Slack's end pings."""


class NoLink(Exception):
    """No open Socket Mode connection took the envelope and acknowledged it in time."""


class Link:
    """One open WebSocket. A link that was told to disconnect gets no further envelopes.

    One that is ``silent`` pings no more; one that is ``dead`` reads nothing either, and still looks open.
    """

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.leaving = False
        self.silent = False
        self.dead = False
        self.waiting: dict[str, asyncio.Future[Json]] = {}

    async def send(self, frame: Json) -> None:
        await self.socket.send_str(json.dumps(frame))

    async def keep_pinging(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            if not (self.silent or self.dead):
                with contextlib.suppress(ConnectionError):
                    await self.socket.ping()

    async def leave(self, reason: str) -> None:
        self.leaving = True
        await self.send({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})


class Links:
    """All links by app. Each envelope goes to one of them in turn. `changes` rings when one comes or goes."""

    def __init__(self, changes: Changes) -> None:
        self._tickets: dict[str, str] = {}
        self._links: dict[str, list[Link]] = {}
        self.ping_s = PING_S
        self._changes = changes

    def ticket(self, app: str) -> str:
        """A one-time word that opens a link for `app`."""
        ticket = secrets.token_urlsafe(18)
        self._tickets[ticket] = app
        return ticket

    def knows(self, app: str) -> bool:
        """Whether the app has ever been connected here."""
        return app in self._links

    def open_links(self, app: str) -> list[Link]:
        return [link for link in self._links.get(app, ()) if not link.leaving and not link.socket.closed]

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """The handler of `GET /link`: holds one link until it closes."""
        app = self._tickets.pop(request.query.get("ticket", ""), None)
        if app is None:
            raise web.HTTPForbidden(text="unknown or used ticket")
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        link = Link(socket)
        if len(self.open_links(app)) >= MOST_LINKS:
            await link.leave("too_many_websockets")
            await socket.close()
            return socket
        self._links.setdefault(app, []).append(link)
        count = len(self.open_links(app))
        await link.send(
            {"type": "hello", "num_connections": count, "connection_info": {"app_id": app}, "debug_info": {}}
        )
        self._changes.ring()
        pinging = asyncio.create_task(link.keep_pinging(self.ping_s))
        try:
            async for frame in socket:
                if link.dead:
                    continue
                if frame.type is WSMsgType.PING:
                    await socket.pong(frame.data)
                elif frame.type is WSMsgType.TEXT:
                    answer = json.loads(frame.data)
                    future = link.waiting.pop(answer.get("envelope_id", ""), None)
                    if future is not None and not future.done():
                        future.set_result(answer.get("payload") or {})
        finally:
            pinging.cancel()
            self._links[app].remove(link)
            self._changes.ring()
            for future in link.waiting.values():
                if not future.done():
                    future.set_exception(NoLink("the connection closed before the acknowledgement"))
        return socket

    async def send(self, app: str, envelope: Json, timeout: float) -> Json:
        """Send an envelope over one link and return the payload of its acknowledgement.

        Waits for a link while none is open. Raises `NoLink` after `timeout` seconds in all.
        """
        try:
            async with asyncio.timeout(timeout):
                while not (links := self.open_links(app)):
                    await self._changes.after(self._changes.rev)
                link = links[0]
                own = self._links[app]
                own.append(own.pop(own.index(link)))
                envelope_id = secrets.token_hex(16)
                future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
                link.waiting[envelope_id] = future
                try:
                    await link.send(
                        {"envelope_id": envelope_id, "accepts_response_payload": True, **envelope}
                    )
                    return await future
                finally:
                    link.waiting.pop(envelope_id, None)
        except TimeoutError:
            raise NoLink(f"no acknowledgement within {timeout:g} s") from None
        except ConnectionError as error:
            raise NoLink(str(error)) from error

    async def disconnect(self, app: str, reason: str) -> int:
        """Ask every link of `app` to reconnect; returns how many there were."""
        links = self.open_links(app)
        for link in links:
            await link.leave(reason)
        return len(links)

    async def close(self) -> None:
        for links in list(self._links.values()):
            for link in list(links):
                await link.socket.close()
