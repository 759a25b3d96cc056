"""What Slack's error codes mean for whoever called: one table, and an exception for each meaning."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from core.agenda import TryAgain

RATE_LIMITED: Final = "ratelimited"
TROUBLES: Final = (SlackClientError, aiohttp.ClientError, TimeoutError, OSError)
"""What a call of Slack's may raise, its refusal among them."""
UNSAID_MS: Final = 30_000
"""How long to wait when Slack says "too many" and not for how long."""


class Meaning(StrEnum):
    """Why asking again would not help; a code that has none is transient, and asked again later."""

    GONE = "gone"
    """The message, or its thread, is not there any more, or can no longer be changed."""
    MESSAGE = "message"
    """Slack cannot take this message, wherever it goes: it may take a plainer one."""
    PLACE = "place"
    """Nothing can be posted in this place, by us: it may go elsewhere. An admin of Slack can mend it."""
    FILE = "file"
    """Slack takes no such file here; messages it may take."""
    APP = "app"
    """The app may do nothing anywhere until somebody mends its token, its scopes or its installation."""


MEANINGS: Final[Mapping[str, Meaning]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "cant_update_message",
                "edit_window_closed",
                "file_not_found",
                "is_inactive",
                "message_not_found",
                "thread_not_found",
            ),
            Meaning.GONE,
        ),
        **dict.fromkeys(
            (
                "block_mismatch",
                "invalid_attachments",
                "invalid_blocks",
                "invalid_blocks_format",
                "msg_blocks_too_long",
                "msg_too_long",
                "no_text",
            ),
            Meaning.MESSAGE,
        ),
        **dict.fromkeys(
            (
                "file_type_not_allowed",
                "file_upload_size_restricted",
                "file_uploads_disabled",
                "file_uploads_except_images_disabled",
                "storage_limit_reached",
            ),
            Meaning.FILE,
        ),
        **dict.fromkeys(
            (
                "as_user_not_supported",
                "cannot_dm_bot",
                "cannot_reply_to_message",
                "cant_delete_message",
                "channel_is_limited_access",
                "channel_not_found",
                "compliance_exports_prevent_deletion",
                "is_archived",
                "messages_tab_disabled",
                "method_not_supported_for_channel_type",
                "not_in_channel",
                "posting_to_channel_denied",
                "restricted_action",
                "restricted_action_non_threadable_channel",
                "restricted_action_read_only_channel",
                "restricted_action_thread_locked",
                "restricted_action_thread_only_channel",
                "slack_connect_canvas_sharing_blocked",
                "slack_connect_file_link_sharing_blocked",
                "team_not_found",
                "user_disabled",
                "user_not_found",
                "user_not_visible",
            ),
            Meaning.PLACE,
        ),
        **dict.fromkeys(
            (
                "access_denied",
                "account_inactive",
                "ekm_access_denied",
                "enterprise_is_restricted",
                "invalid_auth",
                "missing_scope",
                "no_permission",
                "not_allowed_token_type",
                "not_authed",
                "org_login_required",
                "team_access_not_granted",
                "token_expired",
                "token_revoked",
                "two_factor_setup_required",
            ),
            Meaning.APP,
        ),
    }
)
"""Slack's codes (Slack: the errors of each method)."""


class SlackGone(Exception):
    """The message (or the thread) is not there any more, or can no longer be changed. ``code`` is Slack's word."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class SlackRefused(Exception):
    """Slack will not do this, however often it is asked. ``code`` is Slack's word for why."""

    def __init__(self, code: str, meaning: Meaning = Meaning.PLACE) -> None:
        self.code = code
        self.meaning = meaning
        super().__init__(code)


class SlackBusy(Exception):
    """Slack could not do it now. ``in_ms``: when it wants to be asked again, if it said so.

    ``certain``: it was certainly not done, so nobody need look whether it was.
    """

    def __init__(self, code: str, in_ms: int | None = None, *, certain: bool = False) -> None:
        self.code = code
        self.in_ms = in_ms
        self.certain = certain
        super().__init__(code)


def again(busy: Sequence[SlackBusy]) -> TryAgain:
    """What the agenda is told after these: to come back for the first. What was certainly not done counts as no try."""
    waits = [each.in_ms for each in busy if each.in_ms is not None]
    return TryAgain(min(waits, default=None), tried=not all(each.certain for each in busy))


@contextlib.contextmanager
def meanings() -> Iterator[None]:
    """Slack's codes and the network's troubles as the exceptions above."""
    try:
        yield
    except SlackApiError as error:
        raise _meant(error) from error
    except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SlackBusy(type(error).__name__) from error


def _meant(error: SlackApiError) -> Exception:
    code = str(error.response.get("error") or error.response.status_code)
    meaning = MEANINGS.get(code)
    if meaning is Meaning.GONE:
        return SlackGone(code)
    if meaning is not None:
        return SlackRefused(code, meaning)
    said = error.response.headers.get("Retry-After")
    limited = code == RATE_LIMITED or error.response.status_code == 429
    wait_ms = int(float(said) * 1000) if said else UNSAID_MS if limited else None
    return SlackBusy(code, wait_ms, certain=limited)
