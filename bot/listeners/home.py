"""The App Home: a person's inbox."""

from __future__ import annotations

from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp

from bot import words
from bot.cards.blocks import header
from bot.cards.inbox import list_page
from bot.cards.queries import Query, Which
from bot.listeners.inbox import Inbox
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.policy import Person

log = structlog.get_logger(__name__)


class Home:
    """Publishes the home view when somebody opens it."""

    def __init__(self, slack: Slack, inbox: Inbox) -> None:
        self._slack = slack
        self._inbox = inbox

    def register(self, app: AsyncApp) -> None:
        app.event("app_home_opened")(self.handle)

    async def handle(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        if event.get("tab") == "messages":
            return
        person = Person(team=body["team_id"], user=event["user"])
        query = Query(Which.MINE)
        found = await self._inbox.of(person, query)
        page = list_page(query, found.waiting, found.notes(words.HOME_EMPTY), admin=found.admin, further=None)
        blocks = [header(words.HOME_TITLE), *page.blocks]
        try:
            await self._slack.publish_home(person.user, {"type": "home", "blocks": blocks})
        except (SlackBusy, SlackGone, SlackRefused) as error:
            # opening the home again asks for it again
            log.warning("home.not_published", code=str(error))
