"""Kills askgate before any host, at any moment, and has the next process go on: nothing is lost, or answered twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

from core.engine import ResumeEngine
from core.gates import Action
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.killed import live

PATIENCE_S = 60
LOOK_S = 0.05
_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload(
    ["tests.interop.killed"]
)  # each process is a fork of one that has imported everything


class Victim(Protocol):
    """A host whose askgate is killed. What a handle is, it knows itself.

    ``has_keys``: it knows a resume again that comes twice.
    """

    has_keys: bool

    @property
    def block(self) -> dict[str, Any]:
        """Its block of settings, with its name."""
        ...

    async def begin(self) -> str:
        """Have an agent wait for one approval. Returns a handle."""
        ...

    async def heard(self, handle: str) -> list[bool]:
        """All that the agent heard, when it has gone on: whether that was a yes, each time."""
        ...


@dataclass
class Life:
    """One scene: the processes that lived in it, each of which does ``live``. The first is to die at its ``doom``."""

    live: Callable[..., None]
    args: tuple[Any, ...]
    doom: int | str | None
    met: Path
    born: list[ForkServerProcess] = field(default_factory=list)
    struck: bool = False

    def keep_alive(self) -> None:
        """Start a process if none lives."""
        if not self.born or not self.born[-1].is_alive():
            doom = None if self.born else self.doom
            process = _fork.Process(target=self.live, args=(*self.args, doom, str(self.met)), daemon=True)
            process.start()
            self.born.append(process)

    def end(self) -> list[str]:
        """End them all, and note whether the first died before. Returns the moments that there were."""
        self.struck = bool(self.born) and not self.born[0].is_alive()
        for process in self.born:
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
            process.join()
        return self.met.read_text().splitlines() if self.met.exists() else []


async def scene(engine: ResumeEngine, url: str, victim: Victim, doom: int | None, met: Path) -> int:
    """Two agents wait, a person approves for one and denies the other, and askgate dies in between.

    Returns how many moments there were, of all its processes.
    """
    before = {run.id for run in await runs_of(engine, victim)}
    handles = [await victim.begin(), await victim.begin()]
    life = Life(live, (url, victim.block), doom, met)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await _over(engine, victim, before, handles):
                life.keep_alive()
                await asyncio.sleep(LOOK_S)
            heard = sorted([await victim.heard(handle) for handle in handles])
    finally:
        moments = life.end()
    assert life.struck == (doom is not None and doom <= len(moments)), f"doom {doom} of {len(moments)}"
    where = f"doom {doom}: {moments[doom - 1] if doom and doom <= len(moments) else 'never'}"
    assert heard == [[False], [True]], where
    runs = [run for run in await runs_of(engine, victim) if run.id not in before]
    assert len(runs) == 2, where
    for run in runs:
        # without keys nobody can tell whose answer it was, when a reply was lost; but the host has heard one
        excused = life.struck and not victim.has_keys and run.status is RunStatus.LOST
        assert run.status is RunStatus.RESUMED or excused, where
    return len(moments)


async def _over(engine: ResumeEngine, victim: Victim, before: set[str], handles: list[str]) -> bool:
    """Decide what is pending. Whether as many runs as there are handles have ended."""
    runs = [run for run in await runs_of(engine, victim) if run.id not in before]
    for number, run in enumerate(sorted(runs, key=lambda run: run.doc.external_id or "")):
        if run.open and len(runs) == len(handles):
            action = Action.DENY if number else Action.APPROVE
            await engine.decide(run.gates[0].id, action, by=ANA, via="slack")
    return len(runs) >= len(handles) and all(
        run.status in (RunStatus.RESUMED, RunStatus.LOST, RunStatus.FAILED) for run in runs
    )


async def runs_of(engine: ResumeEngine, victim: Victim) -> list[Run]:
    found = {run.id: run async for _, run, _ in engine.gates(only_open=False)}
    return [run for run in found.values() if run.doc.host == victim.block["name"]]


async def kill(
    engine: ResumeEngine, url: str, victim: Victim, *, seed: int, times: int, folder: Path
) -> None:
    """A scene for each of so many of its moments, of which one without a death tells how many there are."""
    moments = await scene(engine, url, victim, None, folder / "moments")
    # a scene may have some less than another, and each is to strike
    for doom in random.Random(seed).sample(range(1, moments * 3 // 4 + 1), times):
        assert doom <= await scene(engine, url, victim, doom, folder / f"moments-{doom}"), "nobody died"
