"""`askgate gates`: the slash command's twin for a shell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError

from bot.commands.shell import one_line, pairs, run, set_option, show_table
from bot.commands.store import CLI, engine_of
from core.api.views import GateDetail, GateItem, written
from core.clock import iso
from core.durations import seconds
from core.engine import ResumeEngine
from core.errors import NotFound
from core.gates import Action, Decision, Gate, Kind, Outcome, speaker
from core.policy import Principal
from core.runs import Run
from core.settings import SettingsError, load_settings
from core.strictjson import JsonError, strict_json

ANY: Final = "any"
STATUSES: Final = ("pending", *(outcome.value for outcome in Outcome), ANY)
_PRINCIPAL: Final[TypeAdapter[str]] = TypeAdapter(Principal)
COLUMNS: Final = ("gate", "status", "kind", "deadline", "host", "what")


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """A time such as `90s`, `2h` or `1h30m`, in seconds."""
    try:
        return seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _principals(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no principal."""
    for text in value:
        try:
            _PRINCIPAL.validate_python(text)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise click.BadParameter(f"{text!r}: {message}") from None
    return value


@click.group()
def gates() -> None:
    """List, show, settle, amend and cancel gates, by the store alone."""


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
    """What is asked, in a few words: the first question, the title of a form or a link, else the tool."""
    if gate.doc.kind is Kind.QUESTION:
        return gate.asks.questions[0].question
    titled = gate.doc.form or gate.doc.link
    return (titled.title if titled else "") or gate.doc.tool_name


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
    for name, value in _bodies(gate):
        # JSON with everything but ASCII written as escapes: nothing in it can move a cursor
        click.echo(f"{name:<12} {json.dumps(value, indent=2)}")


def _bodies(gate: Gate) -> Iterator[tuple[str, Any]]:
    """What a person decides on, as JSON."""
    doc = gate.doc
    if doc.form:
        yield "form", doc.form.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if doc.link:
        yield "link", doc.link.model_dump(mode="json", exclude_defaults=True)
    yield "arguments", doc.args if gate.edited is None else gate.edited
    if changes := [change for edit in gate.edits for change in edit.diff]:
        yield "changes", changes
    for name, schema in (("answer fits", doc.answer_schema), ("edits fit", doc.args_schema)):
        if schema is not None:
            yield name, schema


def _facts(its_run: Run, gate: Gate) -> Iterator[tuple[str, str]]:
    doc, policy = its_run.doc, gate.policy
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
        if gate.doc.index in card.gates and card.ts:
            yield "card", f"{card.channel} {card.ts}"
    quorum = f", {policy.quorum} of them" if policy.quorum > 1 else ""
    yield "may decide", f"{', '.join(policy.deciders)}{quorum}"
    if gate.pending:
        yield "offered", ", ".join(gate.doc.offered)
    for text in gate.doc.saves:
        yield "saves", text
    for edit in gate.edits:
        yield "edited", f"by {speaker(edit.by)} at {iso(edit.at)}"
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
    """Settle one gate as the key `cli`, which its policy has to name: `key:cli` (or, for a call, `anyone`).

    The values are an answer, the values of a form by their names, or `{"override_args": {…}}` with an approve.
    """
    run(_decide(gate_id, Action(action), values, comment, overrides))


async def _decide(
    gate_id: str, action: Action, values: str | None, comment: str | None, overrides: tuple[str, ...]
) -> None:
    given = _json(values) if values is not None else None
    async with _engine(overrides) as engine:
        _, gate = await engine.gate(gate_id)
        its_run = await engine.decide(
            gate_id, action, by=CLI, via="api", values=given, comment=comment, digest=gate.digest
        )
    click.echo(_state(its_run.gates[gate.doc.index]))


@gates.command()
@click.argument("gate_id", metavar="ID")
@click.argument("by_how_much", metavar="TIME", callback=_seconds)
@set_option
def extend(gate_id: str, by_how_much: int, overrides: tuple[str, ...]) -> None:
    """Put a gate's deadline off by a time such as 90s, 30m, 2h, 1d or 1h30m; never past 30 days in all."""
    run(_extend(gate_id, by_how_much, overrides))


async def _extend(gate_id: str, by_how_much: int, overrides: tuple[str, ...]) -> None:
    async with _engine(overrides) as engine:
        its_run = await engine.amendments.extend(gate_id, by_how_much, by=CLI, via="api")
        _, gate = await engine.gate(gate_id)
    click.echo(f"{gate.id} is open until {iso(its_run.gates[gate.doc.index].deadline)}.")


@gates.command()
@click.argument("gate_id", metavar="ID")
@click.argument("principals", metavar="PRINCIPAL...", nargs=-1, required=True, callback=_principals)
@set_option
def reassign(gate_id: str, principals: tuple[str, ...], overrides: tuple[str, ...]) -> None:
    """Let others decide a gate, instead of those who might so far: U1, T2:U9, S1, channel, anyone, key:NAME."""
    run(_reassign(gate_id, principals, overrides))


async def _reassign(gate_id: str, principals: tuple[str, ...], overrides: tuple[str, ...]) -> None:
    async with _engine(overrides) as engine:
        await engine.amendments.reassign(gate_id, principals, by=CLI, via="api")
        _, gate = await engine.gate(gate_id)
    click.echo(f"{gate.id} may be decided by {', '.join(gate.policy.deciders)}.")


def _state(gate: Gate) -> str:
    if not gate.pending:
        return f"{gate.id} is {gate.status}."
    approved = sum(vote.action.approves for vote in gate.votes)
    denied = len(gate.votes) - approved
    policy = gate.policy
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
