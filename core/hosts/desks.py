"""The desks of one process: one before each host that the settings name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from core.agenda import TryAgain
from core.engine import ResumeEngine
from core.errors import NotFound
from core.hosts.config import HostConfig
from core.hosts.desk import Desk
from core.hosts.opening import adapter
from core.runs import RunStatus
from core.served import Served

ELSEWHERE_MS: Final = 60_000
"""When to look again after what a host did that only other processes serve."""

log = structlog.get_logger(__name__)


class Desks:
    """Made in every process, for hosts call any of them; started where there is a worker."""

    def __init__(self, engine: ResumeEngine, configs: Sequence[HostConfig]) -> None:
        self._engine = engine
        self._started = False
        clock, talks = engine.store.clock, engine.talks
        self._desks = {config.name: Desk(engine, adapter(config, clock, talks)) for config in configs}

    def get(self, name: str) -> Desk | None:
        return self._desks.get(name)

    def talking_in(self, channel: str) -> str | None:
        """The host that people talk with in a channel: one whose settings name it, else one that talks everywhere."""
        words = {name: desk.talker.talks_in(channel) for name, desk in self._desks.items() if desk.talker}
        return next(
            (n for n, w in words.items() if w), next((n for n, w in words.items() if w is None), None)
        )

    def served(self) -> dict[str, Served]:
        """How it stands with each host that this process serves, by name; none before it is started."""
        return {name: desk.served for name, desk in self._desks.items()} if self._started else {}

    def start(self) -> None:
        self._started = True
        for desk in self._desks.values():
            desk.start()

    async def stop(self, grace_s: float) -> None:
        await asyncio.gather(*(desk.stop(grace_s) for desk in self._desks.values()))

    async def follow(self, run_id: str, tries: int) -> None:
        """The agenda's handler for `follow:<run>`."""
        try:
            run = await self._engine.run(run_id)
        except NotFound:
            return
        if run.status not in (RunStatus.RESUMED, RunStatus.LOST, RunStatus.FAILED):
            return
        desk = self._desks.get(run.doc.host)
        if desk is None:
            log.warning("host.not_here", host=run.doc.host, run=run_id)
            raise TryAgain(ELSEWHERE_MS)
        await desk.follow(run, tries)
