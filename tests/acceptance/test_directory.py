"""Who is in a channel or a group is asked of Slack when it counts, as seldom as that can be right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import LocalSlack
from bot.slack import directory as directories
from bot.slack.client import CLICK_TIMEOUT_S
from bot.slack.directory import KEPT_NO_S, KEPT_S, SlackDirectory
from core.clock import WallClock
from core.errors import CannotVerify
from core.policy import Person
from core.store.pace import Pace
from tests.acceptance.world import World
from tests.runs import approval, ask, body, question_call


class Time:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        for name in ("ana", "ben", "cho"):
            slack.add_user(name)
        yield slack


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
async def directory(slack: LocalSlack, time: Time) -> AsyncIterator[SlackDirectory]:
    found = SlackDirectory(AsyncWebClient(token="xoxb-test", base_url=slack.api_url), time)
    yield found
    await found.close()


def who(slack: LocalSlack, name: str) -> Person:
    return Person(team="T0LOCAL", user=slack.as_user(name).id)


async def test_a_yes_is_remembered_for_a_minute(
    slack: LocalSlack, directory: SlackDirectory, time: Time
) -> None:
    ops = slack.add_channel("ops", ["ana"])
    for _ in range(3):
        assert await directory.in_channel(ops, who(slack, "ana"))
        time.now += KEPT_S / 3
    assert len(slack.called("conversations.members")) == 1
    assert await directory.in_channel(ops, who(slack, "ana"))
    assert len(slack.called("conversations.members")) == 2


async def test_who_has_just_joined_a_channel_or_a_group_is_not_refused_for_a_minute(
    slack: LocalSlack, directory: SlackDirectory, time: Time
) -> None:
    ops, leads = slack.add_channel("ops", ["ana"]), slack.add_group("leads", ["ana"])
    ana, ben = who(slack, "ana"), who(slack, "ben")
    assert await directory.in_channel(ops, ana)
    assert await directory.in_group(leads, ana)
    slack.add_channel("ops", ["ben"])
    slack.add_group("leads", ["ana", "ben"])
    time.now += KEPT_NO_S
    assert await directory.in_channel(ops, ben)
    assert await directory.in_group(leads, ben)


async def test_a_crowd_of_strangers_asks_slack_once_in_a_few_seconds(
    slack: LocalSlack, directory: SlackDirectory, time: Time
) -> None:
    assert KEPT_NO_S <= 5
    ops = slack.add_channel("ops", ["ana"])
    for _ in range(10):
        assert not await directory.in_channel(ops, who(slack, "ben"))
        time.now += KEPT_NO_S / 5
    assert len(slack.called("conversations.members")) == 2


async def test_a_no_that_cannot_be_checked_again_is_no_answer(
    slack: LocalSlack, directory: SlackDirectory, time: Time
) -> None:
    ops = slack.add_channel("ops", ["ana"])
    assert not await directory.in_channel(ops, who(slack, "ben"))
    time.now += KEPT_NO_S
    slack.fail("conversations.members", status=500)
    with pytest.raises(CannotVerify):
        await directory.in_channel(ops, who(slack, "ben"))
    assert await directory.in_channel(ops, who(slack, "ana"))


async def test_all_who_ask_at_once_share_one_look_up(slack: LocalSlack, directory: SlackDirectory) -> None:
    ops = slack.add_channel("ops", ["ana", "cho"])
    people = [who(slack, name) for name in ("ana", "ben", "cho")] * 20
    said = await asyncio.gather(*(directory.in_channel(ops, person) for person in people))
    assert said == [True, False, True] * 20
    assert len(slack.called("conversations.members")) == 1


async def test_a_look_up_too_slow_for_one_click_is_there_for_the_next(
    slack: LocalSlack, directory: SlackDirectory
) -> None:
    ops = slack.add_channel("ops", ["ana"])
    slack.fail("conversations.members", delay=CLICK_TIMEOUT_S + 0.3)
    with pytest.raises(CannotVerify):
        await directory.in_channel(ops, who(slack, "ana"))
    await slack.wait_for(lambda: slack.called("conversations.members"))
    assert await directory.in_channel(ops, who(slack, "ana"))
    assert len(slack.called("conversations.members")) == 1


# large channels


def crowd(slack: LocalSlack, count: int) -> str:
    """A channel with so many people before Ana and Cho in it."""
    return slack.add_channel("all", [*(slack.add_user(f"user{n}") for n in range(count)), "ana", "cho"])


async def test_a_large_channel_takes_two_calls_however_many_are_in_it(
    slack: LocalSlack, directory: SlackDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "PAGE", 10)
    channel = crowd(slack, 95)
    for _ in range(3):
        assert await directory.in_channel(channel, who(slack, "ana"))
        assert await directory.in_channel(channel, who(slack, "user3"))
        assert not await directory.in_channel(channel, who(slack, "ben"))
    assert len(slack.called("conversations.members")) == 1
    asked = [call.args["user"] for call in slack.called("users.conversations")]
    assert asked == [who(slack, "ana").user, who(slack, "ben").user]


async def test_who_is_in_more_channels_than_fit_one_page_is_found_in_the_last(
    slack: LocalSlack, directory: SlackDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "PAGE", 3)
    for number in range(7):
        slack.add_channel(f"before{number}", ["ana"])
    assert await directory.in_channel(crowd(slack, 5), who(slack, "ana"))


async def test_who_leaves_or_joins_a_large_channel_is_known_in_time(
    slack: LocalSlack, directory: SlackDirectory, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "PAGE", 2)
    channel = crowd(slack, 5)
    assert await directory.in_channel(channel, who(slack, "ana"))
    assert not await directory.in_channel(channel, who(slack, "ben"))
    slack.add_channel("all", ["ben"])
    slack.world.channels[channel].members.remove(who(slack, "ana").user)
    time.now += KEPT_NO_S
    assert await directory.in_channel(channel, who(slack, "ben"))
    time.now += KEPT_S
    assert not await directory.in_channel(channel, who(slack, "ana"))


# when Slack does not tell


async def test_while_slack_wants_no_more_questions_none_is_asked_by_any_process(
    slack: LocalSlack, redis: Redis
) -> None:
    ops, pace = slack.add_channel("ops", ["ana"]), Pace(redis, WallClock())
    clients = [AsyncWebClient(token="xoxb-test", base_url=slack.api_url, retry_handlers=[]) for _ in range(2)]
    first, second = (SlackDirectory(client, pace=pace) for client in clients)
    slack.fail("conversations.members", status=429, retry_after=30)
    for directory in (first, first, second):
        with pytest.raises(CannotVerify):
            await directory.in_channel(ops, who(slack, "ana"))
    assert len(slack.called("conversations.members")) == 1
    assert await second.is_active(who(slack, "ana"))


# people


async def test_a_deactivated_person_and_a_bot_are_nobody_who_decides(
    slack: LocalSlack, directory: SlackDirectory, time: Time
) -> None:
    assert await directory.is_active(who(slack, "ana"))
    slack.deactivate("ana")
    assert await directory.is_active(who(slack, "ana"))
    time.now += KEPT_S
    assert not await directory.is_active(who(slack, "ana"))
    assert not await directory.is_active(who(slack, slack.app.bot_user))


async def test_a_click_of_somebody_deactivated_meanwhile_is_refused_whatever_names_them(world: World) -> None:
    policies = [{"responders": [word]} for word in (world.ids["ana"], "channel", "anyone")]
    runs = [
        await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy=policy))
        for policy in policies
    ]
    world.slack.deactivate("ana")
    for run in runs:
        assert (await world.ana.click("Focused", message=await world.card(run))).ok
        assert await world.api.refusals(run) == [(world.ids["ana"], "not-allowed")]
        await world.ben.click("Focused", message=await world.card(run))
    for run in runs[1:]:
        await world.shows(run, "Answered by @ben")


async def test_who_is_named_decides_also_while_slack_says_nothing_about_people(world: World) -> None:
    policy = {"approvers": [world.ids["ana"]]}
    run = await world.api.open(body([], [approval("c")], place={"channel": world.ops}, policy=policy))
    world.slack.fail("users.info", status=500, times=99)
    assert (await world.ana.click("Approve", message=await world.card(run))).ok
    await world.shows(run, "Approved by @ana")
