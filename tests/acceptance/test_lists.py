"""`/gates` and the App Home: what is pending, for whom, and for nobody else's eyes."""

from __future__ import annotations

import pytest

from bot import words
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
    assert eve == f"{words.LIST_TITLE}\n{words.LIST_EMPTY}"
    assert all(text in dan for text in ("Paint", "Which colour?", "for_ana", "for_admins"))
    assert all(run["gates"][0]["id"] in dan for run in runs)
    assert [m for m in world.slack.messages(world.lobby) if m["user"] == world.slack.app.bot_user] == []


async def test_gates_leaves_out_what_is_settled(world: World) -> None:
    run, *_ = await open_three(world)
    await world.ben.click("Focused", message=await world.card(run))
    await world.api.settled(run)
    assert "Which colour?" not in await gates(world, "ben", "list")


async def test_gates_says_when_nothing_is_pending(world: World) -> None:
    assert words.LIST_EMPTY in await gates(world, "ana")
    assert words.LIST_EMPTY_ADMIN in await gates(world, "dan")


@pytest.mark.parametrize("text", ["help", "destroy everything", "  LIST me  "])
async def test_gates_with_other_words_gets_help(world: World, text: str) -> None:
    assert "/gates list" in await gates(world, "ana", text)


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


async def test_an_event_that_comes_twice_leaves_one_right_home(world: World) -> None:
    await open_three(world)
    world.slack.courier.ack_within_s = 0.3
    world.slack.fail("views.publish", delay=0.5)
    await world.ana.open_home()
    await world.slack.quiet()
    await world.slack.wait_for(lambda: len(world.slack.called("views.publish")) >= 2)
    assert all(call.ok for call in world.slack.called("views.publish"))
    assert "for_ana" in world.ana.text(world.ana.home or {})


async def test_a_home_that_slack_does_not_take_comes_with_the_next_opening(world: World) -> None:
    world.slack.fail("views.publish", status=500)
    await world.ana.open_home()
    await world.slack.wait_for(lambda: world.slack.called("views.publish"))
    await world.ana.open_home()
    assert words.HOME_EMPTY in world.ana.text(await world.slack.wait_for(lambda: world.ana.home or {}))
