"""When reminders come, as time passes on a whole askgate: not in quiet hours, and one a person and hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from bot.sandbox.slack import LocalSlack
from bot.testing import Local
from tests.acceptance.conftest import MODES
from tests.runs import approval, body


def local_in(mode: str, store: str, folder: Path, **settings: str) -> Local:
    """askgate that Slack reaches by signed HTTP or by Socket Mode."""
    if mode == "socket":
        settings["SLACK_APP_TOKEN"] = "xapp-test"
    found = Local(folder, redis_url=store, settings=settings)
    found.slack = LocalSlack(app_token=settings.get("SLACK_APP_TOKEN"))
    return found


async def ask_ana(local: Local, title: str) -> None:
    policy, place = {"approvers": [local.id("ana")]}, {"channel": local.channel}
    run = body([], [approval("a")], place=place, policy=policy, title=title)
    await local.call("POST", "/runs", {**run, "timeout_s": 86_400, "remind_after_s": [60]})
    await local.sees("ana", title)


def reminded(local: Local) -> list[str]:
    """What reminds Ana, in the channel and in a direct message."""
    ana = local["ana"]
    seen = [ana.text(message) for place in (local.channel, ana.dm) for message in local.slack.messages(place)]
    return [text for text in seen if "still open" in text or "for you" in text.partition("\n")[0]]


@pytest.mark.parametrize("mode", MODES)
async def test_in_quiet_hours_nobody_is_reminded_until_they_end(
    mode: str, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    quiet = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=3):%H:%M} UTC"
    async with local_in(mode, redis_url, tmp_path, ASKGATE_QUIET_HOURS=quiet) as local:
        await ask_ana(local, "Clean up")
        await local.skip(hours=2)
        assert reminded(local) == []
        await local.skip(hours=1, minutes=1)
        await local.sees("ana", "@ana: This is still open")


@pytest.mark.parametrize("mode", MODES)
async def test_nobody_is_reminded_twice_within_an_hour_and_the_rest_comes_in_one_message(
    mode: str, redis_url: str, redis: Redis, tmp_path: Path
) -> None:
    async with local_in(mode, redis_url, tmp_path) as local:
        for title in ("First", "Second", "Third"):
            await ask_ana(local, title)
        await local.skip(minutes=2)
        assert len(reminded(local)) == 1
        await local.skip(minutes=50)
        assert len(reminded(local)) == 1
        await local.skip(minutes=15)
        await local.sees("ana", "2 gates wait for you", channel=local["ana"].dm)
        assert len(reminded(local)) == 2
