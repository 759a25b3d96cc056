"""Where cards go, and what becomes of them when Slack or askgate is in trouble."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards.card import pack
from bot.slack.audience import Audience
from bot.slack.client import Slack
from bot.slack.delivery import POSTS, Delivery
from bot.slack.directory import SlackDirectory
from core.agenda import TryAgain, Worker
from core.embedded import EmbeddedServer
from tests.acceptance.world import Json, World, front, said
from tests.runs import approval, ask, body, question_call

NOWHERE = "C0NOWHERE"


def question(world: World, **more: Any) -> Json:
    return body([question_call("q", ask())], **{"place": {"channel": world.ops}, "policy": {}, **more})


async def answer(world: World, run: Json) -> Any:
    """Ana clicks an option of the run's one question; returns the outcome."""
    await world.ana.click("Focused", message=await world.card(run))
    return (await world.api.settled(run))["calls"]["q"]["outcome"]


# places


async def test_a_card_stands_in_the_thread_that_the_run_names(world: World) -> None:
    root = said(await world.ana.say(world.ops, "Please clean up"))
    run = await world.api.open(question(world, place={"channel": world.ops, "thread_ts": root["ts"]}))
    card = await world.card(run)
    assert card["thread_ts"] == root["ts"]
    await world.ana.click("Focused", message=card)
    await world.shows(run, "Answered by @ana")
    await world.ben.click("Broad", message=card)
    assert (await world.told("ben", "Already answered"))["thread_ts"] == root["ts"]


async def test_a_card_stands_in_the_channel_that_the_run_names_and_private_words_too(world: World) -> None:
    run = await world.api.open(question(world, place={"channel": world.lobby}))
    card = await world.card(run)
    assert (card["channel"], card.get("thread_ts")) == (world.lobby, None)
    assert await answer(world, run) == "answered"
    await world.eve.click("Broad", message=card)
    assert "thread_ts" not in await world.told("eve", "Already answered", channel=world.lobby)


async def test_a_card_for_a_person_comes_as_a_direct_message(world: World) -> None:
    run = await world.api.open(question(world, place={"user": world.ids["ana"]}))
    card = await world.card(run)
    assert card["channel"] == world.ana.dm
    gate = (await world.api.run(run))["gates"][0]
    assert gate["card"] == {"channel": world.ana.dm, "ts": card["ts"]}
    assert await answer(world, run) == "answered"


async def test_without_a_place_the_card_goes_to_the_default_channel(empty_world: World) -> None:
    world = empty_world
    await world.start(ASKGATE_DEFAULT_CHANNEL=world.lobby)
    run = await world.api.open(question(world, place=None))
    assert (await world.card(run))["channel"] == world.lobby


# places that there are not


async def undelivered(world: World, place: Json) -> Any:
    """Open a run with a question and an approval there; returns both results' words."""
    approvals = [approval("call")]
    policy = {"responders": ["anyone"], "approvers": [world.ids["ana"]]}
    run = await world.api.open(body([question_call("q", ask())], approvals, place=place, policy=policy))
    results = await world.api.settled(run)
    call, allowed = results["calls"]["q"], results["approvals"]["call"]
    assert (call["status"], call["outcome"], call["by"]) == ("failed", "undeliverable", [])
    assert (allowed["action"], allowed["outcome"], allowed["by"]) == ("deny", "undeliverable", [])
    assert call["message"] == allowed["reason"]
    (failed,) = [e for e in await world.api.audit(run) if e["event"] == "card.failed"]
    assert failed["reason"] in call["message"]
    return call["message"]


async def test_a_channel_that_there_is_not_ends_as_undeliverable_with_slacks_word(world: World) -> None:
    assert "channel_not_found" in await undelivered(world, {"channel": NOWHERE})


async def test_a_channel_that_askgate_is_not_in_ends_as_undeliverable(world: World) -> None:
    closed = world.slack.add_channel("closed", ["ana"], bot=False)
    assert "not_in_channel" in await undelivered(world, {"channel": closed})


async def test_an_archived_channel_ends_as_undeliverable(world: World) -> None:
    world.slack.archive("lobby")
    assert "is_archived" in await undelivered(world, {"channel": world.lobby})


