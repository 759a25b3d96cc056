"""Approvals: what people read before they allow something, and what the agent gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot import words
from bot.sandbox.acts import Impossible
from core.approvals import digest
from tests.acceptance.world import Json, World, front
from tests.runs import approval, body

BIG = {"rows": [{"path": f"/srv/data/{n:04}/<b>&'\"", "note": "größer \u00fc 漢字 " * 3} for n in range(180)]}


def wanting(world: World, *, args: Json | None = None, policy: Json | None = None, **more: Any) -> Json:
    """A run with one approval that Ana, Ben and Cho may give."""
    item = approval("call", args=args or {"path": "/tmp/old.log"}, reason="Disk is 97% full", risk="high")
    approvers = [world.ids[name] for name in ("ana", "ben", "cho")]
    return body(
        [],
        [item],
        place={"channel": world.ops},
        policy={"approvers": approvers, **(policy or {})},
        **more,
    )


async def decided(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["approvals"]["call"]


async def test_approve_names_who_and_carries_the_digest_of_what_was_shown(world: World) -> None:
    run = await world.api.open(wanting(world))
    text = await world.shows(run, "delete_file", "Disk is 97% full", "high", '"path": "/tmp/old.log"')
    assert digest({"path": "/tmp/old.log"})[:8] in text
    assert (await world.ben.click("Approve", message=await world.card(run))).ok
    result = await decided(world, run)
    assert (result["action"], result["outcome"]) == ("approve", "approved")
    assert result["by"] == [{"team": "T0LOCAL", "user": world.ids["ben"]}]
    assert result["args_digest"] == digest({"path": "/tmp/old.log"})
    await world.shows(run, "Approved by @ben")
    assert world.buttons(run) == []


async def test_reject_denies_at_once(world: World) -> None:
    run = await world.api.open(wanting(world))
    assert (await world.cho.click("Reject", message=await world.card(run))).ok
    result = await decided(world, run)
    assert (result["action"], result["outcome"], result["reason"]) == (
        "deny",
        "denied",
        "The call was rejected.",
    )
    await world.shows(run, "Rejected by @cho")


async def test_a_reason_for_a_rejection_reaches_the_agent(world: World) -> None:
    run = await world.api.open(wanting(world))
    await world.cho.click("Reject with reason", message=await world.card(run))
    await world.cho.fill({words.REASON_LABEL: "   "})
    assert (await world.cho.submit()).errors == {words.REASON_LABEL: words.WRITE_SOMETHING}
    await world.cho.fill({words.REASON_LABEL: "wrong file"})
    assert (await world.cho.submit()).modal is None
    result = await decided(world, run)
    assert (result["action"], result["reason"], result["comment"]) == ("deny", "wrong file", "wrong file")
    await world.shows(run, "Rejected by @cho", "wrong file")


@pytest.mark.parametrize("policy", ["on_reject", "always"])
async def test_a_policy_that_wants_a_reason_gets_one_for_each_rejection(world: World, policy: Any) -> None:
    run = await world.api.open(wanting(world, policy={"reason": policy}))
    card = await world.card(run)
    assert world.buttons(run) == ["Approve", "Reject with reason"]
    opened = await world.ana.click("Reject with reason", message=card)
    assert opened.modal
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.fill({words.REASON_LABEL: "not today"})
    assert (await world.ana.submit()).ok
    assert (await decided(world, run))["reason"] == "not today"


async def test_a_policy_that_always_wants_a_reason_asks_for_it_on_approve_too(world: World) -> None:
    run = await world.api.open(wanting(world, policy={"reason": "always"}))
    await world.ana.click("Approve", message=await world.card(run))
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.fill({words.REASON_LABEL: "checked the backup"})
    assert (await world.ana.submit()).ok
    result = await decided(world, run)
    assert (result["action"], result["comment"]) == ("approve", "checked the backup")
    await world.shows(run, "Approved by @ana", "checked the backup")


async def test_a_quorum_counts_people_and_shows_their_names(world: World) -> None:
    run = await world.api.open(wanting(world, policy={"quorum": 2}))
    await world.shows(run, "0 of 2 approvals")
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "1 of 2 approvals: @ana")
    assert (await world.ana.click("Approve", message=await world.card(run))).ok
    await world.told("ana", "approved this already")
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ben.click("Approve", message=await world.card(run))
    result = await decided(world, run)
    assert [by["user"] for by in result["by"]] == [world.ids["ana"], world.ids["ben"]]
    await world.shows(run, "Approved by @ana, @ben")


async def test_ones_own_vote_can_be_changed_and_counts_once(world: World) -> None:
    run = await world.api.open(wanting(world, policy={"quorum": 2, "reject_quorum": 2}))
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "1 of 2 approvals: @ana")
    await world.ana.click("Reject", message=await world.card(run))
    text = await world.shows(run, "0 of 2 approvals", "1 of 2 rejections: @ana")
    assert text.count("@ana") == 2  # among the approvers, and for the one vote
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "1 of 2 approvals: @ana")
    await world.ben.click("Approve", message=await world.card(run))
    result = await decided(world, run)
    assert [by["user"] for by in result["by"]] == [world.ids["ana"], world.ids["ben"]]


async def test_one_rejection_ends_a_quorum_that_was_half_reached(world: World) -> None:
    run = await world.api.open(wanting(world, policy={"quorum": 2}))
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "1 of 2")
    await world.ben.click("Reject", message=await world.card(run))
    result = await decided(world, run)
    assert (result["action"], [by["user"] for by in result["by"]]) == ("deny", [world.ids["ben"]])


async def test_who_asked_cannot_approve_but_can_reject(world: World) -> None:
    requester = {"team": "T0LOCAL", "user": world.ids["ana"]}
    run = await world.api.open(wanting(world, requester=requester))
    await world.shows(run, "for @ana")
    assert (await world.ana.click("Approve", message=await world.card(run))).ok
    await world.told("ana", "somebody else has to approve it: @ben, @cho.")
    world.nobody_else_told("ana")
    assert await world.api.refusals(run) == [(world.ids["ana"], "self-approval")]
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.click("Reject", message=await world.card(run))
    assert (await decided(world, run))["outcome"] == "denied"


async def test_long_arguments_are_read_in_full_before_they_can_be_approved(world: World) -> None:
    run = await world.api.open(wanting(world, args=BIG))
    card = await world.card(run)
    assert len(json.dumps(BIG)) > 20_000
    assert "Approve" not in world.buttons(run)
    opened = await world.ana.click("View in full", message=card)
    shown = code_of(front(opened))
    pages = 1
    while "Next" in labels_of(front(opened)):
        assert "Approve" not in labels_of(front(opened))
        opened = await world.ana.click("Next")
        shown += code_of(front(opened))
        pages += 1
    assert pages > 1
    assert f"Page {pages} of {pages}" in world.ana.text(front(opened))
    assert json.loads(shown) == BIG
    done = await world.ana.click("Approve")
    assert "Approved by @ana" in world.ana.text(front(done))
    result = await decided(world, run)
    assert (result["action"], result["args_digest"]) == ("approve", digest(BIG))


async def test_pages_go_back_as_well(world: World) -> None:
    run = await world.api.open(wanting(world, args=BIG))
    first = front(await world.ana.click("View in full", message=await world.card(run)))
    await world.ana.click("Next")
    assert code_of(front(await world.ana.click("Previous"))) == code_of(first)


async def test_a_vote_from_the_long_view_counts_once_and_a_second_one_is_told_so(world: World) -> None:
    run = await world.api.open(wanting(world, args={"text": "x" * 9000}, policy={"quorum": 2}))
    await world.ana.click("View in full", message=await world.card(run))
    voted = await world.ana.click("Approve")
    assert "1 of 2 approvals: @ana" in world.ana.text(front(voted))
    again = await world.ana.click("Approve")
    assert "approved this already" in world.ana.text(front(again))
    assert (await world.api.run(run))["status"] == "waiting"


@pytest.mark.parametrize("duty", ["never", "on_reject"])
async def test_a_rejection_with_a_reason_works_from_the_long_view(world: World, duty: str) -> None:
    run = await world.api.open(wanting(world, args=BIG, policy={"reason": duty}))
    opened = await world.ana.click("View in full", message=await world.card(run))
    while "Next" in labels_of(front(opened)):
        opened = await world.ana.click("Next")
    await world.ana.click("Reject with reason")
    await world.ana.fill({words.REASON_LABEL: "too many"})
    assert (await world.ana.submit()).modal is None
    assert (await decided(world, run))["reason"] == "too many"


async def test_short_arguments_stand_on_the_card_whole(world: World) -> None:
    args = {"a": "x" * 3000, "b": [1, 2.5, None, True], "c": {"ü": "<&>"}}
    run = await world.api.open(wanting(world, args=args))
    card = await world.card(run)
    assert json.loads(code_of(card)) == args
    with pytest.raises(Impossible):
        await world.ana.click("View in full", message=card)


async def test_what_cannot_be_seen_in_arguments_is_written_out(world: World) -> None:
    args = {"command": "rm \u202e/tmp/gpj.exe\u2066", "tag": "a\u200bb"}
    run = await world.api.open(wanting(world, args=args))
    shown = code_of(await world.card(run))
    assert "\\u202e" in shown
    assert not {"\u202e", "\u2066", "\u200b"} & set(shown)
    assert json.loads(shown) == args


def code_of(thing: Any) -> str:
    """The text of all code blocks of a message or view, joined."""
    return "".join(
        piece["text"]
        for block in thing["blocks"]
        if block["type"] == "rich_text"
        for part in block["elements"]
        if part["type"] == "rich_text_preformatted"
        for piece in part["elements"]
    )


def labels_of(view: Json) -> list[str]:
    return [
        element["text"]["text"]
        for block in view["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
    ]
