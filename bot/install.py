"""The doors by which a workspace installs askgate: Slack's OAuth flow, by Bolt (Slack: installing with OAuth)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.oauth.async_callback_options import (
    AsyncCallbackOptions,
    AsyncFailureArgs,
    AsyncSuccessArgs,
    DefaultAsyncCallbackOptions,
)
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.errors import TROUBLES
from bot.slack.installations import INSTALL, QUIET, Installations, States, name_of
from core.errors import StoreUnavailable

REDIRECT: Final = "/slack/oauth_redirect"
Step = Callable[[AsyncBoltRequest], Awaitable[BoltResponse]]
Done = Callable[[str], Awaitable[None]]

log = structlog.get_logger(__name__)


class Install:
    """`GET /slack/install` sends to Slack, and `GET /slack/oauth_redirect` takes what Slack sends back.

    The state is good once, for ten minutes, and for the browser that it was made for. ``done`` is told of each
    installation, by its name.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        installations: Installations,
        states: States,
        *,
        client_id: str,
        client_secret: str,
        scopes: list[str],
        done: Done,
    ) -> None:
        self._done = done
        settings = AsyncOAuthSettings(
            client_id=client_id,
            client_secret=client_secret,
            scopes=scopes,
            user_scopes=[],
            install_path=INSTALL,
            install_page_rendering_enabled=False,
            redirect_uri_path=REDIRECT,
            authorization_url=client.base_url.removesuffix("api/") + "oauth/v2/authorize",
            installation_store=installations,
            state_store=states,
            callback_options=AsyncCallbackOptions(self._succeeded, self._failed),
            logger=QUIET,
        )
        self._flow = AsyncOAuthFlow(client=client, settings=settings, logger=QUIET)
        self._pages = DefaultAsyncCallbackOptions(
            logger=QUIET,
            state_utils=settings.state_utils,
            redirect_uri_page_renderer=settings.redirect_uri_page_renderer,
        )

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(INSTALL, self._by(self._flow.handle_installation)),
            web.get(REDIRECT, self._by(self._flow.handle_callback)),
        ]

    def _by(self, step: Step) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                answer = await to_aiohttp_response(await step(await to_bolt_request(request)))
            except StoreUnavailable:
                log.error("install.store_away")
                answer = web.Response(
                    status=503, text="askgate cannot reach its store. Try again in a minute."
                )
            except TROUBLES as error:
                log.error("install.slack_away", error=type(error).__name__)
                answer = web.Response(status=502, text="askgate cannot reach Slack. Try again in a minute.")
            # what stands in the address is for nobody else
            answer.headers["Referrer-Policy"] = "no-referrer"
            answer.headers["Cache-Control"] = "no-store"
            return answer

        return handle

    async def _succeeded(self, args: AsyncSuccessArgs) -> BoltResponse:
        await self._done(name_of(args.installation))
        return await self._pages.success(args)

    async def _failed(self, args: AsyncFailureArgs) -> BoltResponse:
        log.warning("install.failed", reason=args.reason[:100])
        return await self._pages.failure(args)
