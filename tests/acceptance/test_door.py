"""The door of HTTP mode: what does not come from Slack, or cannot be read, gets a 4xx and never a 500."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from slack_bolt.async_app import AsyncAck, AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient

from bot.listeners.actions import Actions
from bot.listeners.inbox import Inbox
from bot.listeners.lists import Lists
from bot.sandbox.delivery import sign
from bot.slack.client import Slack
from core.embedded import EmbeddedServer
from core.errors import StoreUnavailable
from tests.acceptance.world import Json, World
from tests.runs import ask, body, question_call

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


async def knock(
    world: World,
    raw: bytes,
    *,
    kind: str = FORM,
    headers: dict[str, str] | None = None,
    at: float | None = None,
    **changed: Any,
) -> tuple[int, str]:
    """POST to Slack's route, signed as Slack signs unless `headers` says otherwise. Returns status and text."""
    if headers is None:
        headers = sign(world.slack.app, raw, time.time() if at is None else at)
    headers = {"Content-Type": kind, **headers, **changed}
    url = f"{world.url}/slack/events"
    async with aiohttp.ClientSession() as session, session.post(url, data=raw, headers=headers) as response:
        return response.status, await response.text()


def form(payload: Any) -> bytes:
    return urlencode({"payload": payload if isinstance(payload, str) else json.dumps(payload)}).encode()


async def a_click(world: World) -> tuple[Json, Json]:
    """The payload of Ana's click on the one option of a run, and the run."""
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    card = await world.card(run)
    block = next(b for b in card["blocks"] if b["type"] == "actions")
    action = {**block["elements"][0], "block_id": block["block_id"], "action_ts": "1.0"}
    who = {"id": world.ids["ana"], "team_id": "T0LOCAL"}
    return run, {"type": "block_actions", "user": who, "team": {"id": "T0LOCAL"}, "actions": [action]}


NO_SUCH = [
    {"action_id": "pick:99"},
    {"action_id": "pick:1", "block_id": "{gate}/7/options"},
    {"action_id": "pick:1", "block_id": "{gate}/-1/options"},
    {"action_id": "other", "block_id": "{gate}/7/options"},
    {"action_id": "choose", "type": "static_select", "selected_option": {"value": "99"}},
    {"action_id": "approve"},
    {"action_id": "edit"},
    {"action_id": "fill"},
    {"action_id": "done"},
    {"action_id": "answer"},
]


@pytest.mark.parametrize("changed", NO_SUCH, ids=lambda changed: changed["action_id"])
async def test_a_click_on_what_no_card_offers_is_told_privately_and_changes_nothing(
    http_world: World, changed: Json
) -> None:
    run, payload = await a_click(http_world)
    gate = run["gates"][0]["id"]
    action = payload["actions"][0] | {name: form_of(value, gate) for name, value in changed.items()}
    answer = http_world.slack.world.response_url(
        http_world.slack.app, http_world.ids["ana"], http_world.ops, None
    )
    status, _ = await knock(http_world, form(payload | {"actions": [action], "response_url": answer}))
    assert status == 200
    await http_world.told("ana", "no such choice here")
    assert (await http_world.api.run(run))["status"] == "waiting"


def form_of(value: Any, gate: str) -> Any:
    return value.replace("{gate}", gate) if isinstance(value, str) else value


async def test_a_menu_that_says_what_it_does_not_offer_is_not_believed(http_world: World) -> None:
    world = http_world
    call = question_call("q", ask("Which?", multi=True))
    run = await world.api.open(body([call], place={"channel": world.ops}, policy={}))
    block = f"{run['gates'][0]['id']}/0/options"
    for odd in ("99", "-1"):
        menu = {"type": "multi_static_select", "selected_options": [{"value": odd}]}
        payload = {
            "type": "block_actions",
            "user": {"id": world.ids["ana"], "team_id": "T0LOCAL"},
            "actions": [{"type": "button", "action_id": "submit", "block_id": block}],
            "state": {"values": {block: {"choose": menu}}},
        }
        assert (await knock(world, form(payload)))[0] == 200
    assert (await world.api.run(run))["status"] == "waiting"


