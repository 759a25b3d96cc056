"""Escalation: a second copy of the card, working and in step; and what becomes of one that cannot be posted."""

from __future__ import annotations

from typing import Any

from tests.acceptance.world import Json, World, said
from tests.runs import approval, ask, body, question_call

AFTER_S = 1


def escalating(world: World, place: Json | None, *names: str, **more: Any) -> Json:
    approvers = [world.ids[name] for name in names]
    escalate: Json = {"after_s": AFTER_S, **({"place": place} if place else {})}
    escalate |= {"approvers": approvers} if approvers else {}
    policy = {"approvers": [world.ids["ana"]], "quorum": 1}
    return body(
        more.pop("calls", []),
        [approval("call")],
        place={"channel": world.ops},
        policy=policy,
        escalate=escalate,
        **more,
    )


async def outcome(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["approvals"]["call"]["outcome"]


async def test_an_escalated_card_stands_in_both_places_and_works_in_both(world: World) -> None:
    run = await world.api.open(
        escalating(world, {"channel": world.lobby}, "eve", calls=[question_call("q", ask())])
    )
    first = await world.card(run)
    assert world.parts(run, copy=1) == []
    text = await world.shows(run, "Escalated to #lobby")
    copy = await world.card(run, copy=1)
    assert (first["channel"], copy["channel"]) == (world.ops, world.lobby)
    back = " · From #ops: go to the thread"
    await world.slack.wait_for(lambda: world.text(run) == world.text(run, copy=1).replace(back, ""))
    assert back in world.text(run, copy=1)
    assert text == world.text(run)
    assert world.buttons(run) == world.buttons(run, copy=1) != []

    await world.ana.click("Focused", message=first)
    await world.shows(run, "Answered by @ana", copy=1)
    assert (await world.eve.click("Approve", message=copy)).ok
    assert await outcome(world, run) == "approved"
    for number in (0, 1):
        await world.shows(run, "Approved by @eve", copy=number)
        assert world.buttons(run, copy=number) == []
    await world.ana.click("Approve", message=first)
    await world.told("ana", "Already approved by @eve")
    gates = (await world.api.run(run))["gates"]
    assert {gate["card"]["channel"] for gate in gates} == {world.ops}
    assert [e["gate"] for e in await world.api.audit(run) if e["event"] == "gate.escalated"] == [
        gates[1]["id"]
    ]


async def test_who_is_in_the_second_channel_alone_may_not_answer_for_the_first(http_world: World) -> None:
    world = http_world
    run = await world.api.open(escalating(world, {"channel": world.lobby}, calls=[question_call("q", ask())]))
    copy = await world.card(run, copy=1)
    await world.eve.click("Focused", message=copy)
    await world.told("eve", "not among those who may decide", channel=world.lobby)
    await world.ben.click("Focused", message=copy)
    await world.shows(run, "Answered by @ben")


async def test_an_escalation_to_a_person_or_a_thread_goes_there(http_world: World) -> None:
    world = http_world
    run = await world.api.open(escalating(world, {"user": world.ids["eve"]}, "eve"))
    assert (await world.card(run, copy=1))["channel"] == world.eve.dm
    await world.shows(run, "Escalated to @eve")
    root = said(await world.ana.say(world.lobby, "On call"))
    run = await world.api.open(escalating(world, {"channel": world.lobby, "thread_ts": root["ts"]}))
    assert (await world.card(run, copy=1))["thread_ts"] == root["ts"]


async def test_an_escalation_to_more_people_alone_shows_on_the_one_card(http_world: World) -> None:
    world = http_world
    run = await world.api.open(escalating(world, None, "ben"))
    await world.ben.click("Approve", message=await world.card(run))
    await world.told("ben", "not among those who may decide")
    await world.shows(run, "Escalated")
    assert (await world.ben.click("Approve", message=await world.card(run))).ok
    assert await outcome(world, run) == "approved"
    assert world.parts(run, copy=1) == []


async def test_a_copy_that_cannot_be_posted_is_written_down_once_and_the_first_card_goes_on(
    world: World,
) -> None:
    calls = [question_call("q", ask())]
    run = await world.api.open(escalating(world, {"channel": "C0NOWHERE"}, calls=calls))
    await world.shows(run, "Escalated")
    await world.ben.click("Focused", message=await world.card(run))
    await world.shows(run, "Answered by @ben")
    await world.ana.click("Approve", message=await world.card(run))
    assert await outcome(world, run) == "approved"
    await world.shows(run, "Approved by @ana")
    failed = [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"]
    assert failed == ["channel_not_found"]


async def test_a_first_card_that_can_no_longer_be_changed_leaves_the_copy_to_decide_on(
    http_world: World,
) -> None:
    world = http_world
    calls = [question_call("q", ask())]
    run = await world.api.open(escalating(world, {"channel": world.lobby}, "eve", calls=calls))
    copy = await world.card(run, copy=1)
    await world.shows(run, "Escalated")
    world.slack.fail("chat.update", error="is_archived")
    await world.ben.click("Focused", message=copy)
    await world.shows(run, "Answered by @ben", copy=1)
    assert "Answered" not in world.text(run)
    await world.eve.click("Approve", message=await world.card(run, copy=1))
    assert await outcome(world, run) == "approved"
    await world.shows(run, "Approved by @eve", copy=1)
    failed = [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"]
    assert failed == ["is_archived"]
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "Approved by @eve")


async def test_what_is_settled_in_time_goes_nowhere_else(http_world: World) -> None:
    world = http_world
    run = await world.api.open(escalating(world, {"channel": world.lobby}))
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "Approved by @ana")
    other = await world.api.open(escalating(world, {"channel": world.lobby}))
    await world.card(other, copy=1)
    assert world.parts(run, copy=1) == []
    assert "Escalated" not in world.text(run)


async def test_a_copy_that_was_posted_unheard_is_not_posted_twice(http_world: World) -> None:
    world = http_world
    run = await world.api.open(escalating(world, {"channel": world.lobby}, "eve"))
    await world.card(run)
    world.slack.fail("chat.postMessage", reset_after_accept=True)
    await world.shows(run, "Escalated to #lobby")
    await world.eve.click("Approve", message=await world.card(run, copy=1))
    await world.shows(run, "Approved by @eve", copy=1)
    assert len(world.parts(run, copy=1)) == 1
