"""Socket Mode: Slack's deliveries over WebSockets that this process opens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.deliveries import Deliveries
from bot.link import LEAVE_S, Link
from bot.slack.errors import TROUBLES
from core.ending import end
from core.settings import SettingsError

LINKS: Final = 2
"""Connections of one process: when one breaks, Slack delivers over the other. Slack allows an app ten."""
OPEN_S: Final = 10
SHORT_S: Final = 5.0
"""A connection that did not live so long counts as one that could not be opened."""
FIRST_WAIT_S: Final = 0.1
LAST_WAIT_S: Final = 30.0

log = structlog.get_logger(__name__)


class Socket:
    """Keeps connections open, and takes what comes over them.

    One that Slack wants to be left is left only when there is another in its place, so nothing falls in between.
    ``after_gap`` is called when this process has a connection again after it had none.
    """

    def __init__(
        self,
        deliveries: Deliveries,
        client: AsyncWebClient,
        token: str,
        after_gap: Callable[[], Awaitable[None]],
    ) -> None:
        self._deliveries = deliveries
        self._web = client
        self._token = token
        self._after_gap = after_gap
        self._session: aiohttp.ClientSession
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._keepers: list[asyncio.Task[None]] = []
        self._gap_since: float | None = None

    async def connect(self) -> None:
        """Connect. Raises SettingsError when Slack does not take the token, or cannot be reached."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, connect=OPEN_S))
        try:
            first = await self._open()
        except SlackApiError as error:
            raise SettingsError(f"SLACK_APP_TOKEN: Slack says {error.response.get('error')}") from error
        except TROUBLES as error:
            raise SettingsError(
                f"SLACK_API_URL: {self._web.base_url} cannot be reached ({type(error).__name__})"
            ) from error
        self._keepers = [
            asyncio.create_task(self._keep(first if number == 0 else None), name=f"socket-{number}")
            for number in range(LINKS)
        ]

    @property
    def connected(self) -> bool:
        """Whether there is a connection over which Slack can deliver."""
        return any(link.open for link in self._links)

    async def close(self, grace_s: float) -> None:
        """Open nothing more, let what people did end and be acknowledged, at most ``grace_s`` seconds, disconnect."""
        await end(self._keepers)
        await asyncio.gather(*(link.close(grace_s) for link in self._links))
        await end(self._tasks)
        await self._session.close()

    async def _keep(self, link: Link | None) -> None:
        """Keep one connection open, until cancelled."""
        failed, old = 0, None
        while True:
            if link is None:
                try:
                    link = await self._open()
                except TROUBLES as error:
                    failed += 1
                    wait_s = _asked_to_wait(error) or _wait(failed)
                    log.warning("socket.not_opened", error=_word(error), again_in_s=round(wait_s, 1))
                    await asyncio.sleep(wait_s)
                    continue
            if old:
                self._hold(old.close(LEAVE_S))
            opened_at = asyncio.get_running_loop().time()
            await link.over.wait()
            old, link = link, None
            if asyncio.get_running_loop().time() - opened_at >= SHORT_S:
                failed = 0
            elif failed := failed + 1:
                # the first goes without a wait, for Slack may ask for a new connection at any moment
                await asyncio.sleep(_wait(failed - 1) if failed > 1 else 0)

    async def _open(self) -> Link:
        reply = await self._web.apps_connections_open(app_token=self._token)
        async with asyncio.timeout(OPEN_S):
            link = await Link.to(
                self._session,
                str(reply["url"]),
                self._deliveries,
                proxy=self._web.proxy,
                ssl=self._web.ssl if self._web.ssl is not None else True,
            )
        self._links.add(link)
        self._hold(self._served(link))
        if self._gap_since is not None:
            log.warning("socket.gap", seconds=round(asyncio.get_running_loop().time() - self._gap_since, 1))
            self._gap_since = None
            self._hold(self._reconciled())
        return link

    async def _served(self, link: Link) -> None:
        """Read a connection to its end."""
        try:
            await link.serve()
        finally:
            self._links.discard(link)
            if not self.connected and self._gap_since is None:
                self._gap_since = asyncio.get_running_loop().time()

    async def _reconciled(self) -> None:
        try:
            await self._after_gap()
        except Exception:
            # the connection is there all the same
            log.exception("socket.not_reconciled")

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _wait(failed: int) -> float:
    """Seconds before the next try: exponential, with jitter, so that processes do not march in step."""
    longest: float = min(FIRST_WAIT_S * 2 ** min(failed, 20), LAST_WAIT_S)
    return random.uniform(longest / 2, longest)  # noqa: S311  # jitter is no secret


def _asked_to_wait(error: Exception) -> float | None:
    """What Slack says in `Retry-After` (Slack: rate limits), in seconds."""
    if isinstance(error, SlackApiError) and (wait_s := error.response.headers.get("Retry-After")):
        return float(wait_s)
    return None


def _word(error: Exception) -> str:
    if isinstance(error, SlackApiError):
        return str(error.response.get("error"))
    return type(error).__name__
