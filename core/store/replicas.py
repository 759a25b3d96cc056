"""A write that waits for replicas: what it is said to have done outlives the server that did it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import PipelineCommand
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError
from redis.exceptions import TimeoutError as RedisTimeoutError

from core.errors import StoreUnavailable
from core.settings import Wait
from core.store.connect import Client

Words = Sequence[str | int]


async def replicated(client: Client, wait: Wait, mark: str, *words: str | int) -> Any:
    """The reply to a command, once so many replicas have all that its server had written by then.

    ``mark`` is a key of the command's slot. Raises StoreUnavailable when too few have it in time, and what redis-py
    raises.
    """
    # WAIT asks for the writes of its own connection. A call that is repeated may find its work done and write nothing,
    # so each writes the mark; and all three go over one connection, for another may lead to another server.
    commands: list[Words] = [words, ("SET", mark, ""), ("WAIT", wait.replicas, wait.timeout_ms)]
    send = _on_node if isinstance(client, RedisCluster) else _on_server
    reply, _, reached = await send(client, mark, commands)  # type: ignore[arg-type]
    if reached < wait.replicas:
        raise StoreUnavailable(
            f"This may have been saved, but {reached} of {wait.replicas} replicas have it. Try again: what was saved"
            " is found, and nothing counts twice."
        )
    return reply


async def _on_server(redis: Redis, _mark: str, commands: Sequence[Words]) -> list[Any]:
    pipe = redis.pipeline(transaction=False)
    for words in commands:
        pipe.execute_command(*words)
    return await pipe.execute()


async def _on_node(cluster: RedisCluster, mark: str, commands: Sequence[Words]) -> list[Any]:
    """Not by the cluster's own pipeline: that one repeats what is redirected command by command, each anywhere."""
    try:
        return await _on_one_node(cluster, mark, commands)
    except (MovedError, RedisConnectionError, RedisTimeoutError):
        await cluster.exists(mark)  # which finds the server that has the slot, or fails
        return await _on_one_node(cluster, mark, commands)


async def _on_one_node(cluster: RedisCluster, mark: str, commands: Sequence[Words]) -> list[Any]:
    await cluster.initialize()
    node = cluster.nodes_manager.get_node_from_slot(cluster.keyslot(mark))
    sent = [PipelineCommand(number, *words) for number, words in enumerate(commands)]
    await node.execute_pipeline(sent)
    for command in sent:
        if isinstance(command.result, Exception):
            raise command.result
    return [command.result for command in sent]
