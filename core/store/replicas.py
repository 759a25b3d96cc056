"""A write that waits for replicas: what it is said to have done outlives the server that did it."""

from __future__ import annotations

from typing import Any

from core.errors import StoreUnavailable
from core.parsing import Wait
from core.store.connect import Client


async def replicated(client: Client, wait: Wait, mark: str, *words: str | int) -> Any:
    """The reply to a command, once so many replicas have all that its server had written by then.

    ``mark`` is a key of the command's slot. Raises StoreUnavailable when too few have it in time, and what redis-py
    raises.
    """
    # WAIT asks for the writes of its own connection. A call that is repeated may find its work done and write nothing,
    # so each writes the mark; and all three go over one connection, for another may lead to another server.
    pipe = client.pipeline(transaction=False)
    for command in (words, ("SET", mark, ""), ("WAIT", wait.replicas, wait.timeout_ms)):
        pipe.execute_command(*command)
    reply, _, reached = await pipe.execute()
    if reached < wait.replicas:
        raise StoreUnavailable(
            f"This may have been saved, but {reached} of {wait.replicas} replicas have it. Try again: what was saved"
            " is found, and nothing counts twice."
        )
    return reply
