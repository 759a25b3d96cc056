"""Kills askgate before any host, at any moment, and has the next process go on: nothing is lost, or answered twice."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
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

PATIENCE_S = 120
LOOK_S = 0.05
TIMEOUT_S = 60
"""How long people have. What nobody says anything to is not waited for: the clock is put forward."""
ENDED = (RunStatus.RESUMED, RunStatus.LOST, RunStatus.FAILED)
_fork = multiprocessing.get_context("forkserver")
_fork.set_forkserver_preload(
    ["tests.interop.killed"]
)  # each process is a fork of one that has imported everything


class Stage(Protocol):
    """Where askgate dies again and again, each time in a scene of its own."""

    async def scene(self, doom: str | None) -> tuple[bool, list[str]]:
        """Play one in which askgate dies at that point, if it comes by there. Checks that nothing came of that.

        Returns whether it died, and the points that there were.
        """
        ...


async def kill(stage: Stage, *, seed: int, times: int, points: Sequence[str] = ()) -> None:
    """So many kills, each at another one of ``points``; without them a scene without a death tells what there are."""
    points = points or (await stage.scene(None))[1]
    dooms = random.Random(seed).sample(points, len(points))
    struck = 0
    while struck < times:  # one scene may come by what another does not
        struck += (await stage.scene(dooms.pop()))[0]


def around(*places: str) -> list[str]:
    return [f"{place} {when}" for place in places for when in ("before", "after")]


@dataclass
class Life:
    """One scene: the processes that lived in it, each of which does ``live``. The first is to die at its ``doom``."""

    live: Callable[..., None]
    args: tuple[Any, ...]
    doom: str | None
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
        """End them all, and check that the first died at its doom and nowhere else. Returns the points there were."""
        self.struck = bool(self.born) and not self.born[0].is_alive()
        for process in self.born:
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
            process.join()
        points = self.met.read_text().splitlines() if self.met.exists() else []
        assert self.struck == (self.doom in points), f"doom {self.doom} of {points}"
        return points


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

    ``has_keys``: it knows a resume again that comes twice. ``answered_by``: the name of the request that answers it.
    ``agents``: what each of its agents asks.
    """

    has_keys: bool
    answered_by: str
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


class Before:
    """A desk before a host, whose agents ask, and hear what people say or that nobody does. It knows no kinds."""

    def __init__(self, engine: ResumeEngine, clock: Ahead, url: str, victim: Victim) -> None:
        self._engine = engine
        self._clock = clock
        self._url = url
        self._victim = victim
        self._asks = [ask for asks in victim.agents for ask in asks]
        self._past: set[str] = set()
        often = ("script suspend", victim.answered_by, "script end_resume")
        self.certain = around(*(f"{what}#{number}" for what in often for number in (1, 2)), "script expire#1")
        """The points that every scene comes by."""

    async def scene(self, doom: str | None) -> tuple[bool, list[str]]:
        """See `Stage`. The first agent asks before askgate lives, each other one when all so far has been found."""
        handles: list[str] = []
        asked = 0
        met = self._clock.file.with_name(f"met-{len(self._past)}")
        life = Life(live, (self._url, self._victim.block, str(self._clock.file)), doom, met)
        try:
            async with asyncio.timeout(PATIENCE_S):
                for asks in self._victim.agents:
                    handles.append(await self._victim.begin(asks))
                    asked += len(asks)
                    await self._until(life, asked)
                await self._until(life, asked, ended=True)
                heard = [await self._victim.heard(handle) for handle in handles]
        finally:
            points = life.end()
        assert heard == [[ask.hears for ask in asks] for asks in self._victim.agents], doom
        await self._check_runs(life)
        return life.struck, points

    async def _until(self, life: Life, asked: int, *, ended: bool = False) -> None:
        """Let askgate live, and people say what they say, until so much has been found, or has ``ended`` too."""
        while not await self._go_on(asked, ended):
            life.keep_alive()
            await asyncio.sleep(LOOK_S)

    async def _go_on(self, asked: int, ended: bool) -> bool:
        runs = await self._runs()
        pending = [gate for run in runs for gate in run.gates if gate.pending]
        said = [(gate, word) for gate in pending if (word := self._ask_of(gate).word)]
        for gate, word in said:
            await self._engine.decide(
                gate.id, word.action, values=word.values, comment=word.comment, by=ANA, via="slack"
            )
        found = sum(len(run.gates) for run in runs) >= asked
        left = [run for run in runs if run.status not in ENDED]
        if found and ended and left and not said and all(run.open for run in left):
            self._clock.put_forward(1000 * TIMEOUT_S)  # nobody says anything to the rest
        return found and not (ended and left)

    async def _check_runs(self, life: Life) -> None:
        """Each thing was put to people once, and its run has ended as it is to."""
        runs = await self._runs()
        self._past |= {run.id for run in runs}
        found = [self._ask_of(gate).mark for run in runs for gate in run.gates]
        assert sorted(found) == sorted(ask.mark for ask in self._asks), life.doom
        for run in runs:
            # without keys nobody can tell whose answer it was, when a reply was lost; but the host has heard one
            excused = life.struck and not self._victim.has_keys and run.status is RunStatus.LOST
            assert run.status is RunStatus.RESUMED or excused, f"{life.doom}: {run.status} {run.error}"

    def _ask_of(self, gate: Gate) -> Ask:
        shown = gate.doc.model_dump_json()
        [ask] = [ask for ask in self._asks if ask.mark in shown]
        return ask

    async def _runs(self) -> list[Run]:
        """Those of this scene."""
        found = {run.id: run async for _, run, _ in self._engine.gates(only_open=False)}
        return [run for run in found.values() if run.id not in self._past]


@asynccontextmanager
async def before(victim: Victim, redis_url: str, folder: Path) -> AsyncIterator[Before]:
    clock = Ahead(folder / "ahead")
    async with engine_on(redis_url, clock=clock) as engine:
        yield Before(engine, clock, redis_url, victim)
