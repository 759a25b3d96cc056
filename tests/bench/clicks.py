"""A click: how long Slack waits for askgate's ack, beside Bolt alone, and how soon the card follows."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.delivery import FORM, sign
from core.store.connect import fast_client
from core.store.keys import pace_key
from tests.acceptance.world import Json, World, world_in
from tests.bench.rows import Row, best_p50, percentile
from tests.runs import body

WARM_UP = 5
"""Clicks that are not counted: connections are made, and Bolt asks once who it is."""
ROUND = 8
"""Clicks whose median counts; of the rounds, the best does."""
UPDATE_S = 5.0
QUIET_S = 0.03
"""Before each click, so that what follows from the one before is over, and all have the processor to begin with."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def clicks(redis_url: str, count: int) -> AsyncIterator[Row]:
    """The same payloads to the real door of a real process, to Bolt with the same setting, and to Bolt as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            world_in("http", redis_url, Path(folder)) as world,
            aiohttp.ClientSession() as slack,
            contextlib.aclosing(_Store(redis_url)) as store,
            _bolt(world, process_before_response=True) as bare,
            _bolt(world, process_before_response=False) as default,
        ):
            await world.start(ASKGATE_PARTITIONS="4")
            real = f"{world.url}/slack/events"
            took: dict[str, list[float]] = {real: [], bare: [], default: []}
            written: list[float] = []
            updates: list[float] = []
            for raw in [await _payload(world, store, number) for number in range(count + WARM_UP)]:
                await store.unpace()
                for url in (default, bare, real):
                    await asyncio.sleep(QUIET_S)
                    clicked = time.time()
                    took[url].append(await _deliver(world, slack, url, raw))
                written.append(await store.write())
                updates.append((await _updated(world, clicked) - clicked) * 1000)
    acked, by_bolt, by_default, write = (
        best_p50(times[WARM_UP:], ROUND) for times in (*took.values(), written)
    )
    ours = f"{acked:.2f} ms"
    yield Row("click to ack, p50, beside Bolt alone", ours, f"{by_bolt:.2f} ms", acked / by_bolt, 1.5, False)
    floor = by_bolt + write
    yield Row("click to ack, p50, beside Bolt and one write to disk", ours, f"{floor:.2f} ms", acked / floor)
    faster = by_default / acked
    yield Row("click to ack, p50, Bolt's default runner by it", ours, f"{by_default:.2f} ms", faster, 15)
    p99 = percentile(updates[WARM_UP:], 0.99)
    yield Row("click to the card's update sent, p99", f"{p99:.1f} ms", "50 ms", p99 / 50, 1.0, False)


class _Store:
    """The store from beside."""

    def __init__(self, url: str) -> None:
        self._client: Any = fast_client(url)

    async def unpace(self) -> None:
        """Have the next calls of Slack be the first ones: none of them has to keep to a pace."""
        await self._client.delete(*[key async for key in self._client.scan_iter(pace_key("*"))], "ag:bench")

    async def write(self) -> float:
        """What any commit waits for: how long the reply to a write took, which comes when it is on the disk, in ms."""
        start = time.perf_counter()
        await self._client.set("ag:bench", "1")
        return (time.perf_counter() - start) * 1000

    async def aclose(self) -> None:
        await self._client.aclose()


@contextlib.asynccontextmanager
async def _serving(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/slack/events", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _bolt(world: World, *, process_before_response: bool) -> AsyncIterator[str]:
    """An app of Bolt's that checks the signature and acks whatever is clicked, on aiohttp as Bolt mounts itself."""
    client = AsyncWebClient(token="xoxb-test", base_url=world.slack.api_url)
    app = AsyncApp(
        client=client,
        signing_secret=world.slack.app.signing_secret,
        process_before_response=process_before_response,
    )

    async def acked(ack: AsyncAck) -> None:
        await ack()

    app.action(re.compile(".*"))(acked)

    async def handle(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async with _serving(handle) as url:
        yield url


async def _payload(world: World, store: _Store, number: int) -> bytes:
    """Slack's request for a click that settles a gate: it is caught on its way, to be sent where it is to be timed."""
    await store.unpace()
    caught: list[bytes] = []

    async def catch(request: web.Request) -> web.Response:
        caught.append(await request.read())
        return web.Response()

    channel = world.slack.add_channel(f"click-{number}", ["ana"])
    run: Json = await world.api.open(body(place={"channel": channel}, policy={"responders": ["anyone"]}))
    card = await world.card(run)
    async with _serving(catch) as url:
        world.slack.app.request_url = url
        await world.ana.click("Focused", message=card)
    return caught[0]


async def _deliver(world: World, slack: aiohttp.ClientSession, url: str, raw: bytes) -> float:
    """Post a request of Slack's, signed at this moment. Returns how long the 200 took, in ms."""
    headers = {"Content-Type": FORM, **sign(world.slack.app, raw, time.time())}
    start = time.perf_counter()
    async with slack.post(url, data=raw, headers=headers) as response:
        await response.read()
    took = (time.perf_counter() - start) * 1000
    assert response.status == 200, response.status
    return took


async def _updated(world: World, since: float) -> float:
    """When Slack was sent the update of the card, in seconds since 1970."""
    async with asyncio.timeout(UPDATE_S):
        while True:
            for call in reversed(world.slack.api.calls):
                if call.time < since:
                    break
                if call.method == "chat.update":
                    return call.time
            await asyncio.sleep(0.001)
