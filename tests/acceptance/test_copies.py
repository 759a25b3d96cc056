"""Copies: whoever is named and would not see the card gets one in a DM, one only, and all of them stay in step."""

from __future__ import annotations

from typing import Any

from core.policy import Person
from tests.acceptance.world import Json, World, said
from tests.runs import approval, ask, body, question_call

FIRST, SECOND = 2, 3
"""The numbers of the first two copies."""


def naming(world: World, *names: str, **more: Any) -> Json:
    """A run in #ops whose approval these people may decide."""
    approvers = [world.ids[name] for name in names]
    policy = {"approvers": approvers, "quorum": more.pop("quorum", 1)}
    more = {"place": {"channel": world.ops}, "policy": policy, **more}
    return body(more.pop("calls", []), [approval("call")], **more)


async def outcome(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["approvals"]["call"]["outcome"]


async def test_who_is_named_outside_the_channel_gets_a_copy_and_all_stay_in_step(world: World) -> None:
    run = await world.api.open(naming(world, "ana", "eve", quorum=2))
    card, copy = await world.card(run), await world.card(run, copy=FIRST)
    assert (card["channel"], copy["channel"]) == (world.ops, world.eve.dm)
    assert "From #ops: go to the thread" in world.slack.text_of(copy)
    assert f"p{card['ts'].replace('.', '')}|go to the thread>" in str(copy["blocks"])
    await world.ana.click("Approve", message=card)
    await world.shows(run, "1 of 2 approvals: @ana", copy=FIRST)
    assert (await world.eve.click("Approve", message=copy)).ok
    assert await outcome(world, run) == "approved"
    for number in (0, FIRST):
        await world.shows(run, "Approved by @ana, @eve", "in Slack", copy=number)
        assert world.buttons(run, copy=number) == []
    assert [message["channel"] for _, message in world.about(run)] == [world.ops, world.eve.dm]


async def test_a_responder_outside_the_channel_answers_in_the_dm(world: World) -> None:
    policy = {"responders": [world.ids["eve"], world.ids["ben"]]}
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy=policy))
    await world.eve.click("Focused", message=await world.card(run, copy=FIRST))
    await world.shows(run, "Answered by @eve")
    await world.shows(run, "Answered by @eve", copy=FIRST)


async def test_a_card_in_a_dm_has_copies_in_the_dms_of_the_others(http_world: World) -> None:
    world = http_world
    run = await world.api.open(naming(world, "ana", "ben", place={"user": world.ids["ana"]}))
    copy = await world.card(run, copy=FIRST)
    assert copy["channel"] == world.ben.dm
    assert "go to the thread" not in world.slack.text_of(copy)
    await world.ben.click("Approve", message=copy)
    await world.shows(run, "Approved by @ben")
    assert len(world.about(run)) == 2


async def test_a_run_without_a_place_reaches_whom_it_names(http_world: World) -> None:
    world = http_world
    request = naming(world, "eve", place=None)
    request["policy"]["approvers"].append("key:agent")
    run = await world.api.open(request)
    await world.eve.click("Approve", message=await world.card(run, copy=FIRST))
    assert await outcome(world, run) == "approved"
    await world.shows(run, "Approved by @eve", copy=FIRST)


async def test_every_end_that_nobody_chose_shows_on_every_copy(http_world: World) -> None:
    world = http_world
    run = await world.api.open(naming(world, "ana", "eve"))
    await world.card(run, copy=FIRST)
    await world.api.cancel(run, "no longer needed")
    for number in (0, FIRST):
        await world.shows(run, "Cancelled", "no longer needed", copy=number)
        assert world.buttons(run, copy=number) == []
    late = await world.api.open(naming(world, "ana", "eve", timeout_s=1))
    await world.card(late, copy=FIRST)
    for number in (0, FIRST):
        await world.shows(late, "Expired", copy=number)
        assert world.buttons(late, copy=number) == []


async def test_an_escalation_and_a_reassignment_reach_whom_they_name_once(http_world: World) -> None:
    world = http_world
    escalate = {"after_s": 1, "approvers": [world.ids["eve"]]}
    run = await world.api.open(naming(world, "ana", escalate=escalate))
    assert (await world.card(run, copy=FIRST))["channel"] == world.eve.dm
    fay = world.slack.add_user("fay")
    engine = world.replicas[0].engine
    gate = run["gates"][0]["id"]
    people = [world.ids["eve"], fay, f"T0LOCAL:{fay}"]
    await engine.amendments.reassign(gate, people, by=_admin(world), via="slack")
    copy = await world.card(run, copy=SECOND)
    await world.shows(run, "Approvers: @eve, @fay")
    await world.slack.as_user("fay").click("Approve", message=copy)
    assert await outcome(world, run) == "approved"
    for number in (0, FIRST, SECOND):
        await world.shows(run, "Approved by @fay", copy=number)
    assert len(world.about(run)) == 3


