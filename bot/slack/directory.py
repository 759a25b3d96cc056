"""Who is in which channel and user group, as Slack says it. Kept for a minute; a failed look-up refuses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
import structlog
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.client import CLICK_TIMEOUT_S
from core.errors import CannotVerify
from core.policy import Person

KEPT_S: Final = 60.0
PAGE: Final = 1000

log = structlog.get_logger(__name__)


class SlackDirectory:
    """The engine's directory, filled from Slack."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._kept: dict[str, tuple[float, frozenset[str]]] = {}

    async def in_channel(self, channel: str, person: Person) -> bool:
        return person.user in await self._members(channel, self._channel_members)

    async def in_group(self, group: str, person: Person) -> bool:
        return person.user in await self._members(group, self._group_members)

    async def _members(self, name: str, fetch: Callable[[str], Awaitable[frozenset[str]]]) -> frozenset[str]:
        now = time.monotonic()
        kept = self._kept.get(name)
        if kept and now - kept[0] < KEPT_S:
            return kept[1]
        try:
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                members = await fetch(name)
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("directory.cannot_verify", name=name, error=type(error).__name__)
            raise CannotVerify from error
        self._kept = {n: entry for n, entry in self._kept.items() if now - entry[0] < KEPT_S}
        self._kept[name] = (now, members)
        return members

    async def _channel_members(self, channel: str) -> frozenset[str]:
        members: set[str] = set()
        cursor: str | None = None
        while True:
            reply = await self._client.conversations_members(channel=channel, cursor=cursor, limit=PAGE)
            members.update(reply["members"])
            cursor = (reply.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return frozenset(members)

    async def _group_members(self, group: str) -> frozenset[str]:
        reply = await self._client.usergroups_users_list(usergroup=group)
        return frozenset(reply["users"])
