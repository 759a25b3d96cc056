"""A real Chromium, a local Slack and a small Bolt app to click at."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from playwright.async_api import Page, async_playwright, expect
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.slack import LocalSlack

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
PATIENCE_MS = 5000
SECRET = "local-signing-secret"

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program; without it browser tests are skipped, but fail where CI=true."""
    if not CHROMIUM.exists():
        missing = f"{CHROMIUM} is missing: install the package chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return CHROMIUM


@pytest.fixture
async def page(chromium: Path) -> AsyncIterator[Page]:
    """A browser page. The test fails when the page throws or asks any other host for anything."""
    slips: list[str] = []

    def watch(url: str) -> None:
        if urlsplit(url).scheme != "data" and urlsplit(url).hostname != "127.0.0.1":
            slips.append(f"asked {url}")

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = await browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: slips.append(f"threw {error}"))
        page.on("request", lambda request: watch(request.url))
        yield page
        await browser.close()
    assert slips == []


class Desk:
    """A local Slack with people, one channel, and an app that notes what reaches it.

    `acts` are the actions the app got, `submitted` the values of modals. A button with the action id
    `open` opens `modal`; a submission is refused with `errors` while there are any; a button with the
    action id `broken` makes the app fail. `/gates` repeats its words; Home says whose it is.
    """

    def __init__(self, slack: LocalSlack) -> None:
        self.slack = slack
        self.ana = slack.add_user("ana", "Ana")
        self.ben = slack.add_user("ben", "Ben")
        self.channel = slack.add_channel("agents", ["ana", "ben"])
        self.acts: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.submitted: list[dict[str, Any]] = []
        self.modal: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        self.client = AsyncWebClient(token="xoxb-test", base_url=slack.api_url)
        self.bolt = AsyncApp(client=self.client, signing_secret=SECRET, process_before_response=True)
        self.bolt.action(re.compile(""))(self._acted)
        self.bolt.view(re.compile(""))(self._submitted)
        self.bolt.command("/gates")(self._commanded)
        self.bolt.event("app_home_opened")(self._home)
        self.bolt.shortcut(re.compile(""))(self._shortcut)

    async def _acted(self, ack: AsyncAck, body: dict[str, Any], action: dict[str, Any]) -> None:
        self.acts.put_nowait(action)
        if action["action_id"] == "broken":
            raise RuntimeError("broken on purpose")
        if action["action_id"] == "open":
            await self.client.views_open(trigger_id=body["trigger_id"], view=self.modal)
        await ack()

    async def _submitted(self, ack: AsyncAck, view: dict[str, Any]) -> None:
        self.submitted.append(view["state"]["values"])
        if self.errors:
            await ack(response_action="errors", errors=self.errors)
        else:
            await ack()

    async def _commanded(self, ack: AsyncAck, command: dict[str, Any]) -> None:
        await ack(f"You said: {command['text']}")

    async def _shortcut(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        self.acts.put_nowait(body)
        await ack()

    async def _home(self, event: dict[str, Any]) -> None:
        text = {"type": "mrkdwn", "text": f"The home of <@{event['user']}>"}
        view = {"type": "home", "blocks": [{"type": "section", "text": text}]}
        await self.client.views_publish(user_id=event["user"], view=view)

    async def post(self, *blocks: dict[str, Any], text: str = "card", **more: Any) -> str:
        """Post a message as the app; returns its ts."""
        answer = await self.client.chat_postMessage(channel=self.channel, text=text, blocks=blocks, **more)
        ts: str = answer["ts"]
        return ts

    async def update(self, ts: str, *blocks: dict[str, Any]) -> None:
        await self.client.chat_update(channel=self.channel, ts=ts, text="card", blocks=blocks)

    async def next_act(self) -> dict[str, Any]:
        """The oldest action that the test has not taken yet."""
        async with asyncio.timeout(PATIENCE_MS / 1000):
            return await self.acts.get()


@asynccontextmanager
async def listening(bolt: AsyncApp) -> AsyncIterator[str]:
    """Serve a Bolt app on a free port; yields the URL for Slack's requests."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await to_aiohttp_response(await bolt.async_dispatch(await to_bolt_request(request)))

    app = web.Application()
    app.router.add_post("/slack/events", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with LocalSlack(signing_secret=SECRET) as slack:
        desk = Desk(slack)
        async with listening(desk.bolt) as url:
            slack.app.request_url = url
            yield desk
