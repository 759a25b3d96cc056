"""Processes to be killed: a worker of askgate's with a desk before one host, or all of askgate."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

from bot import logs, service
from bot.slack import talking
from core import agenda, sweeper
from core.agenda import Worker
from core.clock import WallClock
from core.hosts import desk
from core.hosts.config import KINDS
from core.hosts.desks import Desks
from core.settings import load_settings
from core.store import events
from tests.crash.points import Points
from tests.stores import engine_on

AGENDA_LEASE_MS = 1000
LEASE_S, RESUME_S = 2.0, 1.5
SWEEP_S = 0.2
"""Shorter than in production, so that what a dead process held is soon another's, and what is over soon seen."""


class Noted(Points):
    """Strikes at a point by its name (None: never), and notes each point in a file, a line each."""

    def __init__(self, doom: str | None, met: str) -> None:
        super().__init__(doom, _strike, lambda _place: None)
        self._file = os.open(met, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _at(self, point: str) -> None:
        os.write(self._file, f"{point}\n".encode())
        super()._at(point)


class Ahead(WallClock):
    """The wall clock, ahead by as many ms as a file says: one clock for all processes of a scene."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms()

    def put_forward(self, ms: int) -> None:
        """Let time pass, in every process."""
        beside = self.file.with_suffix(".next")
        beside.write_text(str(self._ahead_ms() + ms))
        beside.replace(self.file)

    def _ahead_ms(self) -> int:
        return int(self.file.read_text()) if self.file.exists() else 0


def live(url: str, block: dict[str, Any], ahead: str, doom: str | None, met: str) -> None:
    """A desk. ``block``: the host's, with its kind in the name; ``ahead``: the clock's file."""
    _prepare(doom, met)
    asyncio.run(_desk(url, block, Ahead(Path(ahead))))


def converse(settings: dict[str, str], doom: str | None, met: str) -> None:
    """All of askgate, as it is served."""
    _prepare(doom, met)
    events.LEASE_MS = AGENDA_LEASE_MS
    talking.QUIET_MS = 0
    service.Worker = partial(Worker, lease_ms=AGENDA_LEASE_MS)  # type: ignore[assignment,misc]
    asyncio.run(_askgate(settings, Path(met).with_name("no.env")))


def _prepare(doom: str | None, met: str) -> None:
    """``doom``: the point to die at; ``met``: the file that is told each point that there is."""
    logs.set_up("error")
    agenda.LEASE_MS = AGENDA_LEASE_MS
    desk.LEASE_S, desk.RESUME_S = LEASE_S, RESUME_S
    sweeper.MAX_IDLE_S = SWEEP_S
    Noted(doom, met).install()


def _strike() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _desk(url: str, block: dict[str, Any], clock: Ahead) -> None:
    config = KINDS[block["name"].split(".")[0]].model_validate(block)
    async with engine_on(url, clock=clock) as engine:
        desks = Desks(engine, [config])
        Worker(engine.store, engine.bell, {"follow": desks.follow}, lease_ms=AGENDA_LEASE_MS).start()
        desks.start()
        await asyncio.Event().wait()


async def _askgate(settings: dict[str, str], no_env: Path) -> None:
    async with service.Service(load_settings(settings, need_slack=True, env_file=no_env)):
        await asyncio.Event().wait()
