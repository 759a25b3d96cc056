"""Whether Slack answers, and still takes the token: for `/readyz`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from core.errors import AskgateError

FRESH_S: Final = 5.0
"""How long a good answer counts, so that probes do not ask Slack more often than that."""
ANSWER_S: Final = 4.0
RATE_LIMITED: Final = "ratelimited"
"""Whoever is told to wait has reached Slack."""


class SlackAway(AskgateError):
    """Slack does not answer, or does not take the token."""

    slug = "slack-away"


class Reachable:
    """The check: `await reachable()` raises SlackAway, or returns. ``ask`` is a call that Slack answers."""

    def __init__(self, ask: Callable[[], Awaitable[object]]) -> None:
        self._ask = ask
        self._good_at: float | None = None
        self._asking = asyncio.Lock()

    async def __call__(self) -> None:
        async with self._asking:
            if self._good_at is not None and time.monotonic() - self._good_at < FRESH_S:
                return
            try:
                async with asyncio.timeout(ANSWER_S):
                    await self._ask()
            except SlackApiError as error:
                code = error.response.get("error") or f"HTTP {error.response.status_code}"
                if code != RATE_LIMITED:
                    raise SlackAway(f"Slack says {code}") from error
            except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
                raise SlackAway(f"Slack cannot be reached ({type(error).__name__})") from error
            self._good_at = time.monotonic()
