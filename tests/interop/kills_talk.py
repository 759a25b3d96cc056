"""Kills askgate at any moment of a conversation in a thread: what is said, what the agent asks, and its reply."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from operator import contains
from pathlib import Path

from core.conversations import Stage, Where
from core.engine import ResumeEngine
from tests.acceptance.world import Json, World, said, world_in
from tests.interop.between import Between
from tests.interop.conftest import Motus, free_port
from tests.interop.killed import converse
from tests.interop.kills import LOOK_S, PATIENCE_S, Life, around
from tests.interop.victims import WAYS, question

POINTS = re.compile("(script (talk|suspend|card|decide|start_resume|end_resume)|out (POST|DELETE)|slack )")
"""What changes something in the store, at the host or in Slack."""
SAYING = around(
    *(f"{what}#{n}" for what in ("script talk", "out POST", "slack chat.postMessage") for n in (1, 2))
)
ASKING = around(
    *(f"script {what}#1" for what in ("suspend", "card", "decide", "start_resume", "end_resume")),
    "out POST#4",
)
"""The points of those that every scene comes by: in what is said, and in what the agent asks."""
WAY = WAYS[0]
SLACK_TRIES_S = (0.2, *[1.0] * 20)
"""Slack brings an event again after a minute, and after five; here sooner, and until somebody takes it."""


class Thread:
    """One conversation, in which askgate dies again and again."""

    def __init__(self, world: World, engine: ResumeEngine, between: Between, folder: Path) -> None:
        self._world = world
        self._engine = engine
        self._between = between
        self._folder = folder
        self._root: Json = {}
        self._said = 0
        self._told: list[str] = []
        self._taken: set[str] = set()

    async def scene(self, doom: str | None) -> tuple[bool, list[str]]:
        """See `Stage`. A turn that fails, and one in which the agent asks something and counts what it knows."""
        met, number = self._folder / f"met-{self._said}", self._said
        life = Life(converse, (self._settings(),), doom, met)
        way = f"Way {number}?"
        asked = {"type": "user_input", "questions": [question(way)]}
        heard = json.dumps([{"answers": {way: WAY}, "selections": {way: [WAY]}}])
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._turn(life, {"raise": f"number {number}"}, f"RuntimeError: number {number}")
                await self._turn(
                    life,
                    {"count": number, "in_turn": [asked]},
                    f"{way}\n→ {WAY}\n",
                    f"{number} before {heard}",
                )
        except TimeoutError as error:
            raise AssertionError(f"{doom}: not {self._told}, but {self._shown()}") from error
        finally:
            points = life.end()
        return life.struck, [point for point in points if POINTS.match(point)]

    async def _turn(self, life: Life, wanted: Json, *told: str) -> None:
        """Say something, and wait until all is told, each once, and nothing is left to do."""
        ana, text = self._world.ana, f"@askgate {json.dumps(wanted)}"
        if not self._root:
            self._root = said(await ana.say(self._world.ops, text))
        else:
            await ana.say(self._world.ops, text, self._root["ts"])
        self._said += 1
        self._told += told
        while not (await self._over() and self._all_told()):
            life.keep_alive()
            await self._answer()
            await asyncio.sleep(LOOK_S)
        sent = [asked for asked in self._between.seen if asked.endswith("/messages") and "POST" in asked]
        assert len(sent) == self._said, f"{life.doom}: {self._said} messages were sent {len(sent)} times"

    async def _answer(self) -> None:
        """Somebody clicks on the card of what waits for an answer, once more if nobody was there to take the click."""
        async for _, _, gate in self._engine.gates(only_open=True):
            for card in self._posted():
                if gate.asks.questions[0].question in self._world.slack.text_of(card):
                    assert gate.id not in self._taken, "a click that was taken is asked for again"
                    if (await self._world.ben.click(WAY, message=card)).ok:
                        self._taken.add(gate.id)

    async def _over(self) -> bool:
        team, channel = self._world.slack.world.channels[self._world.ops].team, self._world.ops
        talk = await self._engine.talks.read(Where(team, channel, self._root["ts"]).id)
        return talk is not None and talk.stage is Stage.IDLE and not talk.drop and talk.turn == self._said

    def _all_told(self) -> bool:
        shown = self._shown()
        in_thread = all(message.get("thread_ts") == self._root["ts"] for message in self._posted())
        return len(shown) == len(self._told) and in_thread and all(map(contains, shown, self._told))

    def _shown(self) -> list[str]:
        return list(map(self._world.slack.text_of, self._posted()))

    def _posted(self) -> list[Json]:
        bot = self._world.slack.app.bot_user
        return [m for m in self._world.slack.messages(self._world.ops) if m["user"] == bot]

    def _settings(self) -> dict[str, str]:
        hosts, port = self._folder / "hosts.toml", free_port()
        hosts.write_text(f'[motus.test]\nurl = "{self._between.url}"\ntalk = true\n')
        self._world.slack.app.request_url = f"http://127.0.0.1:{port}/slack/events"
        return self._world.settings(
            ASKGATE_HOSTS=str(hosts), ASKGATE_BIND=f"127.0.0.1:{port}", ASKGATE_PARTITIONS="4"
        )


@asynccontextmanager
async def thread(engine: ResumeEngine, motus: Motus, redis_url: str, folder: Path) -> AsyncIterator[Thread]:
    async with Between(motus.url).serving() as between, world_in("http", redis_url, folder) as world:
        world.slack.courier.retry_delays = SLACK_TRIES_S
        yield Thread(world, engine, between, folder)
