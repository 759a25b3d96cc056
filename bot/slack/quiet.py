"""Until when somebody is to be left in peace: the quiet hours that are set, in their zone or in the person's own."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import structlog

from bot.slack.client import Slack
from bot.slack.errors import SlackGone, SlackRefused
from core.clock import Clock
from core.policy import Person
from core.quiet import Quiet

KEPT_MS: Final = 3_600_000
"""How long a person's zone is taken from memory."""
UNKNOWN: Final = ZoneInfo("UTC")
"""Where somebody is of whom Slack does not say it."""

log = structlog.get_logger(__name__)


class QuietHours:
    """Answers for one process. It remembers nothing but people's zones, for a while."""

    def __init__(self, quiet: Quiet | None, slack: Slack, clock: Clock) -> None:
        self._quiet = quiet
        self._slack = slack
        self._clock = clock
        self._zones: dict[str, tuple[ZoneInfo, int]] = {}

    def everywhere(self) -> int:
        """When quiet that holds for all ends (ms); 0 if there is none, or it is each person's own."""
        if self._quiet is None or self._quiet.zone is None:
            return 0
        return self._quiet.until(self._clock.now_ms(), self._quiet.zone)

    async def until(self, person: Person) -> int:
        """When somebody's quiet ends (ms); 0 if there is none at this moment. Raises SlackBusy."""
        if self._quiet is None:
            return 0
        zone = self._quiet.zone or await self._zone(person.user)
        return self._quiet.until(self._clock.now_ms(), zone)

    async def _zone(self, user: str) -> ZoneInfo:
        now = self._clock.now_ms()
        zone, at = self._zones.get(user, (UNKNOWN, 0))
        if now - at >= KEPT_MS:
            self._zones = {u: known for u, known in self._zones.items() if now - known[1] < KEPT_MS}
            zone = await self._asked(user)
            self._zones[user] = (zone, now)
        return zone

    async def _asked(self, user: str) -> ZoneInfo:
        try:
            return ZoneInfo((await self._slack.user(user)).get("tz") or UNKNOWN.key)
        except (SlackGone, SlackRefused) as error:
            log.warning("quiet.no_zone", user=user, code=error.code)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            log.warning("quiet.unknown_zone", user=user)
        return UNKNOWN
