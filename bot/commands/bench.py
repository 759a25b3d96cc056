"""`askgate bench`: the benchmarks, which are kept with the tests, of the source that this askgate is run from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import click

import bot

SOURCE: Final = Path(bot.__file__).parents[1]

NO_SOURCE: Final = (
    "askgate: bench: the benchmarks are in the source of askgate, not in what is installed. In a checkout, with"
    " `pip install -e '.[embedded,test]'`, `askgate bench` runs them."
)


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--full] [--only NAME…]")
def bench(words: tuple[str, ...]) -> None:
    """Measure askgate on this machine, in a checkout of its source: one table, and exit 1 if a bound is not kept."""
    if not (SOURCE / "tests" / "bench" / "__main__.py").is_file():
        click.echo(NO_SOURCE, err=True)
        raise SystemExit(2)
    command = [sys.executable, "-m", "tests.bench", *words]
    raise SystemExit(subprocess.run(command, cwd=SOURCE, check=False).returncode)  # noqa: S603  # our own module
