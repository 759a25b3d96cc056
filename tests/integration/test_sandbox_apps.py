"""An app in the local Slack is what its manifest says; and what the methods for who builds apps answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.manifest import manifest
from bot.sandbox import LocalSlack
from tests.integration.sandbox_app import modal, section, web_client
from tests.integration.test_sandbox_webapi import refusal
from tests.unit.test_limits import SIZES, VIEW_SIZES
from tests.unit.test_limits import modal as limit_modal

Json = dict[str, Any]


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        slack.add_user("ana")
        slack.add_channel("general", ["ana"])
        slack.add_channel("secret", ["ana"], private=True)
        yield slack


@pytest.fixture
async def client(slack: LocalSlack) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield web_client(slack, session)


def made(*scopes: str, events: list[str] | None = None) -> Json:
    """A manifest with these scopes and events."""
    found = manifest(None)
    found["oauth_config"]["scopes"]["bot"] = list(scopes)
    found["settings"]["event_subscriptions"]["bot_events"] = events or []
    return found


async def test_a_token_may_do_what_the_manifest_asks_for_and_no_more(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    slack.install(made("chat:write", "channels:history"))
    general, secret = slack.add_channel("general"), slack.add_channel("secret")
    answer = await client.chat_postMessage(channel=general, text="hello")
    assert answer.headers["X-OAuth-Scopes"] == "channels:history,chat:write"
    assert (await client.conversations_history(channel=general))["messages"]
    refused = await refusal(client.conversations_history(channel=secret))
    assert (refused["error"], refused["needed"]) == ("missing_scope", "groups:history")
    assert refused["provided"] == "channels:history,chat:write"
    assert (await refusal(client.conversations_members(channel=general)))["needed"] == "channels:read"
    assert (await refusal(client.usergroups_users_list(usergroup="S1")))["needed"] == "usergroups:read"


async def test_an_app_without_a_manifest_may_do_everything(slack: LocalSlack, client: AsyncWebClient) -> None:
    answer = await client.conversations_members(channel=slack.add_channel("secret"))
    assert "X-OAuth-Scopes" not in answer.headers


async def test_the_page_hints_at_the_manifests_commands(slack: LocalSlack) -> None:
    slack.install(manifest(None))
    async with aiohttp.ClientSession() as session, session.get(f"{slack.url}/ui/state") as response:
        commands = (await response.json())["commands"]
    wanted = manifest(None)["features"]["slash_commands"]
    assert [found["command"] for found in commands] == [found["command"] for found in wanted]


async def test_messages_reach_who_subscribed_to_their_kind_of_conversation(slack: LocalSlack) -> None:
    slack.app.request_url = f"{slack.url}/nobody-listens-here"
    slack.courier.retry_delays = ()
    sent = []
    deliver = slack.courier._deliver

    async def noted(app: Any, payload: Json) -> None:
        sent.append(payload["event"]["channel"])
        await deliver(app, payload)

    slack.courier._deliver = noted  # type: ignore[method-assign]  # the real delivery goes on behind it
    ana, general, secret = slack.as_user("ana"), slack.add_channel("general"), slack.add_channel("secret")
    for events in (["message.groups"], ["message.channels"], ["message.im"], []):
        slack.install(made(events=events))
        await ana.say(general, "one")
        await ana.say(secret, "two")
        await slack.quiet()
    assert sent == [secret, general]


# what builders ask


async def test_a_manifest_is_shown_to_a_configuration_token_alone(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    slack.install(manifest(None))
    found = await client.apps_manifest_export(app_id=slack.app.id, token="xoxe.xoxp-test")
    assert found["manifest"]["settings"] == manifest(None)["settings"]
    for token, error in (("xoxb-test", "not_allowed_token_type"), ("xoxe.xoxp-other", "invalid_auth")):
        assert (await refusal(client.apps_manifest_export(app_id=slack.app.id, token=token)))[
            "error"
        ] == error
    wrong = await refusal(client.apps_manifest_export(app_id="A9", token="xoxe.xoxp-test"))
    assert wrong["error"] == "invalid_app_id"
    assert (await refusal(client.auth_test(token="xoxe.xoxp-test")))["error"] == "not_allowed_token_type"


async def test_the_validator_takes_what_is_legal_without_any_token(slack: LocalSlack) -> None:
    blocks = [section("hello")]
    async with aiohttp.ClientSession() as session:
        for body in (
            {"blocks": json.dumps(blocks)},
            {"message": json.dumps({"text": "hello", "blocks": blocks})},
            {"view": json.dumps(modal(section("hello")))},
        ):
            async with session.post(f"{slack.api_url}blocks.validate", data=body) as response:
                assert await response.json() == {"ok": True}


@pytest.mark.parametrize("given", [{}, {"blocks": "[]", "message": "{}"}, {"blocks": "{"}, {"view": "[1]"}])
async def test_the_validator_wants_exactly_one_thing(client: AsyncWebClient, given: Json) -> None:
    assert (await refusal(client.api_call("blocks.validate", data=given)))["error"] == "invalid_arguments"


async def test_every_way_in_refuses_by_the_table_of_limits(slack: LocalSlack, client: AsyncWebClient) -> None:
    general = slack.add_channel("general")
    for name, most, make in SIZES:
        legal, over = json.dumps([make(most)]), json.dumps([make(most + 1)])
        assert (await client.api_call("blocks.validate", data={"blocks": legal}))["ok"], name
        refused = await refusal(client.api_call("blocks.validate", data={"blocks": over}))
        assert refused["error"] == "invalid_blocks", name
        assert {"pointer", "code", "message"} == set(refused["errors"][0])
        assert (await client.chat_postMessage(channel=general, text="x", blocks=legal))["ok"], name
        told = await refusal(client.chat_postMessage(channel=general, text="x", blocks=over))
        assert told["error"] == "invalid_blocks", name
        assert refused["errors"][0]["pointer"] in told["response_metadata"]["messages"][0]


async def test_views_are_refused_by_the_table_of_limits(slack: LocalSlack, client: AsyncWebClient) -> None:
    for name, most, make in VIEW_SIZES:
        legal, over = (json.dumps(limit_modal(**make(size))) for size in (most, most + 1))
        assert (await client.api_call("blocks.validate", data={"view": legal}))["ok"], name
        refused = await refusal(client.api_call("blocks.validate", data={"view": over}))
        assert refused["error"] == "invalid_view", name
