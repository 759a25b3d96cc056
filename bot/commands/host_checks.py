"""What the doctor looks at in hosts: can each be asked, and can what waits there be put to people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final, cast

from bot.commands.findings import Finding, fault, ok, unknown
from core.clock import WallClock
from core.hosts.base import Host, Present, Seen, Wait
from core.hosts.config import HostConfig, HostsError, load_hosts
from core.hosts.opening import adapter
from core.hosts.troubled import why_away, why_unopened
from core.settings import Settings

LOOK_S: Final = 10.0
"""How long a host may take to say what waits there."""


class Nothing:
    """Remembers nothing of hosts' sessions: the doctor changes no store."""

    async def moved(self, host: str, old: str, new: str) -> None:
        return

    async def moved_to(self, host: str, old: str) -> str | None:
        return None

    async def began(self, host: str, session: str, at_ms: int, *, kept_ms: int) -> None:
        return

    async def begun(self, host: str, session: str) -> int | None:
        return None

    async def met(self, host: str, sessions: Sequence[str]) -> list[str]:
        return []


async def check_hosts(settings: Settings) -> AsyncIterator[Finding]:
    """Ask each host that ASKGATE_HOSTS names what waits there. Nothing is changed."""
    if settings.hosts is None:
        return
    try:
        configs = load_hosts(settings.hosts)
    except HostsError as error:
        yield fault("hosts", error.detail, "mend the file that ASKGATE_HOSTS names")
        return
    for finding in await asyncio.gather(*map(_check, configs)):
        yield finding


async def _check(config: HostConfig) -> Finding:
    host = adapter(config, WallClock(), Nothing())
    try:
        return await _asked(host)
    finally:
        await host.close()


async def _asked(host: Host) -> Finding:
    waits: list[Wait] = []
    try:
        async with (
            asyncio.timeout(LOOK_S),
            aclosing(cast("AsyncGenerator[Seen, None]", host.watch())) as watch,
        ):
            async for seen in watch:
                if isinstance(seen, Wait):
                    waits.append(seen)
                if isinstance(seen, Present):
                    break
    except TimeoutError:
        if not waits:
            return unknown(
                "host", f"{host.name} named nothing within {LOOK_S:g} s: it is slow, or has no session"
            )
    except Exception as error:  # noqa: BLE001  # whatever it is, it is why the host cannot be served
        mend = "start it, or mend its block's url and api_key"
        return fault("host", f"{host.name}: {why_away(error)}", mend)
    return _described(host, waits)


def _described(host: Host, waits: Sequence[Wait]) -> Finding:
    for wait in waits:
        try:
            host.describe(wait)
        except Exception as error:  # noqa: BLE001  # an agent may send anything
            said = f"{host.name}: {wait.external_id} cannot be put to people: {why_unopened(error)}"
            return fault("host", said, "answer it where the host shows it, or end what waits there")
    return ok("host", f"{host.name} answers; it waits for {len(waits)}" if waits else f"{host.name} answers")
