"""`askgate audit`: the append-only record, for whoever keeps it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import click

from bot.commands.shell import pairs, run, set_option
from bot.commands.store import engine_of
from core.engine import ResumeEngine
from core.settings import SettingsError, load_settings


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
    async with (
        engine_of(load_settings(pairs(overrides))) as engine,
        contextlib.aclosing(_events(engine, run_id, first_ms)) as events,
    ):
        async for cursor, event in events:
            click.echo(f'{{"id":"{cursor}",{event[1:]}')


async def _events(engine: ResumeEngine, run_id: str | None, first_ms: int) -> AsyncGenerator[tuple[str, str]]:
    if run_id is None:
        # the last position of the millisecond before
        after = f"{first_ms - 1}-{10**15}-0" if first_ms else None
        async with contextlib.aclosing(engine.store.audit(after)) as events:
            async for found in events:
                yield found
        return
    await engine.run(run_id)
    for cursor, event in await engine.store.audit_of(run_id):
        if int(cursor.partition("-")[0]) >= first_ms:
            yield cursor, event


def _ms(text: str) -> int:
    """A moment in ISO 8601 as ms since 1970; without an offset it is UTC. Raises SettingsError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"--since: got {text!r}; wanted a moment such as 2026-01-31T08:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000))
