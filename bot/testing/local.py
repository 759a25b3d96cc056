"""A workspace on this machine: a local Slack with people in it, and a real askgate that serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from bot.manifest import manifest
from bot.sandbox.person import Person
from bot.sandbox.slack import LocalSlack
from bot.service import Service
from bot.testing.clock import CatchingUp, ahead
from core.settings import load_settings

Json = dict[str, Any]

KEY: Final = "local-agent-key-0001"
PEOPLE: Final = ("ana", "ben", "cho")
CHANNEL: Final = "agents"
WAIT_S: Final = 10.0


class Local:
    """askgate and its Slack, running inside ``async with``.

    An agent reaches askgate at ``url`` with ``key``, and names ``channel``. Its people act by the words on their
    screens: ``askgate["ana"].click("Approve")``. ``slack`` is all of the local Slack: its messages, its calls, its
    faults. ``redis_url`` names the store; without it the embedded server keeps it in ``folder``. ``settings`` are
    askgate's, by their names in the environment. Admins are whom ``admins`` names.
    """

    def __init__(
        self,
        folder: Path,
        *,
        redis_url: str | None = None,
        people: Iterable[str] = PEOPLE,
        admins: Iterable[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._redis_url = redis_url
        self._people = tuple(people)
        self._admins = tuple(admins)
        self._more = dict(settings or {})
        self._stack = AsyncExitStack()
        self._serving = AsyncExitStack()
        self._session: aiohttp.ClientSession
        self.slack = LocalSlack(app_token=None)
        self.key = KEY
        self.url = ""
        self.channel = ""

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.slack)
        self.slack.install(manifest(None))
        ids = {name: self.slack.add_user(name) for name in self._people}
        self.channel = self.slack.add_channel(CHANNEL, self._people)
        self._more.setdefault("ASKGATE_ADMINS", ",".join(ids[name] for name in self._admins))
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())
        self._stack.push_async_callback(self.stop)
        try:
            await self.start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # askgate's process

    async def start(self) -> None:
        """Start askgate. Inside ``async with`` it runs already, unless it was stopped."""
        settings = load_settings(
            {
                "SLACK_BOT_TOKEN": self.slack.app.bot_token,
                "SLACK_SIGNING_SECRET": self.slack.app.signing_secret,
                "SLACK_API_URL": self.slack.api_url,
                "ASKGATE_API_KEYS": f"agent={self.key}",
                "ASKGATE_BIND": "127.0.0.1:0",
                "ASKGATE_DATA_DIR": str(self._folder),
                "ASKGATE_PARTITIONS": "2",
                "ASKGATE_GRACE_S": "2",
                "ASKGATE_CALLBACK_ALLOW": "127.0.0.0/8,localhost",
                **({"ASKGATE_REDIS_URL": self._redis_url} if self._redis_url else {}),
                **self._more,
            },
            need_slack=True,
            env_file=self._folder / "no.env",
        )
        service = await self._serving.enter_async_context(Service(settings, clock=ahead(self.slack)))
        assert service.web is not None  # noqa: S101  # it serves the API
        self.url = service.web.url
        self.slack.app.request_url = f"{self.url}/slack/events"
        self.slack.followers[:] = [CatchingUp(service)]

    async def stop(self) -> None:
        """Stop askgate, as for a new release. What is pending is in the store; `start` goes on from there."""
        self.slack.followers.clear()
        await self._serving.aclose()

    # people, time, the API

    def __getitem__(self, name: str) -> Person:
        """A person at their screen, by name."""
        return self.slack.as_user(name)

    def id(self, name: str) -> str:
        """A person's id, as policies name people."""
        return self.slack.as_user(name).id

    async def sees(self, name: str, *words: str, channel: str | None = None, timeout: float = WAIT_S) -> Json:
        """Wait until a person sees a message that says all of these words; returns the newest such message.

        Raises AssertionError after ``timeout`` seconds, with what the person sees instead.
        """
        person, where = self.slack.as_user(name), channel or self.channel

        def fitting() -> list[Json]:
            return [m for m in person.sees(where) if all(word in person.text(m) for word in words)]

        try:
            return (await self.slack.wait_for(fitting, timeout))[-1]
        except TimeoutError:
            shown = "\n---\n".join(person.text(message) for message in person.sees(where))
            raise AssertionError(f"{name} does not see {words}, but:\n{shown}") from None

    async def skip(self, **time: float) -> None:
        """Let time pass at once (``hours=1``, as `timedelta` has it); askgate does what has fallen due meanwhile."""
        await self.slack.skip(timedelta(**time).total_seconds())

    async def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """Call askgate's HTTP API, as an agent does. Raises AssertionError for an answer that is a refusal."""
        auth = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.url}/api/v1{path}"
        async with self._session.request(method, url, json=body, headers=auth) as response:
            found = await response.json(content_type=None)
        if response.status >= 400:
            raise AssertionError(f"{method} {path}: {response.status} {found}")
        return found

    async def settled(self, run: str) -> Any:
        """Wait until a run is settled; returns its results."""
        async with asyncio.timeout(WAIT_S):
            found = await self.call("GET", f"/runs/{run}?wait={int(WAIT_S)}")
        if found["status"] == "waiting":
            raise AssertionError(f"{run} still waits")
        return found["results"]
