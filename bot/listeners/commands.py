"""`/gates`: what is pending. For admins all of it, for others what they may decide."""

from __future__ import annotations

from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from bot import words
from bot.cards.blocks import Block, context, header, line, markup, piece, rich
from bot.cards.heading import title_of
from bot.cards.text import cut, date, shown, visible
from bot.listeners.people import person_of
from core.engine import ResumeEngine
from core.errors import CannotVerify, StoreUnavailable
from core.gates import Gate, Kind
from core.policy import Person, is_among
from core.runs import Run
from core.shown import shown_run

COMMAND: Final = "/gates"
SHOWN: Final = 20
LOOKED_AT: Final = 500
"""How many pending gates are looked through for those that a person may decide."""


class Gates:
    """Finds what is pending for a person, and says it."""

    def __init__(self, engine: ResumeEngine) -> None:
        self._engine = engine

    def register(self, app: AsyncApp) -> None:
        app.command(COMMAND)(self.handle)

    async def handle(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        """Answer privately. Words other than `list` are answered with help."""
        word = command.get("text", "").strip().lower()
        if word not in ("", "list"):
            await ack(response_type="ephemeral", text=words.HELP)
            return
        try:
            person = person_of(command)
            admin = await self.is_admin(person)
            found, more = await self.pending_for(person, admin=admin)
        except StoreUnavailable:
            await ack(response_type="ephemeral", text=words.DID_NOT_WORK)
            return
        empty = words.LIST_EMPTY_ADMIN if admin else words.LIST_EMPTY
        await ack(
            response_type="ephemeral",
            text=words.LIST_TITLE if found else empty,
            blocks=listed(words.LIST_TITLE, found, empty, more=more),
        )

    async def is_admin(self, person: Person) -> bool:
        """Whether somebody may run admin commands. Who cannot be verified may not."""
        engine = self._engine
        try:
            return await is_among(
                engine.admins, person, home=engine.home, channel=None, directory=engine.directory
            )
        except CannotVerify:
            return False

    async def pending_for(self, person: Person, *, admin: bool) -> tuple[list[tuple[Run, Gate]], bool]:
        """Pending gates, newest first, and whether there are more than are shown."""
        found: list[tuple[Run, Gate]] = []
        looked_at = 0
        async for _, run, gate in self._engine.gates(only_open=True):
            looked_at += 1
            if gate.pending and (admin or await self._may_decide(run, gate, person)):
                if len(found) == SHOWN:
                    return found, True
                shown = shown_run(run, self._engine.redaction)
                found.append((shown, shown.gates[gate.doc.index]))
            if looked_at == LOOKED_AT:
                return found, True
        return found, False

    async def _may_decide(self, run: Run, gate: Gate, person: Person) -> bool:
        try:
            return await self._engine.may_decide(run, gate, person)
        except CannotVerify:
            return False


def listed(title: str, gates: list[tuple[Run, Gate]], empty: str, *, more: bool) -> list[Block]:
    """A list of gates as blocks: what, until when, where."""
    blocks = [header(title)]
    if not gates:
        blocks.append(markup(empty))
    for run, gate in gates:
        blocks.append(rich(_line(run, gate)))
        blocks.append(context(" · ".join(_facts(run, gate))))
    if more:
        blocks.append(context(words.LIST_MORE.format(count=len(gates))))
    return blocks


def _line(run: Run, gate: Gate) -> Block:
    title = f"{cut(visible(run.doc.title), 100)} · " if run.doc.title else ""
    if gate.doc.kind is Kind.QUESTION:
        first = gate.asks.questions[0]
        asked = [piece(f"{visible(first.header)}: ", bold=True), piece(cut(visible(first.question), 240))]
        return line(piece(title), *asked)
    if gate.doc.kind in (Kind.FORM, Kind.LINK):
        what = words.FILL if gate.doc.kind is Kind.FORM else words.LINK
        return line(piece(title), piece(what, bold=True), piece(shown(title_of(gate), 80)))
    what = words.APPROVAL if gate.doc.kind is Kind.APPROVAL else words.CUSTOM
    return line(piece(title), piece(what, bold=True), piece(cut(visible(gate.doc.tool_name), 80), code=True))


def _facts(run: Run, gate: Gate) -> list[str]:
    facts = [f"`{gate.id}`", words.until(date(gate.deadline))]
    place = next((card for card in run.cards if gate.doc.index in card.gates), None)
    if place:
        facts.append(f"<#{place.channel}>")
    return facts
