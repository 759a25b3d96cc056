"""What a handler gets: the engine, the caller, and the request."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from aiohttp import web

from core.api.views import View, written
from core.ending import end
from core.engine import ResumeEngine
from core.errors import AskgateError
from core.policy import Key

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Work:
    """What goes on beyond one request: commits that outlive their caller, and the end of all waiting."""

    commits: set[asyncio.Task[Any]] = field(default_factory=set)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def commit(self, change: Coroutine[Any, Any, T]) -> T:
        """Do a change to its end, also when the caller hangs up meanwhile."""
        task = asyncio.create_task(change)
        self.commits.add(task)
        task.add_done_callback(self.commits.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)
            raise

    async def wait(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """Wait for something, but not when the server stops: then None."""
        task = asyncio.create_task(waiting)
        stop = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            await end([stop, task])

    async def stop(self, _: web.Application) -> None:
        self.stopping.set()
        if self.commits:
            await asyncio.wait(set(self.commits))


def _log_failure(task: asyncio.Task[Any]) -> None:
    """A commit whose caller has gone can tell its failure to the log alone."""
    if not task.cancelled() and (error := task.exception()):
        refused = isinstance(error, AskgateError)
        log.warning("api.not_committed", error=type(error).__name__, exc_info=None if refused else error)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API. ``caller`` is the key that it came with."""

    request: web.Request
    engine: ResumeEngine
    caller: Key
    work: Work

    @property
    def run_id(self) -> str:
        return self.request.match_info["run_id"]

    @property
    def gate_id(self) -> str:
        return self.request.match_info["gate_id"]


def answer(view: View, status: int = 200, **headers: str) -> web.Response:
    """The view as JSON (UTF-8 by definition, so without a charset)."""
    return web.Response(
        status=status, body=written(view).encode(), headers={"Content-Type": "application/json", **headers}
    )


def about(**ids: str) -> None:
    """Put the ids of runs and gates on every log line of this call."""
    structlog.contextvars.bind_contextvars(**ids)
