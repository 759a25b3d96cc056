"""Time in the local Slack: what a skip moves, and what it leaves."""

from __future__ import annotations

import re
import time
from pathlib import Path

import aiohttp
import pytest
from slack_bolt.async_app import AsyncAck

from bot.sandbox import LocalSlack
from tests.integration.sandbox_app import buttons, modal, running, section, web_client
from tests.integration.test_sandbox_webapi import refusal


class Watch:
    """Follows the clock, and notes when it was told."""

    def __init__(self, slack: LocalSlack) -> None:
        self.slack = slack
        self.told: list[tuple[str, float]] = []

    async def before_skip(self) -> None:
        self.told.append(("before", self.slack.skipped))

    async def after_skip(self) -> None:
        self.told.append(("after", self.slack.skipped))


async def test_a_skip_moves_the_clock_and_tells_who_follows_it_before_and_after() -> None:
    async with LocalSlack() as slack:
        watch = Watch(slack)
        slack.followers.append(watch)
        await slack.skip(3600)
        assert 3599 < slack.now() - time.time() < 3605
        assert watch.told == [("before", 0.0), ("after", 3600)]
        for wrong in (0, -1):
            with pytest.raises(ValueError, match="time goes forward only"):
                await slack.skip(wrong)


async def test_messages_bear_the_workspaces_time_and_triggers_end_with_it() -> None:
    async with LocalSlack() as slack, aiohttp.ClientSession() as session:
        client = web_client(slack, session)
        ana = slack.add_user("ana")
        await slack.skip(86_400)
        posted = await client.chat_postMessage(channel=slack.add_channel("ops", ["ana"]), text="hello")
        assert float(posted["ts"]) - time.time() > 86_000
        trigger = slack.world.trigger(slack.app, ana)
        await slack.skip(4)
        refused = await refusal(client.views_open(trigger_id=trigger, view=modal(section("late"))))
        assert refused["error"] == "expired_trigger_id"


async def test_deliveries_are_signed_with_the_time_outside() -> None:
    """The app's clock is not Slack's to move, and it refuses what is five minutes old."""
    async with LocalSlack() as slack, running(slack) as bot:
        bot.bolt.action(re.compile(""))(acknowledge)
        slack.add_user("ana")
        general = slack.add_channel("ops", ["ana"])
        await slack.skip(86_400)
        await bot.client.chat_postMessage(channel=general, text="x", blocks=[buttons("Go")])
        assert (await slack.as_user("ana").click("Go")).ok
        assert abs(int(bot.asked[0]["X-Slack-Request-Timestamp"]) - time.time()) < 60


async def acknowledge(ack: AsyncAck) -> None:
    await ack()


async def test_a_skip_outlives_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "slack.json"
    async with LocalSlack(persist=file) as slack:
        await slack.skip(7200)
    async with LocalSlack(persist=file) as slack:
        assert slack.skipped == 7200


@pytest.mark.parametrize("seconds", [0, -5, 1.5, True, "60", None, 10**9])
async def test_the_page_may_skip_whole_seconds_up_to_a_month(seconds: object) -> None:
    async with LocalSlack() as slack, aiohttp.ClientSession() as session:
        body = {"user": slack.add_user("ana"), "seconds": seconds}
        async with session.post(f"{slack.url}/ui/skip", json=body) as response:
            assert response.status == 409
            assert "whole number from 1 to" in await response.text()
        async with session.post(f"{slack.url}/ui/skip", json={**body, "seconds": 60}) as response:
            assert await response.json() == {"ok": True}
        assert slack.skipped == 60
