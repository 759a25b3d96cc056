"""Who is in which channel and user group, as Slack says it. A failed look-up refuses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.client import CLICK_TIMEOUT_S
from core.ending import end
from core.errors import CannotVerify
from core.policy import Person

KEPT_S: Final = 60.0
"""How long a yes is taken from memory."""
KEPT_NO_S: Final = 3.0
"""How long a no is: whoever has just joined finds the way in at once, and a crowd of strangers asks Slack no more."""
LOOK_UP_S: Final = 20.0
"""How long a look-up may go on after the click that asked for it: large channels are there for the next one."""
PAGE: Final = 1000

Fetch = Callable[[str], Awaitable[frozenset[str]]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """Who was in something, and when (in s) the look-up began."""

    members: frozenset[str]
    at: float


class SlackDirectory:
    """The engine's directory, filled from Slack. All who ask about one thing at once share one look-up.

    ``clock`` returns seconds that never go back.
    """

    def __init__(self, client: AsyncWebClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[str, _Known] = {}
        self._running: dict[str, asyncio.Task[frozenset[str]]] = {}

    async def in_channel(self, channel: str, person: Person) -> bool:
        return await self._is_in(channel, person.user, self._channel_members)

    async def in_group(self, group: str, person: Person) -> bool:
        return await self._is_in(group, person.user, self._group_members)

    async def people_in_group(self, group: str) -> frozenset[str]:
        """The ids of everybody in a user group. Raises CannotVerify."""
        return await self._members(group, lambda members: KEPT_S, self._group_members)

    async def _is_in(self, name: str, user: str, fetch: Fetch) -> bool:
        def kept_s(members: frozenset[str]) -> float:
            return KEPT_S if user in members else KEPT_NO_S

        return user in await self._members(name, kept_s, fetch)

    async def _members(
        self, name: str, kept_s: Callable[[frozenset[str]], float], fetch: Fetch
    ) -> frozenset[str]:
        """Who is in something; from memory, if that is not older than ``kept_s`` says of what is remembered."""
        kept = self._kept.get(name)
        if kept and self._clock() - kept.at < kept_s(kept.members):
            return kept.members
        try:
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                return await asyncio.shield(self._look_up(name, fetch))
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("directory.cannot_verify", name=name, error=type(error).__name__)
            raise CannotVerify from error

    def _look_up(self, name: str, fetch: Fetch) -> asyncio.Task[frozenset[str]]:
        """The look-up that is under way, or one that begins."""
        if name not in self._running:
            task = asyncio.create_task(self._fetched(name, fetch), name=f"look-up:{name}")
            self._running[name] = task
            task.add_done_callback(lambda done: self._ended(name, done))
        return self._running[name]

    async def _fetched(self, name: str, fetch: Fetch) -> frozenset[str]:
        began = self._clock()
        async with asyncio.timeout(LOOK_UP_S):
            members = await fetch(name)
        self._kept = {n: known for n, known in self._kept.items() if began - known.at < KEPT_S}
        self._kept[name] = _Known(members, began)
        return members

    def _ended(self, name: str, task: asyncio.Task[frozenset[str]]) -> None:
        del self._running[name]
        if not task.cancelled():
            task.exception()  # whoever still waits for it gets it; nobody need do so

    async def close(self) -> None:
        """Give up what is under way."""
        await end(list(self._running.values()))

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
