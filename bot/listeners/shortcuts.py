"""The shortcuts: what waits, from anywhere; what is open in the thread of a message."""

from __future__ import annotations

from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards import modals
from bot.cards.pages import loading_modal, page_modal
from bot.cards.queries import Query, Which
from bot.listeners.lists import Lists
from bot.listeners.people import person_of
from bot.listeners.surfaces import UNTOLD
from bot.slack.client import Slack
from core.errors import StoreUnavailable

GATES: Final = "gates"
GATES_HERE: Final = "gates_here"

log = structlog.get_logger(__name__)


class Shortcuts:
    """Opens a list as a modal."""

    def __init__(self, slack: Slack, lists: Lists) -> None:
        self._slack = slack
        self._lists = lists

    def register(self, app: AsyncApp) -> None:
        app.global_shortcut(GATES)(self.anywhere)
        app.message_shortcut(GATES_HERE)(self.on_message)

    async def anywhere(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        await self._open(ack, body, Query(Which.ALL), "")

    async def on_message(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        channel, message = str(body["channel"]["id"]), body["message"]
        thread = str(message.get("thread_ts") or message["ts"])
        await self._open(ack, body, Query(Which.THREAD, f"{channel}/{thread}"), channel)

    async def _open(self, ack: AsyncAck, body: dict[str, Any], query: Query, here: str) -> None:
        """The trigger is good for 3 s, and a list may take as long: so the modal opens first and is filled then."""
        try:
            view_id = await self._slack.open_view(str(body["trigger_id"]), loading_modal(query))
            try:
                view = page_modal(await self._lists.page(person_of(body), query, here=here))
            except StoreUnavailable:
                await self._slack.update_view(view_id, modals.refusal(words.DID_NOT_WORK))
                raise
            await self._slack.update_view(view_id, view)
        except UNTOLD as error:
            # the person sees an empty modal or none, and runs the shortcut again
            log.warning("shortcut.not_shown", error=type(error).__name__)
        await ack()
