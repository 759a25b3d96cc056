"""Reminders: when they come, whom they mention, and that they end with what they remind of."""

from __future__ import annotations

from typing import Any

from tests.acceptance.world import WAIT_S, Json, World, said
from tests.runs import approval, ask, body, question_call


def reminding(world: World, *after_s: int, policy: Json | None = None, **more: Any) -> Json:
    approvers = [world.ids["ana"], world.ids["ben"], "S0GROUP", f"T0OTHER:{world.ids['gus']}", "key:agent"]
    return body(
        [],
        [approval("call")],
        **{"place": {"channel": world.ops}, **more},
        policy={"approvers": approvers, **(policy or {})},
        remind_after_s=list(after_s),
    )


async def reminded(world: World, run: Json, count: int = 1) -> list[Json]:
    """Wait for so many reminders."""
    await world.slack.wait_for(lambda: len(world.reminders(run)) >= count, WAIT_S)
    return world.reminders(run)


async def test_a_reminder_stands_in_the_cards_thread_names_people_and_leads_to_the_card(world: World) -> None:
    run = await world.api.open(reminding(world, 1))
    card = await world.card(run)
    (message,) = await reminded(world, run)
    assert message["thread_ts"] == card["ts"]
    assert f"p{card['ts'].replace('.', '')}|Go to the card>" in str(message["blocks"])
    text = world.slack.text_of(message)
    assert text.startswith("⏰ @ana @ben @gus: This is still open until")
    assert not any(word in str(message) for word in ("!subteam", "!channel", "!here", "S0GROUP", "agent key"))


async def test_who_has_voted_and_who_asked_is_left_in_peace(http_world: World) -> None:
    world = http_world
    requester = {"team": "T0LOCAL", "user": world.ids["cho"]}
    approvers = [world.ids[name] for name in ("ana", "ben", "cho")]
    policy = {"approvers": approvers, "quorum": 2}
    run = await world.api.open(reminding(world, 1, policy=policy, requester=requester))
    await world.ana.click("Approve", message=await world.card(run))
    (message,) = await reminded(world, run)
    assert world.slack.text_of(message).startswith("⏰ @ben: This is still open")


async def test_reminders_come_each_in_its_time_and_none_after_the_end(http_world: World) -> None:
    world = http_world
    run = await world.api.open(reminding(world, 1, 2, 4))
    first, second = await reminded(world, run, 2)
    assert float(second["ts"]) - float(first["ts"]) > 0.5
    await world.ana.click("Approve", message=await world.card(run))
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "approved"
    later = await world.api.open(reminding(world, 2))
    await reminded(world, later)
    assert len(world.reminders(run)) == 2


async def test_a_batch_says_how_much_is_open_and_a_thread_is_kept_to(http_world: World) -> None:
    world = http_world
    root = said(await world.ana.say(world.ops, "Please clean up"))
    calls = [question_call("q", ask()), question_call("r", ask())]
    place = {"channel": world.ops, "thread_ts": root["ts"]}
    run = await world.api.open(body(calls, place=place, policy={}, remind_after_s=[1]))
    await world.ana.click("Focused", message=await world.card(run))
    (message,) = await reminded(world, run)
    assert message["thread_ts"] == root["ts"]
    assert world.slack.text_of(message).startswith("⏰ 1 of 2 are still open until")


async def test_a_reminder_that_was_posted_unheard_is_found_again(http_world: World) -> None:
    world = http_world
    run = await world.api.open(reminding(world, 1))
    await world.card(run)
    world.slack.fail("chat.postMessage", reset_after_accept=True)
    await reminded(world, run)
    await world.slack.wait_for(lambda: world.slack.called("conversations.replies"), 15)
    assert len(world.reminders(run)) == 1


async def test_a_reminder_that_slack_refuses_is_left_out_and_the_card_stands(http_world: World) -> None:
    world = http_world
    run = await world.api.open(reminding(world, 1, 2))
    await world.card(run)
    world.slack.fail("chat.postMessage", error="restricted_action")
    await reminded(world, run)
    refused, posted = world.slack.called("chat.postMessage")[1:]
    assert (refused.ok, posted.ok) == (False, True)
    await world.ana.click("Approve", message=await world.card(run))
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "approved"


async def test_who_has_more_than_five_open_gets_one_message_about_all_with_the_way_to_each(
    world: World,
) -> None:
    eve = {"approvers": [world.ids["eve"]]}
    runs = [await world.api.open(reminding(world, policy=eve, title=f"Job {number}")) for number in range(5)]
    runs.append(await world.api.open(reminding(world, 1, policy=eve, title="Job 5")))
    copies = [await world.card(run, copy=2) for run in runs]

    def digests() -> list[Json]:
        seen = world.slack.messages(world.eve.dm)
        return [message for message in seen if "6 gates wait for you" in world.slack.text_of(message)]

    [digest] = await world.slack.wait_for(digests, WAIT_S)
    text = world.slack.text_of(digest)
    assert all(f"Job {number}" in text for number in range(6))
    ways = [block["accessory"]["url"] for block in digest["blocks"] if "accessory" in block]
    assert sorted(ways) == sorted(
        f"{world.slack.url}/archives/{world.eve.dm}/p{c['ts'].replace('.', '')}" for c in copies
    )
    assert world.reminders(runs[-1]) == []
    assert (await world.eve.click("Approve", message=copies[0])).ok
