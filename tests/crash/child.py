"""A process to be killed: askgate as it is served, and in the same process a scripted host that calls its API."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp

from bot import logs
from bot.service import Service
from core import agenda, callbacks
from core.settings import load_settings
from tests.crash.host import Host, Journal
from tests.crash.points import Points

Json = dict[str, Any]
Say = Callable[..., None]


async def main(job: Json, say: Say) -> None:
    """Serve, be the host until all its runs are resumed, say so, and wait for the end.

    ``job`` has: settings, journal and met (files: the host's journal, and the places that this process comes by), host
    (its name), asks, lease_s (of its claims), agenda_lease_ms (of the agenda and of callbacks), doom (a point; None:
    none), server (the pid of the store's server, if that is what is to be struck and not this process).
    """
    logs.set_up("warning")
    agenda.LEASE_MS = job["agenda_lease_ms"]
    callbacks.LEASE_S = job["agenda_lease_ms"] / 1000
    server = job.get("server")

    def strike() -> None:
        os.kill(server or os.getpid(), signal.SIGKILL)
        say(struck=job["doom"])

    met = os.open(job["met"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    points = Points(job["doom"], strike, lambda place: os.write(met, place.encode() + b"\n"))
    points.install()
    settings = load_settings(
        job["settings"], need_slack=True, env_file=Path(job["journal"]).with_name("no.env")
    )
    async with Service(settings) as service, aiohttp.ClientSession() as session:
        assert service.web
        say(url=service.web.url)
        journal = Journal(Path(job["journal"]))
        host = Host(session, service.web.url, journal, name=job["host"], lease_s=job["lease_s"])
        await host.run(job["asks"])
        say(done=True)
        await asyncio.Event().wait()
