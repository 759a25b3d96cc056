"""The shortcuts and the mention of the bot: the same lists, from wherever somebody is."""

from __future__ import annotations

from bot import words
from core.embedded import EmbeddedServer
from tests.acceptance.test_gates import in_ops, open_for
from tests.acceptance.world import World, front, said
from tests.runs import ask


def bot(world: World) -> str:
    return f"@{world.slack.world.users[world.slack.app.bot_user].name}"


async def test_the_shortcut_opens_what_waits_and_it_is_decided_there(world: World) -> None:
    run, _ = await open_for(world, "ana")
    result = await world.ana.shortcut("Gates")
    shown = world.ana.text(front(result))
    assert words.LIST_TITLES["mine"] in shown
    assert "delete_file" in shown
    await world.ana.click("Decide")
    assert "/tmp/old.log" in world.ana.text(world.ana.modal or {})
    await world.ana.click("Approve")
    assert (await world.api.settled(run))["approvals"]["call-2"]["outcome"] == "approved"
    assert "Approved by @ana" in world.ana.text(world.ana.modal or {})
    await world.ana.click(words.BACK)
    assert words.EMPTY["all"] in world.ana.text(world.ana.modal or {})


async def test_an_admin_mends_from_the_shortcut_on_top_of_the_list(http_world: World) -> None:
    world = http_world
    run, gate = await open_for(world, "ana")
    await world.dan.shortcut("Gates")
    await world.dan.select("Cancel", near=gate)
    assert f"{gate} is cancelled." in world.dan.text(front(await world.dan.submit()))
    await world.dan.close_modal()
    await world.shows(run, "Cancelled")
    assert words.LIST_TITLES["all"] in world.dan.text(world.dan.modal or {})


async def test_gates_here_shows_what_is_open_in_the_thread_of_a_message(world: World) -> None:
    first = said(await world.ana.say(world.ops, "Please clean up"))
    place = {"channel": world.ops, "thread_ts": first["ts"]}
    inside = await world.api.open(in_ops(world, ask("Inside?"), place=place))
    outside = await world.api.open(in_ops(world, ask("Outside?")))
    await world.card(inside)
    for message in (first, await world.card(inside)):
        shown = world.ben.text(front(await world.ben.shortcut("Gates here", message=message)))
        assert words.LIST_TITLES["thread"] in shown
        assert "Inside?" in shown
        assert "Outside?" not in shown
        await world.ben.close_modal()
    card = await world.card(outside)
    assert "Outside?" in world.ben.text(front(await world.ben.shortcut("Gates here", message=card)))


async def test_a_mention_in_a_thread_lists_what_is_open_there_for_who_asked_alone(world: World) -> None:
    first = said(await world.ana.say(world.ops, "Please clean up"))
    place = {"channel": world.ops, "thread_ts": first["ts"]}
    run = await world.api.open(in_ops(world, ask("Inside?"), place=place))
    await world.card(run)
    await world.card(await world.api.open(in_ops(world, ask("Outside?"))))
    await world.ben.say(world.ops, f"{bot(world)} what is open?", first["ts"])
    answer = await world.told("ben", words.LIST_TITLES["thread"], "Inside?")
    assert "Outside?" not in world.ben.text(answer)
    assert answer["thread_ts"] == first["ts"]
    world.nobody_else_told("ben")
    await world.ben.click("Decide", message=answer)
    await world.ben.click("Focused", message=world.private("ben")[-1])
    await world.api.settled(run)
    assert "Answered by @ben" in world.ben.text(world.private("ben")[-1])
    await world.cho.say(world.ops, f"{bot(world)}?", first["ts"])
    await world.told("cho", words.EMPTY["thread"])
    assert len(world.private("cho")) == 1


async def test_a_mention_outside_a_thread_lists_what_is_open_in_the_channel(world: World) -> None:
    await world.ben.say(world.ops, f"{bot(world)} hello")
    await world.told("ben", words.EMPTY["channel"])
    await world.card(await world.api.open(in_ops(world, ask("Outside?"))))
    await world.ben.say(world.ops, f"hey {bot(world)}")
    await world.told("ben", words.LIST_TITLES["channel"], "Outside?")
    world.nobody_else_told("ben")


async def test_a_guest_who_mentions_it_sees_the_cards_of_the_channel(http_world: World) -> None:
    world = http_world
    await world.card(await world.api.open(in_ops(world, ask("Outside?"))))
    await world.gus.say(world.ops, f"hey {bot(world)}")
    await world.told("gus", "Outside?")


async def test_a_shortcut_while_the_store_is_away_says_so(
    shaky_http_world: World, server: EmbeddedServer
) -> None:
    world = shaky_http_world
    server.kill()
    result = await world.ana.shortcut("Gates")
    assert not result.ok
    assert words.DID_NOT_WORK in world.ana.text(front(result))