async def test_a_thread_that_there_is_not_ends_as_undeliverable(world: World) -> None:
    place = {"channel": world.ops, "thread_ts": "1700000000.000100"}
    assert "thread_not_found" in await undelivered(world, place)


async def test_a_person_that_there_is_not_ends_as_undeliverable(world: World) -> None:
    assert "user_not_found" in await undelivered(world, {"user": "U0NOBODY"})


async def test_what_was_shown_of_a_card_that_cannot_be_shown_whole_says_that_it_is_undeliverable(
    world: World,
) -> None:
    calls = [question_call(f"q{n}", ask(f"Question {n}?")) for n in range(40)]
    world.slack.fail("chat.postMessage", delay=0.01)
    world.slack.fail("chat.postMessage", error="restricted_action")
    run = await world.api.open(body(calls, place={"channel": world.ops}, policy={}))
    results = (await world.api.settled(run))["calls"]
    assert {result["outcome"] for result in results.values()} == {"undeliverable"}
    assert "restricted_action" in results["q0"]["message"]
    text = await world.shows(run, "Question 0?", "Undeliverable: nobody could be asked")
    assert "Question 39?" not in text
    assert world.buttons(run) == []
    assert [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"] == [
        "restricted_action"
    ]


# trouble with posting


async def test_a_card_waits_as_long_as_slack_says(world: World) -> None:
    world.slack.fail("chat.postMessage", status=429, retry_after=1)
    run = await world.api.open(question(world))
    await world.card(run)
    refused, posted = world.slack.called("chat.postMessage")
    assert not refused.ok
    assert posted.time - refused.time >= 1
    assert await answer(world, run) == "answered"


async def test_a_card_that_slack_fails_to_take_is_tried_again(world: World) -> None:
    world.slack.fail("chat.postMessage", status=500)
    run = await world.api.open(question(world))
    assert await answer(world, run) == "answered"


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_card_that_was_posted_unheard_is_found_again_and_not_posted_twice(
    world: World, threaded: bool
) -> None:
    place = {"channel": world.ops}
    if threaded:
        place["thread_ts"] = said(await world.ana.say(world.ops, "Go on"))["ts"]
    world.slack.fail("chat.postMessage", reset_after_accept=True)
    run = await world.api.open(question(world, place=place))
    assert await answer(world, run) == "answered"
    await world.shows(run, "Answered by @ana")
    assert len(world.parts(run)) == 1
    assert len(world.slack.called("chat.postMessage")) == 1


async def test_a_bot_that_is_restarted_between_post_and_remembering_finds_its_card(
    server: EmbeddedServer, empty_world: World
) -> None:
    world = empty_world
    world.redis_url = server.url
    await world.start(ASKGATE_GRACE_S="0")
    run = await world.api.open(question(world))
    await world.slack.wait_for(lambda: world.slack.called("chat.postMessage"))
    server.kill()
    await world.stop()
    await server.start()
    await world.start()
    await world.lapse()
    await world.slack.wait_for(lambda: world.slack.called("conversations.history"))
    assert await answer(world, run) == "answered"
    await world.shows(run, "Answered by @ana")
    assert len(world.parts(run)) == 1
    assert len(world.slack.called("chat.postMessage")) == 1


# trouble with changing


@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 429, "retry_after": 1}, {"reset_after_accept": True}]
)
async def test_a_card_that_could_not_be_changed_is_changed_later(world: World, fault: Json) -> None:
    run = await world.api.open(question(world))
    card = await world.card(run)
    world.slack.fail("chat.update", **fault)
    await world.ana.click("Focused", message=card)
    await world.shows(run, "Answered by @ana")
    assert world.buttons(run) == []


async def test_a_card_that_somebody_deleted_comes_back_when_it_next_changes(world: World) -> None:
    policy = {"approvers": [world.ids["ana"], world.ids["ben"], "key:agent"], "quorum": 2}
    run = await world.api.open(body([], [approval("call")], place={"channel": world.ops}, policy=policy))
    gone = await world.card(run)
    local = world.slack.world
    message = local.find(world.ops, gone["ts"])
    assert message
    local.remove(message)
    await world.api.ok("POST", f"/gates/{run['gates'][0]['id']}/decide", {"action": "approve"})
    await world.shows(run, "1 of 2 approvals: API key agent")
    back = await world.card(run)
    assert back["ts"] != gone["ts"]
    await world.ben.click("Approve", message=back)
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "approved"
    await world.shows(run, "Approved by API key agent, @ben")


