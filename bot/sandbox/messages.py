"""Messages, and the place where a workspace keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Values = dict[str, dict[str, Json]]
"""block_id -> action_id -> the value object that Slack puts into `state.values`."""


@dataclass(slots=True)
class Message:
    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    app: str | None = None
    metadata: Json | None = None
    edited: Json | None = None
    viewer: str | None = None
    """The one person who sees it, for an ephemeral message."""
    broadcast: bool = False
    subtype: str | None = None
    mrkdwn: bool = True
    """Whether signs in the text alone, without blocks, make it bold and the like (Slack: chat.postMessage)."""
    files: list[str] = field(default_factory=list)
    """Ids of the files that it shares."""
    picks: dict[str, Values] = field(default_factory=dict)
    """user -> what that person has picked in the message's elements."""


class Messages:
    """All messages, by channel and by thread, oldest first."""

    def __init__(self) -> None:
        self._channels: dict[str, dict[str, Message]] = {}
        self._threads: dict[tuple[str, str], dict[str, Message]] = {}

    def __iter__(self) -> Iterator[Message]:
        return (message for rows in self._channels.values() for message in rows.values())

    def add(self, message: Message) -> None:
        self._channels.setdefault(message.channel, {})[message.ts] = message
        if thread := self._thread(message):
            self._threads.setdefault(thread, {})[message.ts] = message

    def remove(self, message: Message) -> None:
        del self._channels[message.channel][message.ts]
        if thread := self._thread(message):
            del self._threads[thread][message.ts]

    def find(self, channel: str, ts: str, viewer: str | None = None) -> Message | None:
        """The message at `ts`; an ephemeral one only for its viewer."""
        message = self._channels.get(channel, {}).get(ts)
        return message if message is not None and message.viewer in (None, viewer) else None

    def of(self, channel: str, viewer: str | None = None) -> list[Message]:
        """A conversation's messages: those that all see, and the private ones of `viewer`."""
        return [m for m in self._channels.get(channel, {}).values() if m.viewer in (None, viewer)]

    def replies(self, channel: str, thread_ts: str) -> list[Message]:
        """The replies in a thread that all see, without its first message."""
        return list(self._threads.get((channel, thread_ts), {}).values())

    def _thread(self, message: Message) -> tuple[str, str] | None:
        is_reply = message.thread_ts not in (None, message.ts) and message.viewer is None
        return (message.channel, str(message.thread_ts)) if is_reply else None
