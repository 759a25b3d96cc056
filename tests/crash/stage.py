"""Where the crash matrix plays: a local Slack and a store that live on, and askgate's processes that do not."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from bot.sandbox import LocalSlack
from core.agenda import LEASE_MS
from core.clock import WallClock
from core.embedded import EmbeddedServer
from core.errors import StoreUnavailable
from core.store.connect import fast_client
from core.store.keys import leases
from core.store.reach import reachable
from core.store.store import Store
from tests.crash.host import API_KEY, KEY_NAME, Journal
from tests.crash.lives import Life, Lives
from tests.crash.scenes import SCENES, Ask
from tests.integration.receiver import Receiver

Json = dict[str, Any]
PARTITIONS = 2
POLL_S = 0.01
KILLED = -9
SHORT_LEASE_S = 1
LONG_LEASE_S = 60


@dataclass(slots=True)
class Play:
    """One scene, played once. ``acked``: what people did that was acknowledged, as (run, person, words).

    ``struck``: how often it was killed.
    """

    number: int
    scene: str
    asks: tuple[Ask, ...]
    folder: Path
    ids: dict[str, str] = field(default_factory=dict)
    channels: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, str] = field(default_factory=dict)
    acked: list[tuple[str, str, str]] = field(default_factory=list)
    struck: int = 0

    @property
    def host(self) -> str:
        return f"host-{self.number}"

    @property
    def pusher(self) -> str:
        """The host of runs that nobody claims, for they are pushed."""
        return f"push-{self.number}"

    @property
    def journal(self) -> Journal:
        return Journal(self.folder / "journal")

    @property
    def met(self) -> list[str]:
        """The places that the last life came by, in their order."""
        return (self.folder / "met").read_text().splitlines()

    def said(self) -> str:
        """The end of what askgate's processes logged."""
        log = self.folder / "log"
        return log.read_text()[-4000:] if log.exists() else ""

    def name(self, ask: Ask, person: str) -> str:
        """A person of this play. Each run has its own people, so that nobody has two modals open."""
        return person if person == KEY_NAME else f"{person}-{ask.name}-{self.number}"

    def id_of(self, ask: Ask, person: str) -> str:
        return self.ids[self.name(ask, person)]


