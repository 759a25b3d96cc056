"""Replies in a card's thread: offered privately to be used as the answer, and taken by that button alone."""

from __future__ import annotations

from typing import Any

from bot import words
from core.questions import MAX_VALUE
from tests.acceptance.world import Json, World, said
from tests.runs import approval, ask, body, question_call

USE, LEAVE = "Use this as the answer", "Leave it"


def asking(world: World, *questions: Json, **more: Any) -> Json:
    more = {"place": {"channel": world.ops}, "policy": {}, **more}
    return body([question_call("q", *questions)], **more)


async def reply(world: World, name: str, card: Json, text: str, **more: Any) -> Json:
    thread = card.get("thread_ts") or card["ts"]
    return said(await world.slack.as_user(name).say(card["channel"], text, thread, **more))


async def offered(world: World, name: str, card: Json, text: str, *said: str) -> Json:
    """Write a reply, and wait for the offer to use it."""
    await reply(world, name, card, text)
    return await world.told(name, text, USE, *said, channel=card["channel"])


async def heard(world: World) -> None:
    """Return when askgate has heard of all that was written."""
    await world.slack.quiet()


async def value(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["calls"]["q"]["value"]


async def test_a_reply_is_the_answer_when_its_writer_says_so_and_not_before(world: World) -> None:
    run = await world.api.open(asking(world))
    card = await world.card(run)
    offer = await offered(
        world, "ana", card, "Only the *logs*, <please> & thanks", "Which scope should be used?"
    )
    assert offer["thread_ts"] == card["ts"]
    world.nobody_else_told("ana")
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.click(USE, message=offer)).ok
    assert await value(world, run) == {
        "answers": {"Which scope should be used?": "Only the *logs*, <please> & thanks"}
    }
    await world.shows(run, "Answered by @ana", "Only the *logs*")
    await world.told("ana", words.REPLY_TAKEN)
    assert not [m for m in world.private("ana") if USE in world.slack.text_of(m)]


async def test_a_card_that_is_a_reply_itself_is_answered_in_its_thread(world: World) -> None:
    root = said(await world.ana.say(world.ops, "Please clean up"))
    place = {"channel": world.ops, "thread_ts": root["ts"]}
    run = await world.api.open(asking(world, place=place))
    card = await world.card(run)
    offer = await offered(world, "ben", card, "Broad, but slowly")
    await world.ben.click(USE, message=offer)
    assert await value(world, run) == {"answers": {"Which scope should be used?": "Broad, but slowly"}}


async def test_a_reply_to_a_copy_in_a_dm_is_offered_there(http_world: World) -> None:
    world = http_world
    run = await world.api.open(asking(world, policy={"responders": [world.ids["eve"]]}))
    offer = await offered(world, "eve", await world.card(run, copy=2), "Neither")
    await world.eve.click(USE, message=offer)
    assert await value(world, run) == {"answers": {"Which scope should be used?": "Neither"}}


async def test_each_open_question_of_the_thread_has_a_button_and_several_of_one_call_are_kept(
    http_world: World,
) -> None:
    world = http_world
    questions = [ask("Which one?", header="One"), ask("Which two?", header="Two")]
    run = await world.api.open(asking(world, *questions))
    card = await world.card(run)
    offer = await offered(world, "ana", card, "Something else", "Which one?", "Which two?")
    await world.ana.click(USE, message=offer, near="Which two?")
    await world.shows(run, "Something else")
    await world.told("ana", words.REPLY_KEPT)
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.click("Focused", message=await world.card(run), near="Which one?")
    await world.ana.click("Submit", message=await world.card(run))
    assert await value(world, run) == {"answers": {"Which one?": "Focused", "Which two?": "Something else"}}


async def test_a_custom_call_takes_a_text_and_one_with_a_schema_no_reply(http_world: World) -> None:
    world = http_world
    plain = {"tool_call_id": "q", "tool_name": "ask_boss", "args": {}}
    strict = {
        **plain,
        "tool_call_id": "s",
        "tool_name": "count",
        "kind": "custom",
        "answer_schema": {"type": "number"},
    }
    run = await world.api.open(body([plain, strict], place={"channel": world.ops}, policy={}))
    offer = await offered(world, "ana", await world.card(run), "Go ahead", "ask_boss")
    assert "count" not in world.slack.text_of(offer)
    await world.ana.click(USE, message=offer)
    await world.shows(run, "Answered by @ana")
    gates = (await world.api.run(run))["gates"]
    assert [gate["status"] for gate in gates] == ["answered", "pending"]


