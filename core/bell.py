"""The bell: wakes workers and waiters at once after a commit, in this process and in every other.

A ring is only a hint. Whoever waits reads the store first and after each ring, and polls besides, so a lost ring
costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator

import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from core.ending import end
from core.store.connect import Client
from core.store.keys import BELL

log = structlog.get_logger(__name__)
RECONNECT_S = 0.5
QUIET_S = 5.0
"""After how long a silence the server is asked whether it is there; after one more it counts as gone."""
POLL_S = 2.0
"""How late a waiter notices a change whose ring was lost."""


class Bell:
    """Listens to the store's rings. Topics: `due`, `queue:<host>`, `run:<run id>`, `events`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ears: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self.listening = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen(), name="bell")

    async def stop(self) -> None:
        if self._task:
            await end([self._task])
            if not self._task.cancelled() and (error := self._task.exception()):
                raise error
        await self._client.aclose()

    @contextlib.contextmanager
    def heard(self, *topics: str) -> Iterator[asyncio.Event]:
        """An event that each ring for one of the topics sets; clear it before you read the store."""
        event = asyncio.Event()
        for topic in topics:
            self._ears[topic].add(event)
        try:
            yield event
        finally:
            for topic in topics:
                self._ears[topic].discard(event)
                if not self._ears[topic]:
                    del self._ears[topic]

    def ring(self, *topics: str) -> None:
        for topic in topics:
            for event in self._ears.get(topic, ()):
                event.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._client.initialize()
                async with self._client.pubsub() as pubsub:
                    await pubsub.subscribe(BELL)
                    await self._hear_all(pubsub)
            except (RedisError, OSError) as error:
                self.listening.clear()
                log.warning("bell.lost", error=type(error).__name__)
                # of a cluster or of sentinels: what was known of who leads is asked again
                await self._client.aclose()
                await asyncio.sleep(RECONNECT_S)

    async def _hear_all(self, pubsub: PubSub) -> None:
        """Hear one subscription until its connection ends, or its server says nothing, not even when asked."""
        asked = False
        while True:
            message = await pubsub.get_message(timeout=QUIET_S)
            if message is None and asked:
                raise TimeoutError
            asked = message is None
            if message is None:
                await pubsub.ping()
            elif message["type"] == "message":
                self._heard(message["data"])
            elif message["type"] == "subscribe":  # also after a connection that was lost
                self.listening.set()
                # whatever rang while nobody listened
                self.ring(*self._ears)

    def _heard(self, message: str) -> None:
        for ring in message.split("\n"):
            what, _, rest = ring.partition(" ")
            if what == "due":
                self.ring("due")
            elif what == "queue":
                self.ring(f"queue:{rest.partition(' ')[2]}")
            elif what == "run":
                self.ring(*(f"run:{run}" for run in rest.split(" ")[1:]), "events")


async def heard(event: asyncio.Event, seconds: float) -> bool:
    """Wait for a ring, at most so long. Returns whether it rang."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
