"""Socket Mode and events: nothing falls in between, a dead connection is noticed, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redis.asyncio import Redis

from bot import link
from bot.sandbox.delivery import ACK_WITHIN_S
from bot.socket import LINKS
from core.embedded import EmbeddedServer
from tests.acceptance.world import Json, World, front, world_in
from tests.runs import ask, body, question_call


@pytest.fixture
async def socket_world(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    """As `world`, over Socket Mode alone, when all connections are open."""
    async with world_in("socket", redis_url, tmp_path) as world:
        await world.start()
        await world.slack.wait_for(lambda: world.slack.connections() == LINKS)
        yield world


def question(world: World) -> Json:
    return body([question_call("q", ask())], place={"channel": world.ops}, policy={})


async def readiness(world: World) -> Any:
    async with aiohttp.ClientSession() as session, session.get(f"{world.url}/readyz") as response:
        return response.status, (await response.json())["checks"]["slack_socket"]


async def until_ready(world: World, status: int) -> str:
    async with asyncio.timeout(15):
        while (said := await readiness(world))[0] != status:  # noqa: ASYNC110  # it tells nobody
            await asyncio.sleep(0.02)
    return str(said[1])


async def test_a_click_on_its_way_when_slack_wants_another_connection_is_acknowledged_over_the_old_one(
    socket_world: World,
) -> None:
    world = socket_world
    card = await world.card(await world.api.open(question(world)))
    world.slack.fail("views.open", delay=0.3)
    clicking = asyncio.create_task(world.ana.click("Other", message=card))
    await world.slack.wait_for(lambda: world.slack.api.faults.taken)
    assert await world.slack.disconnect_sockets() == LINKS
    clicked = await clicking
    assert clicked.ok
    assert front(clicked)
    await world.slack.wait_for(lambda: world.slack.connections() == LINKS)


async def test_slack_is_connected_to_anew_before_the_old_connection_is_left(socket_world: World) -> None:
    world = socket_world
    world.slack.fail("apps.connections.open", delay=0.2, times=LINKS)
    old = world.slack.links.open_links(world.slack.app.id)
    await world.slack.disconnect_sockets()
    assert (await readiness(world))[0] == 200
    await world.slack.wait_for(lambda: world.slack.connections() == LINKS)
    await world.slack.wait_for(lambda: all(link.socket.closed for link in old))
    assert (await readiness(world))[0] == 200


async def test_a_connection_too_many_is_closed_before_another_is_opened(socket_world: World) -> None:
    world = socket_world
    old = world.slack.links.open_links(world.slack.app.id)
    world.slack.fail("apps.connections.open", delay=0.2, times=LINKS)
    await world.slack.disconnect_sockets("too_many_websockets")
    await world.slack.wait_for(lambda: all(link.socket.closed for link in old))
    assert world.slack.connections() == 0
    await world.slack.wait_for(lambda: world.slack.connections() == LINKS)


async def test_a_click_takes_the_other_connection_when_one_breaks(socket_world: World) -> None:
    world = socket_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    world.slack.fail("apps.connections.open", status=500, times=1000)
    await world.slack.links.open_links(world.slack.app.id)[0].socket.close()
    await world.slack.wait_for(lambda: world.slack.connections() == LINKS - 1)
    assert (await readiness(world))[0] == 200
    assert (await world.ana.click("Focused", message=card)).ok
    await world.shows(run, "Answered by @ana")


@pytest.mark.parametrize("dead", [False, True])
async def test_a_connection_at_whose_other_end_nobody_is_is_given_up_for_another(
    empty_world: World, monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    world = empty_world
    if world.mode != "socket":
        return
    # silent: Slack pings no more, and still answers ours; dead: nothing comes at all
    monkeypatch.setattr(link, "PING_S", 0.2 if dead else 10.0)
    monkeypatch.setattr(link, "SILENT_S", 30.0 if dead else 0.3)
    world.slack.links.ping_s = 0.05
    await world.start()
    await world.slack.wait_for(lambda: world.slack.connections() == LINKS)
    await asyncio.sleep(0.1)  # so that there was a ping
    run = await world.api.open(question(world))
    card = await world.card(run)
    old = world.slack.links.open_links(world.slack.app.id)
    world.slack.hush_sockets(dead=dead)
    world.slack.fail("apps.connections.open", delay=0.3, times=LINKS)
    assert "down" in await until_ready(world, 503)
    assert await until_ready(world, 200) == "ok"
    for silent in old:
        silent.leaving = True  # Slack notices it as well, in the end
    assert (await world.ana.click("Focused", message=card)).ok
    await world.shows(run, "Answered by @ana")


async def test_after_a_gap_open_cards_are_drawn_again_and_a_click_that_was_lost_works(
    socket_world: World,
) -> None:
    world = socket_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    world.slack.fail("apps.connections.open", status=500, times=1000)
    await world.slack.links.close()
    await until_ready(world, 503)
    world.slack.courier.ack_within_s = 0.1
    lost = await world.ana.click("Focused", message=card)
    world.slack.courier.ack_within_s = ACK_WITHIN_S
    assert (lost.ok, lost.error) == (False, "no_answer")
    assert world.private("ana") == []
    world.slack.mend()
    await world.slack.wait_for(lambda: world.slack.called("chat.update"), 15)
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.click("Focused", message=card)).ok
    await world.shows(run, "Answered by @ana")


# events


async def test_an_event_is_acknowledged_when_its_work_is_done_and_until_then_no_other_process_does_it(
    world: World,
) -> None:
    _, other = await world.start()
    card = await world.card(await world.api.open(question(world)))
    await world.slack.quiet()
    courier = world.slack.courier
    courier.ack_within_s, courier.retry_delays = 0.15, (0.0, 0.0, 0.8)
    world.slack.fail("chat.postEphemeral", delay=0.5, times=5)
    await world.ana.say(world.ops, "Rather something else", card["ts"])
    await world.slack.wait_for(lambda: world.slack.api.faults.taken)
    world.reach(other)  # over Socket Mode each further try goes over another connection anyway
    await world.slack.quiet()
    assert len(world.slack.called("chat.postEphemeral")) == 1
    assert len(world.private("ana")) == 1


async def test_an_event_that_could_not_be_done_is_done_when_slack_brings_it_again(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    courier = world.slack.courier
    courier.ack_within_s, courier.retry_delays = 1.0, (0.0, 1.5)
    server.kill()
    await world.ana.open_home()
    await asyncio.sleep(0.3)
    assert world.ana.home is None
    await server.start()
    await world.slack.wait_for(lambda: world.ana.home, 15)
    await world.slack.quiet()
    assert len(world.slack.called("views.publish")) == 1
