"""Time that a local Slack may skip: askgate's clock is ahead of the store's by as much, and its worker catches up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from bot.sandbox.slack import LocalSlack
from bot.service import Service
from core.clock import Clock

REST_S: Final = 5.0
"""How long a skip waits for what is to be done, such as calls of a Slack that takes its time."""


class Ahead:
    """A clock that is ahead of another by what a local Slack has skipped."""

    def __init__(self, clock: Clock, slack: LocalSlack) -> None:
        self._clock = clock
        self._slack = slack

    def now_ms(self) -> int:
        return self._clock.now_ms() + int(self._slack.skipped * 1000)


def ahead(slack: LocalSlack) -> Callable[[Clock], Clock]:
    """What makes a `Service` go by the local Slack's time."""
    return lambda clock: Ahead(clock, slack)


class CatchingUp:
    """Has a process's worker do at once what has fallen due when time was skipped."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def before_skip(self) -> None:
        """Finish what is in hand: its leases would run out in the skip, and another try would meet the first."""
        await self._rest()

    async def after_skip(self) -> None:
        await self._rest()

    async def _rest(self) -> None:
        """Do all that is due and what that makes due; what the worker took up by itself counts too."""
        worker = self._service.worker
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                while worker and await worker.run_once() + await worker.finish():
                    pass
