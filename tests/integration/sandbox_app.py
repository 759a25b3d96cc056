"""A tiny real Bolt app for the tests of the local Slack, over signed HTTP or Socket Mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import LocalSlack

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def section(text: str, **more: Any) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(text: str, action_id: str = "go", **more: Any) -> Json:
    return {"type": "button", "text": plain(text), "action_id": action_id, **more}


def buttons(*labels: str) -> Json:
    return {"type": "actions", "elements": [button(label, f"go-{label}") for label in labels]}


def options(*labels: str) -> list[Json]:
    return [{"text": plain(label), "value": str(index)} for index, label in enumerate(labels)]


def entry(label: str, element: Json, **more: Any) -> Json:
    return {"type": "input", "block_id": label.lower(), "label": plain(label), "element": element, **more}


def typed(**more: Any) -> Json:
    return {"type": "plain_text_input", "action_id": "text", **more}


def modal(*blocks: Json, title: str = "Title", **more: Any) -> Json:
    body = {"type": "modal", "callback_id": "form", "title": plain(title), "blocks": list(blocks)}
    return body | {"submit": plain("Send")} | more


def web_client(slack: LocalSlack, session: aiohttp.ClientSession, token: str = "xoxb-test") -> AsyncWebClient:
    return AsyncWebClient(token, base_url=slack.api_url, session=session, retry_handlers=[])


class Bot:
    """A Bolt app. `asked` are the headers of the HTTP requests that reached it."""

    def __init__(self, client: AsyncWebClient, secret: str) -> None:
        self.client = client
        self.bolt = AsyncApp(client=client, signing_secret=secret, process_before_response=True)
        self.asked: list[Any] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers.copy())
        return await to_aiohttp_response(await self.bolt.async_dispatch(await to_bolt_request(request)))


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    """Serve `handler` at one URL of a free port."""
    app = web.Application()
    app.router.add_post("/slack/events", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running(slack: LocalSlack, *, socket: bool = False) -> AsyncIterator[Bot]:
    """A Bolt app connected to `slack`."""
    async with aiohttp.ClientSession() as session:
        bot = Bot(web_client(slack, session), slack.app.signing_secret)
        if socket:
            handler: Any = AsyncSocketModeHandler(bot.bolt, "xapp-test", web_client=bot.client)
            await handler.connect_async()
            try:
                yield bot
            finally:
                await handler.close_async()
        else:
            async with serving(bot.serve) as url:
                slack.app.request_url = url
                yield bot
