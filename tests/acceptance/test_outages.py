"""The store goes away and comes back: nobody is told that something was saved which was not."""

from __future__ import annotations

import asyncio
import os
import signal

import aiohttp
import pytest

from bot import words
from bot.sandbox.delivery import ACK_WITHIN_S
from bot.service import BEHIND_MS
from core.agenda import Worker
from core.embedded import EmbeddedServer
from core.store.connect import fast_client
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, question_call


def question(world: World) -> Json:
    return body([question_call("q", ask())], place={"channel": world.ops}, policy={})


async def not_taken(world: World, card: Json, status: int) -> None:
    """Ana's click, of which Slack says that it did not work: no 200, or over Socket Mode no acknowledgement."""
    courier = world.slack.courier
    if world.mode == "socket":
        courier.ack_within_s = 1.5
    clicked = await world.ana.click("Focused", message=card)
    courier.ack_within_s = ACK_WITHIN_S
    assert (clicked.ok, clicked.error) == (False, f"http_{status}" if world.mode == "http" else "no_answer")


async def test_a_click_while_the_store_is_away_is_not_acknowledged_and_works_afterwards(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    server.kill()
    await not_taken(world, card, 503)
    await world.told("ana", "didn't work", "Try again")
    world.nobody_else_told("ana")
    await server.start()
    await world.lapse()
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.click("Focused", message=card)).ok
    assert (await world.api.settled(run))["calls"]["q"]["outcome"] == "answered"
    await world.shows(run, "Answered by @ana")


async def test_a_click_while_the_store_hangs_fails_while_slack_still_listens(
    shaky_http_world: World, server: EmbeddedServer
) -> None:
    world = shaky_http_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    os.kill(server.pid or 0, signal.SIGSTOP)
    try:
        await not_taken(world, card, 503)
    finally:
        os.kill(server.pid or 0, signal.SIGCONT)
    await world.told("ana", "didn't work")
    await world.lapse()
    assert (await world.ana.click("Focused", message=card)).ok
    assert (await world.api.settled(run))["calls"]["q"]["outcome"] == "answered"


async def test_what_was_acknowledged_is_there_after_sigkill_of_the_server(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    policy = {"approvers": [world.ids["ana"], world.ids["ben"]], "quorum": 2}
    run = await world.api.open(body([], [approval("call")], place={"channel": world.ops}, policy=policy))
    card = await world.card(run)
    assert (await world.ana.click("Approve", message=card)).ok
    server.kill()
    await server.start()
    await world.lapse()
    await world.shows(run, "1 of 2 approvals: @ana")
    assert (await world.ben.click("Approve", message=card)).ok
    result = (await world.api.settled(run))["approvals"]["call"]
    assert [by["user"] for by in result["by"]] == [world.ids["ana"], world.ids["ben"]]
    await world.shows(run, "Approved by @ana, @ben")


async def test_a_click_on_a_run_that_cannot_be_read_is_owned_up_to(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    async with fast_client(server.url) as client:
        (key,) = [key async for key in client.scan_iter(f"ag:*:run:{run['id']}")]
        await client.hset(key, "doc", "{")
    await not_taken(world, card, 500)
    await world.told("ana", "our fault")


async def test_a_text_written_while_the_store_is_away_stays_in_its_field(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    run = await world.api.open(question(world))
    await world.ana.click("Other", message=await world.card(run))
    await world.ana.fill({words.OTHER_LABEL: "A long thought"})
    server.kill()
    sent = await world.ana.submit()
    assert sent.errors == {words.OTHER_LABEL: words.DID_NOT_WORK}
    assert "A long thought" in world.ana.text(front(sent))
    await server.start()
    assert (await world.ana.submit()).modal is None
    answers = (await world.api.settled(run))["calls"]["q"]["value"]["answers"]
    assert list(answers.values()) == ["A long thought"]


async def test_the_command_says_that_the_store_is_away(shaky_world: World, server: EmbeddedServer) -> None:
    world = shaky_world
    server.kill()
    assert (await world.ana.command("/gates", channel=world.ops)).ok
    await world.told("ana", "didn't work")


async def test_a_process_without_its_store_is_alive_and_not_ready(
    shaky_world: World, server: EmbeddedServer
) -> None:
    world = shaky_world
    url = world.url
    assert [await status(url, path) for path in ("/healthz", "/readyz")] == [200, 200]
    server.kill()
    assert [await status(url, path) for path in ("/healthz", "/readyz")] == [200, 503]
    code, problem = await world.api.call("GET", "/gates")
    assert (code, problem["type"].rpartition("/")[2]) == (503, "store-unavailable")
    await server.start()
    assert await status(url, "/readyz") == 200


async def status(url: str, path: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(url + path) as response:
        return response.status


async def ready(world: World) -> tuple[int, Json]:
    """What `/readyz` says: its status, and its word on each check."""
    async with aiohttp.ClientSession() as session, session.get(f"{world.url}/readyz") as response:
        return response.status, (await response.json())["checks"]


async def test_a_process_that_cannot_reach_slack_is_not_ready(world: World) -> None:
    for fault, word in (({"status": 500}, "internal_error"), ({"error": "token_revoked"}, "token_revoked")):
        world.slack.fail("auth.test", **fault)
        status, checks = await ready(world)
        assert status == 503
        assert word in checks["slack"]
        assert checks["store"] == checks["agenda"] == "ok"
    assert await ready(world) == (200, dict.fromkeys(checks, "ok"))


async def test_whom_slack_tells_to_wait_can_reach_it(world: World) -> None:
    world.slack.fail("auth.test", status=429, retry_after=30)
    assert (await ready(world))[0] == 200


async def test_a_process_whose_agenda_is_behind_is_not_ready(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "behind_ms", BEHIND_MS)
    assert (await ready(world))[0] == 200
    monkeypatch.setattr(Worker, "behind_ms", BEHIND_MS + 1)
    status, checks = await ready(world)
    assert (status, checks["agenda"]) == (503, "the agenda is 30 s behind")


async def test_a_process_without_its_socket_is_not_ready(empty_world: World) -> None:
    world = empty_world
    await world.start()
    status, checks = await ready(world)
    assert status == 200
    assert ("slack_socket" in checks) == (world.mode == "socket")
    if world.mode == "socket":
        world.slack.fail("apps.connections.open", status=500, times=1000)
        await world.slack.links.close()
        async with asyncio.timeout(15):
            while (said := await ready(world))[0] == 200:  # noqa: ASYNC110  # the library tells nobody
                await asyncio.sleep(0.05)
        assert said[1] == {**checks, "slack_socket": "the Socket Mode connection is down"}


async def test_a_socket_that_slack_closes_is_opened_again_and_no_click_is_lost(shaky_world: World) -> None:
    world = shaky_world
    run = await world.api.open(question(world))
    card = await world.card(run)
    await world.slack.disconnect_sockets()
    assert (await world.ana.click("Focused", message=card)).ok
    assert (await world.api.settled(run))["calls"]["q"]["outcome"] == "answered"
