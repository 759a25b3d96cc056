"""What Slack delivers, by whichever way: held to its end, and each event done once, however often it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from core.errors import StoreUnavailable
from core.ids import new_token
from core.store.events import Events

OK: Final = 200
LATER: Final = 503
"""Slack brings an event again: at once, after a minute, after five (Slack: Events API)."""

Dispatch = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]

log = structlog.get_logger(__name__)


class Deliveries:
    """Takes requests for the app. What came over HTTP and what came over a socket goes the same way from here on."""

    def __init__(self, dispatch: Dispatch, events: Events) -> None:
        """``dispatch`` has a workspace's app do it."""
        self._dispatch = dispatch
        self._events = events
        self._running: set[asyncio.Task[BoltResponse]] = set()

    async def take(self, asked: AsyncBoltRequest) -> BoltResponse:
        """Do a delivery and return what Bolt answers.

        It goes on to its end also when the caller is cancelled: Slack hangs up after 3 s.
        """
        event = asked.body.get("event_id") if asked.body.get("type") == "event_callback" else None
        work = self._once(event, asked) if isinstance(event, str) else self._at_once(asked)
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def close(self, grace_s: float | None = None) -> None:
        """Wait for what is still being done, at most so long."""
        if self._running:
            _, late = await asyncio.wait(set(self._running), timeout=grace_s)
            if late:
                log.warning("deliveries.cut", count=len(late))

    async def _at_once(self, asked: AsyncBoltRequest) -> BoltResponse:
        try:
            return await self._dispatch(asked)
        except StoreUnavailable:
            log.warning("delivery.store_away")
            return BoltResponse(status=LATER, body="the store is away")

    async def _once(self, event: str, asked: AsyncBoltRequest) -> BoltResponse:
        """An event that was done already is only acknowledged. One that is being done, or that failed, comes again."""
        token = new_token()
        try:
            word = await self._events.begin(event, token)
        except StoreUnavailable:
            log.warning("event.store_away", event_id=event)
            return BoltResponse(status=LATER, body="the store is away")
        if word != "first":
            log.info("event.again", event_id=event, word=word)
            return BoltResponse(status=OK if word == "done" else LATER, body="")
        done = False
        try:
            response = await self._at_once(asked)
            done = response.status == OK
        finally:
            try:
                await self._events.end(event, done=done)
            except StoreUnavailable:
                # its lease runs out before Slack brings it the third time
                log.warning("event.not_ended", event_id=event)
        return response
