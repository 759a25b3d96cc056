"""`/gates` with its words and its buttons: what people read, decide and page through, and what admins mend."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from tests.acceptance.test_lists import approvals, gates
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, question_call

TWO = {"policy": {}, "place": None}


def in_ops(world: World, *questions: Json, **more: Any) -> Json:
    return body(
        [question_call("q", *(questions or [ask("Which colour?")]))],
        **{"place": {"channel": world.ops}, "policy": {}, **more},
    )


def newest(world: World, name: str) -> Json:
    """The newest thing that one person alone sees of the lobby."""
    return world.private(name, world.lobby)[-1]


async def open_for(world: World, *names: str, **more: Any) -> tuple[Json, str]:
    """An approval in #ops for these people; returns the run and the gate's id."""
    policy = {"approvers": [world.ids[name] for name in names]}
    run = await world.api.open(
        body(
            [],
            [approval()],
            **{"place": {"channel": world.ops}, "policy": policy, "title": "Clean up", **more},
        )
    )
    await world.card(run)
    return run, run["gates"][0]["id"]


async def state(world: World, run: Json) -> Json:
    return (await world.api.run(run))["gates"][0]


# reading


async def test_pages_are_turned_there_and_back(world: World) -> None:
    await world.api.open(approvals(world, 23, "ana"))
    assert "tool_22\n" in await gates(world, "ana")
    seen = []
    for turn in ("", words.NEXT, words.NEXT, words.PREVIOUS, words.PREVIOUS):
        if turn:
            assert (await world.ana.click(turn, message=newest(world, "ana"))).ok
        shown = world.ana.text(newest(world, "ana"))
        seen.append([number for number in range(23) if f"tool_{number}\n" in shown])
    assert seen == [
        list(range(13, 23)),
        list(range(3, 13)),
        list(range(3)),
        list(range(3, 13)),
        list(range(13, 23)),
    ]
    assert words.PREVIOUS not in shown
    assert len(world.private("ana", world.lobby)) == 1


async def test_lists_of_a_host_of_a_channel_of_mine_and_of_what_expires_first(world: World) -> None:
    late = await world.api.open(in_ops(world, ask("Late?"), timeout_s=7200, host="demo"))
    soon = await world.api.open(in_ops(world, ask("Soon?"), timeout_s=600, requester=person(world, "ben")))
    other = await world.api.open(in_ops(world, ask("Lobby?"), place={"channel": world.lobby}))
    for run in (late, soon, other):
        await world.card(run)
    assert "Soon?" not in await gates(world, "ana", "list host:demo")
    assert "Late?" in await gates(world, "ana", "list host:demo")
    here = await gates(world, "ana", "list channel")
    assert "Lobby?" in here
    assert "Late?" not in here
    there = await gates(world, "ana", "list channel #ops")
    assert "Late?" in there
    assert "Lobby?" not in there
    assert "Late?" not in await gates(world, "eve", f"list channel {world.ops}")
    expiring = await gates(world, "ana", "list expiring")
    assert expiring.index("Soon?") < expiring.index("Late?") < expiring.index("Lobby?")
    assert await gates(world, "dan", "list expiring") is not None
    mine = await gates(world, "ben", "list asked")
    assert "Soon?" in mine
    assert "Late?" not in mine
    await world.ben.click("Focused", message=await world.card(other))
    await world.api.settled(other)
    decided = await gates(world, "ben", "list decided")
    assert "Lobby?" in decided
    assert "Answered by @ben" in decided
    assert "Late?" not in decided


async def test_only_what_may_wait_for_who_reads_is_offered_to_be_decided(world: World) -> None:
    await open_for(world, "ben", title="For Ben", requester=person(world, "ana"))
    await world.api.open(in_ops(world, ask("For all?"), requester=person(world, "ana"), timeout_s=600))
    assert (await gates(world, "ana", "list asked")).count(words.DECIDE) == 1
    assert (await gates(world, "ben")).count(words.DECIDE) == 2
    all_of_it = await gates(world, "dan")
    assert (all_of_it.count(words.DECIDE), all_of_it.count(words.DETAILS)) == (1, 1)


