"""Gates: list, read, decide."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from aiohttp import web

from core.api.call import Call, about, answer
from core.api.paging import MAX_LOOKED_AT, as_cursor, position_of
from core.api.requests import DecideBody, GatesQuery
from core.api.views import GateDetail, GateItem, GatePage
from core.gates import Action, Gate
from core.ids import run_of
from core.policy import Person
from core.runs import Run
from core.store.indexes import name_for, names_for


async def listed(call: Call, query: GatesQuery) -> web.Response:
    items: list[GateItem] = []
    looked_at = 0
    last: tuple[int, str] | None = position_of(query.cursor, "gate") if query.cursor is not None else None
    pending = query.status == "pending"
    names = _indexes(query, call) if pending else []
    gates = call.engine.gates(only_open=pending, names=names, before=last)
    async with contextlib.aclosing(gates):
        async for position, run, gate in gates:
            if len(items) == query.limit or looked_at == MAX_LOOKED_AT:
                return answer(GatePage(gates=items, next_cursor=as_cursor(*last) if last else None))
            looked_at += 1
            last = position
            if _matches(query, run, gate, call.engine.admins):
                items.append(GateItem.of(run, gate))
    return answer(GatePage(gates=items, next_cursor=None))


async def read(call: Call) -> web.Response:
    about(gate=call.gate_id)
    run, gate = await call.engine.gate(call.gate_id)
    about(run=run.id)
    return answer(GateDetail.of(run, gate))


async def decide(call: Call, body: DecideBody) -> web.Response:
    run_id, index = run_of(call.gate_id)
    about(gate=call.gate_id, run=run_id)
    run = await call.work.commit(
        call.engine.decide(
            call.gate_id,
            Action(body.action),
            by=call.caller,
            via="api",
            values=body.values,
            comment=body.comment,
            digest=body.args_digest,
            speaks_for=body.by,
        )
    )
    return answer(GateDetail.of(run, run.gates[index]))


def _indexes(query: GatesQuery, call: Call) -> list[str]:
    """The indexes that hold all that can match, so that a page costs the same in any crowd. None: look at all."""
    if query.user:
        home = call.engine.home
        who = query.user if ":" in query.user else f"{home}:{query.user}"
        return [*names_for(query.user, home=home, admins=call.engine.admins), name_for(who)]
    if query.channel and not query.channel.startswith(
        "D"
    ):  # a person's own channel is known once the card is there
        return [f"channel:{query.channel}"]
    return [f"host:{query.host}"] if query.host else []


def _matches(query: GatesQuery, run: Run, gate: Gate, admins: Sequence[str]) -> bool:
    doc = run.doc
    if query.status and gate.status != query.status:
        return False
    if query.host and doc.host != query.host:
        return False
    if query.channel and query.channel not in _channels(run, gate):
        return False
    if query.user and query.user not in _people(run, gate, admins):
        return False
    texts = (doc.title, gate.doc.tool_name, doc.external_id)
    return not query.q or any(query.q.casefold() in text.casefold() for text in texts if text)


def _channels(run: Run, gate: Gate) -> set[str | None]:
    place = run.doc.place.channel if run.doc.place else None
    return {place, *(card.channel for card in run.cards if gate.doc.index in card.gates)}


def _people(run: Run, gate: Gate, admins: Sequence[str]) -> set[str]:
    """Who may decide a gate or did, and the requester, each as `T1:U1` and as `U1`."""
    deciders = set(gate.policy.deciders)
    if "admins" in deciders:
        deciders |= set(admins)
    persons = [vote.by for vote in gate.votes] + ([run.doc.requester] if run.doc.requester else [])
    deciders |= {f"{person.team}:{person.user}" for person in persons if isinstance(person, Person)}
    return deciders | {name.partition(":")[2] for name in deciders if not name.startswith("key:")}
