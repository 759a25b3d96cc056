"""The agenda's handler for reminders, moved through an hour on a real server and against the local Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards.limits import check_message
from bot.sandbox.slack import LocalSlack
from bot.slack.audience import Audience
from bot.slack.burden import MANY
from bot.slack.client import Slack
from bot.slack.delivery import Delivery
from bot.slack.digests import LISTED, Digests
from bot.slack.directory import SlackDirectory
from bot.slack.quiet import QuietHours
from bot.slack.reminders import Reminders, reminder
from core.agenda import TryAgain, Worker
from core.copies import FIRST_COPY, card_in
from core.engine import ResumeEngine
from core.policy import Key, Person
from core.quiet import Quiet, parse_quiet
from core.runs import Run
from core.store.keys import Keys
from tests.runs import approval, run_request

START = "2026-01-05T09:00:00Z"


class Desk:
    """A channel, and the handlers of one worker."""

    def __init__(
        self, engine: ResumeEngine, slack: LocalSlack, client: AsyncWebClient, quiet: Quiet | None = None
    ) -> None:
        engine.home = "T0LOCAL"
        self.engine = engine
        self.slack = slack
        self.ana = slack.add_user("ana")
        self.eve = slack.add_user("eve")
        self.channel = slack.add_channel("ops", [self.ana])
        api = Slack(client)
        hours = QuietHours(quiet, api, engine.store.clock)
        self.reminders = Reminders(engine, api, hours)
        handlers = {
            "card": Delivery(engine, api, Audience(engine, SlackDirectory(client))).card,
            "remind": self.reminders.remind,
            "nudge": Digests(engine, api, hours).nudge,
            "escalate": engine.escalate,
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

    def dms(self, name: str = "ana") -> list[str]:
        """What somebody was told in their DM about what waits, oldest first."""
        texts = [self.slack.text_of(m) for m in self.slack.messages(self.slack.as_user(name).dm)]
        return [text for text in texts if "wait for you" in text or "waits for you" in text]

    async def later(self, clock: FrozenDateTimeFactory, **time: float) -> None:
        """Let time pass, and do what falls due."""
        clock.tick(timedelta(**time))
        await self.worker.run_once()


@pytest.fixture
async def desk(engine: ResumeEngine) -> AsyncIterator[Desk]:
    async with LocalSlack() as slack:
        client = AsyncWebClient(token="xoxb-test", base_url=slack.api_url, retry_handlers=[])
        yield Desk(engine, slack, client)


async def test_each_reminder_comes_at_its_time_and_the_last_is_the_last(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        await desk.opened(3600, 7200)
        counts = []
        for _ in range(5):
            await desk.later(clock, seconds=1800)
            counts.append(desk.given())
        assert counts == [0, 1, 1, 2, 2]
        assert desk.dms() == []


async def test_those_that_were_missed_are_one_and_the_next_one_keeps_its_time(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run = await desk.opened(60, 120, 180, 4600)
        await desk.later(clock, seconds=1000)
        assert desk.given() == 1
        assert (await desk.engine.run(run.id)).reminded == 3
        await desk.later(clock, seconds=3601)
        assert desk.given() == 2


async def test_nobody_gets_two_within_an_hour_and_what_waited_comes_in_one(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        first = await desk.opened(600, 1200, title="First")
        await desk.opened(660, title="Second")
        third = await desk.opened(720, title="Third")
        await desk.later(clock, seconds=600)
        for _ in range(4):
            await desk.later(clock, seconds=200)
        assert (desk.given(), desk.dms()) == (1, [])
        await desk.engine.cancel(third.id, None, by=Key(key="ci"), via="api")
        await desk.later(clock, seconds=2799)
        assert (desk.given(), desk.dms()) == (1, [])
        await desk.later(clock, seconds=2)
        [digest] = desk.dms()
        assert digest.startswith("2 gates wait for you")
        assert all(title in digest for title in ("First", "Second"))
        assert "Third" not in digest
        await desk.later(clock, hours=5)
        assert (desk.given(), len(desk.dms())) == (1, 1)
        await desk.engine.cancel(first.id, None, by=Key(key="ci"), via="api")


async def test_with_many_gates_open_somebody_gets_one_message_about_all(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        for number in range(MANY + 1):
            await desk.opened(600, title=f"Job {number}")
        await desk.later(clock, seconds=600)
        [digest] = desk.dms()
        assert desk.given() == 0
        assert digest.startswith("6 gates wait for you")
        assert all(f"Job {number}" in digest for number in range(6))
        [message] = desk.slack.messages(desk.slack.as_user("ana").dm)
        assert check_message({"text": message["text"], "blocks": message["blocks"]}) == []
        assert [b["accessory"]["url"] for b in message["blocks"] if "accessory" in b] != []
        for number in range(LISTED):
            await desk.opened(600, title=f"More {number}")
        await desk.later(clock, hours=2)
        assert len(desk.dms()) == 2
        assert desk.dms()[1].startswith("16 gates wait for you")
        assert "And 6 more" in desk.dms()[1]


async def test_what_is_settled_before_the_digest_is_not_in_it_and_an_empty_one_is_not_sent(
    desk: Desk,
) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        await desk.opened(600)
        second = await desk.opened(660)
        await desk.later(clock, seconds=600)
        await desk.later(clock, seconds=60)
        await desk.engine.cancel(second.id, None, by=Key(key="ci"), via="api")
        await desk.later(clock, hours=2)
        assert (desk.given(), desk.dms()) == (1, [])
        assert await desk.engine.store.nudges.waiting(Person(team="T0LOCAL", user=desk.ana)) == []


async def test_a_digest_that_was_sent_unheard_is_found_and_one_that_slack_could_not_take_comes_later(
    desk: Desk,
) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        await desk.opened(600)
        await desk.opened(660)
        await desk.later(clock, seconds=600)
        await desk.later(clock, seconds=60)
        desk.slack.fail("chat.postMessage", reset_after_accept=True)
        for _ in range(3):
            await desk.later(clock, hours=1)
        assert len(desk.dms()) == 1
        await desk.opened(60)
        desk.slack.fail("chat.postMessage", status=500, times=2)
        for _ in range(4):
            await desk.later(clock, minutes=10)
        assert (desk.given(), len(desk.dms())) == (2, 1)


async def test_who_has_a_copy_is_reminded_there(desk: Desk) -> None:
    with freeze_time(START, real_asyncio=True) as clock:
        run = await desk.opened(600, policy={"approvers": [desk.ana, desk.eve]})
        await desk.later(clock, seconds=600)
        [dm] = [m for m in desk.slack.messages(desk.slack.as_user("eve").dm) if "still open" in str(m)]
        [shared] = [m for m in desk.slack.messages(desk.channel) if "still open" in str(m)]
        assert desk.slack.text_of(dm).startswith("⏰ @eve: This is still open")
        assert desk.slack.text_of(shared).startswith("⏰ @ana: This is still open")
        copy = card_in(await desk.engine.run(run.id), FIRST_COPY)
        assert copy is not None
        assert dm["thread_ts"] == copy.ts


# quiet hours


@pytest.fixture
async def quiet_desk(engine: ResumeEngine) -> AsyncIterator[Callable[[str], Desk]]:
    """Makes desks with quiet hours."""
    async with LocalSlack() as slack:
        client = AsyncWebClient(token="xoxb-test", base_url=slack.api_url, retry_handlers=[])
        yield lambda text: Desk(engine, slack, client, parse_quiet(text))


async def test_nobody_is_reminded_in_quiet_hours_but_when_they_end(quiet_desk: Callable[[str], Desk]) -> None:
    desk = quiet_desk("22:00-07:00 weekends Europe/Berlin")
    with freeze_time("2026-01-09T20:00:00Z", real_asyncio=True) as clock:  # a Friday, 21:00 in Berlin
        await desk.opened(7200, timeout_s=6 * 86_400)
        await desk.later(clock, hours=2)
        await desk.later(clock, hours=40)
        assert desk.given() == 0
        await desk.later(clock, hours=15)  # Monday, 06:00
        assert desk.given() == 0
        await desk.later(clock, hours=1)
        assert desk.given() == 1


async def test_each_person_has_the_quiet_of_their_own_zone(quiet_desk: Callable[[str], Desk]) -> None:
    desk = quiet_desk("22:00-07:00")
    desk.slack.add_user("kim", tz="Asia/Tokyo")
    kim = desk.slack.as_user("kim").id
    desk.slack.add_channel("ops", ["kim"])
    with freeze_time("2026-01-05T13:30:00Z", real_asyncio=True) as clock:  # 22:30 in Tokyo
        await desk.opened(60, policy={"approvers": [desk.ana, kim]}, timeout_s=86_400)
        await desk.later(clock, seconds=60)
        [shared] = [m for m in desk.slack.messages(desk.channel) if "still open" in str(m)]
        assert desk.slack.text_of(shared).startswith("⏰ @ana: ")
        await desk.later(clock, hours=8)
        assert desk.dms("kim") == []
        await desk.later(clock, minutes=30)
        assert [text.splitlines()[0] for text in desk.dms("kim")] == ["1 gate waits for you"]
        assert desk.given() == 1


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
    people = [Person(team="T1", user=user) for user in approvers if user.startswith("U")]
    message = reminder(run, "https://example.com/archives/C1/p1?a=1&b=2", people)
    assert check_message({"text": message.text, "blocks": message.blocks}) == []
    text = message.blocks[0]["text"]["text"]
    assert text.count("<@") == 20
    assert "and 180 more" in text
    assert "?a=1&amp;b=2|" in text
    assert "<!channel>" not in message.text
