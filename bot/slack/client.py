"""Slack's Web API as the bot uses it: each failure is one of three, and each says what to do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards.blocks import Block
from bot.cards.card import Message
from bot.cards.limits import ensure_message, ensure_view

EVENT_TYPE: Final = "askgate_card"
TIMEOUT_S: Final = 10
CLICK_TIMEOUT_S: Final = 2.0
"""For calls while a person's click waits: Slack gives up on the click after 3 s."""
FIND_PAGES: Final = 5

GONE: Final = frozenset(
    {
        "cant_update_message",
        "edit_window_closed",
        "file_not_found",
        "is_inactive",
        "message_not_found",
        "thread_not_found",
    }
)
"""The message cannot be changed any more, ever."""
REFUSED: Final = frozenset(
    {
        "account_inactive",
        "cannot_dm_bot",
        "cannot_reply_to_message",
        "cant_delete_message",
        "compliance_exports_prevent_deletion",
        "channel_not_found",
        "ekm_access_denied",
        "file_type_not_allowed",
        "file_upload_size_restricted",
        "file_uploads_disabled",
        "file_uploads_except_images_disabled",
        "invalid_auth",
        "invalid_blocks",
        "invalid_blocks_format",
        "is_archived",
        "messages_tab_disabled",
        "missing_scope",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "not_in_channel",
        "org_login_required",
        "posting_to_channel_denied",
        "restricted_action",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "storage_limit_reached",
        "team_access_not_granted",
        "team_not_found",
        "token_expired",
        "token_revoked",
        "user_disabled",
        "user_not_found",
        "user_not_visible",
    }
)
"""Asking again would not help: somebody has to change something in Slack first."""


class SlackGone(Exception):
    """The message (or the thread) is not there any more, or can no longer be changed. ``code`` is Slack's word."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class SlackRefused(Exception):
    """Slack will not do this, however often it is asked. ``code`` is Slack's word for why."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class SlackBusy(Exception):
    """Slack could not do it now. ``in_ms``: when it wants to be asked again, if it said so."""

    def __init__(self, code: str, in_ms: int | None = None) -> None:
        self.code = code
        self.in_ms = in_ms
        super().__init__(code)


@contextlib.contextmanager
def _meanings() -> Iterator[None]:
    """Slack's codes and the network's troubles as the three meanings above."""
    try:
        yield
    except SlackApiError as error:
        code = str(error.response.get("error") or error.response.status_code)
        if code in GONE:
            raise SlackGone(code) from error
        if code in REFUSED:
            raise SlackRefused(code) from error
        wait_s = error.response.headers.get("Retry-After")
        raise SlackBusy(code, int(float(wait_s) * 1000) if wait_s else None) from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SlackBusy(type(error).__name__) from error


