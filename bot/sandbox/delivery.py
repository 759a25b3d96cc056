"""Bringing interactions, commands and events to an app: signed HTTP, or Socket Mode when it is linked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp

from bot.sandbox import payloads
from bot.sandbox.links import Links, NoLink
from bot.sandbox.scopes import KINDS
from bot.sandbox.world import App, World

Json = dict[str, Any]
FORM = "application/x-www-form-urlencoded"
ACK_WITHIN_S = 3.0
"""Slack waits this long for an answer."""
RETRY_DELAYS_S = (0.0, 0.02, 0.1)
"""Before each further try of an event. Slack tries three times more, but over minutes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """How the app answered. `error` is None when it acknowledged; else `no_answer`, `http_<status>`, …"""

    error: str | None = None
    body: Any = None
    no_retry: bool = False


class Courier:
    """Delivers to apps. `ack_within_s` may be changed at any time."""

    def __init__(self, world: World, links: Links, retry_delays: Sequence[float] = RETRY_DELAYS_S) -> None:
        self.world = world
        self.links = links
        self.retry_delays = retry_delays
        self.ack_within_s = ACK_WITHIN_S
        self._session: aiohttp.ClientSession | None = None
        self._events: set[asyncio.Task[None]] = set()

    async def interact(self, app: App, payload: Json) -> Reply:
        """Deliver an interaction once: clicks are never tried again."""
        if self._by_socket(app):
            return await self._link(app, {"type": "interactive", "payload": payload})
        return await self._post(app, urlencode({"payload": json.dumps(payload)}), FORM)

    async def command(self, app: App, form: dict[str, str]) -> Reply:
        if self._by_socket(app):
            return await self._link(app, {"type": "slash_commands", "payload": form})
        return await self._post(app, urlencode(form), FORM)

    def event(self, app: App, event: Json) -> None:
        """Deliver an event in the background, with retries, if the app subscribes to its type."""
        if not self._subscribed(app, event) or (app.request_url is None and not self.links.knows(app.api_id)):
            return
        task = asyncio.get_running_loop().create_task(
            self._deliver(app, payloads.event_json(self.world, app, event))
        )
        self._events.add(task)
        task.add_done_callback(self._events.discard)

    def _subscribed(self, app: App, event: Json) -> bool:
        """Messages may be subscribed to by the kind of conversation, as `message.channels` and the like."""
        channel = self.world.channels.get(str(event.get("channel")))
        kind = f"message.{KINDS[channel.kind]}" if event["type"] == "message" and channel else ""
        return bool(app.events & {event["type"], kind})

    async def verify_url(self, app: App) -> bool:
        """Ask the app's request URL to echo a challenge, as Slack does when the URL is entered."""
        challenge = "local-challenge"
        body = {"type": "url_verification", "token": payloads.TOKEN, "challenge": challenge}
        reply = await self._post(app, json.dumps(body), "application/json")
        return reply.error is None and challenge in str(reply.body)

    async def quiet(self) -> None:
        """Return when no event is on its way any more."""
        while self._events:
            await asyncio.wait(self._events)

    async def close(self) -> None:
        for task in self._events:
            task.cancel()
        await asyncio.gather(*self._events, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _deliver(self, app: App, envelope: Json) -> None:
        reason: str | None = None
        for attempt in range(len(self.retry_delays) + 1):
            if attempt:
                await asyncio.sleep(self.retry_delays[attempt - 1])
            if self._by_socket(app):
                frame = {"type": "events_api", "payload": envelope, "accepts_response_payload": False}
                frame |= {"retry_attempt": attempt, "retry_reason": reason or ""}
                reply = await self._link(app, frame)
            else:
                retry = (
                    {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason or ""}
                    if attempt
                    else {}
                )
                reply = await self._post(app, json.dumps(envelope), "application/json", retry)
            if reply.error is None or reply.no_retry:
                return
            reasons = {"no_answer": "http_timeout", "no_connection": "connection_failed"}
            reason = reasons.get(reply.error, "http_error")

    def _by_socket(self, app: App) -> bool:
        return app.request_url is None or bool(self.links.open_links(app.api_id))

    async def _link(self, app: App, envelope: Json) -> Reply:
        try:
            return Reply(body=await self.links.send(app.api_id, envelope, self.ack_within_s))
        except NoLink:
            return Reply(error="no_answer")

    async def _post(self, app: App, body: str, kind: str, headers: Mapping[str, str] | None = None) -> Reply:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        if app.request_url is None:
            return Reply(error="no_connection")
        raw = body.encode()
        signed = {
            "Content-Type": kind,
            "User-Agent": "Slackbot 1.0 (+local)",
            **sign(app, raw, self.world.wall()),
        }
        timeout = aiohttp.ClientTimeout(total=self.ack_within_s)
        try:
            async with self._session.post(
                app.request_url, data=raw, headers=signed | dict(headers or {}), timeout=timeout
            ) as response:
                text = await response.text()
        except TimeoutError:
            return Reply(error="no_answer")
        except aiohttp.ClientError:
            return Reply(error="no_connection")
        no_retry = response.headers.get("X-Slack-No-Retry") == "1"
        if response.status != 200:
            return Reply(error=f"http_{response.status}", no_retry=no_retry)
        return Reply(body=_parsed(text, response.content_type))


def sign(app: App, body: bytes, now: float) -> dict[str, str]:
    """The headers that prove a request came from Slack (Slack: verifying requests)."""
    stamp = str(int(now))
    mac = hmac.new(app.signing_secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256)
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac.hexdigest()}"}


def _parsed(text: str, kind: str) -> Any:
    """An acknowledgement's body: JSON as an object, other text as a message of that text, nothing as {}."""
    if not text.strip():
        return {}
    if kind == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return {"text": text}
    return {"text": text}
