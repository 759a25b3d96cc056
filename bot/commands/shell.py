"""What the shell commands share: settings from `--set`, errors as one line, tables, text that no terminal obeys."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bot.cards.text import visible
from core.embedded import EmbeddedError
from core.errors import AskgateError, StoreMismatch, StoreUnavailable
from core.settings import SettingsError

F = TypeVar("F", bound=Callable[..., Any])

_CANNOT_START = (SettingsError, EmbeddedError, StoreMismatch, StoreUnavailable)

set_option: Callable[[F], F] = click.option(
    "--set", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting, over the environment."
)
"""The option `--set`; a command gets it as ``overrides``."""


def pairs(overrides: Iterable[str]) -> dict[str, str]:
    """What `--set` gave, by name. Raises SettingsError."""
    found = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f'--set: got "{name}"; wanted NAME=VALUE')
        found[name] = value
    return found


def run(work: Awaitable[None]) -> None:
    """Do a command's work. What askgate raises is one line on standard error.

    Exit code 2: a setting is wrong or the store is away. 1: it was refused.
    """
    asyncio.run(_by_line(work))


async def _by_line(work: Awaitable[None]) -> None:
    try:
        await work
    except AskgateError as error:
        click.echo(f"askgate: {one_line(error.detail)}", err=True)
        raise SystemExit(2 if isinstance(error, _CANNOT_START) else 1) from None


def one_line(text: str) -> str:
    """Text from anywhere on one line, with what a terminal would obey written out."""
    return visible(" ".join(text.split()))


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows as a table on a terminal, else one line a row with tabs between, for other programs.

    The first column is what people copy: it is never cut.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            click.echo("\t".join(row))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(columns[0], no_wrap=True, min_width=max(len(row[0]) for row in [columns, *cells]))
    for name in columns[1:]:
        table.add_column(name)
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)
