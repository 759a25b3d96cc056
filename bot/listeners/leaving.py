"""The workspace takes the app away: it is uninstalled, or its bot token is revoked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.async_app import AsyncApp

Leave = Callable[[str, int], Awaitable[None]]
"""Is told that askgate is gone from a workspace: Slack's word for why, and since when (s)."""


class Leaving:
    """Hears of it. Slack may bring both events, in any order; either is enough."""

    def __init__(self, leave: Leave) -> None:
        self._leave = leave

    def register(self, app: AsyncApp) -> None:
        app.event("app_uninstalled")(self.uninstalled)
        app.event("tokens_revoked")(self.revoked)

    async def uninstalled(self, body: dict[str, Any]) -> None:
        """A store that is away is raised: Slack then brings the event again."""
        await self._leave("app_uninstalled", _since(body))

    async def revoked(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """People's own tokens are none of ours."""
        if (event.get("tokens") or {}).get("bot"):
            await self._leave("token_revoked", _since(body))


def _since(body: dict[str, Any]) -> int:
    return int(body.get("event_time") or 0)
