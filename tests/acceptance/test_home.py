"""The App Home: a person answers right there, sees what they asked and decided, and an admin what went wrong."""

from __future__ import annotations

from typing import Any

from bot import words
from bot.cards.home import LIVE
from tests.acceptance.test_gates import in_ops, open_for, person
from tests.acceptance.test_lists import approvals
from tests.acceptance.world import Json, World
from tests.runs import ask


async def home(world: World, name: str, *texts: str, but: str = "\0") -> str:
    """Wait until somebody's Home says all of these texts, and not another."""

    def shown() -> str:
        view = world.slack.as_user(name).home
        return world.slack.text_of(view) if view else ""

    try:
        await world.slack.wait_for(lambda: all(t in shown() for t in texts) and but not in shown(), 8)
    except TimeoutError:
        raise AssertionError(f"the Home does not say {texts}, but {shown()!r}") from None
    return shown()


async def opened(world: World, name: str, *texts: str) -> str:
    await world.slack.as_user(name).open_home()
    return await home(world, name, *texts)


def view(world: World, name: str) -> Json:
    return world.slack.as_user(name).home or {}


async def test_a_gate_is_decided_in_the_home_which_then_shows_the_next(world: World) -> None:
    run, gate = await open_for(world, "ana")
    await world.api.open(in_ops(world, ask("Which colour?", "Red", "Blue")))
    shown = await opened(world, "ana", "Clean up", "Asked by agent", "/tmp/old.log", "Which colour?")
    assert gate not in shown  # it is for commands, and here are buttons
    assert (await world.ana.click("Approve", message=view(world, "ana"))).ok
    assert (await world.api.settled(run))["approvals"]["call-2"]["outcome"] == "approved"
    await home(world, "ana", "Which colour?", but="Clean up")
    await world.ana.click("Blue", message=view(world, "ana"))
    await home(world, "ana", words.HOME_EMPTY)
    await world.ana.click(words.TABS["decided"], message=view(world, "ana"))
    await home(world, "ana", "Clean up", "Approved by @ana", "Which colour?", "Answered by @ana")


async def test_a_modal_from_the_home_decides_and_the_home_follows(world: World) -> None:
    run, _ = await open_for(world, "ana")
    await opened(world, "ana", "Clean up")
    assert (await world.ana.click("Reject with reason", message=view(world, "ana"))).modal
    await world.ana.fill({words.REASON_LABEL: "too old"})
    await world.ana.submit()
    assert (await world.api.settled(run))["approvals"]["call-2"]["outcome"] == "denied"
    await home(world, "ana", words.HOME_EMPTY)


async def test_a_refusal_in_the_home_opens_with_the_reason(world: World) -> None:
    run, _ = await open_for(world, "ana", "ben")
    await opened(world, "ana", "Clean up")
    old = view(world, "ana")
    await world.ben.click("Reject", message=await world.card(run))
    await world.api.settled(run)
    assert (await world.ana.click("Approve", message=old)).ok
    assert "Already rejected by @ben" in world.ana.text(world.ana.modal or {})
    await home(world, "ana", words.HOME_EMPTY)


async def test_the_home_changes_by_itself_with_what_is_somebodys(world: World) -> None:
    await opened(world, "ana", words.HOME_EMPTY)
    await opened(world, "ben", words.HOME_EMPTY)
    run, gate = await open_for(world, "ana", requester=person(world, "ben"))
    await home(world, "ana", "Clean up")
    await world.ben.click(words.TABS["asked"], message=view(world, "ben"))
    await home(world, "ben", "Clean up", "for @ben")
    await world.dan.command("/gates", f"reassign {gate} @cho", channel=world.lobby)
    await home(world, "ana", words.HOME_EMPTY)
    channel = await world.api.open(in_ops(world, ask("For the channel?")))
    await home(world, "ana", "For the channel?")
    await world.api.cancel(channel, "no longer")
    await home(world, "ana", words.HOME_EMPTY)
    await world.api.cancel(run, "no longer")
    await home(world, "ben", words.EMPTY["asked"])
    before = len(world.slack.called("views.publish"))
    await open_for(world, "eve")
    assert len(world.slack.called("views.publish")) == before


