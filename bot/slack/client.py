"""Slack's Web API as the bot uses it: each failure is one of three, and each says what to do."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards.blocks import Block
from bot.cards.card import Message
from bot.cards.limits import IllegalBlocks, ensure_message, ensure_view
from bot.slack.errors import RATE_LIMITED, Meaning, meanings
from bot.slack.errors import SlackBusy as SlackBusy
from bot.slack.errors import SlackGone as SlackGone
from bot.slack.errors import SlackRefused as SlackRefused
from bot.slack.rates import POST, rates
from core.errors import StoreUnavailable
from core.store.pace import Pace

EVENT_TYPE: Final = "askgate_card"
TIMEOUT_S: Final = 10
CLICK_TIMEOUT_S: Final = 2.0
"""For calls while a person's click waits: Slack gives up on the click after 3 s."""
FIND_PAGES: Final = 5

PACED: Final = "paced"
"""The word for a call that waits for its turn."""
T = TypeVar("T")

log = structlog.get_logger(__name__)


class Slack:
    """One workspace's Web API. With a ``pace`` whatever can wait keeps to Slack's rates, over all processes.

    What cannot be done now raises SlackBusy, also when it is only not our turn; the other meanings are SlackGone and
    SlackRefused. With a pace StoreUnavailable comes too.
    """

    def __init__(self, client: AsyncWebClient, pace: Pace | None = None) -> None:
        self.client = client
        self._pace = pace

    async def post(
        self, channel: str, message: Message, *, thread_ts: str | None, payload: dict[str, Any]
    ) -> str:
        """Post a message and return its ts. ``payload`` is metadata by which `find` knows it again."""

        async def send(body: dict[str, Any]) -> str:
            with meanings():
                reply = await self.client.chat_postMessage(
                    channel=channel,
                    thread_ts=thread_ts,
                    metadata={"event_type": EVENT_TYPE, "event_payload": payload},
                    mrkdwn="blocks" not in body,
                    parse="none",
                    unfurl_links=False,
                    unfurl_media=False,
                    **body,
                )
            return str(reply["ts"])

        async with self._turn(POST, json.dumps([payload, thread_ts]), channel):
            return await _drawn(send, message)

    async def update(self, channel: str, ts: str, message: Message) -> None:
        """Change a message of ours."""

        async def send(body: dict[str, Any]) -> None:
            with meanings():
                await self.client.chat_update(channel=channel, ts=ts, parse="none", **body)

        async with self._turn("chat.update", channel + ts):
            await _drawn(send, message, update=True)

    async def delete(self, channel: str, ts: str) -> None:
        with meanings():
            await self.client.chat_delete(channel=channel, ts=ts)

    async def find(
        self, channel: str, *, thread_ts: str | None, since_ms: int, payload: dict[str, Any]
    ) -> str | None:
        """The ts of a message of ours with this metadata, not older than ``since_ms``; None if there is none."""
        async with self._messages(channel, thread_ts, since_ms, json.dumps(payload)) as messages:
            async for found in messages:
                metadata = found.get("metadata") or {}
                if metadata.get("event_type") == EVENT_TYPE and metadata.get("event_payload") == payload:
                    return str(found["ts"])
        return None

    @contextlib.asynccontextmanager
    async def _messages(
        self, channel: str, thread_ts: str | None, since_ms: int, who: str
    ) -> AsyncIterator[AsyncGenerator[Mapping[str, Any]]]:
        """The messages of a thread or a channel with their metadata. They take one turn, whatever they are."""
        method = "conversations.replies" if thread_ts else "conversations.history"
        oldest = f"{since_ms / 1000 - 60:.6f}"
        async with (
            self._turn(method, who),
            contextlib.aclosing(self._pages(channel, thread_ts, oldest)) as messages,
        ):
            yield messages

    async def _pages(
        self, channel: str, thread_ts: str | None, oldest: str
    ) -> AsyncGenerator[Mapping[str, Any]]:
        page: dict[str, Any] = {"channel": channel, "oldest": oldest, "cursor": None}
        page |= {"limit": 200, "include_all_metadata": True}
        for _ in range(FIND_PAGES):
            if thread_ts:
                reply = await self.client.conversations_replies(ts=thread_ts, **page)
            else:
                reply = await self.client.conversations_history(**page)
            for found in reply["messages"]:
                yield found
            page["cursor"] = (reply.get("response_metadata") or {}).get("next_cursor") or None
            if page["cursor"] is None:
                return

    async def upload(self, name: str, data: bytes) -> str:
        """Upload a file that nobody sees yet, and return its id."""
        session = self.client.session
        if session is None:
            raise ValueError("uploads go through the client's shared session")
        async with self._turn("files.getUploadURLExternal", hashlib.sha256(data).hexdigest()):
            room = await self.client.files_getUploadURLExternal(filename=name, length=len(data))
            async with session.post(str(room["upload_url"]), data=data) as answer:
                answer.raise_for_status()
        return str(room["file_id"])

    async def share(self, file_id: str, title: str, channel: str, thread_ts: str, comment: str) -> None:
        """Show an uploaded file in a thread. ``title`` and ``comment`` are our own words, the latter as markup."""
        async with self._turn("files.completeUploadExternal", file_id):
            await self.client.files_completeUploadExternal(
                files=[{"id": file_id, "title": title}],
                channel_id=channel,
                thread_ts=thread_ts,
                initial_comment=comment,
            )

    async def has_file(self, channel: str, thread_ts: str, *, since_ms: int, file_id: str) -> bool:
        """Whether a file is shared in a thread."""
        async with self._messages(channel, thread_ts, since_ms, file_id) as replies:
            async for found in replies:
                if any(file.get("id") == file_id for file in found.get("files") or ()):
                    return True
        return False

    async def permalink(self, channel: str, ts: str) -> str:
        """The address of a message, for people who are in its channel."""
        async with self._turn("chat.getPermalink", channel + ts):
            reply = await self.client.chat_getPermalink(channel=channel, message_ts=ts)
        return str(reply["permalink"])

    async def user(self, user: str) -> dict[str, Any]:
        """What Slack knows of a person (Slack: user object)."""
        async with self._turn("users.info", user):
            reply = await self.client.users_info(user=user)
        return dict(reply["user"])

    async def open_dm(self, user: str) -> str:
        """The id of the direct-message channel with a person."""
        async with self._turn("conversations.open", user):
            reply = await self.client.conversations_open(users=[user])
        return str(reply["channel"]["id"])

    async def open_view(self, trigger_id: str, view: Block) -> str:
        """Open a modal and return its id. The trigger is good for 3 s and for one use."""
        ensure_view(view)
        with meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                reply = await self.client.views_open(trigger_id=trigger_id, view=view)
        return str(reply["view"]["id"])

    async def push_view(self, trigger_id: str, view: Block) -> None:
        """Put a modal on top of the one that was clicked in."""
        ensure_view(view)
        with meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.views_push(trigger_id=trigger_id, view=view)

    async def update_view(self, view_id: str, view: Block) -> None:
        ensure_view(view)
        with meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.views_update(view_id=view_id, view=view)

    async def publish_home(self, user: str, view: Block) -> None:
        ensure_view(view)
        with meanings():
            await self.client.views_publish(user_id=user, view=view)

    async def tell(
        self,
        channel: str,
        user: str,
        text: str,
        thread_ts: str | None,
        blocks: Sequence[Block] | None = None,
    ) -> None:
        """Say something that only one person sees. ``text`` is our own markup."""
        if blocks:
            ensure_message({"text": text, "blocks": list(blocks)})
        with meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.chat_postEphemeral(
                    channel=channel, user=user, text=text, thread_ts=thread_ts, blocks=blocks
                )

    async def reply(self, channel: str, thread_ts: str, ts: str) -> dict[str, Any] | None:
        """A reply as it is in its thread at this moment; None if it is not there any more."""
        try:
            with meanings():
                async with asyncio.timeout(CLICK_TIMEOUT_S):
                    found = await self.client.conversations_replies(
                        channel=channel, ts=thread_ts, oldest=ts, latest=ts, inclusive=True, limit=10
                    )
        except SlackGone:
            return None
        return next((dict(message) for message in found["messages"] if message.get("ts") == ts), None)

    @contextlib.asynccontextmanager
    async def _turn(self, method: str, who: str, channel: str | None = None) -> AsyncIterator[None]:
        """Around what can wait, by ``who``. Raises SlackBusy when it is not its turn yet."""
        if self._pace and (wait_ms := await self._pace.turn(method, who, rates(method, channel))):
            raise SlackBusy(PACED, wait_ms, certain=True)
        try:
            with meanings():
                yield
        except SlackBusy as busy:
            if self._pace and busy.code == RATE_LIMITED and busy.in_ms:
                await self._hold(self._pace, method, busy.in_ms)
            raise

    async def _hold(self, pace: Pace, method: str, for_ms: int) -> None:
        log.warning("slack.rate_limited", method=method, for_ms=for_ms)
        try:
            await pace.hold(method, for_ms)
        except StoreUnavailable:
            # the others find out by themselves
            log.warning("slack.not_held", method=method)


async def _drawn(
    send: Callable[[dict[str, Any]], Awaitable[T]], message: Message, *, update: bool = False
) -> T:
    """Send a message; where Slack cannot take its blocks, as the text that says the same."""
    body = {"text": message.text, "blocks": message.blocks}
    try:
        ensure_message(body, update=update)
        return await send(body)
    except (IllegalBlocks, SlackRefused) as refused:
        if not message.plain or (
            isinstance(refused, SlackRefused) and refused.meaning is not Meaning.MESSAGE
        ):
            raise
        # people can still decide, and somebody has to look at this
        log.error("card.not_drawn", gates=message.gates, why=str(refused))
    return await send({"text": message.plain})
