"""How much of Slack's limit for one message some blocks take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bot.cards.text import size

MENTION: Final = 5
"""Bytes around an id in a mention: `<@…> `."""


def weight(blocks: object) -> int:
    """UTF-8 bytes of all the text in rendered blocks after escaping, with a mention as markup would write it."""
    if isinstance(blocks, Mapping):
        markup = blocks.get("type") == "mrkdwn"
        own = 0
        if isinstance(text := blocks.get("text"), str):
            own = len(text.encode()) if markup else size(text)
        elif isinstance(user := blocks.get("user_id"), str):
            own = len(user) + MENTION
        return own + sum(weight(value) for value in blocks.values())
    if isinstance(blocks, list | tuple):
        return sum(weight(value) for value in blocks)
    return 0
