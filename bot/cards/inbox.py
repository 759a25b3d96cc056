"""A list of gates: what, until when, where, and what can be done about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bot import words
from bot.cards.aloud import name, told_apart
from bot.cards.blocks import (
    Block,
    actions,
    button,
    context,
    divider,
    header,
    line,
    markup,
    note,
    overflow,
    piece,
    rich,
    row,
)
from bot.cards.heading import asked_of
from bot.cards.queries import Query, Which
from bot.cards.settled import settled_line
from bot.cards.text import cut, date, glance, isolated, mention, size, visible
from core.copies import card_for
from core.gates import Gate, Outcome
from core.runs import Card, Run, RunStatus

TITLE_BYTES: Final = 90
WHAT_BYTES: Final = 160
"""A page of gates fits one message with room to spare."""
ERROR_BYTES: Final = 120

# what the controls of lists are called: apart from those of cards, which are about one stored gate's own controls
LIST: Final = "list"
"""Another page, or another list: the value is a query."""
DETAILS: Final = "details"
"""One gate with all there is to say about it, and its live controls: the value is its id and the list to go back to."""
LINK: Final = "link"
MANAGE: Final = "manage"
"""A menu of what admins do with one gate: the options are `<verb> <gate>`."""
REQUEUE: Final = "requeue"
"""Hand a run out to its host again: the value is the run's id."""
VERBS: Final = ("extend", "reassign", "cancel", "resend")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gate of a list, its run, the address of its card if Slack told it, and whether it may wait for who reads."""

    run: Run
    gate: Gate
    url: str | None
    theirs: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """What a list or one gate looks like on any surface: a title, blocks below it, and the same in a line of text."""

    title: str
    blocks: list[Block]
    text: str
    query: Query | None = None
    gate: str = ""


def list_page(
    query: Query,
    waiting: Sequence[Waiting],
    notes: Sequence[str],
    *,
    admin: bool,
    further: Query | None,
    filters: Sequence[Query] = (),
) -> Page:
    """One page of a list. ``notes`` are our own sentences, the first of them at full size if nothing is listed."""
    if query.which is Which.ALL and not admin:
        # for who is no admin, all that waits is what waits for them
        query = replace(query, which=Which.MINE)
    title = words.LIST_TITLES[query.which]
    blocks: list[Block] = []
    for item in waiting:
        blocks += item_blocks(item, query, admin=admin)
    for place, said in enumerate(notes):
        blocks.append(context(said) if waiting or place else markup(said))
    if pager := _pager(query, further):
        blocks.append(actions("list/pager", pager))
    if filters:
        blocks += [divider(), actions("list/filters", [filter_button(item, query) for item in filters])]
    text = title if waiting or not notes else notes[0]
    return Page(title, told_apart(blocks), text, query)


def headed(page: Page) -> list[Block]:
    """A page as a message or a tab shows it: with its title on top."""
    return [header(page.title), *page.blocks]


def item_blocks(item: Waiting, query: Query, *, admin: bool, ids: bool = True) -> list[Block]:
    """One gate of a list: what it is, the facts, what can be done.

    ``ids``: name what a command calls it; else, where there are buttons alone, who asks.
    """
    gate = item.gate
    unseen = gate.decision.detail if gate.decision and gate.status == Outcome.UNDELIVERABLE else None
    why = item.run.error or unseen
    error = [note(words.WHY + cut(visible(why), ERROR_BYTES))] if why else []
    return [
        _headline(item.run, item.gate),
        context(" · ".join(_facts(item.run, item.gate, ids=ids))),
        *error,
        actions(f"{item.gate.id}/list", item_controls(item, query, admin=admin)),
    ]


def digest_blocks(title: str, waiting: Sequence[Waiting], notes: Sequence[str]) -> list[Block]:
    """What waits for somebody, as a message of its own: each gate with the way to its card."""
    blocks = [header(title)]
    for item in waiting:
        about = what(item.run, item.gate)
        opened = (
            button(words.OPEN_CARD, LINK, url=item.url, label=name(words.OPEN_CARD, about))
            if item.url
            else None
        )
        facts = [words.until(date(item.gate.deadline))]
        if item.run.doc.requester:
            facts.append(words.asked_for(mention(item.run.doc.requester)))
        blocks += [row(about, opened), context(" · ".join(facts))]
    return told_apart([*blocks, *map(context, notes)])


def _headline(run: Run, gate: Gate) -> Block:
    """The run's title in bold, and what is asked, as rich text."""
    title, asked = _parts(run, gate)
    if not title:
        return rich(line(piece(asked, bold=True)))
    return rich(line(piece(title, bold=True), piece(f" · {asked}")))


def filter_button(query: Query, current: Query) -> Block:
    chosen = query.first == current.first
    return button(
        words.FILTERS[query.which], f"{LIST}:{query.which}", query.dump(), style="primary" if chosen else None
    )


def _pager(query: Query, further: Query | None) -> list[Block]:
    found = []
    if query.starts:
        found.append(button(words.PREVIOUS, f"{LIST}:previous", query.previous.dump()))
    if further:
        found.append(button(words.NEXT, f"{LIST}:next", further.dump()))
    return found


def item_controls(item: Waiting, query: Query, *, admin: bool, live: bool = False) -> list[Block]:
    """What can be done about a gate of a list; ``live``: the controls of its card stand there already."""
    gate, about = item.gate, what(item.run, item.gate)
    text = words.DECIDE if gate.pending and item.theirs and not live else words.DETAILS
    found = [button(text, DETAILS, f"{gate.id} {query.dump()}", label=name(text, about))]
    if item.url:
        found.append(button(words.OPEN_CARD, LINK, url=item.url, label=name(words.OPEN_CARD, about)))
    if admin and query.which is Which.DEAD:
        found.append(button(words.REQUEUE, REQUEUE, item.run.id, label=name(words.REQUEUE, about)))
    elif admin and gate.pending:
        found.append(manage_menu(item.run, gate))
    return found


def manage_menu(run: Run, gate: Gate) -> Block:
    """What admins do with a pending gate."""
    offered = [verb for verb in VERBS if verb != "resend" or run.doc.place]
    return overflow(MANAGE, [(words.MANAGE[verb], f"{verb} {gate.id}") for verb in offered])


def card_of(run: Run, gate: Gate) -> Card | None:
    """The message that shows a gate to all who may see it: no copy of somebody's own."""
    return card_for(run, gate.doc.index)


def what(run: Run, gate: Gate) -> str:
    """The run's title and what is asked, as plain text."""
    return " · ".join(filter(None, _parts(run, gate)))


def _parts(run: Run, gate: Gate) -> tuple[str, str]:
    title = glance(run.doc.title or "", TITLE_BYTES)
    word, asked = asked_of(gate)
    room = TITLE_BYTES + WHAT_BYTES - size(title) - size(word)
    return isolated(title) if title else "", f"{word}{glance(asked, room)}"


def _facts(run: Run, gate: Gate, *, ids: bool) -> list[str]:
    facts = [] if ids else [words.asked_by(run.doc.owner, run.doc.host)]
    facts.append(words.until(date(gate.deadline)) if gate.pending else settled_line(gate))
    if run.doc.requester:
        facts.append(words.asked_for(mention(run.doc.requester)))
    if card := card_of(run, gate):
        facts.append(f"<#{card.channel}>")
    if run.status in (RunStatus.FAILED, RunStatus.LOST):
        facts.append(words.not_taken_up())
    return [*facts, f"`{gate.id}`"] if ids else facts
