"""The App Home: what waits for a person, to be decided right there; what they asked for and decided; an overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bot import words
from bot.cards.aloud import aloud, told_apart
from bot.cards.blocks import Block, actions, button, context, divider, header, line, markup, piece, rich
from bot.cards.card import SHARED_BYTES, pending_blocks, title
from bot.cards.inbox import LIST, Page, Waiting, item_blocks, item_controls
from bot.cards.limits import VIEW_BLOCKS
from bot.cards.pages import counts_blocks, dump
from bot.cards.queries import ANSWERS, APPROVALS, OWN, Query, Which
from core.counts import Counts

LIVE: Final = 5
"""How many gates a page of the first tab has, each with all of its card's controls."""
WORST: Final = 3
"""How many of each kind the overview shows."""
FOOT: Final = 8
"""Blocks below the gates, at most: notes, and the way to the next page."""

TABS: Final = (Query(Which.MINE), Query(Which.ASKED), Query(Which.DECIDED))
ADMIN_TABS: Final = (Query(Which.OVERVIEW),)
FILTERS: Final = (
    Query(Which.MINE),
    Query(Which.MINE, APPROVALS),
    Query(Which.MINE, ANSWERS),
    Query(Which.EXPIRING, OWN),
)
OVERVIEWED: Final = (Which.EXPIRING, Which.UNDELIVERABLE, Which.DEAD)


@dataclass(frozen=True, slots=True)
class Overview:
    """What an admin sees first: counts, the oldest run's gate, and the first of each list that wants attention."""

    counts: Counts
    oldest: Waiting | None
    first: dict[Which, tuple[Waiting, ...]]


def home_view(
    query: Query,
    waiting: Sequence[Waiting],
    notes: Sequence[str],
    *,
    admin: bool,
    further: Query | None,
    overview: Overview | None = None,
) -> dict[str, Any]:
    """The Home with one of its tabs. ``notes`` are our own sentences, the first at full size if nothing is listed."""
    mine = is_mine(query)
    name = words.HOME_TITLE if mine else words.LIST_TITLES[query.which]
    blocks = [_tabs(query, admin=admin), header(name)]
    if mine:
        blocks.append(actions("home/filters", [_choice(item, query, _filter_word(item)) for item in FILTERS]))
    elif query.which in (Which.OVERVIEW, *OVERVIEWED, Which.ALL) and admin:
        lists = [Query(which) for which in (Which.ALL, *OVERVIEWED)]
        blocks.append(actions("home/filters", [_choice(q, query, words.FILTERS[q.which]) for q in lists]))
    blocks.append(divider())
    if overview:
        blocks += _overview(overview)
    for item in waiting:
        blocks += _item(item, query, admin=admin, room=VIEW_BLOCKS - FOOT - len(blocks) if mine else 0)
    for place, said in enumerate(notes):
        blocks.append(context(said) if waiting or place else markup(said))
    pager = [button(words.PREVIOUS, f"{LIST}:previous", query.previous.dump())] if query.starts else []
    pager += [button(words.NEXT, f"{LIST}:next", further.dump())] if further else []
    if pager:
        blocks.append(actions("home/pager", pager))
    metadata = dump(Page("", [], "", query.first))
    return {"type": "home", "blocks": told_apart(blocks), "private_metadata": metadata}


def is_mine(query: Query) -> bool:
    """Whether a list is one of the first tab: what the person may decide, with live controls."""
    return query.which is Which.MINE or (query.which is Which.EXPIRING and query.about == OWN)


def _tabs(query: Query, *, admin: bool) -> Block:
    tabs = [*TABS, *(ADMIN_TABS if admin else ())]
    current = _tab_of(query)
    return actions("home/tabs", [_choice(tab, Query(current), words.TABS[tab.which]) for tab in tabs])


def _tab_of(query: Query) -> Which:
    if is_mine(query):
        return Which.MINE
    return query.which if query.which in [tab.which for tab in TABS] else Which.OVERVIEW


def _filter_word(query: Query) -> str:
    return words.KINDS[query.about] if query.which is Which.MINE else words.FILTERS[query.which]


def _choice(query: Query, current: Query, text: str) -> Block:
    """A tab or a filter; the one that is shown stands out, and says so aloud."""
    chosen = query.first == current.first
    return button(
        text,
        f"{LIST}:{query.which}-{query.about or 'all'}",
        query.dump(),
        style="primary" if chosen else None,
        label=words.chosen(text) if chosen else None,
    )


def _item(item: Waiting, query: Query, *, admin: bool, room: int) -> list[Block]:
    """One gate; with ``room`` for it, the blocks that its card has, live controls and all."""
    blocks = item_blocks(item, query, admin=admin, ids=admin)
    if room and item.gate.pending:
        live = aloud(pending_blocks(item.gate, SHARED_BYTES), [item.gate])
        if len(live) + 4 <= room:
            head = [rich(line(piece(title(item.run), bold=True)))] if item.run.doc.title else []
            foot = actions(f"{item.gate.id}/list", item_controls(item, query, admin=admin, live=True))
            return [*head, blocks[1], *live, foot, divider()]
    return [*blocks, divider()]


def _overview(overview: Overview) -> list[Block]:
    blocks = counts_blocks(overview.counts)
    if overview.oldest:
        blocks += [header(words.OLDEST_TITLE), *item_blocks(overview.oldest, Query(Which.ALL), admin=True)]
    shown = {overview.oldest.gate.id} if overview.oldest else set()
    for which, items in overview.first.items():
        fresh = [item for item in items if item.gate.id not in shown]
        shown |= {item.gate.id for item in fresh}
        if fresh:
            blocks.append(header(words.LIST_TITLES[which]))
        for item in fresh:
            blocks += item_blocks(item, Query(which), admin=True)
    return blocks
