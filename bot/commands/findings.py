"""What a check found: fine, a fault with what to do about it, or something that cannot be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import click

from bot.commands.shell import one_line

State = Literal["ok", "fault", "unknown"]

_SHOWN: Final[dict[State, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "fault": ("FAULT", "red"),
    "unknown": ("?", "yellow"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's. ``mend`` says what to do; a fault has one."""

    state: State
    what: str
    said: str
    mend: str = ""

    def show(self) -> None:
        """Print it, in colour on a terminal."""
        word, colour = _SHOWN[self.state]
        mend = f" → {self.mend}" if self.mend else ""
        click.echo(f"{click.style(f'{word:<5}', fg=colour)}  {self.what:<11} {one_line(self.said + mend)}")


def ok(what: str, said: str) -> Finding:
    return Finding("ok", what, said)


def fault(what: str, said: str, mend: str) -> Finding:
    return Finding("fault", what, said, mend)


def unknown(what: str, said: str, mend: str = "") -> Finding:
    return Finding("unknown", what, f"cannot tell: {said}", mend)
