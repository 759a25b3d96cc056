"""Indexes of the runs that wait: by host, by channel, and by who may decide. A page costs the same in any crowd.

A run stands in an index as long as one of its gates is pending. An index may lag behind (a name more than the run still
has): whoever reads a list looks at the run itself before it shows a gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from core.copies import thread_of
from core.policy import TEAM, USER, Policy
from core.runs import Card, Run, RunDoc

_NAMED = re.compile(rf"(?:{TEAM}:)?{USER}|admins")


def index_names(doc: RunDoc, policies: Iterable[Policy]) -> tuple[str, ...]:
    """The indexes that a run stands in: its host (`host:api`), its places (`channel:C1`), each person (or the admins)
    whom it names (`by:U1`), and in whose name it asks (`for:T1:U1`)."""
    names = {f"host:{doc.host}": None}
    places = (doc.place, doc.escalate.place if doc.escalate else None)
    names |= {f"channel:{place.channel}": None for place in places if place and place.channel}
    names |= {
        thread_name(place.channel, place.thread_ts): None
        for place in places
        if place and place.channel and place.thread_ts
    }
    people = {p for policy in policies for p in policy.deciders if _NAMED.fullmatch(p)}
    asked_for = [name_for(f"{doc.requester.team}:{doc.requester.user}")] if doc.requester else []
    return (*names, *(f"by:{person}" for person in sorted(people)), *asked_for)


def name_for(who: str) -> str:
    """The index of what is asked in somebody's (`T1:U1`) name."""
    return f"for:{who}"


def thread_name(channel: str, ts: str) -> str:
    """The index of the runs whose cards stand in a thread, or begin it."""
    return f"thread:{channel}:{ts}"


def names_with(run: Run, cards: Sequence[Card]) -> tuple[str, ...]:
    """The indexes that a run stands in when it has these cards: each that is no reply begins a thread of its own."""
    shown = run.model_copy(update={"cards": tuple(cards)})
    threads = (thread_name(card.channel, thread_of(shown, card)) for card in cards if card.ts)
    return tuple(dict.fromkeys((*run.index, *threads)))


def names_for(user: str, *, home: str | None, admins: Sequence[str]) -> list[str]:
    """The indexes in which the runs stand that name a person; ``user`` is `U1` (of the home workspace) or `T1:U1`."""
    team, _, bare = user.rpartition(":")
    same = {bare, f"{home}:{bare}"} if team in ("", home) else {user}
    return [f"by:{name}" for name in sorted(same)] + (["by:admins"] if same & set(admins) else [])
