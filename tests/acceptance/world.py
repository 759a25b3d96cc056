"""What every acceptance test stands in: a local Slack, askgate's processes on one store, and the API's caller."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from bot.sandbox import LocalSlack
from bot.sandbox.person import Person, Result
from bot.service import Role, Service
from core.clock import Clock
from core.settings import load_settings
from core.store.connect import fast_client

Json = dict[str, Any]
API_KEY = "acceptance-key-0001"
OTHER_TEAM = "T0OTHER"
WAIT_S = 15


def front(result: Result) -> Json:
    """The modal that an act left in front of the person."""
    assert result.modal is not None
    return result.modal


def said(result: Result) -> Json:
    """The message that somebody wrote."""
    assert result.message is not None
    return result.message


def app_manifest() -> Json:
    """The manifest that people make the Slack app from."""
    found: Json = yaml.safe_load((Path(__file__).parents[2] / "manifest.yml").read_text("utf-8"))
    return found


class World:
    """The workspace: `ana`, `ben`, `cho` and `dan` in #ops, `eve` outside it, `gus` a guest of another team in it."""

    def __init__(self, slack: LocalSlack, mode: str, redis_url: str, folder: Path) -> None:
        self.slack = slack
        slack.install(app_manifest())
        self.mode = mode
        self.redis_url = redis_url
        self.folder = folder
        self.ids = {name: slack.add_user(name) for name in ("ana", "ben", "cho", "dan", "eve")}
        self.ids["gus"] = slack.add_user("gus", team=OTHER_TEAM)
        self.ops = slack.add_channel("ops", ["ana", "ben", "cho", "dan", "gus"])
        self.lobby = slack.add_channel("lobby", list(self.ids))
        self.replicas: list[Service] = []
        self.api: Api
        self.clock: Callable[[Clock], Clock] | None = None
        """What processes make their clock of: `ahead(slack)` lets them follow the local Slack's time."""
        self._stacks: dict[Service, AsyncExitStack] = {}

    # askgate's processes

    def settings(self, **more: str) -> dict[str, str]:
        """The environment of one process."""
        own = {"SLACK_APP_TOKEN": "xapp-test"} if self.mode == "socket" else {}
        return {
            "SLACK_BOT_TOKEN": "xoxb-test",
            "SLACK_SIGNING_SECRET": self.slack.app.signing_secret,
            "SLACK_API_URL": self.slack.api_url,
            "ASKGATE_REDIS_URL": self.redis_url,
            "ASKGATE_API_KEYS": f"agent={API_KEY}",
            "ASKGATE_BIND": "127.0.0.1:0",
            "ASKGATE_ADMINS": self.ids["dan"],
            "ASKGATE_PARTITIONS": "2",
            "ASKGATE_GRACE_S": "2",
            **own,
            **more,
        }

    async def start(self, count: int = 1, *, role: Role = "all", **more: str) -> list[Service]:
        """Start processes on the one store. The API is called at the first one that there is."""
        for _ in range(count):
            settings = load_settings(self.settings(**more), need_slack=True, env_file=self.folder / "no.env")
            stack = AsyncExitStack()
            replica = await stack.enter_async_context(Service(settings, role, clock=self.clock))
            self.replicas.append(replica)
            self._stacks[replica] = stack
        self.reach(self.replicas[0])
        return self.replicas

    @property
    def url(self) -> str:
        """Where the first process listens."""
        web = self.replicas[0].web
        assert web
        return web.url

    def reach(self, replica: Service) -> None:
        """Call the API there, and in HTTP mode have Slack deliver there."""
        assert replica.web
        self.api.url = replica.web.url
        if self.mode == "http":
            self.slack.app.request_url = f"{replica.web.url}/slack/events"

    async def stop(self, *which: Service) -> None:
        """Stop these processes (or all) in good order, newest first."""
        with contextlib.suppress(TimeoutError):
            # an event that arrives while a port closes holds that up for as long as Slack waits for an answer
            async with asyncio.timeout(0.3):
                await self.slack.quiet()
        for replica in which or self.replicas[::-1]:
            self.replicas.remove(replica)
            await self._stacks.pop(replica).aclose()

    async def past(self, run: Json) -> None:
        """Return when the store's clock has passed a run's deadline. Nobody has to notice it."""
        deadline = datetime.fromisoformat(run["gates"][0]["deadline"]).timestamp() * 1000
        left_ms = deadline - await self.replicas[0].engine.store.server_ms()
        await asyncio.sleep(max(0, left_ms + 5) / 1000)

    async def lapse(self) -> None:
        """Let every lease of the agenda run out, as half a minute does after a process died holding them."""
        client: Any = fast_client(self.redis_url)
        try:
            async for key in client.scan_iter("ag:*:agenda"):
                for member in await client.zrange(key, 0, -1):
                    if member.startswith(("card:", "remind:", "notice:")):
                        await client.zadd(key, {member: 0})
        finally:
            await client.aclose()

    # people

    def __getattr__(self, name: str) -> Person:
        if name.startswith("_") or name not in self.ids:
            raise AttributeError(name)
        return self.slack.as_user(name)

    def private(self, name: str, channel: str | None = None) -> list[Json]:
        """What only one person sees of a conversation, oldest first."""
        seen = self.slack.as_user(name).sees(channel or self.ops)
        return [message for message in seen if message["ephemeral"]]

    async def told(self, name: str, *words: str, channel: str | None = None) -> Json:
        """Wait until a person is privately told all of these words, in one message."""

        def fitting() -> list[Json]:
            found = self.private(name, channel)
            return [m for m in found if all(word in self.slack.text_of(m) for word in words)]

        try:
            return (await self.slack.wait_for(fitting, WAIT_S))[-1]
        except TimeoutError:
            said = [self.slack.text_of(message) for message in self.private(name, channel)]
            raise AssertionError(f"{name} was not told {words}, but {said}") from None

    def nobody_else_told(self, *but: str) -> None:
        """Nobody but these has been told anything privately."""
        for name in self.ids:
            if name not in (*but, "eve"):
                assert self.private(name) == [], name

    # cards

    def about(self, run: Json) -> list[tuple[Json, Json]]:
        """Every message about a run, with the metadata by which it is known."""
        messages = [m for channel in self.slack.world.channels for m in self.slack.messages(channel)]
        known = [((m.get("metadata") or {}).get("event_payload", {}), m) for m in messages]
        return [(payload, message) for payload, message in known if payload.get("run") == run["id"]]

    def parts(self, run: Json, copy: int = 0) -> list[Json]:
        """The messages that show a run, in their order; ``copy`` 1 are those where it was escalated to."""
        found = [
            (payload["part"], message)
            for payload, message in self.about(run)
            if "part" in payload and payload.get("copy", 0) == copy
        ]
        return [message for _, message in sorted(found, key=lambda pair: pair[0])]

    def reminders(self, run: Json) -> list[Json]:
        """The reminders of a run, oldest first."""
        return [message for payload, message in self.about(run) if "reminder" in payload]

    async def card(self, run: Json, part: int = 0, copy: int = 0) -> Json:
        """Wait for a message of a run's card."""
        await self.slack.wait_for(lambda: len(self.parts(run, copy)) > part, WAIT_S)
        return self.parts(run, copy)[part]

    def text(self, run: Json, copy: int = 0) -> str:
        """All that a run's card says."""
        return "\n".join(self.slack.text_of(message) for message in self.parts(run, copy))

    async def shows(self, run: Json, *words: str, copy: int = 0) -> str:
        """Wait until a run's card says all of these words."""
        try:
            await self.slack.wait_for(lambda: all(word in self.text(run, copy) for word in words), WAIT_S)
        except TimeoutError:
            raise AssertionError(f"the card does not say {words}, but {self.text(run, copy)!r}") from None
        return self.text(run, copy)

    def buttons(self, run: Json, copy: int = 0) -> list[str]:
        """The words of all buttons on a run's card."""
        return [
            element["text"]["text"].removesuffix("…")
            for message in self.parts(run, copy)
            for block in message.get("blocks", ())
            for element in block.get("elements", ())
            if element["type"] == "button"
        ]


