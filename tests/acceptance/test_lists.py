"""`/gates` and the App Home: what is pending, for whom, and for nobody else's eyes."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from bot.listeners.inbox import SHOWN
from bot.slack.client import CLICK_TIMEOUT_S
from tests.acceptance.world import Json, World
from tests.runs import approval, ask, body, question_call


async def open_three(world: World) -> list[Json]:
    """A question for the channel, an approval for Ana, and one for the admins."""
    place = {"channel": world.ops}
    asked = body([question_call("q", ask("Which colour?"))], place=place, policy={}, title="Paint")
    for_ana = body(
        [], [approval("a", tool_name="for_ana")], place=place, policy={"approvers": [world.ids["ana"]]}
    )
    for_admins = body([], [approval("b", tool_name="for_admins")], place=place, policy={})
    return [await world.api.open(each) for each in (asked, for_ana, for_admins)]


async def gates(world: World, name: str, text: str = "") -> str:
    """Run `/gates` in the lobby; returns what the person then reads."""
    seen = len(world.private(name, world.lobby))
    assert (await world.slack.as_user(name).command("/gates", text, channel=world.lobby)).ok
    (answer,) = world.private(name, world.lobby)[seen:]
    return world.slack.text_of(answer)


async def test_gates_lists_for_each_what_they_may_decide_and_for_admins_all(world: World) -> None:
    runs = await open_three(world)
    ana, ben, eve, dan = [await gates(world, name) for name in ("ana", "ben", "eve", "dan")]
    assert "Which colour?" in ana
    assert "for_ana" in ana
    assert "for_admins" not in ana
    assert "Which colour?" in ben
    assert "for_ana" not in ben
    assert eve.startswith(f"{words.LIST_TITLES['mine']}\n{words.EMPTY['mine']}\n")
    assert all(text in dan for text in ("Paint", "Which colour?", "for_ana", "for_admins"))
    assert all(run["gates"][0]["id"] in dan for run in runs)
    assert [m for m in world.slack.messages(world.lobby) if m["user"] == world.slack.app.bot_user] == []


async def test_gates_leaves_out_what_is_settled(world: World) -> None:
    run, *_ = await open_three(world)
    await world.ben.click("Focused", message=await world.card(run))
    await world.api.settled(run)
    assert "Which colour?" not in await gates(world, "ben", "list")


async def test_gates_says_when_nothing_is_pending(world: World) -> None:
    assert words.EMPTY["all"] in await gates(world, "ana")
    assert words.LIST_EMPTY_ADMIN in await gates(world, "dan")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("help", "/gates extend ID 2h"),
        ("destroy everything", "There is no /gates destroy.\n"),
        ("lisst", "Did you mean /gates list?"),
        ("  LIST me  ", "There is no list me. Did you mean /gates list mine?"),
        ("list `<!here>`", "There is no list <!here>."),
        ("cancel", "Which gate? Write /gates cancel ID"),
    ],
)
async def test_gates_with_other_words_gets_help(http_world: World, text: str, said: str) -> None:
    assert said in await gates(http_world, "ana", text)


async def test_the_home_shows_a_person_what_is_theirs_to_decide(world: World) -> None:
    await open_three(world)
    await world.ana.open_home()
    home = await world.slack.wait_for(lambda: world.ana.home or {})
    shown = world.ana.text(home)
    assert "Which colour?" in shown
    assert "for_ana" in shown
    assert "for_admins" not in shown
    await world.eve.open_home()
    assert words.HOME_EMPTY in world.eve.text(await world.slack.wait_for(lambda: world.eve.home or {}))


async def test_a_home_that_slack_does_not_take_comes_with_the_next_opening(world: World) -> None:
    world.slack.fail("views.publish", status=500)
    await world.ana.open_home()
    await world.slack.wait_for(lambda: world.slack.called("views.publish"))
    await world.ana.open_home()
    assert words.HOME_EMPTY in world.ana.text(await world.slack.wait_for(lambda: world.ana.home or {}))


def approvals(world: World, count: int, *names: str, **more: Any) -> Json:
    """A run without a card of so many approvals for these people."""
    policy = {"approvers": [*(world.ids[name] for name in names), "key:agent"]}
    items = [approval(f"a{number}", tool_name=f"tool_{number}") for number in range(count)]
    return body([], items, **{"policy": policy, "place": None, **more})


async def test_gates_shows_the_newest_and_says_that_there_are_more(http_world: World) -> None:
    world = http_world
    await world.api.open(approvals(world, SHOWN + 1, "ana"))
    shown = await gates(world, "ana")
    assert SHOWN == 10
    assert [f"tool_{number}\n" in shown for number in range(11)] == [False, *[True] * 10]
    assert words.NEXT in shown
    assert "tool_1\n" in await gates(world, "dan")


async def test_what_names_somebody_is_found_behind_five_hundred_newer_gates(http_world: World) -> None:
    world = http_world
    await world.api.open(approvals(world, 1, "cho", title="Hers"))
    await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    for _ in range(4):
        await world.api.open(approvals(world, 128, "eve"))
    shown = await gates(world, "cho")
    assert "Hers" in shown
    assert "tool_1" not in shown
    assert words.LIST_UNSURE in shown
    assert words.LIST_EMPTY_UNSURE in await gates(world, "ben")


async def test_a_look_up_that_fails_is_owned_up_to(world: World) -> None:
    await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    world.slack.fail("conversations.members", status=500)
    assert words.LIST_EMPTY_UNSURE in await gates(world, "ben")
    await world.api.open(approvals(world, 1, "ben"))
    world.slack.fail("conversations.members", status=500)
    shown = await gates(world, "ben")
    assert "tool_0" in shown
    assert words.LIST_UNSURE in shown
    shown = await gates(world, "ben")
    assert "Which scope should be used?" in shown
    assert words.LIST_UNSURE not in shown


async def test_an_admin_who_cannot_be_verified_is_told_that_not_all_was_checked(empty_world: World) -> None:
    world = empty_world
    group = world.slack.add_group("admins", ["cho"])
    await world.start(ASKGATE_ADMINS=group)
    await world.api.open(approvals(world, 1, "ana"))
    world.slack.fail("usergroups.users.list", status=500)
    assert words.LIST_EMPTY_UNSURE in await gates(world, "cho")
    assert "tool_0" in await gates(world, "cho")


async def test_many_channels_are_looked_up_while_slack_still_waits(http_world: World) -> None:
    world = http_world
    for number in range(25):
        channel = world.slack.add_channel(f"c{number}", ["ana"])
        await world.api.open(
            body([question_call("q", ask(f"Question {number:02}?"))], place={"channel": channel}, policy={})
        )
    world.slack.fail("conversations.members", delay=0.2, times=25)
    shown = await gates(world, "ana")
    assert [f"Question {number:02}?" in shown for number in range(25)] == [False] * 15 + [True] * 10
    assert words.LIST_UNSURE not in shown


async def test_a_channel_that_slack_is_slow_about_holds_up_neither_the_rest_nor_the_answer(
    http_world: World,
) -> None:
    world = http_world
    await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    await world.api.open(approvals(world, 3, "ana"))
    world.slack.fail("conversations.members", delay=CLICK_TIMEOUT_S + 0.5)
    shown = await gates(world, "ana")
    assert [f"tool_{number}" in shown for number in range(3)] == [True] * 3
    assert words.LIST_UNSURE in shown


async def test_each_line_of_the_list_and_of_the_home_leads_to_its_card(world: World) -> None:
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    card = await world.card(run)
    link = f"{world.slack.url}/archives/{world.ops}/p{card['ts'].replace('.', '')}"
    await gates(world, "ana")
    assert opened(world.private("ana", world.lobby)[-1]) == [link]
    assert (await world.ana.click(words.OPEN_CARD, message=world.private("ana", world.lobby)[-1])).ok
    await world.ana.open_home()
    assert opened(await world.slack.wait_for(lambda: world.ana.home or {})) == [link]
    asked = len(world.slack.called("chat.getPermalink"))
    await gates(world, "ben")
    await world.ben.open_home()
    assert opened(await world.slack.wait_for(lambda: world.ben.home or {})) == [link]
    assert len(world.slack.called("chat.getPermalink")) == asked


async def test_a_list_whose_links_cannot_be_had_goes_without(world: World) -> None:
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    await world.card(run)
    world.slack.fail("chat.getPermalink", status=500)
    assert "Which scope should be used?" in await gates(world, "ana")
    assert opened(world.private("ana", world.lobby)[-1]) == []


def opened(thing: Json) -> list[str]:
    """Where the buttons beside the lines lead to."""
    elements = [element for block in thing["blocks"] for element in block.get("elements", ())]
    return [element["url"] for element in elements if "url" in element]
