"""The door in front of Bolt: size, age and signature, checked on the raw bytes before anything is parsed."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Final
from urllib.parse import parse_qs

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.deliveries import Deliveries
from bot.payloads import complete

MAX_BYTES: Final = 1024 * 1024
"""Slack states no bound. A payload carries the message that was clicked on (up to 50 blocks) and a view of up to
250 kB with its values, URL-encoded."""
MAX_AGE_S: Final = 300

_OFTEN: Final = {"%22": '"', "%2C": ",", "%3A": ":", "%5B": "[", "%5D": "]", "%7B": "{", "%7D": "}"}
"""A payload is JSON with a thousand of these. To read each for all of the text at once takes a fifth of the time, and
can be done first: none is a sign of the form's own, and nothing becomes an escape by it."""

log = structlog.get_logger(__name__)


class Door:
    """`POST /slack/events`: events, interactivity and commands."""

    def __init__(self, deliveries: Deliveries, signing_secret: str) -> None:
        self._deliveries = deliveries
        self._secret = signing_secret.encode()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers 400 (cannot be read), 401 (not from Slack), 413 (too large), or what Bolt answers."""
        if request.content_length is not None and request.content_length > MAX_BYTES:
            return _no(413, "the body is too large")
        body = await request.content.read(MAX_BYTES + 1)
        while len(body) <= MAX_BYTES and (more := await request.content.read(MAX_BYTES + 1 - len(body))):
            body += more
        if len(body) > MAX_BYTES:
            return _no(413, "the body is too large")
        if problem := self._not_from_slack(request, body):
            log.warning("door.refused", reason=problem)
            return _no(401, problem)
        asked = _read(request, body)
        if asked is None:
            log.warning("door.unreadable", type=request.content_type, bytes=len(body))
            return _no(400, "the body cannot be read")
        return await to_aiohttp_response(await self._deliveries.take(asked))

    async def close(self) -> None:
        """Wait for what is still being done."""
        await self._deliveries.close()

    def _not_from_slack(self, request: web.Request, body: bytes) -> str | None:
        """Why this is not Slack's own request of the last five minutes, or None (Slack: verifying requests)."""
        stamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 12) or not signature:
            return "the signature headers are missing or malformed"
        if abs(time.time() - int(stamp)) > MAX_AGE_S:
            return "the request is too old"
        digest = hmac.new(self._secret, b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"v0={digest}".encode(), signature.encode("utf-8", "replace")):
            return "the signature is wrong"
        return None


def _read(request: web.Request, body: bytes) -> AsyncBoltRequest | None:
    """The request as Bolt takes it, or None: Bolt and the listeners raise on what they cannot read."""
    try:
        text = body.decode()
        if request.content_type == "application/json":
            payload = json.loads(text)
        else:
            form = read_form(text)
            payload = json.loads(form["payload"]) if "payload" in form else form
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None
    if not isinstance(payload, dict) or not (complete(payload) or payload.get("ssl_check") == "1"):
        return None
    try:
        # as from a socket: what was read once is not read again, nor its signature checked once more
        return AsyncBoltRequest(
            mode="socket_mode", body=payload, query=request.query_string, headers=dict(request.headers)
        )
    except (AttributeError, LookupError, TypeError):
        return None  # Bolt looks into parts that the bot does not read


def read_form(text: str) -> dict[str, str]:
    """The fields of a form, the first of each name."""
    for escaped, character in _OFTEN.items():
        text = text.replace(escaped, character)
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _no(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status)