class Api:
    """A caller of the HTTP API, as any agent is."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.url = ""
        self._session = session

    async def call(self, method: str, path: str, body: Json | None = None, **headers: str) -> tuple[int, Any]:
        auth = {"Authorization": f"Bearer {API_KEY}", **headers}
        async with self._session.request(
            method, f"{self.url}/api/v1{path}", json=body, headers=auth
        ) as response:
            text = await response.text()
        return response.status, text if path.startswith("/audit") else json.loads(text)

    async def ok(self, method: str, path: str, body: Json | None = None) -> Any:
        status, reply = await self.call(method, path, body)
        assert status in (200, 201), reply
        return reply

    async def open(self, body: Json) -> Any:
        """Open a run."""
        return await self.ok("POST", "/runs", body)

    async def run(self, run: Json) -> Any:
        return await self.ok("GET", f"/runs/{run['id']}")

    async def settled(self, run: Json) -> Any:
        """Wait for the run to be settled; returns its results."""
        found = await self.ok("GET", f"/runs/{run['id']}?wait={WAIT_S}")
        assert found["status"] == "settled", found["status"]
        return found["results"]

    async def cancel(self, run: Json, reason: str) -> Any:
        return await self.ok("POST", f"/runs/{run['id']}/cancel", {"reason": reason})

    async def claim(self, **more: Any) -> Any:
        return (await self.ok("POST", "/resumes/claim", {"host": "api", "max": 10, **more}))["resumes"]

    async def audit(self, run: Json) -> list[Json]:
        _, text = await self.call("GET", f"/audit?run={run['id']}")
        return [json.loads(line) for line in text.splitlines()]

    async def refusals(self, run: Json) -> list[tuple[str, str]]:
        """Who was refused and why, oldest first."""
        events = [event for event in await self.audit(run) if event["event"] == "gate.refused"]
        return [(event["by"].get("user") or event["by"]["key"], event["reason"]) for event in events]


@asynccontextmanager
async def world_in(mode: str, redis_url: str, folder: Path) -> AsyncIterator[World]:
    """A world whose Slack reaches askgate by signed HTTP or by Socket Mode."""
    async with (
        LocalSlack(app_token="xapp-test" if mode == "socket" else None) as slack,
        aiohttp.ClientSession() as session,
    ):
        world = World(slack, mode, redis_url, folder)
        world.api = Api(session)
        try:
            yield world
        finally:
            await world.stop()
