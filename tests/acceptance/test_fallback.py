"""A card that Slack does not take in its place goes to the channel that stands in for it, and admins hear of it."""

from __future__ import annotations

from typing import Any

import pytest

from core.copies import FALLBACK
from tests.acceptance.world import Json, World
from tests.runs import approval, ask, body, question_call

NOWHERE = "C0NOWHERE"


def question(world: World, channel: str, **more: Any) -> Json:
    policy = {"responders": [world.ids["ana"]]}
    return body([question_call("q", ask())], **{"place": {"channel": channel}, "policy": policy, **more})


async def failures(world: World, run: Json) -> list[str]:
    return [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"]


@pytest.mark.parametrize("code", ["not_in_channel", "is_archived", "channel_not_found", "restricted_action"])
async def test_a_card_that_its_place_does_not_take_goes_to_the_fallback_channel_and_works_there(
    empty_world: World, code: str
) -> None:
    world = empty_world
    await world.start(ASKGATE_FALLBACK_CHANNEL=world.lobby)
    world.slack.fail("chat.postMessage", error=code)
    run = await world.api.open(question(world, world.ops))
    card = await world.card(run, copy=FALLBACK)
    assert card["channel"] == world.lobby
    assert f"cannot be shown in #ops ({code})" in world.text(run, FALLBACK)
    await world.ana.click("Focused", message=card)
    assert (await world.api.settled(run))["calls"]["q"]["outcome"] == "answered"
    await world.shows(run, "Answered by @ana", copy=FALLBACK)
    assert await failures(world, run) == [code]
    assert world.parts(run) == []


async def test_a_run_that_neither_place_takes_ends_with_the_word_of_its_own(empty_world: World) -> None:
    world = empty_world
    await world.start(ASKGATE_FALLBACK_CHANNEL=world.slack.add_channel("closed", ["ana"], bot=False))
    policy = {"responders": ["anyone"]}
    run = await world.api.open(question(world, NOWHERE, policy=policy))
    result = (await world.api.settled(run))["calls"]["q"]
    assert (result["status"], result["outcome"], result["by"]) == ("failed", "undeliverable", [])
    assert "channel_not_found" in result["message"]
    assert await failures(world, run) == ["channel_not_found", "not_in_channel"]


async def test_a_card_whose_channel_is_archived_while_it_waits_goes_on_in_the_fallback_channel(
    empty_world: World,
) -> None:
    world = empty_world
    await world.start(ASKGATE_FALLBACK_CHANNEL=world.lobby)
    people = [world.ids["ana"], world.ids["ben"]]
    policy = {"approvers": [*people, "key:agent"], "quorum": 2}
    run = await world.api.open(body([], [approval("c")], place={"channel": world.ops}, policy=policy))
    await world.card(run)
    world.slack.fail("chat.update", error="is_archived")
    await world.api.ok("POST", f"/gates/{run['gates'][0]['id']}/decide", {"action": "approve"})
    card = await world.card(run, copy=FALLBACK)
    await world.ben.click("Approve", message=card)
    assert (await world.api.settled(run))["approvals"]["c"]["outcome"] == "approved"
    await world.shows(run, "Approved by API key agent, @ben", copy=FALLBACK)
