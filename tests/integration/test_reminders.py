"""The agenda's handler for reminders, moved through an hour on a real server and against the local Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from redis.asyncio import Redis
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards.limits import check_message
from bot.sandbox.slack import LocalSlack
from bot.slack.audience import Audience
from bot.slack.client import Slack
from bot.slack.delivery import Delivery
from bot.slack.directory import SlackDirectory
from bot.slack.reminders import Reminders, reminder
from core.agenda import TryAgain, Worker
from core.engine import ResumeEngine
from core.policy import Key
from core.runs import Run
from core.store.keys import Keys
from tests.runs import approval, run_request

START = "2026-01-05T09:00:00Z"


class Desk:
    """A channel, and the handlers of one worker."""

    def __init__(self, engine: ResumeEngine, slack: LocalSlack, client: AsyncWebClient) -> None:
        self.engine = engine
        self.slack = slack
        self.ana = slack.add_user("ana")
        self.channel = slack.add_channel("ops", [self.ana])
        api = Slack(client)
        self.reminders = Reminders(engine, api)
        handlers = {
            "card": Delivery(engine, api, Audience(engine, SlackDirectory(client))).card,
            "remind": self.reminders.remind,
        }
        self.worker = Worker(engine.store, engine.bell, handlers)

    async def opened(self, *after_s: int, **more: Any) -> Run:
        """A run with these reminders, its card in the channel."""
        more = {"place": {"channel": self.channel}, "policy": {"approvers": [self.ana]}, **more}
        request = run_request([], [approval()], remind_after_s=list(after_s), **more)
        run, _ = await self.engine.suspend(request, owner="ci")
        await self.worker.run_once()
        return run

    def given(self) -> int:
        """How many reminders stand in the channel."""
        texts = [self.slack.text_of(message) for message in self.slack.messages(self.channel)]
        return sum("still open" in text for text in texts)


@pytest.fixture
async def desk(engine: ResumeEngine) -> AsyncIterator[Desk]:
    async with LocalSlack() as slack:
        client = AsyncWebClient(token="xoxb-test", base_url=slack.api_url, retry_handlers=[])
        yield Desk(engine, slack, client)


async def test_each_reminder_comes_at_its_time_and_the_last_is_the_last(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        await desk.opened(600, 1200)
        counts = []
        for _ in range(5):
            clock.tick(timedelta(seconds=300))
            await desk.worker.run_once()
            counts.append(desk.given())
        assert counts == [0, 1, 1, 2, 2]


async def test_those_that_were_missed_are_one_and_the_next_one_keeps_its_time(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run = await desk.opened(60, 120, 180, 3600)
        clock.tick(timedelta(seconds=1000))
        await desk.worker.run_once()
        assert desk.given() == 1
        assert (await desk.engine.run(run.id)).reminded == 3
        clock.tick(timedelta(seconds=2601))
        await desk.worker.run_once()
        assert desk.given() == 2


async def test_a_reminder_whose_giver_died_before_it_was_noted_is_found_and_not_given_twice(
    desk: Desk, redis: Redis
) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run = await desk.opened(60)
        clock.tick(timedelta(seconds=61))
        await desk.reminders.remind(run.id, 1)
        partition = int(run.id.split("_")[1])
        await redis.hdel(Keys(partition).run(run.id), "reminded")
        await desk.reminders.remind(run.id, 2)
        assert desk.given() == 1
        assert (await desk.engine.run(run.id)).reminded == 1


async def test_a_reminder_waits_for_its_card_and_for_slack(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        desk.slack.fail("chat.postMessage", status=500)
        run = await desk.opened(60)
        clock.tick(timedelta(seconds=61))
        with pytest.raises(TryAgain):
            await desk.reminders.remind(run.id, 1)
        await desk.worker.run_once()
        assert (await desk.engine.run(run.id)).cards
        desk.slack.fail("chat.getPermalink", status=429, retry_after=7)
        with pytest.raises(TryAgain) as later:
            await desk.reminders.remind(run.id, 1)
        assert later.value.in_ms == 7000
        assert desk.given() == 0
        await desk.reminders.remind(run.id, 2)
        assert desk.given() == 1


async def test_nothing_reminds_of_what_is_settled_or_gone(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run = await desk.opened(60)
        await desk.engine.cancel(run.id, None, by=Key(key="ci"), via="api")
        clock.tick(timedelta(seconds=61))
        await desk.worker.run_once()
        await desk.reminders.remind(run.id, 1)
        await desk.reminders.remind("run_00_01ARZ3NDEKTSV4RRFFQ69G5FAV", 1)
        assert desk.given() == 0


async def test_a_crowd_is_counted_and_the_message_is_legal(desk: Desk) -> None:
    approvers = [f"U{number:031d}" for number in range(200)] + ["S1", "channel"]
    run = await desk.opened(60, policy={"approvers": approvers}, title="<!channel> & more")
    message = reminder(run, "https://example.com/archives/C1/p1?a=1&b=2", home="T1")
    assert check_message({"text": message.text, "blocks": message.blocks}) == []
    text = message.blocks[0]["text"]["text"]
    assert text.count("<@") == 20
    assert "and 180 more" in text
    assert "?a=1&amp;b=2|" in text
    assert "<!channel>" not in message.text