def person(world: World, name: str) -> Json:
    return {"team": "T0LOCAL", "user": world.ids[name]}


async def test_a_gate_is_shown_by_the_beginning_of_its_id_and_by_its_run(world: World) -> None:
    run, gate = await open_for(world, "ana")
    for typed in (gate, gate[:-9], gate[5:], run["id"], f"`{gate.lower()}`"):
        shown = await gates(world, "ana", f"show {typed}")
        assert "Clean up" in shown
        assert gate in shown
        assert "/tmp/old.log" in shown
    assert "Clean up" in await gates(world, "ana", gate)
    second, _ = await open_for(world, "ana")
    if second["id"][:7] == run["id"][:7]:
        assert "beginning of several" in await gates(world, "ana", f"show {gate[:14]}")
    assert words.NO_SUCH_GATE.replace("`", "") in await gates(
        world, "ana", "show gate_00_01JZ0000000000000000000000_0"
    )
    assert words.NO_SUCH_GATE.replace("`", "") in await gates(world, "eve", f"show {gate}")


async def test_a_gate_is_decided_in_the_reply_and_the_reply_says_so(world: World) -> None:
    run, gate = await open_for(world, "ana")
    await gates(world, "ana", f"decide {gate}")
    assert (await world.ana.click("Approve", message=newest(world, "ana"))).ok
    assert (await state(world, run))["status"] == "approved"
    assert "Approved by @ana" in world.ana.text(newest(world, "ana"))
    assert len(world.private("ana", world.lobby)) == 1
    await world.shows(run, "Approved by @ana")


async def test_who_may_not_decide_is_told_and_it_is_written_down(world: World) -> None:
    run, gate = await open_for(world, "ana")
    assert "You are not among those who may decide this: @ana" in await gates(world, "ben", f"decide {gate}")
    assert await world.api.refusals(run) == [(world.ids["ben"], "not-allowed")]


async def test_a_reply_that_came_too_late_shows_how_it_ended(world: World) -> None:
    run, gate = await open_for(world, "ana", "ben")
    await gates(world, "ana", f"decide {gate}")
    await world.ben.click("Reject", message=await world.card(run))
    await world.api.settled(run)
    assert (await world.ana.click("Approve", message=newest(world, "ana"))).ok
    shown = world.ana.text(newest(world, "ana"))
    assert "Already rejected by @ben" in shown
    assert "Rejected by @ben" in shown


async def test_picks_of_several_questions_are_seen_in_the_reply(http_world: World) -> None:
    world = http_world
    run = await world.api.open(in_ops(world, ask("One?", "A", "B"), ask("Two?", "C", "D", header="Other")))
    gate = run["gates"][0]["id"]
    await gates(world, "ana", f"decide {gate}")
    await world.ana.click("A", message=newest(world, "ana"))
    assert "@ana: 1 of 2" in world.ana.text(newest(world, "ana"))
    await world.ana.click("D", message=newest(world, "ana"))
    await world.ana.click("Submit", message=newest(world, "ana"))
    assert (await world.api.settled(run))["calls"]["q"]["status"] == "returned"


# admins


async def test_an_admin_extends_reassigns_and_cancels_by_words(world: World) -> None:
    run, gate = await open_for(world, "ana", timeout_s=600)
    before = (await state(world, run))["deadline"]
    assert f"{gate} is open until" in await gates(world, "dan", f"extend {gate} 1 day 2 hours")
    assert (await state(world, run))["deadline"] > before
    said = await gates(world, "dan", f"reassign {gate} @ben, {world.ids['cho']}")
    assert f"{gate} may be decided by: @ben, @cho." in said
    assert "How much longer?" in await gates(world, "dan", f"extend {gate} soon")
    assert "30 days" in await gates(world, "dan", f"extend {gate} 9 weeks")
    assert "@nobody says nobody for sure" in await gates(world, "dan", f"reassign {gate} @nobody")
    assert f"{gate} is cancelled." in await gates(world, "dan", f"cancel {gate} it was a <test> of @ben")
    await world.shows(run, "Cancelled", "it was a <test> of @ben")
    assert "Nothing is pending there any more" in await gates(world, "dan", f"cancel {gate}")


