"""`askgate audit`: the append-only record, for whoever keeps it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable
from datetime import UTC, datetime
from pathlib import Path

import click

from bot.commands.shell import pairs, run, set_option, show_table
from bot.commands.store import engine_of
from core.audit import Chain, Chains, Event, Position
from core.clock import iso
from core.engine import ResumeEngine
from core.errors import NotFound
from core.settings import SettingsError, load_settings

COLUMNS = ("partition", "events", "from", "to", "digest of the newest")


@click.group()
def audit() -> None:
    """The append-only record of everything that happened to a gate, refusals included."""


@audit.command()
@click.option("--run", "run_id", metavar="ID", help="Only this run's events.")
@click.option("--since", metavar="ISO", help="Only what happened then or later, such as 2026-01-31T08:00Z.")
@set_option
def export(run_id: str | None, since: str | None, overrides: tuple[str, ...]) -> None:
    """The events as JSON, one a line, oldest first, as the HTTP API has them."""
    run(_export(run_id, since, overrides))


async def _export(run_id: str | None, since: str | None, overrides: tuple[str, ...]) -> None:
    first_ms = _ms(since) if since else 0
    async with engine_of(load_settings(pairs(overrides))) as engine:
        if run_id is not None:
            await _check_known(engine, run_id)
        async with contextlib.aclosing(_events(engine, run_id, first_ms)) as events:
            async for event in events:
                click.echo(event.exported())


async def _check_known(engine: ResumeEngine, run_id: str) -> None:
    """Raises NotFound for a run that there is nothing of, neither itself nor its events."""
    if await engine.store.read(run_id):
        return
    async with contextlib.aclosing(engine.store.audit.of_run(run_id)) as events:
        if await anext(events, None) is None:
            raise NotFound(f"There is no run {run_id}.")


def _events(engine: ResumeEngine, run_id: str | None, first_ms: int) -> AsyncGenerator[Event]:
    after = Position(first_ms, 0, -1) if first_ms else None  # before all that stands in that ms
    log = engine.store.audit
    return log.events(after) if run_id is None else log.of_run(run_id, after)


def _ms(text: str) -> int:
    """A moment in ISO 8601 as ms since 1970; without an offset it is UTC. Raises SettingsError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"--since: got {text!r}; wanted a moment such as 2026-01-31T08:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000))


@audit.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--stored", is_flag=True, help="With FILE: look also whether the store goes on from it.")
@set_option
def verify(file: Path | None, stored: bool, overrides: tuple[str, ...]) -> None:
    """Follow the chain of digests through the store, or through a whole export in FILE.

    Exit code 1, and the first event that does not belong there, if anything was changed, removed or put in.
    """
    if stored and file is None:
        raise click.UsageError("--stored goes with FILE")
    run(_verify(file, stored, overrides))


async def _verify(file: Path | None, stored: bool, overrides: tuple[str, ...]) -> None:
    if file is None:
        async with engine_of(load_settings(pairs(overrides))) as engine:
            partitions = range(engine.store.partitions)
            _tell([await engine.store.audit.verify(partition) for partition in partitions])
        return
    chains = [chain for _, chain in sorted(_read(file).found.items())]
    if stored:
        async with engine_of(load_settings(pairs(overrides))) as engine:
            for chain in chains:
                await engine.store.audit.verify(chain.partition)
                if not await engine.store.audit.compare(chain):
                    click.echo(
                        f"Partition {chain.partition}: the store has trimmed {chain.last} since.", err=True
                    )
    _tell(chains)


def _read(file: Path) -> Chains:
    """The chains of an export. Raises ChainBroken, or SettingsError for a file that cannot be read."""
    chains = Chains()
    try:
        with file.open(encoding="utf-8", newline="\n") as lines:
            chains.follow(lines)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"cannot read {str(file)!r} ({reason})") from None
    return chains


def _tell(chains: Iterable[Chain]) -> None:
    """One row a partition. Kept somewhere else, the newest digest anchors all before it."""
    rows = [
        (str(chain.partition), str(chain.count), iso(chain.first.ms), iso(chain.last.ms), chain.link or "")
        for chain in chains
        if chain.first and chain.last
    ]
    show_table(COLUMNS, rows)
    events = sum(chain.count for chain in chains)
    click.echo(f"{events} events in {len(rows)} partitions hold together.", err=True)
