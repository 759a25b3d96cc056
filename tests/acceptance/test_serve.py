"""`askgate serve` as a process of its own: how it stops, and what it says when it cannot start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot.sandbox import LocalSlack
from core.store.connect import fast_client
from tests.acceptance.world import World
from tests.runs import ask, body, question_call
from tests.shell import Shell, bare

ROOT = Path(__file__).parents[2]
URL = re.compile(r"http://127\.0\.0\.1:\d+")


class Served:
    """A running `askgate serve`."""

    def __init__(self, process: asyncio.subprocess.Process, errors: asyncio.StreamReader) -> None:
        self.process = process
        self._errors = errors

    async def stopped(self, number: int) -> tuple[int, str]:
        """Send a signal; returns the exit code and what else was said, once it has ended."""
        self.process.send_signal(number)
        said = (await self._errors.read()).decode()
        return await self.process.wait(), said


@contextlib.asynccontextmanager
async def serving(world: World, **more: Any) -> AsyncIterator[Served]:
    """`askgate serve` in a process of its own, connected to the world's Slack."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ASKGATE_", "SLACK_"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from bot.cli import main; main()",
        "serve",
        env=env | world.settings(ASKGATE_LOG_LEVEL="error", **more) | {"PYTHONPATH": str(ROOT)},
        cwd=world.folder,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
        found = URL.search(line)
        assert found, line
        world.api.url = found[0]
        if world.mode == "http":
            world.slack.app.request_url = f"{found[0]}/slack/events"
        yield Served(process, process.stderr)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_click_under_way_is_finished_before_the_process_ends_with_code_0(
    empty_world: World, number: int
) -> None:
    world = empty_world
    group = world.slack.add_group("leads", ["ana"])
    async with serving(world) as served:
        asked = body(
            [question_call("q", ask())], place={"channel": world.ops}, policy={"responders": [group]}
        )
        run = await world.api.open(asked)
        card = await world.card(run)
        world.slack.fail("usergroups.users.list", delay=0.6)
        click = asyncio.create_task(world.ana.click("Focused", message=card))
        await world.slack.wait_for(lambda: not world.slack.api.faults.waiting)
        code, said = await served.stopped(number)
        assert (code, said) == (0, "")
        assert (await click).ok
    await world.start()
    result = (await world.api.settled(run))["calls"]["q"]
    assert result["value"]["answers"] == {"Which scope should be used?": "Focused"}
    await world.shows(run, "Answered by @ana")


async def test_a_caller_who_waits_is_answered_when_the_process_stops(empty_world: World) -> None:
    world = empty_world
    async with serving(world) as served:
        run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
        waiting = asyncio.create_task(world.api.ok("GET", f"/runs/{run['id']}?wait=60"))
        await world.card(run)
        code, _ = await served.stopped(signal.SIGTERM)
        assert code == 0
        assert (await waiting)["status"] == "waiting"


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as found:
        yield found


@pytest.fixture
def shell(
    slack: LocalSlack, redis_url: str, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """A shell in which everything is set right."""
    bare(monkeypatch, tmp_path)
    return Shell(
        {
            "SLACK_BOT_TOKEN": "xoxb-test",
            "SLACK_SIGNING_SECRET": slack.app.signing_secret,
            "SLACK_API_URL": slack.api_url,
            "ASKGATE_REDIS_URL": redis_url,
            "ASKGATE_API_KEYS": "agent=acceptance-key-0001",
            "ASKGATE_BIND": "127.0.0.1:0",
        }
    )


WRONG = {
    "no bot token": ({"SLACK_BOT_TOKEN": ""}, "SLACK_BOT_TOKEN", "xoxb-"),
    "odd bot token": ({"SLACK_BOT_TOKEN": "secret"}, "SLACK_BOT_TOKEN", "xoxb-"),
    "foreign bot token": ({"SLACK_BOT_TOKEN": "xoxb-foreign"}, "SLACK_BOT_TOKEN", "invalid_auth"),
    "no signing secret": ({"SLACK_SIGNING_SECRET": ""}, "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN"),
    "foreign app token": ({"SLACK_APP_TOKEN": "xapp-foreign"}, "SLACK_APP_TOKEN", "invalid_auth"),
    "no api keys": ({"ASKGATE_API_KEYS": ""}, "ASKGATE_API_KEYS", "name=secret"),
    "short api key": ({"ASKGATE_API_KEYS": "agent=short"}, "ASKGATE_API_KEYS", "16"),
    "no slack there": ({"SLACK_API_URL": "http://127.0.0.1:9/api"}, "SLACK_API_URL", "cannot be reached"),
    "no store there": ({"ASKGATE_REDIS_URL": "redis://127.0.0.1:9/0"}, "ASKGATE_REDIS_URL", "cannot be reached"),
    "no store socket": ({"ASKGATE_REDIS_URL": "unix:///nowhere.sock"}, "ASKGATE_REDIS_URL", "cannot be reached"),
    "odd store": ({"ASKGATE_REDIS_URL": "http://127.0.0.1"}, "ASKGATE_REDIS_URL", "redis://"),
    "odd bind": ({"ASKGATE_BIND": "8080"}, "ASKGATE_BIND", "127.0.0.1:8080"),
    "odd partitions": ({"ASKGATE_PARTITIONS": "many"}, "ASKGATE_PARTITIONS", "whole number"),
    "slip": ({"ASKGATE_ADMIN": "U1"}, "ASKGATE_ADMIN", "ASKGATE_ADMINS"),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "name", "wanted"), WRONG.values(), ids=WRONG)
async def test_a_missing_or_wrong_setting_is_one_line_and_exit_code_2(
    shell: Shell, changed: dict[str, str], name: str, wanted: str
) -> None:
    shell.settings |= changed
    said = await shell("serve")
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert line.startswith(f"askgate: {name}: ")
    assert wanted in line
    assert not any(secret in line for secret in ("acceptance-key", "xoxb-test", "secret-of"))


async def test_a_port_that_is_taken_is_one_line_and_exit_code_2(shell: Shell) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        shell.settings["ASKGATE_BIND"] = f"127.0.0.1:{taken.getsockname()[1]}"
        said = await shell("serve")
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert line.startswith("askgate: ASKGATE_BIND: cannot listen")


async def test_a_store_of_another_make_is_one_line_and_exit_code_2(shell: Shell, redis_url: str) -> None:
    client = fast_client(redis_url)
    await client.hset("ag:meta", "partitions", "7")
    await client.aclose()
    said = await shell("serve")
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert line.startswith("askgate: ASKGATE_PARTITIONS: ")
    assert "ASKGATE_PARTITIONS=7" in line
