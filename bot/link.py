"""One WebSocket of Socket Mode: envelopes come, and each is acknowledged over the connection that it came by."""

from __future__ import annotations

import asyncio
import json
import ssl as tls
from collections.abc import Coroutine, Sequence
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import WSMsgType
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.deliveries import OK, Deliveries
from bot.payloads import complete

PING_S: Final = 10.0
"""How often we ping; a connection on which half of that brings nothing is given up."""
SILENT_S: Final = 30.0
"""Slack pings too. When it once did, and then does not for so long, nobody is there who would deliver."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one frame. What comes over HTTP may have a MiB, URL-encoded."""
LEAVE_S: Final = 10.0
"""How long a connection that is left stays open for acknowledgements that are still owed."""
TOO_MANY: Final = "too_many_websockets"
"""Another connection is only to be had when this one is closed."""

_OVER: Final = (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)

log = structlog.get_logger(__name__)


class Link:
    """A connection. ``over`` is set as soon as another is wanted in its place; it may still be open then."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse[bool], deliveries: Deliveries) -> None:
        self._socket = socket
        self._deliveries = deliveries
        self._owed: set[asyncio.Task[None]] = set()
        self._pinged_at: float | None = None
        self.over = asyncio.Event()

    @classmethod
    async def to(
        cls,
        session: aiohttp.ClientSession,
        url: str,
        deliveries: Deliveries,
        *,
        proxy: str | None,
        ssl: tls.SSLContext | bool,
    ) -> Link:
        """Connect, and wait for Slack's hello. Raises what aiohttp raises, or TimeoutError."""
        socket = await session.ws_connect(
            url, autoping=False, heartbeat=PING_S, max_msg_size=MAX_BYTES, proxy=proxy, ssl=ssl
        )
        link = cls(socket, deliveries)
        try:
            while not await link._hello():
                pass
        except BaseException:
            await socket.close()
            raise
        return link

    @property
    def open(self) -> bool:
        return not self._socket.closed

    async def serve(self) -> None:
        """Take what comes until the connection has ended."""
        try:
            while (frame := await self._next()) is not None:
                if frame.get("type") == "disconnect":
                    self._left(str(frame.get("reason")))
                elif "envelope_id" in frame:
                    self._hold(self._take(frame))
        finally:
            self.over.set()
            await self._socket.close()

    async def close(self, grace_s: float) -> None:
        """Let what came be done and acknowledged, at most ``grace_s`` seconds, and disconnect; `serve` then returns."""
        self.over.set()
        if owed := self._owed - {asyncio.current_task()}:
            _, late = await asyncio.wait(owed, timeout=grace_s)
            if late:
                log.warning("socket.cut", deliveries=len(late))
        await self._socket.close()

    def _left(self, reason: str) -> None:
        """Slack wants another connection and soon closes this one, which until then is good for what is owed."""
        log.info("socket.left", reason=reason)
        self.over.set()
        if reason == TOO_MANY:
            self._hold(self.close(LEAVE_S))

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._owed.add(task)
        task.add_done_callback(self._owed.discard)

    async def _hello(self) -> bool:
        frame = await self._next()
        if frame is None or frame.get("type") == "disconnect":
            raise aiohttp.ClientConnectionError(f"closed at once: {frame and frame.get('reason')}")
        return frame.get("type") == "hello"

    async def _next(self) -> dict[str, Any] | None:
        """The next frame; None when the connection has ended, or nobody seems to be at its other end."""
        while True:
            try:
                message = await self._socket.receive(self._patience())
            except TimeoutError:
                log.warning("socket.silent", seconds=SILENT_S)
                return None
            if message.type is WSMsgType.PING:
                self._pinged_at = _now()
                await self._socket.pong(message.data)
            elif message.type in _OVER:
                return None
            elif message.type is WSMsgType.TEXT and (frame := _read(str(message.data))) is not None:
                return frame

    def _patience(self) -> float | None:
        """How many seconds the next frame may take: until a ping is overdue, once there was one."""
        if self._pinged_at is None:
            return None
        return max(self._pinged_at + SILENT_S - _now(), 0.001)

    async def _take(self, envelope: dict[str, Any]) -> None:
        """Do one delivery and acknowledge it. What failed is not: Slack then tells the person, or brings it again."""
        payload = envelope.get("payload")
        if not isinstance(payload, dict) or not complete(payload):
            log.warning("socket.unreadable", type=envelope.get("type"))
            return
        response = await self._deliveries.take(
            AsyncBoltRequest(mode="socket_mode", body=payload, headers=_headers(envelope))
        )
        if response.status != OK:
            log.info("socket.not_acknowledged", type=envelope.get("type"), status=response.status)
            return
        body = _payload(response)
        ack = {"envelope_id": envelope["envelope_id"]} | ({} if body is None else {"payload": body})
        try:
            await self._socket.send_str(json.dumps(ack))
        except (ConnectionError, aiohttp.ClientError):
            # it was done, and Slack tells the person that it was not: whoever clicks again is told
            log.warning("socket.ack_lost", type=envelope.get("type"))


def _now() -> float:
    """Seconds on the event loop's clock, which nobody sets."""
    return asyncio.get_running_loop().time()


def _read(text: str) -> dict[str, Any] | None:
    """A frame as an object, or None for what is none (Slack sends empty ones)."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None


def _headers(envelope: dict[str, Any]) -> dict[str, str | Sequence[str]]:
    """What HTTP has in its headers about an event that Slack brings again."""
    names = {"retry_attempt": "x-slack-retry-num", "retry_reason": "x-slack-retry-reason"}
    return {header: str(envelope[name]) for name, header in names.items() if envelope.get(name)}


def _payload(response: BoltResponse) -> Any:
    """What Bolt answers as an acknowledgement carries it; None for nothing."""
    if not response.body:
        return None
    kind = response.headers.get("content-type", [""])[0]
    return json.loads(response.body) if kind.startswith("application/json") else {"text": response.body}