# trouble with modals


async def test_a_modal_that_slack_does_not_open_is_told_privately(world: World) -> None:
    run = await world.api.open(question(world))
    world.slack.fail("views.open", error="expired_trigger_id")
    clicked = await world.ana.click("Other", message=await world.card(run))
    assert (clicked.ok, clicked.modal) == (True, None)
    await world.told("ana", "could not open", "Nothing was changed")
    assert (await world.ana.click("Other", message=await world.card(run))).modal


async def test_a_decision_from_a_modal_stands_also_when_slack_does_not_redraw_it(world: World) -> None:
    args = {"text": "x" * 9000}
    policy = {"approvers": [world.ids["ana"]]}
    run = await world.api.open(
        body([], [approval("call", args=args)], place={"channel": world.ops}, policy=policy)
    )
    await world.ana.click("View in full", message=await world.card(run))
    world.slack.fail("views.update", status=500)
    clicked = await world.ana.click("Approve")
    assert clicked.ok
    assert "Nothing was changed" not in world.ana.text(front(clicked))
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "approved"
    await world.shows(run, "Approved by @ana")


# two who deliver


def delivery(world: World) -> Delivery:
    client = AsyncWebClient(token="xoxb-test", base_url=world.slack.api_url)
    engine = world.replicas[0].engine
    return Delivery(engine, Slack(client), Audience(engine, SlackDirectory(client)))


def many(world: World, count: int) -> Json:
    calls = [question_call(f"q{n}", ask(f"Question {n}?")) for n in range(count)]
    return body(calls, place={"channel": world.ops}, policy={})


async def test_two_who_deliver_one_card_at_once_leave_one_card(empty_world: World) -> None:
    world = empty_world
    await world.start(role="web")
    run = await world.api.open(question(world))
    world.slack.fail("chat.postMessage", delay=0.3, times=2)
    ends = await asyncio.gather(
        *(delivery(world).card(run["id"], 1) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(end).__name__ for end in ends) == ["NoneType", "TryAgain"]
    assert len(world.slack.called("chat.postMessage")) == 2
    (left,) = world.parts(run)
    assert (await world.api.run(run))["gates"][0]["card"] == {"channel": world.ops, "ts": left["ts"]}
    assert await answer(world, run) == "answered"


async def test_a_card_of_many_messages_is_posted_once_although_that_outlasts_a_lease(
    empty_world: World,
) -> None:
    world = empty_world
    await world.start(role="web")
    run = await world.api.open(many(world, 80))
    world.slack.fail("chat.postMessage", delay=0.1, times=99)
    engine = world.replicas[0].engine
    workers = [
        Worker(engine.store, engine.bell, {"card": delivery(world).card}, lease_ms=300) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    await world.shows(run, "Question 79?")
    await world.ana.click("Focused", message=world.parts(run)[0], near="Question 0?")
    await world.shows(run, "Answered by @ana")
    for worker in workers:
        await worker.stop(5)
    parts = len(pack(await engine.run(run["id"])))
    assert parts > POSTS
    assert len(world.parts(run)) == len(world.slack.called("chat.postMessage")) == parts


async def test_messages_that_are_there_are_looked_after_while_others_are_still_posted(
    empty_world: World,
) -> None:
    world = empty_world
    await world.start(role="web")
    run = await world.api.open(many(world, 80))
    with pytest.raises(TryAgain):
        await delivery(world).card(run["id"], 1)
    assert len(world.parts(run)) == POSTS
    await world.ana.click("Focused", message=world.parts(run)[0], near="Question 0?")
    with contextlib.suppress(TryAgain):
        await delivery(world).card(run["id"], 2)
    assert "Answered by @ana" in world.text(run)
    assert len(world.slack.called("conversations.history")) <= 1
