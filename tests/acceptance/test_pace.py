"""What askgate asks of Slack it asks at Slack's pace, all processes together, and nothing more often than it must."""

from __future__ import annotations

import asyncio

import pytest

from bot.slack import rates
from tests.acceptance.world import Json, World
from tests.runs import approval, ask, body, question_call


def question(world: World, text: str = "Which scope?") -> Json:
    return body([question_call("q", ask(text))], place={"channel": world.ops}, policy={})


async def test_many_cards_for_one_channel_come_one_by_one_also_from_several_processes(
    empty_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "POST_EVERY_MS", 150)
    monkeypatch.setattr(rates, "POST_BURST", 2)
    world = empty_world
    await world.start(2)
    runs = [await world.api.open(question(world, f"Question {n}?")) for n in range(7)]
    elsewhere = await world.api.open(question(world) | {"place": {"channel": world.lobby}})
    await world.card(elsewhere)
    for run in runs:
        await world.card(run)
    posts = [call for call in world.slack.called("chat.postMessage") if call.args["channel"] == world.ops]
    assert len(posts) == len(runs)
    # the burst, then one after another; the first may have been on its way for a moment
    assert all(post.time - posts[0].time > (n - 1) * 0.15 - 0.1 for n, post in enumerate(posts))
    assert world.slack.called("conversations.history") == []


async def test_the_card_of_a_click_is_changed_at_once_when_nothing_holds_it(world: World) -> None:
    run = await world.api.open(question(world))
    await world.ana.click("Focused", message=await world.card(run))
    clicked = asyncio.get_running_loop().time()
    await world.shows(run, "Answered by @ana")
    assert asyncio.get_running_loop().time() - clicked < 0.5


async def test_what_slack_says_to_one_process_about_waiting_holds_for_all(world: World) -> None:
    await world.start()
    world.slack.fail("chat.postMessage", status=429, retry_after=1)
    runs = [await world.api.open(question(world))]
    refused = (await world.slack.wait_for(lambda: world.slack.called("chat.postMessage")))[0]
    runs += [await world.api.open(question(world)) for _ in range(3)]
    for run in runs:
        await world.card(run)
    posts = world.slack.called("chat.postMessage")
    assert len(posts) == 5
    assert posts[1].time - refused.time >= 1
    assert world.slack.called("conversations.history") == []


async def test_changes_while_slack_wants_to_be_left_alone_become_one_update(world: World) -> None:
    people = [world.ids[name] for name in ("ana", "ben", "cho")]
    run = await world.api.open(
        body([], [approval("c")], place={"channel": world.ops}, policy={"approvers": people, "quorum": 3})
    )
    card = await world.card(run)
    world.slack.fail("chat.update", status=429, retry_after=1)
    for person in (world.ana, world.ben, world.cho):
        assert (await person.click("Approve", message=card)).ok
    await world.shows(run, "Approved by @ana, @ben, @cho")
    assert [call.ok for call in world.slack.called("chat.update")] == [False, True]


# what Slack does not take


async def test_a_card_that_slack_does_not_draw_comes_as_text_that_says_how_to_decide(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.slack.fail("chat.postMessage", error="invalid_blocks")
    policy = {"approvers": [world.ids["ana"], "key:agent"]}
    run = await world.api.open(
        body([], [approval("c")], title="*Hostile* <!channel>", place={"channel": world.ops}, policy=policy)
    )
    gate = run["gates"][0]["id"]
    text = await world.shows(run, "Slack does not take this card", f"/gates decide {gate}", "App Home")
    assert "Hostile" not in text
    assert world.buttons(run) == []
    assert [e["event"] for e in await world.api.audit(run)].count("card.posted") == 1
    world.slack.fail("chat.update", error="invalid_blocks")
    await world.api.ok("POST", f"/gates/{gate}/decide", {"action": "approve"})
    await world.shows(run, "Nothing is open any more", "Approved by API key agent")
    assert (await world.api.settled(run))["approvals"]["c"]["outcome"] == "approved"


async def test_a_card_that_slack_draws_again_is_a_card_again(world: World) -> None:
    world.slack.fail("chat.postMessage", error="msg_blocks_too_long")
    policy = {"approvers": [world.ids["ana"], "key:agent"], "quorum": 2}
    run = await world.api.open(body([], [approval("c")], place={"channel": world.ops}, policy=policy))
    await world.shows(run, "Slack does not take this card")
    gate = run["gates"][0]["id"]
    await world.api.ok("POST", f"/gates/{gate}/decide", {"action": "approve"})
    await world.shows(run, "1 of 2 approvals")
    await world.ana.click("Approve", message=await world.card(run))
    await world.shows(run, "Approved by API key agent, @ana")


def test_every_paced_method_is_one_that_is_called() -> None:
    from bot.manifest import SCOPES

    assert rates.PER_MINUTE.keys() <= SCOPES.keys()
