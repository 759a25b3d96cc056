"""How often Slack lets an app call each method in one workspace (Slack: rate limits)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.store.pace import Rate

POST: Final = "chat.postMessage"
POST_EVERY_MS: Final = 1000
"""One message a second in a channel."""
POST_BURST: Final = 5
"""Slack takes short bursts, of which it does not say how long they may be."""

TIER_3, TIER_4, SPECIAL, MANY = 50, 100, 300, 600
PER_MINUTE: Final[Mapping[str, int]] = {
    POST: SPECIAL,
    "chat.update": TIER_3,
    "chat.getPermalink": MANY,
    "conversations.history": TIER_3,
    "conversations.open": TIER_3,
    "conversations.replies": TIER_3,
    "files.completeUploadExternal": TIER_4,
    "files.getUploadURLExternal": TIER_4,
    "users.info": TIER_4,
}
"""The methods whose calls can wait, and how many a minute Slack takes at least. What a person waits for is not paced:
it comes in time or not at all."""
BURST_OF: Final = 3
"""A third of a minute's calls may come at once."""


def rates(method: str, channel: str | None) -> list[Rate]:
    """What a call of a method draws from."""
    per_minute = PER_MINUTE[method]
    found = [Rate(method, 60_000 // per_minute, per_minute // BURST_OF)]
    if method == POST and channel:
        found.append(Rate(f"{method}:{channel}", POST_EVERY_MS, POST_BURST))
    return found
