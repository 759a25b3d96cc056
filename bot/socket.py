"""Socket Mode: Slack's deliveries over a WebSocket that this process opens."""

from __future__ import annotations

import asyncio

import aiohttp
import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from core.settings import SettingsError

log = structlog.get_logger(__name__)


class Socket(AsyncSocketModeHandler):
    """One connection, and what came over it and is still being done."""

    def __init__(self, app: AsyncApp, token: str, client: AsyncWebClient) -> None:
        super().__init__(app, token, web_client=client)
        self._token = token
        self._web = client
        self._running: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Connect. Raises SettingsError when Slack does not take the token.

        The library would try a wrong token again for ever, so the first address is asked for here.
        """
        try:
            self.client.wss_uri = (await self._web.apps_connections_open(app_token=self._token))["url"]
        except SlackApiError as error:
            raise SettingsError(f"SLACK_APP_TOKEN: Slack says {error.response.get('error')}") from error
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SettingsError(
                f"SLACK_API_URL: {self._web.base_url} cannot be reached ({type(error).__name__})"
            ) from error
        await self.connect_async()  # type: ignore[no-untyped-call]

    async def handle(  # type: ignore[override]  # the library narrows it so, too
        self, client: SocketModeClient, req: SocketModeRequest
    ) -> None:
        """Do one delivery. It is held here, because the library keeps no hold of the task that does it."""
        task = asyncio.create_task(super().handle(client, req))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.shield(task)

    async def connected(self) -> bool:
        return bool(await self.client.is_connected())

    async def close(self, grace_s: float) -> None:
        """Let what people did end and be acknowledged, at most ``grace_s`` seconds, then disconnect."""
        if self._running:
            _, late = await asyncio.wait(set(self._running), timeout=grace_s)
            if late:
                log.warning("socket.cut", deliveries=len(late))
        await self.close_async()  # type: ignore[no-untyped-call]