@pytest.mark.parametrize("callback", ["other", "form", "approve", "fill", "answer"])
async def test_a_modal_that_is_none_of_the_gates_is_refused(http_world: World, callback: str) -> None:
    world = http_world
    run, _ = await a_click(world)
    about = json.dumps({"gate": run["gates"][0]["id"], "question": 7})
    payload = sent(private_metadata=about, callback_id=callback, state={"values": {}})
    payload["user"] = {"id": world.ids["ana"], "team_id": "T0LOCAL"}
    status, said = await knock(world, form(payload))
    assert status == 200
    assert "no such choice here" in said
    assert (await world.api.run(run))["status"] == "waiting"


async def test_what_slack_signed_comes_in(http_world: World) -> None:
    run, payload = await a_click(http_world)
    assert (await knock(http_world, form(payload)))[0] == 200
    assert (await http_world.api.settled(run))["calls"]["q"]["outcome"] == "answered"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": "1700000000"},
        {"X-Slack-Request-Timestamp": "soon", "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": "-1", "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": "9" * 40, "X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Request-Timestamp": "1e9", "X-Slack-Signature": ""},
    ],
)
async def test_without_slacks_own_signature_nothing_comes_in(
    http_world: World, headers: dict[str, str]
) -> None:
    run, payload = await a_click(http_world)
    assert (await knock(http_world, form(payload), headers=headers))[0] == 401
    assert (await http_world.api.run(run))["status"] == "waiting"


async def test_a_wrong_signature_an_old_one_and_a_future_one_are_refused(http_world: World) -> None:
    run, payload = await a_click(http_world)
    raw, now = form(payload), time.time()
    good = sign(http_world.slack.app, raw, now)
    wrong = good | {"X-Slack-Signature": good["X-Slack-Signature"][:-1] + "g"}
    assert (await knock(http_world, raw, headers=wrong))[0] == 401
    assert (await knock(http_world, raw + b"&a=b", headers=good))[0] == 401
    # Bolt would refuse them as well, in other words
    for then in (now - 301, now + 302):
        status, said = await knock(http_world, raw, at=then)
        assert (status, json.loads(said)) == (401, {"error": "the request is too old"})
    assert (await http_world.api.run(run))["status"] == "waiting"
    assert (await knock(http_world, raw, at=now - 290))[0] == 200


async def test_two_megabytes_are_too_large_with_a_length_and_without(http_world: World) -> None:
    raw = b"payload=" + b"x" * (2 * 1024 * 1024)
    assert (await knock(http_world, raw))[0] == 413

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), 65536):
            yield raw[start : start + 65536]

    headers = {"Content-Type": FORM, **sign(http_world.slack.app, raw, time.time())}
    url = f"{http_world.url}/slack/events"
    async with aiohttp.ClientSession() as session, session.post(url, data=chunks(), headers=headers) as reply:
        assert reply.status == 413


@pytest.mark.parametrize(
    "raw",
    [
        form("{"),
        form("[]"),
        form("null"),
        form('"text"'),
        form("[" * 100_000),
        b"payload=%ff%fe",
        b"\xff\xfe",
    ],
    ids=["half", "list", "null", "text", "deep", "no-utf-8", "raw-bytes"],
)
async def test_a_payload_that_is_no_object_is_a_400(http_world: World, raw: bytes) -> None:
    assert (await knock(http_world, raw))[0] == 400


@pytest.mark.parametrize("raw", [b"{", b"[]", b"7", b"", b"\xff"])
async def test_an_event_that_is_no_object_is_a_400(http_world: World, raw: bytes) -> None:
    assert (await knock(http_world, raw, kind=JSON))[0] == 400


def click(**changed: Any) -> Json:
    """A payload of a click, with some of it changed."""
    action = {
        "type": "button",
        "action_id": "approve",
        "block_id": "gate_99/0/gate",
        **changed.pop("action", {}),
    }
    who = {"id": "U1", "team_id": "T1"}
    return {"type": "block_actions", "user": who, "actions": [action], **changed}


def sent(**changed: Any) -> Json:
    """A payload of a modal that was sent, with some of it changed."""
    view = {"type": "modal", "callback_id": "other", "private_metadata": "{}", "state": {"values": {}}}
    return {"type": "view_submission", "user": {"id": "U1", "team_id": "T1"}, "view": {**view, **changed}}


