"""Where somebody clicked, and how to show or tell them something there: a private reply, a modal, the App Home."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

import aiohttp
import structlog
from slack_bolt.async_app import AsyncRespond
from slack_sdk.errors import SlackClientError

from bot.cards import managing, modals
from bot.cards.blocks import markup
from bot.cards.inbox import Page, headed
from bot.cards.pages import CALLBACK, page_modal
from bot.slack.client import CLICK_TIMEOUT_S, Slack, SlackBusy, SlackGone, SlackRefused

UNTOLD: Final = (
    SlackBusy,
    SlackGone,
    SlackRefused,
    SlackClientError,
    aiohttp.ClientError,
    TimeoutError,
    OSError,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Surface:
    """The place of one click. ``kind``: on a card, in a private reply of ours, in a modal, in the App Home."""

    kind: Literal["card", "reply", "modal", "home"]
    slack: Slack
    body: Mapping[str, Any]
    respond: AsyncRespond

    @classmethod
    def of(cls, slack: Slack, body: Mapping[str, Any], respond: AsyncRespond) -> Surface:
        view = body.get("view")
        if view:
            return cls("home" if view["type"] == "home" else "modal", slack, body, respond)
        private = bool((body.get("container") or {}).get("is_ephemeral"))
        return cls("reply" if private else "card", slack, body, respond)

    @property
    def view_id(self) -> str | None:
        """The modal that was clicked in."""
        return str(self.body["view"]["id"]) if self.kind == "modal" else None

    @property
    def values(self) -> Mapping[str, Any]:
        """What the elements beside the one that was clicked hold, by block and action."""
        state = self.body.get("state") or (self.body.get("view") or {}).get("state") or {}
        values: Mapping[str, Any] = state.get("values") or {}
        return values

    @property
    def metadata(self) -> str:
        return str((self.body.get("view") or {}).get("private_metadata") or "")

    @property
    def trigger_id(self) -> str:
        return str(self.body.get("trigger_id", ""))

    @property
    def channel(self) -> str:
        """The conversation that was clicked in, which the person is in; empty for views."""
        return str((self.body.get("channel") or {}).get("id") or "")

    @property
    def shows_gate(self) -> bool:
        """Whether what was clicked in is a page of ours and no card, so that nothing but a click draws it again."""
        return self.kind == "reply" or (self.kind == "modal" and self.body["view"]["callback_id"] == CALLBACK)

    async def tell(self, word: str, *, done: bool = False) -> None:
        """Say a private sentence (markup): that something is ``done``, or why not.

        What Slack does not take is logged: what was done stands without it.
        """
        view = managing.done(word) if done else modals.refusal(word)
        try:
            match self.kind:
                case "modal":
                    await self.slack.update_view(self.view_id or "", view)
                case "home":
                    await self.slack.open_view(self.trigger_id, view)
                case _ if self.body.get("response_url"):
                    await self._respond(
                        text=word,
                        blocks=[markup(word)],  # where Slack makes no links of its own
                        response_type="ephemeral",
                        replace_original=False,
                        thread_ts=self._thread,
                    )
        except UNTOLD as error:
            # the click itself is settled one way or the other; that must not hang on a courtesy
            log.warning("click.not_told", error=type(error).__name__)

    async def show(self, page: Page) -> None:
        """Put a page where the click was; from the Home it opens as a modal. Raises what `Slack` does."""
        match self.kind:
            case "modal":
                await self.slack.update_view(self.view_id or "", page_modal(page))
            case "home":
                await self.slack.open_view(self.trigger_id, page_modal(page))
            case "reply":
                await self._respond(text=page.text, blocks=headed(page), replace_original=True)
            case "card":
                await self._respond(
                    text=page.text,
                    blocks=headed(page),
                    response_type="ephemeral",
                    replace_original=False,
                    thread_ts=self._thread,
                )

    async def open(self, view: dict[str, Any]) -> None:
        """Open a modal, on top of the one that was clicked in. Raises what `Slack` does."""
        if self.kind == "modal":
            await self.slack.push_view(self.trigger_id, view)
        else:
            await self.slack.open_view(self.trigger_id, view)

    @property
    def _thread(self) -> str | None:
        """The thread that a clicked message is a reply in: without it a private word would stand in the channel."""
        container = self.body.get("container") or {}
        thread_ts = container.get("thread_ts")
        return str(thread_ts) if thread_ts and thread_ts != container.get("message_ts") else None

    async def _respond(self, **message: Any) -> None:
        async with asyncio.timeout(CLICK_TIMEOUT_S):
            said = await self.respond(**message)
        if said.status_code != HTTPStatus.OK:
            log.warning("click.not_told", status=said.status_code)