async def test_who_is_named_hands_on_their_own_part_and_nobody_else_s(world: World) -> None:
    run, gate = await open_for(world, "ana", "cho")
    assert "Name one person" in await gates(world, "ana", f"delegate {gate} @ben @cho")
    assert "named to decide this by name" in await gates(world, "ben", f"delegate {gate} @ben")
    said = await gates(world, "ana", f"delegate {gate} @ben")
    assert f"{gate} is handed on. It may be decided by: @cho, @ben." in said
    await world.ana.click("Approve", message=await world.card(run))
    await world.told("ana", "not among those who may decide")
    await world.ben.click("Approve", message=await world.card(run))
    assert (await world.api.settled(run))["approvals"]["call-2"]["action"] == "approve"


async def test_a_group_can_be_named(http_world: World) -> None:
    world = http_world
    world.slack.add_group("oncall", ["ben"])
    run, gate = await open_for(world, "ana")
    assert "may be decided by" in await gates(world, "dan", f"reassign {gate} @oncall")
    await world.ben.click("Approve", message=await world.card(run))
    assert (await world.api.settled(run))["approvals"]["call-2"]["action"] == "approve"


@pytest.mark.parametrize("words_", ["cancel {} no", "extend {} 2h", "reassign {} U1", "resend {}"])
async def test_who_is_no_admin_is_refused_and_it_is_written_down(world: World, words_: str) -> None:
    run, gate = await open_for(world, "ana")
    before = await world.api.run(run)
    assert words.ADMINS_ONLY in await gates(world, "ana", words_.format(gate))
    assert await world.api.run(run) == before
    audit = await world.api.audit(run)
    refused = [(e["by"]["user"], e["reason"]) for e in audit if e["event"].endswith(".refused")]
    assert refused == [(world.ids["ana"], "not-allowed")]
    assert words.ADMINS_ONLY in await gates(world, "ana", "stats")
    assert words.ADMINS_ONLY in await gates(world, "ana", "list dead")


async def test_the_menu_of_a_gate_opens_what_asks_how_much_longer_who_and_why(world: World) -> None:
    run, gate = await open_for(world, "ana", timeout_s=600)
    before = (await state(world, run))["deadline"]
    await gates(world, "dan")
    result = await world.dan.select("Extend", message=newest(world, "dan"), near=gate)
    assert words.EXTEND_TITLE in world.dan.text(front(result))
    await world.dan.fill({words.TIME_LABEL: "a while"})
    assert "How much longer?" in (await world.dan.submit()).errors[words.TIME_LABEL]
    await world.dan.fill({words.TIME_LABEL: "90m"})
    assert f"{gate} is open until" in world.dan.text(front(await world.dan.submit()))
    assert (await state(world, run))["deadline"] > before
    await world.dan.close_modal()
    await world.dan.select("Reassign", message=newest(world, "dan"), near=gate)
    assert words.wanted_people("") in (await world.dan.submit()).errors[words.OTHERS_LABEL]
    await world.dan.fill({words.PEOPLE_LABEL: ["@cho"], words.OTHERS_LABEL: world.ids["ben"]})
    assert "may be decided by: @cho, @ben" in world.dan.text(front(await world.dan.submit()))
    await world.shows(run, "Approvers: @cho, @ben")
    await world.dan.close_modal()
    await world.dan.select("Cancel", message=newest(world, "dan"), near=gate)
    await world.dan.fill({words.CANCEL_LABEL: "not needed"})
    assert f"{gate} is cancelled." in world.dan.text(front(await world.dan.submit()))
    await world.shows(run, "Cancelled", "not needed")