async def test_an_escalation_to_the_dm_of_whoever_has_a_copy_posts_no_second(http_world: World) -> None:
    world = http_world
    escalate = {"after_s": 1, "place": {"user": world.ids["eve"]}}
    run = await world.api.open(naming(world, "ana", "eve", escalate=escalate))
    copy = await world.card(run, copy=FIRST)
    await world.shows(run, "Escalated", copy=FIRST)
    await world.eve.click("Approve", message=copy)
    await world.shows(run, "Approved by @eve", copy=FIRST)
    assert len(world.about(run)) == 2


async def test_a_group_is_told_if_too_few_of_it_are_in_the_channel(http_world: World) -> None:
    world = http_world
    there, away = world.slack.add_group("there", ["ana", "eve"]), world.slack.add_group("away", ["eve"])
    run = await world.api.open(naming(world, "ana", policy={"approvers": [there, away], "quorum": 1}))
    await world.card(run, copy=FIRST)
    seen = await world.api.open(naming(world, "ana", policy={"approvers": [there], "quorum": 1}))
    await world.ana.click("Approve", message=await world.card(seen))
    await world.shows(seen, "Approved by @ana")
    assert [message["channel"] for _, message in world.about(seen)] == [world.ops]
    two = await world.api.open(naming(world, "ana", policy={"approvers": [there], "quorum": 2}))
    await world.ana.click("Approve", message=await world.card(two))
    await world.eve.click("Approve", message=await world.card(two, copy=FIRST))
    assert await outcome(world, two) == "approved"


async def test_a_dm_that_cannot_be_opened_is_written_down_and_the_others_go_on(world: World) -> None:
    run = await world.api.open(
        naming(world, "ana", "eve") | {"policy": {"approvers": [world.ids["ana"], "U0GONE"]}}
    )
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "Approved by @ana")
    failed = [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"]
    assert failed == ["user_not_found"]


async def test_what_only_people_may_decide_whom_nobody_can_tell_is_undeliverable(http_world: World) -> None:
    world = http_world
    calls = [question_call("q", ask())]
    run = await world.api.open(naming(world, calls=calls, policy={"approvers": ["U0GONE"]}))
    await world.shows(run, "Undeliverable", "user_not_found")
    await world.ben.click("Focused", message=await world.card(run))
    results = await world.api.settled(run)
    assert results["approvals"]["call"]["outcome"] == "undeliverable"
    assert results["calls"]["q"]["outcome"] == "answered"


async def test_a_channel_that_is_archived_later_leaves_the_copies_to_decide_on(http_world: World) -> None:
    world = http_world
    run = await world.api.open(naming(world, "ana", "eve", quorum=2))
    copy = await world.card(run, copy=FIRST)
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "1 of 2", copy=FIRST)
    world.slack.archive(world.ops)
    await world.eve.click("Approve", message=copy)
    assert await outcome(world, run) == "approved"
    await world.shows(run, "Approved by @ana, @eve", copy=FIRST)


async def test_a_channel_that_takes_no_card_ends_the_run_and_disturbs_nobody(http_world: World) -> None:
    world = http_world
    run = await world.api.open(naming(world, "ana", place={"channel": "C0NOWHERE"}))
    assert await outcome(world, run) == "undeliverable"
    assert world.about(run) == []


async def test_nobody_gets_two_when_a_post_was_unheard_or_two_workers_draw(http_world: World) -> None:
    world = http_world
    await world.start(1)
    world.slack.fail("conversations.open", error="fatal_error")
    run = await world.api.open(
        naming(world, "eve", place={"channel": world.ops, "thread_ts": await root(world)})
    )
    await world.card(run)
    world.slack.fail("chat.postMessage", reset_after_accept=True)
    copy = await world.card(run, copy=FIRST)
    await world.eve.click("Approve", message=copy)
    await world.shows(run, "Approved by @eve", copy=FIRST)
    assert len(world.parts(run, copy=FIRST)) == 1


async def root(world: World) -> str:
    return str(said(await world.ana.say(world.ops, "Please clean up"))["ts"])


def _admin(world: World) -> Person:
    return Person(team="T0LOCAL", user=world.ids["dan"])
