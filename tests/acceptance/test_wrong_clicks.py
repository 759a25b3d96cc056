"""Clicks that cannot count: each is answered privately, changes nothing, and is written to the audit."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Redis

from bot.sandbox import payloads
from bot.sandbox.delivery import Reply
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, question_call


def approvable(world: World, *names: str, **more: Any) -> Json:
    more = {"place": {"channel": world.ops}, "policy": {"approvers": [world.ids[n] for n in names]}, **more}
    return body([], [approval("call")], **more)


def question(world: World, **more: Any) -> Json:
    return body([question_call("q", ask())], **{"place": {"channel": world.ops}, "policy": {}, **more})


async def test_who_is_not_named_is_refused_privately(world: World) -> None:
    run = await world.api.open(approvable(world, "ana"))
    before = world.text(run) or await world.shows(run, "Approve")
    assert (await world.ben.click("Approve", message=await world.card(run))).ok
    await world.told("ben", "not among those who may decide this: @ana.")
    world.nobody_else_told("ben")
    assert "Approvers: @ana" in before
    assert await world.api.refusals(run) == [(world.ids["ben"], "not-allowed")]
    assert (await world.api.run(run))["status"] == "waiting"
    assert world.text(run) == before


@pytest.mark.parametrize("control", ["Other", "General response", "Decline", "Focused"])
async def test_who_may_not_answer_is_told_before_writing_a_word(world: World, control: str) -> None:
    run = await world.api.open(question(world, policy={"responders": [world.ids["ana"]]}))
    clicked = await world.ben.click(control, message=await world.card(run))
    assert clicked.modal is None
    await world.told("ben", "not among those who may decide")
    assert await world.api.refusals(run) == [(world.ids["ben"], "not-allowed")]


async def test_a_guest_of_another_team_is_refused_unless_named_with_the_team(world: World) -> None:
    run = await world.api.open(question(world))
    await world.gus.click("Focused", message=await world.card(run))
    await world.told("gus", "not among those who may decide")
    assert await world.api.refusals(run) == [(world.ids["gus"], "not-allowed")]
    world.nobody_else_told("gus")

    named = await world.api.open(question(world, policy={"responders": [f"T0OTHER:{world.ids['gus']}"]}))
    await world.gus.click("Broad", message=await world.card(named))
    result = (await world.api.settled(named))["calls"]["q"]
    assert result["by"] == [{"team": "T0OTHER", "user": world.ids["gus"]}]


async def test_who_has_left_the_channel_is_refused(world: World) -> None:
    run = await world.api.open(question(world))
    card = await world.card(run)
    reply = await click_from_outside(world, "eve", card, "Focused")
    assert reply.error is None
    told = await world.slack.wait_for(
        lambda: [m for m in world.slack.world.messages.of(world.ops, world.ids["eve"]) if m.viewer], 10
    )
    assert "not among those who may decide" in told[0].text
    assert await world.api.refusals(run) == [(world.ids["eve"], "not-allowed")]
    assert (await world.api.run(run))["status"] == "waiting"


async def click_from_outside(world: World, name: str, card: Json, label: str) -> Reply:
    """The payload of a click by somebody whose screen still shows a channel that they are no longer in."""
    local = world.slack.world
    message, user = local.find(card["channel"], card["ts"]), local.users[world.ids[name]]
    assert message
    block, element = next(
        (block, element)
        for block in message.blocks
        if block["type"] == "actions"
        for element in block["elements"]
        if element["text"]["text"] == label
    )
    action = {**element, "block_id": block["block_id"], "action_ts": local.new_ts()}
    payload = payloads.message_action_json(local, world.slack.app, user, message, action, {})
    return await world.slack.courier.interact(world.slack.app, payload)


async def test_a_group_that_cannot_be_looked_up_refuses_and_says_so(world: World) -> None:
    group = world.slack.add_group("ops-leads", ["ana"])
    # the card's own look at who the group is meets it as well
    world.slack.fail("usergroups.users.list", status=500, times=100)
    run = await world.api.open(approvable(world, policy={"approvers": [group]}))
    await world.ana.click("Approve", message=await world.card(run))
    await world.told("ana", "cannot verify")
    assert await world.api.refusals(run) == [(world.ids["ana"], "cannot-verify")]
    world.slack.mend()
    await world.ana.click("Approve", message=await world.card(run))
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "approved"


async def test_a_group_that_is_not_told_in_time_refuses_while_slack_still_waits(http_world: World) -> None:
    world = http_world
    group = world.slack.add_group("ops-leads", ["ana"])
    world.slack.fail("usergroups.users.list", delay=2.6, times=100)
    run = await world.api.open(approvable(world, policy={"approvers": [group]}))
    assert (await world.ana.click("Approve", message=await world.card(run))).ok
    await world.told("ana", "cannot verify")
    assert await world.api.refusals(run) == [(world.ids["ana"], "cannot-verify")]


async def test_a_second_click_by_the_same_person_says_that_it_counted_already(world: World) -> None:
    run = await world.api.open(question(world))
    card = await world.card(run)
    await world.ana.click("Focused", message=card)
    assert (await world.ana.click("Focused", message=card)).ok
    await world.told("ana", "You have already answered this")
    assert await world.api.refusals(run) == [(world.ids["ana"], "already-settled")]


async def test_a_click_on_a_stale_copy_says_who_was_first_and_the_card_mends_itself(world: World) -> None:
    world.slack.fail("chat.update", error="message_not_found")
    run = await world.api.open(question(world))
    stale = await world.card(run)
    await world.ana.click("Focused", message=stale)
    await world.api.settled(run)
    updates = await world.slack.wait_for(lambda: world.slack.called("chat.update"))
    assert not updates[0].ok
    assert (await world.ben.click("Broad", message=stale)).ok
    await world.told("ben", "Already answered by @ana", "not counted")
    assert await world.api.refusals(run) == [(world.ids["ben"], "already-settled")]
    await world.shows(run, "Answered by @ana", "Focused")
    assert world.buttons(run) == []
    result = (await world.api.run(run))["results"]["calls"]["q"]
    assert result["value"]["answers"] == {"Which scope should be used?": "Focused"}
    world.nobody_else_told("ben")


async def test_a_modal_that_was_open_when_somebody_else_settled_says_so(world: World) -> None:
    run = await world.api.open(question(world))
    card = await world.card(run)
    await world.ben.click("Other", message=card)
    await world.ana.click("Focused", message=card)
    await world.ben.fill({"Your answer": "Something of my own"})
    done = await world.ben.submit()
    assert "Already answered by @ana" in world.ben.text(front(done))
    assert await world.api.refusals(run) == [(world.ids["ben"], "already-settled")]


async def test_a_late_click_is_refused_although_no_worker_saw_the_deadline_pass(empty_world: World) -> None:
    world = empty_world
    await world.start(role="web")
    _, worker = await world.start(role="worker")
    run = await world.api.open(question(world, timeout_s=2))
    card = await world.card(run)
    assert (await world.ben.click("Other", message=card)).modal
    await world.ben.fill({"Your answer": "I am still thinking"})
    await world.stop(worker)
    await world.past(run)
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.click("Focused", message=card)).ok
    await world.told("ana", "Too late", "not counted")
    world.nobody_else_told("ana")
    assert "Too late" in world.ben.text(front(await world.ben.submit()))
    assert await world.api.refusals(run) == [(world.ids["ana"], "expired"), (world.ids["ben"], "expired")]
    result = (await world.api.settled(run))["calls"]["q"]
    assert (result["status"], result["outcome"], result["by"]) == ("failed", "expired", [])


async def test_a_click_on_a_run_that_is_long_gone_says_so(world: World, redis: Redis) -> None:
    run = await world.api.open(question(world))
    card = await world.card(run)
    await redis.flushdb()
    assert (await world.ana.click("Focused", message=card)).ok
    await world.told("ana", "no longer exists")