async def test_nobody_is_offered_what_they_may_not_decide_nor_an_approval(http_world: World) -> None:
    world = http_world
    policy = {"responders": [world.ids["ana"]], "approvers": [world.ids["ben"]]}
    run = await world.api.open(
        body([question_call("q", ask())], [approval("a")], place={"channel": world.ops}, policy=policy)
    )
    card = await world.card(run)
    await reply(world, "ben", card, "yes, approved")
    await reply(world, "cho", card, "yes")
    await offered(world, "ana", card, "Fine")
    await heard(world)
    world.nobody_else_told("ana")
    gates = (await world.api.run(run))["gates"]
    assert {gate["status"] for gate in gates} == {"pending"}


async def test_edits_broadcasts_deletions_bots_and_what_stands_elsewhere_are_no_replies(
    http_world: World,
) -> None:
    world = http_world
    run = await world.api.open(asking(world))
    card = await world.card(run)
    await reply(world, "ana", card, "to all of you", broadcast=True)
    other = said(await world.ana.say(world.ops, "Another thread"))
    await reply(world, "ana", other, "elsewhere")
    cho = await reply(world, "cho", other, "something")
    await world.cho.edit(cho, "something else")
    await world.cho.delete(cho)
    await offered(world, "ben", card, "Focused")
    await heard(world)
    world.nobody_else_told("ben")


async def test_a_reply_that_was_edited_is_shown_again_before_it_is_taken(world: World) -> None:
    run = await world.api.open(asking(world))
    card = await world.card(run)
    written = await reply(world, "ana", card, "Broud")
    offer = await world.told("ana", "Broud", USE)
    await world.ana.edit(written, "Broad, I mean")
    await world.ana.click(USE, message=offer)
    again = await world.told("ana", words.REPLY_EDITED, "Broad, I mean", USE)
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.click(USE, message=again)
    assert await value(world, run) == {"answers": {"Which scope should be used?": "Broad, I mean"}}


async def test_a_reply_that_was_deleted_is_no_answer(http_world: World) -> None:
    world = http_world
    run = await world.api.open(asking(world))
    written = await reply(world, "ana", await world.card(run), "Broad")
    offer = await world.told("ana", USE)
    await world.ana.delete(written)
    await world.ana.click(USE, message=offer)
    await world.told("ana", words.REPLY_GONE)
    assert (await world.api.run(run))["status"] == "waiting"


async def test_each_reply_has_one_offer_and_who_leaves_it_is_left_in_peace(http_world: World) -> None:
    world = http_world
    run = await world.api.open(asking(world))
    card = await world.card(run)
    for number in range(5):
        await reply(world, "ana", card, f"thought {number}")
        await heard(world)
    texts = [world.slack.text_of(message) for message in world.private("ana")]
    assert [f"thought {n}" in text for n, text in enumerate(texts)] == [True, True, True]
    offer = await offered(world, "ben", card, "Hm")
    await world.ben.click(LEAVE, message=offer)
    assert world.private("ben") == []
    await reply(world, "ben", card, "Hm, hm")
    await heard(world)
    assert world.private("ben") == []
    assert (await world.api.run(run))["status"] == "waiting"


async def test_who_comes_too_late_is_told_who_was_first(world: World) -> None:
    run = await world.api.open(asking(world))
    card = await world.card(run)
    offer = await offered(world, "ana", card, "Broad")
    await world.ben.click("Focused", message=card)
    await world.api.settled(run)
    await world.ana.click(USE, message=offer)
    await world.told("ana", "Already answered by @ben")
    assert (await world.api.refusals(run))[-1] == (world.ids["ana"], "already-settled")
    await reply(world, "cho", card, "Too late")
    await heard(world)
    assert world.private("cho") == []


async def test_a_reply_longer_than_an_answer_is_not_offered_but_told_why(http_world: World) -> None:
    world = http_world
    run = await world.api.open(asking(world))
    await reply(world, "ana", await world.card(run), "long " * (MAX_VALUE // 4))
    await world.told("ana", words.REPLY_TOO_LONG.format(most=MAX_VALUE))


async def test_slack_in_trouble_leaves_the_offer_to_be_clicked_again(http_world: World) -> None:
    world = http_world
    run = await world.api.open(asking(world))
    offer = await offered(world, "ana", await world.card(run), "Broad")
    world.slack.fail("conversations.replies", status=500)
    await world.ana.click(USE, message=offer)
    await world.told("ana", words.REPLY_UNREAD)
    await world.ana.click(USE, message=offer)
    assert await value(world, run) == {"answers": {"Which scope should be used?": "Broad"}}
