"""A mention of the bot: for the agent that is talked with there; without one, or without a word, what is open there."""

from __future__ import annotations

from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp

from bot.cards.inbox import headed
from bot.cards.queries import Query, Which
from bot.listeners.lists import Lists
from bot.listeners.surfaces import UNTOLD
from bot.listeners.talk import Talk
from bot.slack.client import Slack
from core.policy import Person

log = structlog.get_logger(__name__)


class Mentions:
    """Answers privately, where the mention stands."""

    def __init__(self, slack: Slack, lists: Lists, talk: Talk) -> None:
        self._slack = slack
        self._talk = talk
        self._lists = lists

    def register(self, app: AsyncApp) -> None:
        app.event("app_mention")(self.handle)

    async def handle(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """Bring it to the agent that is talked with there, or list what is open.

        A store that is away is raised: Slack then brings the event again.
        """
        if event.get("bot_id") or not event.get("user"):
            return  # two bots could go on like that for ever
        channel, thread = str(event["channel"]), event.get("thread_ts")
        team = event.get("user_team") or event.get("team") or body["team_id"]
        person = Person(team=str(team), user=str(event["user"]))
        if await self._talk.mentioned(event, body, person):
            return
        query = Query(Which.THREAD, f"{channel}/{thread}") if thread else Query(Which.CHANNEL, channel)
        page = await self._lists.page(person, query, here=channel)
        try:
            await self._slack.tell(channel, person.user, page.text, thread, blocks=headed(page))
        except UNTOLD as error:
            log.warning("mention.not_answered", channel=channel, error=type(error).__name__)
