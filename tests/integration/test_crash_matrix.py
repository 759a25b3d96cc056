"""The crash matrix: SIGKILL just before and just after every call that askgate makes. Its promises hold all the same.

A failure names its kill; `pytest tests/integration/test_crash_matrix.py --crash-kill "…"` plays that one again.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from tests.crash import truths
from tests.crash.crowd import Crowd
from tests.crash.lives import Lives
from tests.crash.scenes import SCENES
from tests.crash.stage import Play, Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAY_S = 60
STAGES = ("http", "http", "socket")
"""How Slack reaches askgate on each of the stages that are played on at once."""
SAMPLE, SERVER_SAMPLE = 35, 5
"""How many kills any run of the tests does: of askgate, and of the server."""
WHOLE, SERVER_WHOLE, SOCKET = 200, 60, 150
"""The long form: at least so many kills, so many of the server, and so many by Socket Mode."""
SEP = " | "


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: on which kind of stage, in which scene, at which points (the second in the life after the first)."""

    mode: str
    scene: str
    points: tuple[str, ...]
    server: bool = False

    def __str__(self) -> str:
        return SEP.join([self.mode, self.scene, "server" if self.server else "askgate", *self.points])

    def of_server(self) -> Kill:
        return replace(self, server=True)

    @classmethod
    def read(cls, text: str) -> Kill:
        mode, scene, what, *points = text.split(SEP)
        return cls(mode, scene, tuple(points), what == "server")


async def play(stage: Stage, scene: str, points: Sequence[str] = (), *, server: bool = False) -> Play:
    """Play a scene with these strikes in it, and look whether all is as it must be."""
    found = stage.rehearse(scene)
    try:
        async with asyncio.timeout(PLAY_S), asyncio.TaskGroup() as group:
            group.create_task(stage.live(found, points, server=server))
            for ask in found.asks:
                group.create_task(Crowd(stage, found, ask).act())
        await truths.hold(stage, found)
    except Exception as error:
        error.add_note(found.said())
        raise
    return found


class Matrix:
    """The stages, and what became of the kills on them."""

    def __init__(self, stages: Sequence[Stage], seed: int) -> None:
        self._stages = stages
        self._seed = seed
        self._random = random.Random(seed)
        self._places: dict[tuple[str, str], list[str]] = {}
        self.done: list[Kill] = []
        self.failed: dict[Kill, str] = {}

    async def points(self, *modes: str) -> list[Kill]:
        """Every point of every scene, in an order in which each kind of call comes up as often as any other."""
        await self._rehearse()
        by_name: defaultdict[str, list[Kill]] = defaultdict(list)
        for (mode, scene), places in self._places.items():
            for place in places if mode in (modes or STAGES) else ():
                for point in (f"{place} before", f"{place} after"):
                    by_name[place.partition("#")[0]].append(Kill(mode, scene, (point,)))
        queues = [by_name[name] for name in sorted(by_name)]
        for queue in queues:
            queue.sort(key=str)
            self._random.shuffle(queue)
        self._random.shuffle(queues)
        turns = range(max(map(len, queues)))
        return [queue[turn] for turn in turns for queue in queues if turn < len(queue)]

    async def _rehearse(self) -> None:
        """Learn, once, which places each scene comes by on each kind of stage."""
        if self._places:
            return

        async def learn(stage: Stage) -> None:
            for scene in SCENES:
                self._places[stage.mode, scene] = (await play(stage, scene)).met

        async with asyncio.TaskGroup() as group:
            for stage in {stage.mode: stage for stage in self._stages}.values():
                group.create_task(learn(stage))

    def twice(self, kills: Sequence[Kill]) -> list[Kill]:
        """The kills, each fourth with a second one in the life after it."""
        found = list(kills)
        for number in range(0, len(found), 4):
            kill = found[number]
            second = self._random.choice([k for k in kills if (k.mode, k.scene) == (kill.mode, kill.scene)])
            found[number] = replace(kill, points=kill.points + second.points)
        return found

    async def perform(self, kills: Sequence[Kill], *, most: int | None = None) -> None:
        """Do the kills, up to ``most`` that struck. A point that does not come up this time counts for nothing."""
        self.done, self.failed = [], {}
        waiting = {mode: deque(kill for kill in kills if kill.mode == mode) for mode in STAGES}

        async def work(stage: Stage) -> None:
            while waiting[stage.mode] and (most is None or len(self.done) + len(self.failed) < most):
                await self._one(stage, waiting[stage.mode].popleft())

        async with asyncio.TaskGroup() as group:
            for stage in self._stages:
                group.create_task(work(stage))

    async def _one(self, stage: Stage, kill: Kill) -> None:
        try:
            played = await play(stage, kill.scene, kill.points, server=kill.server)
        except Exception:  # noqa: BLE001  # told together with the others
            self.failed[kill] = traceback.format_exc()
            print(f"--crash-kill {str(kill)!r} failed", flush=True)  # the long form goes on for an hour
        else:
            self.done += [kill] if played.struck else []

    def report(self, wanted: int) -> None:
        """Fail with every kill after which something was not true, or if there were too few."""
        kinds = Counter(kill.points[0].partition("#")[0] for kill in self.done)
        print(
            f"--crash-seed {self._seed}: {len(self.done)} kills;",
            *(f"{n} {name}," for name, n in kinds.items()),
        )
        why = "\n\n".join(f"--crash-kill {str(kill)!r}\n{error}" for kill, error in self.failed.items())
        assert not self.failed, f"--crash-seed {self._seed}\n{why}"
        assert len(self.done) >= wanted


@pytest.fixture(scope="module")
def seed(request: pytest.FixtureRequest) -> int:
    found: int = request.config.getoption("--crash-seed")
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def matrix(tmp_path_factory: pytest.TempPathFactory, seed: int) -> AsyncIterator[Matrix]:
    folder = tmp_path_factory.mktemp("crash")
    async with Lives.nursed() as lives, AsyncExitStack() as stack:
        stages = [
            await stack.enter_async_context(Stage.set_up(lives, mode, folder / f"{number}-{mode}"))
            for number, mode in enumerate(STAGES)
        ]
        yield Matrix(stages, seed)


@pytest.fixture
def chosen(request: pytest.FixtureRequest) -> list[Kill]:
    return [Kill.read(text) for text in request.config.getoption("--crash-kill")]


@pytest.mark.timeout(300)
async def test_what_is_promised_holds_after_a_sample_of_kills(matrix: Matrix, chosen: list[Kill]) -> None:
    await matrix.perform(chosen or matrix.twice(await matrix.points()), most=SAMPLE)
    matrix.report(SAMPLE if not chosen else 0)


@pytest.mark.timeout(200)
async def test_what_is_promised_holds_after_kills_of_the_server(matrix: Matrix, chosen: list[Kill]) -> None:
    if chosen:
        pytest.skip("other kills were chosen")
    await matrix.perform([kill.of_server() for kill in await matrix.points("http")], most=SERVER_SAMPLE)
    matrix.report(SERVER_SAMPLE)


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
async def test_what_is_promised_holds_after_a_kill_at_every_point(matrix: Matrix) -> None:
    await matrix.perform(await matrix.points("http"))
    await matrix.perform(matrix.twice(await matrix.points("socket")), most=SOCKET)
    matrix.report(WHOLE)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_what_is_promised_holds_after_many_kills_of_the_server(matrix: Matrix) -> None:
    await matrix.perform([kill.of_server() for kill in await matrix.points("http")], most=SERVER_WHOLE)
    matrix.report(SERVER_WHOLE)
