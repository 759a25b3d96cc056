"""Who is in which channel and user group, as Slack says it. A failed look-up refuses."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.client import CLICK_TIMEOUT_S
from bot.slack.errors import RATE_LIMITED, SlackBusy, SlackGone, SlackRefused, meanings
from core.ending import end
from core.errors import CannotVerify
from core.policy import Person
from core.store.pace import Pace

KEPT_S: Final = 60.0
"""How long a yes is taken from memory."""
KEPT_NO_S: Final = 3.0
"""How long a no is: whoever has just joined finds the way in at once, and a crowd of strangers asks Slack no more."""
LOOK_UP_S: Final = 20.0
"""How long a look-up may go on after the click that asked for it: large channels are there for the next one."""
PAGE: Final = 999
"""Slack: an integer under 1000."""
CHANNELS: Final = "public_channel,private_channel,mpim"

STANDING_S: Final = 0.5
"""How long a click waits to hear whether somebody is still in the workspace: who clicks was let in by Slack."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    """Who was in something, or what somebody was in, and when (in s) the look-up began. Not ``whole``: in more, too."""

    members: frozenset[str]
    at: float
    whole: bool = True


Teams = Callable[[], Awaitable[list[str]]]
"""The workspaces of the organisation that the token is for."""
NO_GROUP: Final = "no_such_subteam"

Fetched = tuple[frozenset[str], bool]
Fetch = Callable[[], Awaitable[Fetched]]


class SlackDirectory:
    """The engine's directory, filled from Slack. All who ask about one thing at once share one look-up.

    A yes is remembered for `KEPT_S`, a no for `KEPT_NO_S`. With a ``pace``, what Slack told any process about waiting
    holds here. ``clock`` returns seconds that never go back. What cannot be told in time raises CannotVerify.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        clock: Callable[[], float] = time.monotonic,
        pace: Pace | None = None,
        teams: Teams | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._pace = pace
        self._teams = teams
        self._kept: dict[str, _Known] = {}
        self._running: dict[str, asyncio.Task[_Known]] = {}

    async def in_channel(self, channel: str, person: Person) -> bool:
        """Whether somebody is in a channel: by its first members, which are all unless it is large, else by theirs.

        So it takes two calls at most, however many people are in the channel.
        """
        async with _in_time(channel, CLICK_TIMEOUT_S):
            first = await self._known(channel, person.user, partial(self._first_members, channel))
            if first.whole or person.user in first.members:
                return person.user in first.members
            of = partial(self._channels_of, person.user)
            return channel in (await self._known(f"of:{person.user}", channel, of)).members

    async def in_group(self, group: str, person: Person) -> bool:
        async with _in_time(group, CLICK_TIMEOUT_S):
            known = await self._known(group, person.user, partial(self._group, group))
        return person.user in known.members

    async def people_in_group(self, group: str) -> frozenset[str]:
        """The ids of everybody in a user group."""
        async with _in_time(group, CLICK_TIMEOUT_S):
            return (await self._known(group, None, partial(self._group, group))).members

    async def is_active(self, person: Person) -> bool:
        """Whether somebody is a person whom the workspace has not deactivated."""
        async with _in_time(person.user, STANDING_S):
            known = await self._known(f"user:{person.user}", person.user, partial(self._active, person.user))
        return person.user in known.members

    async def _known(self, name: str, wanted: str | None, fetch: Fetch) -> _Known:
        """What is known of something: what is remembered, if ``wanted`` is in it and it is not old, or it is fresh."""
        kept = self._kept.get(name)
        if kept:
            good = wanted is None or wanted in kept.members or not kept.whole
            if self._clock() - kept.at < (KEPT_S if good else KEPT_NO_S):
                return kept
        return await asyncio.shield(self._look_up(name, fetch))

    def _look_up(self, name: str, fetch: Fetch) -> asyncio.Task[_Known]:
        """The look-up that is under way, or one that begins."""
        if name not in self._running:
            task = asyncio.create_task(self._fetched(name, fetch), name=f"look-up:{name}")
            self._running[name] = task
            task.add_done_callback(lambda done: self._ended(name, done))
        return self._running[name]

    async def _fetched(self, name: str, fetch: Fetch) -> _Known:
        began = self._clock()
        with meanings():
            async with asyncio.timeout(LOOK_UP_S):
                members, whole = await fetch()
        self._kept = {n: known for n, known in self._kept.items() if began - known.at < KEPT_S}
        self._kept[name] = found = _Known(members, began, whole)
        return found

    def _ended(self, name: str, task: asyncio.Task[_Known]) -> None:
        del self._running[name]
        if not task.cancelled():
            task.exception()  # whoever still waits for it gets it; nobody need do so

    async def close(self) -> None:
        """Give up what is under way."""
        await end(list(self._running.values()))

    async def _first_members(self, channel: str) -> Fetched:
        async with self._asking("conversations.members"):
            reply = await self._client.conversations_members(channel=channel, limit=PAGE)
        return frozenset(reply["members"]), not _more(reply)

    async def _channels_of(self, user: str) -> Fetched:
        """The channels that somebody is in and we know of: of private ones those that we are in too."""
        found: set[str] = set()
        for team in await self._each_team():
            cursor: str | None = None
            while True:
                async with self._asking("users.conversations"):
                    reply = await self._client.users_conversations(
                        user=user, types=CHANNELS, cursor=cursor, limit=PAGE, team_id=team
                    )
                found.update(channel["id"] for channel in reply["channels"])
                cursor = _more(reply)
                if cursor is None:
                    break
        return frozenset(found), True

    async def _group(self, group: str) -> Fetched:
        """Who is in a group: of an organisation's workspaces it is one's."""
        teams = await self._each_team()
        for number, team in enumerate(teams, 1):
            try:
                async with self._asking("usergroups.users.list"):
                    reply = await self._client.usergroups_users_list(usergroup=group, team_id=team)
                return frozenset(reply["users"]), True
            except (SlackBusy, SlackRefused) as refused:
                if refused.code != NO_GROUP or number == len(teams):
                    raise
        return frozenset(), True

    async def _each_team(self) -> Sequence[str | None]:
        """What is asked about one workspace at a time, where the token is an organisation's (Slack: ``team_id``)."""
        return await self._teams() if self._teams else [None]

    async def _active(self, user: str) -> Fetched:
        async with self._asking("users.info"):
            found = (await self._client.users_info(user=user))["user"]
        return frozenset(() if found.get("deleted") or found.get("is_bot") else (user,)), True

    @contextlib.asynccontextmanager
    async def _asking(self, method: str) -> AsyncIterator[None]:
        """Around one call. Raises SlackBusy without asking while Slack wants none of them, whoever was told so."""
        if self._pace and (wait_ms := await self._pace.turn(method, "")):
            raise SlackBusy(RATE_LIMITED, wait_ms, certain=True)
        try:
            with meanings():
                yield
        except SlackBusy as busy:
            if self._pace and busy.code == RATE_LIMITED and busy.in_ms:
                await self._pace.hold(method, busy.in_ms)
            raise


@contextlib.asynccontextmanager
async def _in_time(name: str, seconds: float) -> AsyncIterator[None]:
    """Around what a click waits for. Raises CannotVerify."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (SlackBusy, SlackRefused, SlackGone, TimeoutError) as error:
        log.warning("directory.cannot_verify", name=name, error=getattr(error, "code", "slow"))
        raise CannotVerify from error


def _more(reply: Mapping[str, Any] | AsyncSlackResponse) -> str | None:
    """The cursor of the next page, if there is one."""
    return (reply.get("response_metadata") or {}).get("next_cursor") or None
