"""What operators see of hosts: who is away, and what waits there that askgate cannot put to people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.a13n_standin import A13nStandin
from tests.acceptance.world import WAIT_S, Json, World

BEYOND = {"cents": 2**60}
"""Arguments that have no canonical JSON."""
LARGE = {"text": "x" * 17_000}


@pytest.fixture
async def a13n() -> AsyncIterator[A13nStandin]:
    async with A13nStandin().serving() as standin:
        yield standin


async def start(world: World, a13n: A13nStandin, folder: Path, count: int = 1) -> None:
    hosts = folder / "hosts.toml"
    hosts.write_text(f'[a13n.a]\nurl = "{a13n.url}"\napi_key = "k"\nchannel = "{world.ops}"\npoll_s = 1\n')
    await world.start(count, ASKGATE_HOSTS=str(hosts), ASKGATE_ADMINS=world.ids["dan"])


def notices(world: World) -> list[str]:
    texts = [world.slack.text_of(message) for message in world.slack.messages(world.dan.dm)]
    return [text for text in texts if "cannot put to people" in text]


async def get(world: World, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{world.url}{path}") as response:
        return response.status, await response.text()


async def until(world: World, hosts: Json) -> None:
    """Return when the first process says this of its hosts. It is ready all the same."""
    async with asyncio.timeout(WAIT_S):
        while True:
            status, text = await get(world, "/readyz")
            if json.loads(text)["hosts"] == hosts:
                break
            await asyncio.sleep(0.05)
    assert status == 200


async def test_admins_hear_once_of_what_cannot_be_put_to_people_and_health_and_metrics_count_it(
    empty_world: World, a13n: A13nStandin, tmp_path: Path
) -> None:
    world = empty_world
    a13n.wait("run_beyond", "pay", BEYOND)
    await start(world, a13n, tmp_path, count=2)
    await world.slack.wait_for(lambda: notices(world), WAIT_S)
    a13n.wait("run_large", "send", LARGE)
    await until(world, {"a13n.a": {"status": "ok", "unopened": 2}})
    metrics = (await get(world, "/metrics"))[1]
    assert 'askgate_host_unopened{host="a13n.a"} 2.0' in metrics
    assert 'askgate_host_up{host="a13n.a"} 1.0' in metrics
    await world.lapse()
    await world.slack.wait_for(lambda: len(notices(world)) > 1, WAIT_S)
    first, second = notices(world)
    for words in (("run_beyond", "a13n.a", "2^53"), ("run_large", "a13n.a", "16 KiB")):
        said = first if words[0] in first else second
        assert all(word in said for word in words)
        assert (first + second).count(words[0]) == 1
    assert "Answer it where the host shows it" in first
    a13n.pending.clear()
    await until(world, {"a13n.a": {"status": "ok", "unopened": 0}})


async def test_a_host_that_is_away_is_named_by_readiness_and_metrics_and_people_go_on(
    empty_world: World, a13n: A13nStandin, tmp_path: Path
) -> None:
    world = empty_world
    a13n.status = 503
    await start(world, a13n, tmp_path)
    await until(world, {"a13n.a": {"status": "it answered 503, unavailable", "unopened": 0}})
    assert 'askgate_host_up{host="a13n.a"} 0.0' in (await get(world, "/metrics"))[1]
    a13n.status = 200
    await until(world, {"a13n.a": {"status": "ok", "unopened": 0}})
    assert 'askgate_host_up{host="a13n.a"} 1.0' in (await get(world, "/metrics"))[1]
