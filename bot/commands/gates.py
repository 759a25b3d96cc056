"""`askgate gates`: the slash command's twin for a shell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import click

from bot.commands.shell import one_line, pairs, run, set_option, show_table
from bot.commands.store import CLI, engine_of
from core.api.views import GateDetail, GateItem, written
from core.clock import iso
from core.engine import ResumeEngine
from core.errors import NotFound
from core.gates import Action, Decision, Gate, Kind, Outcome, speaker
from core.runs import Run
from core.settings import SettingsError, load_settings
from core.strictjson import JsonError, strict_json

ANY: Final = "any"
STATUSES: Final = ("pending", *(outcome.value for outcome in Outcome), ANY)
COLUMNS: Final = ("gate", "status", "kind", "deadline", "host", "what")


@click.group()
def gates() -> None:
    """List, show, settle and cancel gates, by the store alone."""


@gates.command("list")
@click.option(
    "--status",
    type=click.Choice(STATUSES),
    default="pending",
    show_default=True,
    help="Only gates that are so.",
)
@click.option("--host", help="Only gates of this host.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@set_option
def list_(status: str, host: str | None, limit: int, as_json: bool, overrides: tuple[str, ...]) -> None:
    """Gates, newest first."""
    run(_list(status, host, limit, as_json, overrides))


async def _list(status: str, host: str | None, limit: int, as_json: bool, overrides: tuple[str, ...]) -> None:
    async with _engine(overrides) as engine:
        found = await _found(engine, status, host, limit + 1)
    for_people, more = found[:limit], len(found) > limit
    if as_json:
        for its_run, gate in for_people:
            click.echo(written(GateItem.of(its_run, gate)))
    else:
        show_table(COLUMNS, [_row(its_run, gate) for its_run, gate in for_people])
    if more:
        click.echo(f"There are more than {limit}: raise --limit.", err=True)


async def _found(engine: ResumeEngine, status: str, host: str | None, most: int) -> list[tuple[Run, Gate]]:
    found: list[tuple[Run, Gate]] = []
    async with contextlib.aclosing(engine.gates(only_open=status == "pending")) as every:
        async for _, its_run, gate in every:
            if status in (ANY, gate.status) and host in (None, its_run.doc.host):
                found.append((its_run, gate))
            if len(found) == most:
                break
    return found


def _row(its_run: Run, gate: Gate) -> tuple[str, ...]:
    title = f"{its_run.doc.title} · " if its_run.doc.title else ""
    return gate.id, gate.status, gate.doc.kind, iso(gate.deadline), its_run.doc.host, f"{title}{_what(gate)}"


def _what(gate: Gate) -> str:
    return gate.asks.questions[0].question if gate.doc.kind is Kind.QUESTION else gate.doc.tool_name


@gates.command()
@click.argument("gate_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="As the HTTP API has it.")
@set_option
def show(gate_id: str, as_json: bool, overrides: tuple[str, ...]) -> None:
    """All of one gate: what it asks, who may decide it, and what was decided."""
    run(_show(gate_id, as_json, overrides))


async def _show(gate_id: str, as_json: bool, overrides: tuple[str, ...]) -> None:
    async with _engine(overrides) as engine:
        its_run, gate = await engine.gate(gate_id)
    if as_json:
        click.echo(written(GateDetail.of(its_run, gate)))
        return
    for name, value in _facts(its_run, gate):
        click.echo(f"{name:<12} {one_line(value)}")
    # JSON with everything but ASCII written as escapes: nothing in it can move a cursor
    click.echo(f"{'arguments':<12} {json.dumps(gate.doc.args, indent=2)}")


def _facts(its_run: Run, gate: Gate) -> Iterator[tuple[str, str]]:
    doc, policy = its_run.doc, gate.doc.policy
    yield "gate", f"{gate.id} ({gate.doc.kind}, {gate.status})"
    yield "run", f"{doc.id} ({its_run.status})"
    yield "host", doc.host
    yield from (
        (name, text) for name, text in (("title", doc.title), ("external id", doc.external_id)) if text
    )
    yield "call", f"{gate.doc.tool_name} {gate.doc.tool_call_id}"
    yield "deadline", iso(gate.deadline)
    if gate.doc.risk:
        yield "risk", gate.doc.risk
    if gate.doc.reason:
        yield "reason", gate.doc.reason
    for card in its_run.cards:
        if gate.doc.index in card.gates:
            yield "card", f"{card.channel} {card.ts}"
    quorum = f", {policy.quorum} of them" if policy.quorum > 1 else ""
    yield "may decide", f"{', '.join(policy.deciders)}{quorum}"
    for vote in gate.votes:
        yield "said", f"{vote.action} by {speaker(vote.by)} at {iso(vote.at)}"
    if gate.decision:
        yield "decision", _decided(gate.decision)
    if gate.decision and gate.decision.values is not None:
        yield "values", json.dumps(gate.decision.values)


def _decided(decision: Decision) -> str:
    who = ", ".join(map(speaker, decision.by)) or "nobody"
    word = decision.comment or decision.detail
    said = f": {word}" if word else ""
    return f"{decision.outcome} by {who} at {iso(decision.at)} from {decision.via}{said}"


@gates.command()
@click.argument("gate_id", metavar="ID")
@click.option("--reason", help="Said to the agent, on the card and in the audit.")
@set_option
def cancel(gate_id: str, reason: str | None, overrides: tuple[str, ...]) -> None:
    """Settle one gate, or all that is pending in a run, as cancelled."""
    run(_cancel(gate_id, reason, overrides))


async def _cancel(gate_id: str, reason: str | None, overrides: tuple[str, ...]) -> None:
    async with _engine(overrides) as engine:
        if gate_id.startswith("run_"):
            its_run = await engine.cancel(gate_id, reason, by=CLI, via="api")
            click.echo(f"{its_run.id} is {its_run.status}.")
            return
        its_run, gate = await engine.gate(gate_id)
        index = gate.doc.index
        its_run = await engine.cancel(its_run.id, reason, by=CLI, via="api", index=index)
        click.echo(_state(its_run.gates[index]))


@gates.command()
@click.argument("gate_id", metavar="ID")
@click.argument("action", type=click.Choice([action.value for action in Action]))
@click.option("--values", help="The answer as JSON, or @FILE that holds it.")
@click.option("--comment", help="A reason, or a word to go with it.")
@set_option
def decide(
    gate_id: str, action: str, values: str | None, comment: str | None, overrides: tuple[str, ...]
) -> None:
    """Settle one gate as the key `cli`, which its policy has to name: `key:cli` (or, for a question, `anyone`)."""
    run(_decide(gate_id, Action(action), values, comment, overrides))


async def _decide(
    gate_id: str, action: Action, values: str | None, comment: str | None, overrides: tuple[str, ...]
) -> None:
    given = _json(values) if values is not None else None
    async with _engine(overrides) as engine:
        _, gate = await engine.gate(gate_id)
        its_run = await engine.decide(
            gate_id, action, by=CLI, via="api", values=given, comment=comment, digest=gate.doc.args_digest
        )
    click.echo(_state(its_run.gates[gate.doc.index]))


def _state(gate: Gate) -> str:
    if not gate.pending:
        return f"{gate.id} is {gate.status}."
    approved = sum(vote.action is Action.APPROVE for vote in gate.votes)
    denied = len(gate.votes) - approved
    policy = gate.doc.policy
    return f"{gate.id} is pending: {approved} of {policy.quorum} approve, {denied} of {policy.reject_quorum} reject."


def _json(text: str) -> Any:
    where = "--values"
    if text.startswith("@"):
        where, path = text, Path(text[1:])
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"--values: cannot read {str(path)!r} ({reason})") from None
    try:
        return strict_json(text)
    except JsonError as error:
        raise SettingsError(f"{where}: {error}; wanted JSON") from None


@contextlib.asynccontextmanager
async def _engine(overrides: tuple[str, ...]) -> AsyncIterator[ResumeEngine]:
    async with engine_of(load_settings(pairs(overrides))) as engine:
        try:
            yield engine
        except NotFound as error:
            raise NotFound(f"{error.detail} `askgate gates list --status any` names them all.") from None
