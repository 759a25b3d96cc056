"""Kills askgate before any host, at any moment, and has the next process go on: nothing is lost, or answered twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

from core.engine import ResumeEngine
from core.gates import Action, Gate
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.killed import Ahead, live
from tests.stores import engine_on

PATIENCE_S = 60
LOOK_S = 0.05
TIMEOUT_S = 60
"""How long people have. What nobody says anything to is not waited for: the clock is put forward."""
ENDED = (RunStatus.RESUMED, RunStatus.LOST, RunStatus.FAILED)
_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload(
    ["tests.interop.killed"]
)  # each process is a fork of one that has imported everything


@dataclass(frozen=True)
class Word:
    """What somebody says to a gate."""

    action: Action
    values: Any = None
    comment: str | None = None


@dataclass(frozen=True)
class Ask:
    """One thing that an agent asks, and what comes of it.

    ``asked`` is in the host's own form; ``mark`` a text that stands in this and in nothing else that is asked; ``word``
    what somebody says to it, or None if nobody does until its time is over; ``hears`` what the agent is to hear, once.
    """

    mark: str
    asked: Any
    word: Word | None
    hears: Any


class Victim(Protocol):
    """A host whose askgate is killed. What a handle is, it knows itself.

    ``has_keys``: it knows a resume again that comes twice. ``agents``: what each of its agents asks.
    """

    has_keys: bool
    agents: Sequence[Sequence[Ask]]

    @property
    def block(self) -> dict[str, Any]:
        """Its block of settings, with its name."""
        ...

    async def begin(self, asks: Sequence[Ask]) -> str:
        """Have an agent ask all of this. Returns a handle."""
        ...

    async def heard(self, handle: str) -> list[Any]:
        """All that the agent heard, as often as it did, in the order in which it asked. Waits until it has gone on."""
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


class Scene:
    """Agents that ask, people who decide, and askgate, which dies in between. It knows nothing of kinds."""

    def __init__(self, engine: ResumeEngine, clock: Ahead, victim: Victim, before: set[str]) -> None:
        """``before``: the runs of earlier scenes."""
        self._engine = engine
        self._clock = clock
        self._victim = victim
        self._before = before
        self._asks = [ask for asks in victim.agents for ask in asks]

    async def runs(self) -> list[Run]:
        return [run for run in await runs_of(self._engine, self._victim) if run.id not in self._before]

    async def go_on(self) -> bool:
        """Say what people say to what is open. Returns whether all that was asked has been found, and has ended."""
        runs = await self.runs()
        pending = [gate for run in runs for gate in run.gates if gate.pending]
        said = [(gate, word) for gate in pending if (word := self.ask_of(gate).word)]
        for gate, word in said:
            await self._engine.decide(
                gate.id, word.action, values=word.values, comment=word.comment, by=ANA, via="slack"
            )
        left = [run for run in runs if run.status not in ENDED]
        complete = sum(len(run.gates) for run in runs) >= len(self._asks)
        if complete and left and not said and all(run.open for run in left):
            self._clock.put_forward(1000 * TIMEOUT_S)  # for what nobody says anything to
        return complete and not left

    def ask_of(self, gate: Gate) -> Ask:
        shown = gate.doc.model_dump_json()
        [ask] = [ask for ask in self._asks if ask.mark in shown]
        return ask


async def scene(
    engine: ResumeEngine, clock: Ahead, url: str, victim: Victim, doom: int | None, met: Path
) -> int:
    """Agents ask, people decide, and askgate dies in between. Returns how many moments all its processes had."""
    stage = Scene(engine, clock, victim, {run.id for run in await runs_of(engine, victim)})
    begun = [(await victim.begin(asks), asks) for asks in victim.agents]
    life = Life(live, (url, victim.block, str(clock.file)), doom, met)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await stage.go_on():
                life.keep_alive()
                await asyncio.sleep(LOOK_S)
            heard = [await victim.heard(handle) for handle, _ in begun]
    finally:
        moments = life.end()
    assert life.struck == (doom is not None and doom <= len(moments)), f"doom {doom} of {len(moments)}"
    where = f"doom {doom}: {moments[doom - 1] if doom and doom <= len(moments) else 'never'}"
    assert heard == [[ask.hears for ask in asks] for _, asks in begun], where
    runs = await stage.runs()
    opened = [stage.ask_of(gate).mark for run in runs for gate in run.gates]
    assert sorted(opened) == sorted(ask.mark for _, asks in begun for ask in asks), where
    for run in runs:
        # without keys nobody can tell whose answer it was, when a reply was lost; but the host has heard one
        excused = life.struck and not victim.has_keys and run.status is RunStatus.LOST
        assert run.status is RunStatus.RESUMED or excused, f"{where}: {run.status} {run.error}"
    return len(moments)


async def runs_of(engine: ResumeEngine, victim: Victim) -> list[Run]:
    found = {run.id: run async for _, run, _ in engine.gates(only_open=False)}
    return [run for run in found.values() if run.doc.host == victim.block["name"]]


async def kill(
    url: str, victim: Victim, *, seed: int, times: int, folder: Path, moments: int | None = None
) -> None:
    """So many kills, each in a scene of its own and at another moment.

    ``moments``: about how many a scene has; None: one without a death tells.
    """
    dice, clock = random.Random(seed), Ahead(folder / "ahead")
    async with engine_on(url, clock=clock) as engine:
        if moments is None:
            moments = await scene(engine, clock, url, victim, None, folder / "moments")
        struck: set[int] = set()
        while len(struck) < times:
            # a scene may have some less than another, and each is to strike
            doom = dice.choice([moment for moment in range(1, moments * 3 // 4 + 1) if moment not in struck])
            met = await scene(engine, clock, url, victim, doom, folder / f"moments-{doom}")
            if doom <= met:
                struck.add(doom)
            else:
                moments = met
