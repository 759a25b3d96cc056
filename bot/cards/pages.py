"""Pages of lists and of single gates as modals, and what one gate's page says."""

from __future__ import annotations

import json
from typing import Final

from bot import words
from bot.cards.aloud import aloud
from bot.cards.blocks import Block, actions, button, context, divider, line, modal, note, piece, rich
from bot.cards.card import LONE_BYTES, SETTLED_MOST, pending_blocks, title
from bot.cards.deciders import deciders
from bot.cards.inbox import DETAILS, LINK, LIST, Page, Waiting, manage_menu
from bot.cards.queries import Query, Which
from bot.cards.settled import settled_blocks
from bot.cards.text import cut, date, mention, visible
from core.counts import Counts
from core.gates import Gate, Kind
from core.runs import Run

CALLBACK: Final = "gates"
"""The callback id of a modal that shows a page."""
EXTERNAL_BYTES: Final = 200


def page_modal(page: Page) -> Block:
    """A page as a modal, which remembers what it shows."""
    return modal(
        cut(page.title, 24, len), page.blocks, callback_id=CALLBACK, metadata=dump(page), submit=None
    )


def loading_modal(query: Query) -> Block:
    """What stands there while a list is looked for."""
    page = Page(words.LIST_TITLES[query.which], [context(words.LOADING)], "", query)
    return page_modal(page)


def dump(page: Page) -> str:
    """What a page shows, to be drawn again."""
    return json.dumps({"query": page.query.dump() if page.query else "", "gate": page.gate})


def load(metadata: str) -> tuple[Query | None, str]:
    """The list and the gate of a page. Raises ValueError for what is no page's metadata."""
    found = json.loads(metadata)
    if not isinstance(found, dict) or "query" not in found:
        raise ValueError("no page")
    return (Query.load(found["query"]) if found["query"] else None), str(found["gate"])


def gate_page(item: Waiting, *, admin: bool, back: Query | None, words_above: str = "") -> Page:
    """One gate: the facts, all that a card says with the same live controls, and what admins can do.

    ``words_above``: our own sentence about what was just done, as markup.
    """
    run, gate = item.run, item.gate
    blocks: list[Block] = [context(words_above)] if words_above else []
    blocks += [
        rich(line(piece(title(run), bold=True))),
        context(" · ".join(_who(run, gate))),
        context(" · ".join(_which(run, gate))),
    ]
    if run.doc.external_id:
        blocks.append(note(words.EXTERNAL_ID + cut(visible(run.doc.external_id), EXTERNAL_BYTES)))
    blocks.append(divider())
    if gate.pending:
        blocks += aloud(pending_blocks(gate, LONE_BYTES), [gate])
    else:
        blocks += settled_blocks(gate, SETTLED_MOST)
    foot = [button(words.BACK, f"{LIST}:back", (back or Query(Which.ALL)).dump())]
    foot.append(button(words.REFRESH, f"{DETAILS}:again", f"{gate.id} {back.dump() if back else ''}".strip()))
    if item.url:
        foot.append(button(words.OPEN_CARD, LINK, url=item.url))
    if admin and gate.pending:
        foot.append(manage_menu(run, gate))
    blocks += [divider(), actions(f"{gate.id}/page", foot)]
    return Page(words.GATE_TITLE, blocks, words.GATE_TITLE, back, gate.id)


def _who(run: Run, gate: Gate) -> list[str]:
    found = [words.asked_by(run.doc.owner, run.doc.host)]
    if run.doc.requester:
        found.append(words.asked_for(mention(run.doc.requester)))
    if gate.pending:
        found.append(words.until(date(gate.deadline)))
        if gate.doc.kind is not Kind.APPROVAL:
            found.append(words.may_answer(deciders(gate.policy.deciders)))
    return found


def _which(run: Run, gate: Gate) -> list[str]:
    return [f"`{gate.id}`", words.opened(date(gate.opened_at)), f"`{run.id}`"]


def stats_page(counts: Counts) -> Page:
    """How much there is, for admins, and the lists that have it."""
    blocks: list[Block] = counts_blocks(counts)
    lists = (Which.ALL, Which.EXPIRING, Which.UNDELIVERABLE, Which.DEAD)
    row_ = [button(words.FILTERS[which], f"{LIST}:{which}", Query(which).dump()) for which in lists]
    return Page(words.STATS_TITLE, [*blocks, actions("list/filters", row_)], words.STATS_TITLE)


def counts_blocks(counts: Counts) -> list[Block]:
    oldest = words.oldest(date(counts.oldest[0])) if counts.oldest else ""
    return [
        {
            "type": "section",
            "fields": [
                {"type": "mrkdwn", "text": text, "verbatim": True}
                for text in (
                    words.count_open(counts.open, oldest),
                    words.count_soon(counts.due_soon),
                    words.count_undeliverable(counts.undeliverable),
                    words.count_dead(counts.dead),
                )
            ],
        }
    ]
