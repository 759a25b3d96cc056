"""Calls askgate's shell commands as a shell would, with nothing set but what a test says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Shell:
    """A shell with these settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = dict(settings)

    async def __call__(self, *words: str) -> Said:
        """Run `askgate <words>` in a thread of its own, since it has its own event loop."""
        result = await asyncio.to_thread(CliRunner().invoke, main, words, env=self.settings)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)


def bare(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No setting in the environment, no `.env` file."""
    for name in os.environ:
        if name.upper().startswith(("ASKGATE_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
