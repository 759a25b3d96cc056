"""Builds the Bolt app: every listener, on one engine. It keeps no state, so any replica can serve any click."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from bot.listeners.actions import Actions
from bot.listeners.admin import Admin
from bot.listeners.commands import Gates
from bot.listeners.inbox import Inbox
from bot.listeners.leaving import Leave, Leaving
from bot.listeners.lists import Lists
from bot.listeners.mentions import Mentions
from bot.listeners.replies import Replies
from bot.listeners.shortcuts import Shortcuts
from bot.listeners.talk import Hosts, Talk
from bot.listeners.views import Views
from bot.slack.client import Slack
from core.engine import ResumeEngine
from core.errors import StoreUnavailable

_ANY_EVENT: Final = re.compile(".*")

log = structlog.get_logger(__name__)


Authorize = Callable[..., Awaitable[AuthorizeResult]]
"""Tells Bolt who the bot is. Without it Bolt asks Slack, once, about the client's token."""


def build_app(
    engine: ResumeEngine,
    client: AsyncWebClient,
    *,
    signing_secret: str | None,
    leave: Leave,
    hosts: Hosts,
    authorize: Authorize | None = None,
) -> AsyncApp:
    """The app of one workspace. ``process_before_response``: what a person did is committed before Slack hears of it.

    Bolt's own runner would ack from a detached task that is lost at SIGTERM, and polls every 10 ms for the ack.
    ``leave`` is told when the workspace takes the app away; ``hosts``: who is talked with in a channel.
    """
    app = AsyncApp(
        client=client,
        authorize=authorize,
        signing_secret=signing_secret,
        process_before_response=True,
        logger=logging.getLogger("slack_bolt"),
    )
    slack = Slack(client)
    inbox = Inbox(engine, slack)
    talk = Talk(engine, slack, inbox, hosts)
    talk.register(app)
    lists, admin = Lists(engine, slack, inbox), Admin(engine, slack)
    Actions(engine, slack, lists).register(app)
    Views(engine).register(app)
    lists.register(app)
    admin.register(app)
    Gates(engine, lists, admin, talk).register(app)
    Shortcuts(slack, lists).register(app)
    Mentions(slack, lists, talk).register(app)
    Replies(engine, slack, talk).register(app)
    Leaving(leave).register(app)
    app.event(_ANY_EVENT)(_heard)
    app.error(_failed)
    return app


async def _heard() -> None:
    """An event that nothing here waits for. Without a 200 Slack would bring it three times more."""


async def _failed(error: Exception) -> BoltResponse:
    """Whatever a listener raised: no 200, so that Slack tells the person that it did not work."""
    if isinstance(error, StoreUnavailable):
        log.error("listener.store_away")
        return BoltResponse(status=503, body="the store is away")
    log.error("listener.failed", exc_info=error)
    return BoltResponse(status=500, body="unexpected")
