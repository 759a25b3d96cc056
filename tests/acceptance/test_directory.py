"""Who is in a channel or a group is asked of Slack when it counts, as seldom as that can be right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import LocalSlack
from bot.slack.client import CLICK_TIMEOUT_S
from bot.slack.directory import KEPT_NO_S, KEPT_S, SlackDirectory
from core.errors import CannotVerify
from core.policy import Person


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
