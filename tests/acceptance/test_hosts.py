"""The way back to hosts, with the whole of askgate running: callbacks, refusals, and a card that opens again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from core.hosts.a13n import webhook
from tests.acceptance.world import WAIT_S, Json, World
from tests.integration.receiver import SECRET, Receiver
from tests.runs import FOCUSED, ask, body, question_call

ALLOW = {"ASKGATE_CALLBACK_ALLOW": "127.0.0.0/8"}


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().serving() as receiver:
        yield receiver


def asking(world: World, **more: Any) -> Json:
    return body([question_call("q", ask())], place={"channel": world.ops}, **more)


async def test_a_failed_run_is_decided_again_on_the_card_that_is_there(world: World) -> None:
    run = await world.api.open(asking(world))
    await world.ana.click("Focused", message=await world.card(run))
    await world.shows(run, "Answered by @ana")
    [first] = await world.api.claim()
    refused = {"lease": first["lease"], "final": True, "error": "no such thread"}
    assert (await world.api.ok("POST", f"/resumes/{run['id']}/nack", refused))["status"] == "failed"
    await world.shows(run, "Answered by @ana", "The agent's host refused this: no such thread")
    assert (await world.api.ok("POST", f"/runs/{run['id']}/reopen"))["status"] == "waiting"
    await world.slack.wait_for(lambda: "Broad" in world.buttons(run), WAIT_S)
    await world.shows(run, "Asked again, because what was decided before came to nothing: no such thread")
    assert "refused" not in world.text(run)
    assert "Answered" not in world.text(run)
    await world.ben.click("Broad", message=await world.card(run))
    await world.shows(run, "Answered by @ben")
    assert len(world.parts(run)) == 1
    [second] = await world.api.claim(wait_s=WAIT_S)
    assert second["idempotency_key"] != first["idempotency_key"]
    answers = second["run"]["results"]["calls"]["q"]["value"]["answers"]
    assert list(answers.values()) == ["Broad"]
    deciders = [e["by"]["user"] for e in await world.api.audit(run) if e["event"] == "gate.settled"]
    assert deciders == [world.ids["ana"], world.ids["ben"]]


async def test_a_card_says_that_its_agent_had_moved_on_and_the_hosts_words_are_no_markup(
    world: World,
) -> None:
    run = await world.api.open(asking(world))
    await world.ana.click("Focused", message=await world.card(run))
    [claimed] = await world.api.claim(wait_s=WAIT_S)
    lost = {"lease": claimed["lease"], "lost": True, "error": "<!channel> *gone*\n" + "x" * 2000}
    assert (await world.api.ok("POST", f"/resumes/{run['id']}/nack", lost))["status"] == "lost"
    text = await world.shows(run, "had moved on before this reached it: <!channel> *gone*")
    assert len(text) < 1000


async def test_a_click_reaches_the_callback_and_ends_the_run(empty_world: World, receiver: Receiver) -> None:
    world = empty_world
    await world.start(**ALLOW)
    run = await world.api.open(asking(world, callback={"url": receiver.url, "secret": SECRET}))
    await world.ana.click("Focused", message=await world.card(run))
    async with asyncio.timeout(WAIT_S):
        await receiver.arrived.wait()
    [post] = receiver.posts
    assert (post.message["type"], post.message["run"]["id"]) == ("run.settled", run["id"])
    assert post.message["run"]["results"]["calls"]["q"]["value"] == FOCUSED
    await until_resumed(world, run)
    assert await world.api.claim() == []


async def test_a_callback_outlives_the_process_that_began_it(empty_world: World, receiver: Receiver) -> None:
    world = empty_world
    receiver.script = [503]
    await world.start(**ALLOW)
    run = await world.api.open(asking(world, callback={"url": receiver.url, "secret": SECRET}))
    await world.ana.click("Focused", message=await world.card(run))
    async with asyncio.timeout(WAIT_S):
        await receiver.arrived.wait()
    await world.stop()
    await world.start(**ALLOW)
    await until_resumed(world, run)
    first, second = receiver.posts
    assert (first.id, first.raw) == (second.id, second.raw)


async def test_a_host_that_calls_is_let_in_by_its_signature_and_brings_again_what_cannot_be_read_now(
    empty_world: World, tmp_path: Path
) -> None:
    world, secret, body = (
        empty_world,
        "whsec_0123456789abcdef",
        b'{"type":"run.waiting","run":{"id":"run_1"}}',
    )
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(
        f'[a13n.a]\nurl = "http://127.0.0.1:9"\napi_key = "k"\nchannel = "{world.ops}"\n'
        f'webhook_secret = "{secret}"\n'
    )
    await world.start(ASKGATE_HOSTS=str(hosts))
    stamp = str(round(time.time()))

    async def post(name: str, signed_by: str) -> int:
        headers = {
            webhook.DELIVERY: "obx_1",
            webhook.TIMESTAMP: stamp,
            webhook.SIGNATURE: webhook.signature(signed_by, stamp, "obx_1", body),
        }
        url = f"{world.url}/hosts/{name}/webhook"
        async with ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
            return answer.status

    assert await post("a13n.b", secret) == 404
    assert await post("a13n.a", "another secret 01234") == 401
    assert await post("a13n.a", secret) == 503


async def test_a_callback_into_a_private_network_is_refused_by_default(world: World) -> None:
    callback = {"url": "https://10.0.0.1/hook", "secret": SECRET}
    status, problem = await world.api.call("POST", "/runs", asking(world, callback=callback))
    assert status == 422
    assert problem["errors"][0]["loc"] == ["callback", "url"]


async def until_resumed(world: World, run: Json) -> None:
    """Wait for the run to count as taken up."""
    engine = world.replicas[0].engine
    with engine.bell.heard(f"run:{run['id']}") as rung:
        async with asyncio.timeout(WAIT_S):
            while (await world.api.run(run))["status"] != "resumed":
                await rung.wait()
                rung.clear()
