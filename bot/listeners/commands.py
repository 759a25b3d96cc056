"""`/gates`: what is pending. For admins all of it, for others what they may decide."""

from __future__ import annotations

from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards.inbox import inbox_blocks
from bot.listeners.inbox import Inbox
from bot.listeners.people import person_of
from core.errors import StoreUnavailable

COMMAND: Final = "/gates"


class Gates:
    """Answers the command privately."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def register(self, app: AsyncApp) -> None:
        app.command(COMMAND)(self.handle)

    async def handle(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        """List what waits. Words other than `list` are answered with help."""
        word = command.get("text", "").strip().lower()
        if word not in ("", "list"):
            await ack(response_type="ephemeral", text=words.HELP)
            return
        try:
            found = await self._inbox.of(person_of(command), all_for_admins=True)
        except StoreUnavailable:
            await ack(response_type="ephemeral", text=words.DID_NOT_WORK)
            return
        notes = found.notes(words.LIST_EMPTY_ADMIN if found.admin else words.LIST_EMPTY)
        await ack(
            response_type="ephemeral",
            text=words.LIST_TITLE if found.waiting else notes[0],
            blocks=inbox_blocks(words.LIST_TITLE, found.waiting, notes),
        )
