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


# what admins hear of it


def notices(world: World) -> list[str]:
    return [
        world.slack.text_of(m)
        for m in world.slack.messages(world.dan.dm)
        if "did not take" in world.slack.text_of(m)
    ]


async def test_admins_are_told_once_what_slack_did_not_take_and_then_left_alone_for_a_while(
    world: World,
) -> None:
    lost = [await world.api.open(question(world, NOWHERE, policy={"responders": ["anyone"]}))]
    await world.api.settled(lost[0])
    await world.slack.wait_for(lambda: notices(world))
    [first] = notices(world)
    assert "1 × channel_not_found" in first
    assert lost[0]["id"] in first
    for place in (NOWHERE, NOWHERE, world.slack.add_channel("closed", ["ana"], bot=False)):
        lost.append(await world.api.open(question(world, place, policy={"responders": ["anyone"]})))
        await world.api.settled(lost[-1])
    assert len(notices(world)) == 1
    await world.lapse()
    await world.slack.wait_for(lambda: len(notices(world)) > 1)
    second = notices(world)[1]
    for word in ("3 cards", "2 × channel_not_found", "1 × not_in_channel in #closed: invite askgate"):
        assert word in second
    assert [run["id"] in second for run in lost] == [False, True, True, True]
    await world.lapse()
    calls = len(world.slack.called("chat.postMessage"))
    later = await world.api.open(question(world, world.ops))
    await world.card(later)
    assert len(world.slack.called("chat.postMessage")) == calls + 1
    for name in ("ana", "ben", "cho"):
        assert "did not take" not in str(world.slack.messages(world.slack.as_user(name).dm))


async def test_an_admin_whom_slack_lets_nobody_write_to_keeps_nobody_else_from_hearing(
    empty_world: World,
) -> None:
    world = empty_world
    await world.start(ASKGATE_ADMINS=f"U0NOBODY,{world.ids['dan']}")
    run = await world.api.open(question(world, NOWHERE, policy={"responders": ["anyone"]}))
    await world.slack.wait_for(lambda: notices(world))
    assert run["id"] in notices(world)[0]