class Stage:
    """One workspace on one store. Plays go over it one after the other, each with its own people and channels."""

    def __init__(
        self,
        slack: LocalSlack,
        server: EmbeddedServer,
        receiver: Receiver,
        lives: Lives,
        mode: str,
        folder: Path,
    ) -> None:
        self.slack = slack
        self.receiver = receiver
        self.mode = mode
        self.redis: Any = fast_client(server.url)
        self.store = Store(self.redis, partitions=PARTITIONS, clock=WallClock())
        self.ups = 0
        """How often something came up again: an askgate, or the store."""
        self._server = server
        self._lives = lives
        self._folder = folder
        self._plays = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def set_up(cls, lives: Lives, mode: str, folder: Path) -> AsyncIterator[Stage]:
        """``mode``: how Slack reaches askgate, `http` or `socket`."""
        async with AsyncExitStack() as stack:
            # the secret is its own: an askgate of another stage may come to listen where one of this died
            slack = LocalSlack(
                signing_secret=f"secret-of-{folder.name}", app_token="xapp-test" if mode == "socket" else None
            )
            await stack.enter_async_context(slack)
            server = await stack.enter_async_context(EmbeddedServer(folder / "store"))
            receiver = await stack.enter_async_context(Receiver().serving())
            stage = cls(slack, server, receiver, lives, mode, folder)
            stack.push_async_callback(stage.redis.aclose)
            yield stage

    # a play

    def rehearse(self, scene: str) -> Play:
        """The people and channels of one more play."""
        self._plays += 1
        play = Play(self._plays, scene, SCENES[scene], self._folder / str(self._plays))
        play.folder.mkdir(parents=True)
        self.receiver.posts.clear()
        self.receiver.script = ["drop"]  # the first that comes is taken, and askgate does not hear of it
        for ask in play.asks:
            names = [play.name(ask, person) for person in ("ana", "ben")]
            play.ids |= {name: self.slack.add_user(name) for name in names}
            channel = f"{ask.name}-{play.number}"
            if ask.place in ("channel", "two", "archived"):
                play.channels[ask.name] = self.slack.add_channel(channel, names)
            if ask.place == "two":
                play.seconds[ask.name] = self.slack.add_channel(f"second-{channel}", names)
            if ask.place == "archived":
                self.slack.archive(channel)
            if ask.place == "dm":
                play.channels[ask.name] = self.slack.as_user(names[0]).dm
        return play

    async def live(self, play: Play, dooms: Sequence[str], *, server: bool = False) -> None:
        """Live until the host has everything and nothing is left to do; each life is struck at its point of ``dooms``.

        ``server``: it is the store's server that is struck, and not askgate.
        """
        lives = chain(dooms, repeat(None))
        while not await self._one_life(play, next(lives), server=server):
            play.struck += 1
            await self._lapse(play)

    async def _one_life(self, play: Play, doom: str | None, *, server: bool) -> bool:
        """Returns whether everything was done in it. Raises AssertionError if it ended by itself."""
        done = asyncio.Event()
        async with self._lives.one(self._job(play, doom, server=server)) as life:
            killed = asyncio.create_task(self._hear(play, life, done))
            quiet = asyncio.create_task(self._quiet(play, done))
            try:
                await asyncio.wait({killed, quiet}, return_when=asyncio.FIRST_COMPLETED)
                if killed.done():
                    assert killed.result() == KILLED, f"it ended by itself ({killed.result()})"
                    assert doom, "it was killed by somebody else"
                else:
                    quiet.result()
                return not killed.done()
            finally:
                killed.cancel()
                quiet.cancel()
                await asyncio.gather(killed, quiet, return_exceptions=True)

    async def _hear(self, play: Play, life: Life, done: asyncio.Event) -> int:
        """Do what an askgate that lives wants to be done, until it ends. Returns its status."""
        while True:
            match await life.said():
                case {"url": url}:
                    if self.mode == "http":
                        self.slack.app.request_url = f"{url}/slack/events"
                    self._up()
                case {"struck": _}:
                    play.struck += 1
                    self._server.kill()  # it is on its way already: this waits for it
                    await self._server.start()
                    self._up()
                case {"done": _}:
                    done.set()
                case {"exit": int(status)}:
                    return status

    def _up(self) -> None:
        self.ups += 1
        self.slack.world.changes.ring()

    def _job(self, play: Play, doom: str | None, *, server: bool) -> Json:
        settings = {
            "SLACK_BOT_TOKEN": "xoxb-test",
            "SLACK_SIGNING_SECRET": self.slack.app.signing_secret,
            "SLACK_API_URL": self.slack.api_url,
            "ASKGATE_REDIS_URL": self._server.url,
            "ASKGATE_API_KEYS": f"{KEY_NAME}={API_KEY}",
            "ASKGATE_BIND": "127.0.0.1:0",
            "ASKGATE_PARTITIONS": str(PARTITIONS),
            "ASKGATE_CALLBACK_ALLOW": "127.0.0.1/32",
        }
        if self.mode == "socket":
            settings["SLACK_APP_TOKEN"] = "xapp-test"
        return {
            "settings": settings,
            "journal": str(play.folder / "journal"),
            "log": str(play.folder / "log"),
            "met": str(play.folder / "met"),
            "host": play.host,
            "asks": [self._ask(play, ask) for ask in play.asks],
            "doom": doom,
            "server": self._server.pid if server else None,
            # who lives on after a strike has to see its own leases run out; those of the dead are made to lapse
            "lease_s": SHORT_LEASE_S if server else LONG_LEASE_S,
            "agenda_lease_ms": SHORT_LEASE_S * 1000 if server else LEASE_MS,
        }

    def _ask(self, play: Play, ask: Ask) -> Json:
        """An ask as the host takes it."""
        ids = {person: play.id_of(ask, person) for person in ("ana", "ben")}
        body = ask.make(ids | {"there": play.seconds.get(ask.name, ""), "hook": self.receiver.url})
        if ask.place == "nowhere":
            del body["place"]
        elif ask.place != "dm":
            body["place"] = {"channel": play.channels[ask.name]}
        return {
            "name": ask.name,
            "key": f"{play.number}-{ask.name}",
            "body": {**body, "host": play.pusher if ask.pushed else play.host, "external_id": ask.name},
            "pushed": ask.pushed,
            "acts": [{"path": path, "body": given} for path, given in ask.acts],
            "nack": ask.nack,
        }

    # the store

    async def _lapse(self, play: Play) -> None:
        """Let every lease run out, as a minute does after a process died holding them."""
        for queue in self._queues(play):
            for member, record in (await self.redis.hgetall(leases(queue))).items():
                await self.redis.hset(leases(queue), member, json.dumps({**json.loads(record), "until": 0}))
                await self.redis.zadd(queue, {member: 0}, xx=True)

    async def _quiet(self, play: Play, done: asyncio.Event) -> None:
        """Return when the host has everything and nothing is left to do about a play's runs."""
        await done.wait()
        while await self._busy(play):  # noqa: ASYNC110  # another process does it
            await asyncio.sleep(POLL_S)
        await self.slack.quiet()

    async def _busy(self, play: Play) -> bool:
        """Whether there is something left, as far as can be told: the store's server may be down for a strike."""
        try:
            return bool(await self.left(play))
        except StoreUnavailable:
            return True

    async def left(self, play: Play) -> list[str]:
        """What is queued or leased of a play's runs."""
        runs = {entry["run"] for entry in play.journal.entries("opened")}
        found = []
        for queue in self._queues(play):
            async with reachable():
                members = [*await self.redis.zrange(queue, 0, -1), *await self.redis.hkeys(leases(queue))]
            found += [f"{queue} {member}" for member in members if member.rpartition(":")[2] in runs]
        return found

    def _queues(self, play: Play) -> list[str]:
        return [
            queue
            for partition in range(PARTITIONS)
            for queue in (
                self.store.queues.agenda(partition),
                self.store.queues.of(partition, play.host),
                self.store.queues.of(partition, play.pusher),
            )
        ]