class Slack:
    """One workspace's Web API."""

    def __init__(self, client: AsyncWebClient) -> None:
        self.client = client

    async def post(
        self, channel: str, message: Message, *, thread_ts: str | None, payload: dict[str, Any]
    ) -> str:
        """Post a message and return its ts. ``payload`` is metadata by which `find` knows it again."""
        body = _body(message)
        ensure_message(body)
        with _meanings():
            reply = await self.client.chat_postMessage(
                channel=channel,
                thread_ts=thread_ts,
                metadata={"event_type": EVENT_TYPE, "event_payload": payload},
                mrkdwn=False,
                unfurl_links=False,
                unfurl_media=False,
                **body,
            )
        return str(reply["ts"])

    async def update(self, channel: str, ts: str, message: Message) -> None:
        body = _body(message)
        ensure_message(body, update=True)
        with _meanings():
            await self.client.chat_update(channel=channel, ts=ts, **body)

    async def delete(self, channel: str, ts: str) -> None:
        with _meanings():
            await self.client.chat_delete(channel=channel, ts=ts)

    async def find(
        self, channel: str, *, thread_ts: str | None, since_ms: int, payload: dict[str, Any]
    ) -> str | None:
        """The ts of a message of ours with this metadata, not older than ``since_ms``; None if there is none."""
        async with contextlib.aclosing(self._messages(channel, thread_ts, since_ms)) as messages:
            async for found in messages:
                metadata = found.get("metadata") or {}
                if metadata.get("event_type") == EVENT_TYPE and metadata.get("event_payload") == payload:
                    return str(found["ts"])
        return None

    async def _messages(
        self, channel: str, thread_ts: str | None, since_ms: int
    ) -> AsyncGenerator[Mapping[str, Any]]:
        """The messages of a thread or a channel with their metadata, up to `FIND_PAGES` pages of them."""
        cursor: str | None = None
        oldest = f"{since_ms / 1000 - 60:.6f}"
        for _ in range(FIND_PAGES):
            with _meanings():
                if thread_ts:
                    reply = await self.client.conversations_replies(
                        channel=channel,
                        ts=thread_ts,
                        oldest=oldest,
                        cursor=cursor,
                        limit=200,
                        include_all_metadata=True,
                    )
                else:
                    reply = await self.client.conversations_history(
                        channel=channel, oldest=oldest, cursor=cursor, limit=200, include_all_metadata=True
                    )
            for found in reply["messages"]:
                yield found
            cursor = (reply.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return

    async def upload(self, name: str, data: bytes) -> str:
        """Upload a file that nobody sees yet, and return its id."""
        session = self.client.session
        if session is None:
            raise ValueError("uploads go through the client's shared session")
        with _meanings():
            room = await self.client.files_getUploadURLExternal(filename=name, length=len(data))
            async with session.post(str(room["upload_url"]), data=data) as answer:
                answer.raise_for_status()
        return str(room["file_id"])

    async def share(self, file_id: str, title: str, channel: str, thread_ts: str, comment: str) -> None:
        """Show an uploaded file in a thread. ``title`` and ``comment`` are our own words, the latter as markup."""
        with _meanings():
            await self.client.files_completeUploadExternal(
                files=[{"id": file_id, "title": title}],
                channel_id=channel,
                thread_ts=thread_ts,
                initial_comment=comment,
            )

    async def has_file(self, channel: str, thread_ts: str, *, since_ms: int, file_id: str) -> bool:
        """Whether a file is shared in a thread."""
        replies = self._messages(channel, thread_ts, since_ms)
        async with contextlib.aclosing(replies):
            async for found in replies:
                if any(file.get("id") == file_id for file in found.get("files") or ()):
                    return True
        return False

    async def permalink(self, channel: str, ts: str) -> str:
        """The address of a message, for people who are in its channel."""
        with _meanings():
            reply = await self.client.chat_getPermalink(channel=channel, message_ts=ts)
        return str(reply["permalink"])

    async def user(self, user: str) -> dict[str, Any]:
        """What Slack knows of a person (Slack: user object)."""
        with _meanings():
            reply = await self.client.users_info(user=user)
        return dict(reply["user"])

    async def open_dm(self, user: str) -> str:
        """The id of the direct-message channel with a person."""
        with _meanings():
            reply = await self.client.conversations_open(users=[user])
        return str(reply["channel"]["id"])

    async def open_view(self, trigger_id: str, view: Block) -> None:
        """Open a modal. The trigger is good for 3 s and for one use."""
        ensure_view(view)
        with _meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.views_open(trigger_id=trigger_id, view=view)

    async def push_view(self, trigger_id: str, view: Block) -> None:
        """Put a modal on top of the one that was clicked in."""
        ensure_view(view)
        with _meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.views_push(trigger_id=trigger_id, view=view)

    async def update_view(self, view_id: str, view: Block) -> None:
        ensure_view(view)
        with _meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.views_update(view_id=view_id, view=view)

    async def publish_home(self, user: str, view: Block) -> None:
        ensure_view(view)
        with _meanings():
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
        with _meanings():
            async with asyncio.timeout(CLICK_TIMEOUT_S):
                await self.client.chat_postEphemeral(
                    channel=channel, user=user, text=text, thread_ts=thread_ts, blocks=blocks
                )

    async def reply(self, channel: str, thread_ts: str, ts: str) -> dict[str, Any] | None:
        """A reply as it is in its thread at this moment; None if it is not there any more."""
        try:
            with _meanings():
                async with asyncio.timeout(CLICK_TIMEOUT_S):
                    found = await self.client.conversations_replies(
                        channel=channel, ts=thread_ts, oldest=ts, latest=ts, inclusive=True, limit=10
                    )
        except SlackGone:
            return None
        return next((dict(message) for message in found["messages"] if message.get("ts") == ts), None)


def _body(message: Message) -> dict[str, Any]:
    return {"text": message.text, "blocks": message.blocks}