ODD = {
    "nothing": {},
    "type": {"type": 7},
    "no-actions": {"type": "block_actions"},
    "empty-actions": click(actions=[]),
    "actions": click(actions=7),
    "no-user": click(user=None),
    "user": click(user=7),
    "user-id": click(user={"id": "nobody", "team_id": "T1"}),
    "team-id": click(user={"id": "U1", "team_id": 7}),
    "no-team": click(user={"id": "U1"}, team=None),
    "no-block": click(actions=[{"type": "button", "action_id": "approve"}]),
    "block": click(action={"block_id": "x"}),
    "question": click(action={"block_id": "gate_99/x/gate"}),
    "gate": click(),
    "channel": click(channel=7),
    "no-view": {"type": "view_submission", "user": {"id": "U1", "team_id": "T1"}},
    "about": sent(private_metadata="{"),
    "about-list": sent(private_metadata="[]"),
    "about-more": sent(private_metadata='{"gate": "g", "more": 1}'),
    "state": sent(state=7),
    "callback": sent(callback_id=7),
}


@pytest.mark.parametrize("payload", ODD.values(), ids=ODD)
async def test_a_signed_payload_that_makes_no_sense_is_no_fault_of_ours(
    http_world: World, payload: Any
) -> None:
    status, _ = await knock(http_world, form(payload))
    assert 400 <= status < 500 or status == 200


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "event_callback"},
        {"type": "event_callback", "event": 7},
        {"type": "event_callback", "event": {"type": "app_home_opened"}},
        {
            "type": "event_callback",
            "event": {"type": "app_home_opened", "user": 7, "tab": "home"},
            "team_id": "T1",
        },
        {"type": 7},
    ],
)
async def test_a_signed_event_that_makes_no_sense_is_no_fault_of_ours(http_world: World, event: Json) -> None:
    status, _ = await knock(http_world, json.dumps(event).encode(), kind=JSON)
    assert 400 <= status < 500 or status == 200


async def test_a_command_without_its_fields_is_no_fault_of_ours(http_world: World) -> None:
    status, _ = await knock(http_world, b"command=%2Fgates")
    assert 400 <= status < 500


async def test_slacks_challenge_is_echoed(http_world: World) -> None:
    assert await http_world.slack.verify_url()


async def test_an_event_that_nothing_waits_for_is_taken_at_once(world: World) -> None:
    world.slack.app.events |= {"message", "app_mention"}
    await world.ana.say(world.ops, "@askgate good morning")
    await world.slack.quiet()
    if world.mode == "http":
        event = {
            "type": "event_callback",
            "team_id": "T0LOCAL",
            "event": {"type": "message", "subtype": "channel_join"},
        }
        assert (await knock(world, json.dumps(event).encode(), kind=JSON))[0] == 200


async def test_a_click_goes_on_to_its_end_although_slack_hangs_up(http_world: World) -> None:
    world = http_world
    run, payload = await a_click(world)
    raw = form(payload)
    world.slack.fail("conversations.members", delay=0.5)
    url, headers = f"{world.url}/slack/events", sign(world.slack.app, raw, time.time())
    async with aiohttp.ClientSession() as session:
        request = asyncio.create_task(session.post(url, data=raw, headers={"Content-Type": FORM, **headers}))
        await world.slack.wait_for(lambda: not world.slack.api.faults.waiting)
        request.cancel()
        await asyncio.wait([request])
    assert world.slack.called("conversations.members") == []
    assert (await world.api.settled(run))["calls"]["q"]["outcome"] == "answered"


async def test_a_click_is_acknowledged_only_once_it_is_in_the_store(
    shaky_http_world: World, server: EmbeddedServer
) -> None:
    world = shaky_http_world
    _, payload = await a_click(world)
    ack, engine = AsyncAck(), world.replicas[0].engine
    client = AsyncWebClient(token="xoxb-test", base_url=world.slack.api_url)
    slack = Slack(client)
    lists = Lists(engine, slack, Inbox(engine, slack))
    server.kill()
    with pytest.raises(StoreUnavailable):
        await Actions(engine, slack, lists).handle(ack, payload, AsyncRespond(response_url=None))
    assert ack.response is None