async def test_admins_are_checked_again_when_the_modal_is_sent(empty_world: World) -> None:
    world = empty_world
    group = world.slack.add_group("admins", ["cho"])
    await world.start(ASKGATE_ADMINS=group)
    run, gate = await open_for(world, "ana")
    await gates(world, "cho")
    assert (await world.cho.select("Cancel", message=newest(world, "cho"), near=gate)).modal
    world.slack.add_group("admins", ["dan"])
    world.replicas[0].engine.directory._kept.clear()  # type: ignore[attr-defined]  # a minute later
    assert words.ADMINS_ONLY in world.cho.text(front(await world.cho.submit()))
    assert (await state(world, run))["status"] == "pending"
    assert (world.ids["cho"], "not-allowed") in await world.api.refusals(run)
    await world.cho.close_modal()
    await world.cho.select("Extend", message=newest(world, "cho"), near=gate)
    assert world.cho.modal is None
    await world.told("cho", words.ADMINS_ONLY, channel=world.lobby)


async def test_a_card_is_sent_again_and_never_stands_there_twice(world: World) -> None:
    run, gate = await open_for(world, "ana")
    old = await world.card(run)
    assert "The card is sent again" in await gates(world, "dan", f"resend {gate}")
    await world.slack.wait_for(lambda: world.parts(run) and world.parts(run)[0]["ts"] != old["ts"])
    assert [message["ts"] for _, message in world.about(run)] == [world.parts(run)[0]["ts"]]
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "Approved by @ana")
    assert "Nothing is pending there" in await gates(world, "dan", f"resend {gate}")


async def test_a_card_that_slack_does_not_delete_loses_its_buttons(http_world: World) -> None:
    world = http_world
    run, gate = await open_for(world, "ana")
    old = await world.card(run)
    world.slack.fail("chat.delete", error="cant_delete_message")
    await gates(world, "dan", f"resend {gate}")
    await world.slack.wait_for(lambda: len(world.parts(run)) == 2)
    left = next(message for message in world.parts(run) if message["ts"] == old["ts"])
    assert words.MOVED in world.slack.text_of(left)
    assert [block["type"] for block in left["blocks"]] == ["context", "context"]
    await world.ana.click("Approve", message=next(m for m in world.parts(run) if m["ts"] != old["ts"]))
    await world.api.settled(run)
    await world.slack.wait_for(lambda: "Approved by" in world.text(run))
    assert words.MOVED in world.text(run)


async def test_admins_see_how_much_there_is_and_hand_out_dead_letters_again(http_world: World) -> None:
    world = http_world
    run, _ = await open_for(world, "ana")
    gone, _ = await open_for(world, "ana", timeout_s=600)
    await world.ana.click("Approve", message=await world.card(run))
    await world.api.settled(run)
    [resume] = await world.api.claim()
    nack = {"lease": resume["lease"], "final": True, "error": "no *such* tool"}
    await world.api.ok("POST", f"/resumes/{run['id']}/nack", nack)
    shown = await gates(world, "dan", "stats")
    assert "1 run waits for people" in shown
    assert "1 of them expires within an hour" in shown
    assert "1 dead letter: not taken up by its host" in shown
    await world.dan.click(words.FILTERS["dead"], message=newest(world, "dan"))
    listed = world.dan.text(newest(world, "dan"))
    assert "Why: no *such* tool" in listed
    assert gone["id"] not in listed
    await world.dan.click(words.REQUEUE, message=newest(world, "dan"))
    await world.told("dan", words.REQUEUED, channel=world.lobby)
    assert [resume["run"]["id"] for resume in await world.api.claim()] == [run["id"]]
