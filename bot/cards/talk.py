"""What askgate says in a conversation with an agent: how the turn stands, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bot import words
from bot.cards.aloud import name, told_apart
from bot.cards.blocks import Block, button, code, context, header, line, markup, piece, quote, rich, row
from bot.cards.blocks import person as named
from bot.cards.card import Message
from bot.cards.markdown import reply_parts, texts
from bot.cards.text import cut, escape, glance, inert, mention, shown
from core.conversations import Conversation, End, Ending, Unopened
from core.policy import Person

STOP: Final = "talk_stop"
"""The button that ends a conversation; its value is the conversation's id."""
MOST_PARTS: Final = 20
"""In how many messages a reply is posted at most."""
TEXT_BYTES: Final = 300
"""What a notification holds of a reply."""
ERROR_BYTES: Final = 1500
SAID_BYTES: Final = 2500
PLAIN_BYTES: Final = 3000
CHOICES: Final = 10


def sign_message(word: str, turns: int = 0, workers: int = 0) -> Message:
    """How a turn stands. ``turns``: how many the host has, for so many ``workers``."""
    text = words.talk_queued(turns, workers) if word == "queued" else words.TALK_SIGNS[word]
    return Message((), [context(text)], text)


def unopened_message(item: Unopened, block: str) -> Message:
    """What the agent waits for, why nobody can be asked, and what to do. ``block`` is the host's name."""
    if item.tool:
        besides = mention(item.besides) if item.besides else ""
        text = words.talk_nobody(inert(item.tool, TEXT_BYTES), besides, item.need, block)
    else:
        text = words.talk_unopened(inert(item.why, ERROR_BYTES))
    return Message((), [markup(text)], text, text)


def end_messages(talk: Conversation, end: End) -> list[Message]:
    """How a turn ended, in one or more messages."""
    messages = _reply(end) if end.kind is Ending.REPLY else [_word(end)]
    if talk.anew and end.kind is not Ending.STOPPED:
        first = messages[0]
        messages[0] = Message((), [context(words.TALK_ANEW), *first.blocks], first.text, first.plain)
    return messages


def _reply(end: End) -> list[Message]:
    parts = reply_parts(end.text)
    if not parts:
        return [_word(End(kind=Ending.SILENT))]
    left = end.cut + sum(len(texts(part)) for part in parts[MOST_PARTS:])
    if left:
        *whole, last = parts[:MOST_PARTS]
        parts = [*whole, [*last, context(words.talk_cut(left))]]
    return [Message((), blocks, _notified(blocks), _plain(blocks)) for blocks in parts]


def _notified(blocks: Sequence[Block]) -> str:
    return escape(glance(texts(blocks), TEXT_BYTES)) or words.TALK_REPLIED


def _plain(blocks: Sequence[Block]) -> str:
    return f"```{escape(cut(texts(blocks).replace('`', 'ʼ'), PLAIN_BYTES))}```"


def _word(end: End) -> Message:
    if end.kind is Ending.STOPPED:
        text = words.talk_stopped(mention(end.by) if end.by else "")
    else:
        text = words.TALK_ENDS[end.kind]
    detail = shown(end.text, ERROR_BYTES).strip()
    return Message((), [markup(text), *([rich(code(detail))] if detail else [])], text, text)


def opening_message(person: Person, text: str) -> Message:
    """The message below which a conversation stands that was begun by a command."""
    said = shown(text, SAID_BYTES)
    about = f"{mention(person)} {words.TALK_OPENING}"
    head = line(named(person), piece(f" {words.TALK_OPENING}"))
    return Message((), [rich(head, quote(said))], f"{about} {escape(glance(text, TEXT_BYTES))}", about)


def choice_blocks(talks: Sequence[Conversation]) -> list[Block]:
    """Which conversation to stop: a button each."""
    blocks = [header(words.TALK_WHICH)]
    for talk in talks[:CHOICES]:
        what = glance(talk.title, TEXT_BYTES) or words.TALK_REPLIED
        stop = button(words.TALK_STOP, STOP, talk.id, label=name(words.TALK_STOP, what))
        blocks.append(row(what, stop) | {"block_id": f"talk/{talk.id}"})
    return told_apart(blocks)