async def test_filters_and_pages_of_the_home(http_world: World) -> None:
    world = http_world
    await world.api.open(approvals(world, LIVE + 2, "ana"))
    await world.api.open(in_ops(world, ask("Which colour?"), timeout_s=600))
    first = await opened(world, "ana", "Which colour?")
    assert [f"tool_{number}\n" in first for number in range(7)] == [False] * 3 + [True] * 4
    await world.ana.click(words.KINDS["approvals"], message=view(world, "ana"))
    await home(world, "ana", "tool_2\n", but="Which colour?")
    await world.ana.click(words.NEXT, message=view(world, "ana"))
    await home(world, "ana", "tool_0\n", "tool_1\n", words.PREVIOUS, but="tool_2\n")
    await world.ana.click(words.KINDS["answers"], message=view(world, "ana"))
    await home(world, "ana", "Which colour?", but="tool_")
    await world.ana.click(words.FILTERS["expiring"], message=view(world, "ana"))
    shown = await home(world, "ana", "Which colour?", "tool_")
    assert shown.index("Which colour?") < shown.index("tool_")


async def test_picks_in_the_home_are_kept_and_submitted(http_world: World) -> None:
    world = http_world
    run = await world.api.open(in_ops(world, ask("One?", "A", "B"), ask("Two?", "C", "D", header="Other")))
    await opened(world, "ana", "One?")
    await world.ana.click("A", message=view(world, "ana"))
    await home(world, "ana", "@ana: 1 of 2")
    await world.ana.click("D", message=view(world, "ana"))
    await home(world, "ana", "@ana: 2 of 2")
    await world.ana.click("Submit", message=view(world, "ana"))
    assert (await world.api.settled(run))["calls"]["q"]["value"]["answers"] == {"One?": "A", "Two?": "D"}


async def test_an_admin_has_a_tab_with_counts_and_what_went_wrong(world: World) -> None:
    done, _ = await open_for(world, "ana", title="Refused")
    await world.ana.click("Approve", message=await world.card(done))
    await world.api.settled(done)
    [resume] = await world.api.claim()
    nack = {"lease": resume["lease"], "final": True, "error": "no such tool"}
    await world.api.ok("POST", f"/resumes/{done['id']}/nack", nack)
    _, gate = await open_for(world, "ana", timeout_s=600)
    lost = await world.api.open(in_ops(world, ask("Unseen?"), place={"channel": "C0NOWHERE"}))
    await world.api.settled(lost)
    await opened(world, "dan", words.TABS["overview"])
    await world.dan.click(words.TABS["overview"], message=view(world, "dan"))
    shown = await home(world, "dan", "1 run waits for people", "1 of them expires within an hour", gate)
    assert "1 could be shown to nobody" in shown
    assert "Unseen?" in shown
    assert "1 dead letter" in shown
    assert "no such tool" in shown
    await world.dan.select("Extend", message=view(world, "dan"), near=gate)
    await world.dan.fill({words.TIME_LABEL: "1 day"})
    await world.dan.submit()
    await world.dan.close_modal()
    await home(world, "dan", "0 of them expire within an hour")
    await world.dan.click(words.REQUEUE, message=view(world, "dan"))
    await world.dan.close_modal()
    await home(world, "dan", "0 dead letters")
    await world.dan.click(words.FILTERS["undeliverable"], message=view(world, "dan"))
    await home(world, "dan", "Unseen?", but=gate)


async def test_who_is_no_admin_has_no_such_tab_and_a_click_on_an_old_one_shows_nothing(
    empty_world: World,
) -> None:
    world = empty_world
    group = world.slack.add_group("admins", ["cho"])
    await world.start(ASKGATE_ADMINS=group)
    await open_for(world, "ana")
    assert words.TABS["overview"] not in await opened(world, "ana", "Clean up")
    await opened(world, "cho", words.TABS["overview"])
    world.slack.add_group("admins", ["dan"])
    directory: Any = world.replicas[0].engine.directory
    directory._kept.clear()  # a minute later
    await world.cho.click(words.TABS["overview"], message=view(world, "cho"))
    await home(world, "cho", words.HOME_EMPTY, but=words.TABS["overview"])


async def test_a_home_that_slack_does_not_take_is_drawn_again(http_world: World) -> None:
    world = http_world
    world.slack.fail("views.publish", status=500)
    await opened(world, "ana", words.HOME_EMPTY)


async def test_the_same_home_is_not_sent_again(http_world: World) -> None:
    world = http_world
    run, _ = await open_for(world, "ana")
    await opened(world, "ana", "Clean up")
    sent = len(world.slack.called("views.publish"))
    await world.ben.click("Approve", message=await world.card(run))
    await world.told("ben", "not among those")
    assert len(world.slack.called("views.publish")) == sent
