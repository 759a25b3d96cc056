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

ELSEWHERE_MS: Final = 60_000
"""When to look again after what a host did that only other processes serve."""

log = structlog.get_logger(__name__)


class Desks:
    """Made in every process, for hosts call any of them; started where there is a worker."""

    def __init__(self, engine: ResumeEngine, configs: Sequence[HostConfig]) -> None:
        self._engine = engine
        self._desks = {config.name: Desk(engine, adapter(config, engine.store.clock)) for config in configs}

    def get(self, name: str) -> Desk | None:
        return self._desks.get(name)

    def start(self) -> None:
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
