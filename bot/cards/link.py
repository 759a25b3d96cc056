"""A link gate on a card: what is to be done elsewhere, where that is, and the word that it is done.

The address stands there as it is, in monospace, where nothing becomes a link. The one way to follow it is a button that
says whose page it opens.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from bot import words
from bot.cards import controls as c
from bot.cards.blocks import Block, actions, button, code, context, line, piece, rich
from bot.cards.heading import heading
from bot.cards.limits import BUTTON_TEXT
from bot.cards.offers import ways_out
from bot.cards.text import cut, length, size, visible
from core.gates import Gate
from core.links import LinkRequest

OPENS_BYTES: Final = 2 * BUTTON_TEXT
"""A button's words, and those of the line above the address."""


def link_blocks(gate: Gate, budget: int) -> list[Block]:
    """The blocks of a pending link, with at most ``budget`` bytes of the agent's text.

    The button that opens the page stands here only if the whole address does; else it waits in "View in full".
    """
    link = link_of(gate)
    room = budget - OPENS_BYTES
    head = heading(gate, words.LINK, max(room // 2, room - size(address(link))))
    text = cut(address(link), room - head.size)
    there = text == address(link)
    leads = words.LEADS_TO if link.url else words.LEADS_TO_ORIGIN
    blocks = [rich(*head.lines, line(piece(leads)), code(text))]
    if not there:
        blocks.append(context(words.LINK_CUT))
    elif not head.whole:
        blocks.append(context(words.TEXT_CUT))
    row = [open_button(link)] if there and link.url else []
    if not there or not head.whole:
        row.append(button(words.VIEW_IN_FULL, c.FULL, style=None if there else "primary"))
    row.append(done_button(link))
    return [*blocks, actions(c.block_id(gate.id, 0, "gate"), [*row, *ways_out(gate)])]


def link_of(gate: Gate) -> LinkRequest:
    """The link of a link gate. Raises ValueError for another kind."""
    if gate.doc.link is None:
        raise ValueError(f"{gate.id} is no link")
    return gate.doc.link


def address(link: LinkRequest) -> str:
    """The whole URL if the host gave one, else the origin."""
    return visible(link.url or link.shown_origin)


def open_button(link: LinkRequest) -> Block:
    """`Open example.com`. A host too long for a button is not cut, which could make another one of it."""
    text = words.open_link(urlsplit(link.shown_origin).netloc)
    said = text if length(text) <= BUTTON_TEXT else words.OPEN_LINK
    return button(said, c.OPEN, style="primary", url=link.url)


def done_button(link: LinkRequest) -> Block:
    """The word that it is done. Where a page can be opened, that comes first."""
    return button(words.DONE, c.DONE, style=None if link.url else "primary")
