"""Several approvals in one run: each alive by itself, and all of them at once after a look at the list."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from bot.sandbox.acts import Impossible
from core.policy import Person
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, question_call

PATHS = ("/tmp/a.log", "/tmp/b.log", "/tmp/c.log")


def several(
    world: World, *more: Json, policy: Json | None = None, calls: list[Json] | None = None, **rest: Any
) -> Json:
    """A run with three small approvals, which Ana, Ben and Cho may give, and ``more``."""
    items = [approval(path, args={"path": path}, risk="high") for path in PATHS]
    approvers = [world.ids[name] for name in ("ana", "ben", "cho")]
    return body(
        calls or [],
        [*items, *more],
        place={"channel": world.ops},
        policy={"approvers": approvers, **(policy or {})},
        **rest,
    )


async def outcomes(world: World, run: Json) -> list[str]:
    return [gate["status"] for gate in (await world.api.run(run))["gates"]]


async def test_each_approval_of_a_run_has_its_row_on_one_card_and_lives_until_it_is_settled(
    world: World,
) -> None:
    run = await world.api.open(several(world))
    await world.shows(run, *PATHS)
    assert len(world.parts(run)) == 1
    assert world.buttons(run).count("Approve") == 3
    await world.ana.click("Approve", message=await world.card(run), near="/tmp/b.log")
    await world.shows(run, "Approved by @ana", "Approve all 2")
    assert world.buttons(run).count("Approve") == 2
    await world.ben.click("Reject", message=await world.card(run), near="/tmp/c.log")
    await world.shows(run, "Rejected by @ben")
    assert await outcomes(world, run) == ["pending", "approved", "denied"]
    assert not any("all" in label for label in world.buttons(run))
    await world.cho.click("Approve", message=await world.card(run))
    results = (await world.api.settled(run))["approvals"]
    assert [results[path]["outcome"] for path in PATHS] == ["approved", "approved", "denied"]


async def test_approve_all_lists_what_it_approves_first_and_leaves_questions_alone(world: World) -> None:
    run = await world.api.open(several(world, calls=[question_call("q", ask())]))
    opened = front(await world.ana.click("Approve all 3", message=await world.card(run)))
    text = world.ana.text(opened)
    assert all(part in text for part in ("delete_file", *PATHS, "risk high", words.APPROVE_ALL_TEXT))
    assert await outcomes(world, run) == ["pending"] * 4
    assert opened["submit"]["text"] == "Approve all 3"
    assert (await world.ana.submit()).modal is None
    await world.shows(run, "Approved by @ana", "Focused")
    assert await outcomes(world, run) == ["pending", "approved", "approved", "approved"]
    assert "Approve" not in world.buttons(run)
    await world.ana.click("Focused", message=await world.card(run))
    assert set((await world.api.settled(run))["approvals"]) == set(PATHS)


async def test_there_is_no_approve_all_where_the_arguments_of_one_do_not_stand_on_the_card(
    world: World,
) -> None:
    long = approval("long", args={"text": "word " * 2000})
    run = await world.api.open(several(world, long))
    await world.shows(run, *PATHS, words.ARGUMENTS_CUT)
    with pytest.raises(Impossible):
        await world.ana.click("Approve all 4", message=await world.card(run))
    assert not any("all" in label and "full" not in label for label in world.buttons(run))
    await world.ana.click("Reject", message=await world.card(run), near="word word")
    await world.shows(run, "Rejected by @ana", "Approve all 3")


async def test_there_is_no_approve_all_where_a_value_is_masked(empty_world: World) -> None:
    world = empty_world
    await world.start(ASKGATE_REDACT_FIELDS="path")
    run = await world.api.open(several(world))
    await world.shows(run, "1 value is hidden")
    assert world.buttons(run).count("Approve") == 3
    assert not any("all" in label for label in world.buttons(run))


async def test_who_may_not_approve_all_of_them_is_told_which_and_approves_none(world: World) -> None:
    run = await world.api.open(several(world, approval("disk", args={}) | {"tool_name": "format_disk"}))
    engine, admin = world.replicas[0].engine, Person(team="T0LOCAL", user=world.ids["dan"])
    await engine.amendments.reassign(run["gates"][3]["id"], [world.ids["cho"]], by=admin, via="slack")
    opened = front(await world.ana.click("Approve all 4", message=await world.card(run)))
    text = world.ana.text(opened)
    assert "format_disk" in text
    assert "not among those who may decide this: @cho" in text
    assert "delete_file" not in text
    assert opened["submit"] is None
    assert await outcomes(world, run) == ["pending"] * 4
    assert await world.api.refusals(run) == [(world.ids["ana"], "not-allowed")]


async def test_who_asked_for_them_is_told_so_for_each(http_world: World) -> None:
    world = http_world
    run = await world.api.open(several(world, requester={"team": "T0LOCAL", "user": world.ids["ana"]}))
    text = world.ana.text(front(await world.ana.click("Approve all 3", message=await world.card(run))))
    assert text.count("delete_file") == 3
    assert "somebody else has to approve it: @ben, @cho" in text


async def test_what_was_decided_behind_the_list_is_not_approved_by_it(world: World) -> None:
    run = await world.api.open(several(world))
    stale = await world.card(run)
    await world.ana.click("Approve all 3", message=stale)
    await world.ben.click("Reject", message=stale, near="/tmp/c.log")
    refused = await world.ana.submit()
    assert words.CHANGED_MEANWHILE in world.ana.text(front(refused))
    assert await outcomes(world, run) == ["pending", "pending", "denied"]
    await world.ana.close_modal()
    await world.ana.click("Approve all 3", message=stale)
    await world.told("ana", words.CHANGED_MEANWHILE)
    assert await outcomes(world, run) == ["pending", "pending", "denied"]
    await world.shows(run, "Approve all 2")


async def test_approve_all_is_a_vote_where_it_takes_two_and_gives_the_reason_that_is_wanted(
    world: World,
) -> None:
    run = await world.api.open(several(world, policy={"quorum": 2, "reason": "always"}))
    for name in ("ana", "ben"):
        person = getattr(world, name)
        opened = front(await person.click("Approve all 3", message=await world.card(run)))
        assert words.APPROVE_ALL_VOTES in person.text(opened)
        await person.fill({words.REASON_LABEL: f"{name} has looked"})
        assert (await person.submit()).modal is None
        await world.shows(run, f"@{name}")
    results = (await world.api.settled(run))["approvals"]
    assert {result["comment"] for result in results.values()} == {"ana has looked; ben has looked"}
