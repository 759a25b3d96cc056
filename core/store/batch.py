"""Sends what many tasks ask in the same moment as one pipeline: under load a command then costs a third.

Nothing waits to be batched: a command is sent at the next turn of the event loop, alone or in company.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redis.exceptions import ReadOnlyError, RedisError

MAX_BATCH = 16
"""So few that the server works on one pipeline while the next is made, so many that a command costs little."""
Command = tuple[tuple[Any, ...], dict[str, Any]]


class Batched:
    """Commands on a redis-py client, each awaited by its own caller."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._waiting: list[tuple[Command, asyncio.Future[Any]]] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def execute_command(self, *command: Any, **options: Any) -> Any:
        """The reply to a command. Raises what redis-py raises for it; ``options`` are for its parsing of the reply."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Any] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append(((command, options), reply))
        return await reply

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), MAX_BATCH):
            task = asyncio.create_task(self._exchange(waiting[start : start + MAX_BATCH]))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _exchange(self, batch: list[tuple[Command, asyncio.Future[Any]]]) -> None:
        if len(batch) == 1:
            await self._alone(*batch[0])
            return
        try:
            pipe = self._client.pipeline(transaction=False)
            for (command, options), _ in batch:
                pipe.execute_command(*command, **options)
            replies = await pipe.execute(raise_on_error=False)
        except (RedisError, OSError) as error:
            replies = [error] * len(batch)
        for (command, waiter), reply in zip(batch, replies, strict=True):
            if isinstance(reply, ReadOnlyError):  # a replica by now: the client finds the one that leads
                await self._alone(command, waiter)
            else:
                _settle(waiter, reply)

    async def _alone(self, command: Command, waiter: asyncio.Future[Any]) -> None:
        words, options = command
        try:
            reply = await self._client.execute_command(*words, **options)
        except (RedisError, OSError) as error:
            reply = error
        _settle(waiter, reply)


def _settle(waiter: asyncio.Future[Any], reply: Any) -> None:
    if waiter.done():  # its caller was cancelled
        return
    if isinstance(reply, Exception):
        waiter.set_exception(reply)
    else:
        waiter.set_result(reply)
