"""What each of Slack's error codes means is in one table, and comes out as one of four exceptions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import LocalSlack
from bot.slack.errors import MEANINGS, UNSAID_MS, Meaning, SlackBusy, SlackGone, SlackRefused, again, meanings


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        yield slack


def client(slack: LocalSlack) -> AsyncWebClient:
    return AsyncWebClient(token="xoxb-test", base_url=slack.api_url, retry_handlers=[])


async def test_every_code_of_the_table_means_what_it_says(slack: LocalSlack) -> None:
    api = client(slack)
    for code, meaning in MEANINGS.items():
        slack.fail("auth.test", error=code)
        expected = SlackGone if meaning is Meaning.GONE else SlackRefused
        with pytest.raises(expected) as failed, meanings():
            await api.auth_test()
        assert failed.value.code == code
        if isinstance(failed.value, SlackRefused):
            assert failed.value.meaning is meaning


@pytest.mark.parametrize("code", ["internal_error", "fatal_error", "service_unavailable", "never_heard_of"])
async def test_any_other_code_is_asked_again_and_may_have_been_done(slack: LocalSlack, code: str) -> None:
    slack.fail("auth.test", error=code)
    with pytest.raises(SlackBusy) as failed, meanings():
        await client(slack).auth_test()
    assert (failed.value.code, failed.value.in_ms, failed.value.certain) == (code, None, False)
    assert again([failed.value]).tried


async def test_too_many_calls_are_certainly_not_done_and_wait_as_long_as_slack_says(
    slack: LocalSlack,
) -> None:
    slack.fail("auth.test", status=429, retry_after=7)
    slack.fail("auth.test", error="ratelimited")
    for wait_ms in (7000, UNSAID_MS):
        with pytest.raises(SlackBusy) as failed, meanings():
            await client(slack).auth_test()
        assert (failed.value.in_ms, failed.value.certain) == (wait_ms, True)
        assert not again([failed.value]).tried


async def test_a_network_that_breaks_may_have_done_it(slack: LocalSlack) -> None:
    slack.fail("auth.test", reset_after_accept=True)
    with pytest.raises(SlackBusy) as failed, meanings():
        await client(slack).auth_test()
    assert (failed.value.in_ms, failed.value.certain) == (None, False)
