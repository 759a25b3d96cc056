"""Where people find what waits, as pictures: Home, `/gates list`, a copy in a direct message, a digest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect
from redis.asyncio import Redis

from bot import words
from tests.acceptance.world import World, world_in
from tests.browser.screen import OUT, Json, Screen
from tests.runs import approval, ask, body, option, question_call

SLOW_MS = 15_000
"""For what waits on a reminder."""


@pytest.fixture
async def world(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    async with world_in("http", redis_url, tmp_path) as found:
        await found.start()
        yield found


def may(world: World, *names: str) -> Json:
    return {"approvers": [world.ids[name] for name in names]}


def from_(world: World, name: str) -> Json:
    return {"team": "T0LOCAL", "user": world.ids[name]}


async def a_morning(world: World) -> list[Json]:
    """What several agents have asked: of Ana, of the channel, and of others."""
    rotation = ask("How shall I rotate the service keys?", header="Rotation") | {
        "options": [
            option("All at once", "Every service restarts tonight; about a minute of errors."),
            option("One by one", "Two hours, and nobody notices."),
        ]
    }
    drop = approval(
        "a",
        args={"host": "db-7.internal", "command": "DROP INDEX CONCURRENTLY orders_by_day"},
        reason="The index is unused since May.",
        risk="medium",
    )
    refund = approval("a", args={"order": "R-20411", "amount_eur": 1290}, risk="high")
    asked: list[Json] = [
        body([], [drop | {"tool_name": "run_sql"}], policy=may(world, "ana"), title="Drop an unused index"),
        body([question_call("q", rotation)], policy={}, title="Rotate the service keys", timeout_s=1800),
        body(
            [],
            [refund | {"tool_name": "refund"}],
            policy=may(world, "ben"),
            title="Refund a customer",
            requester=from_(world, "ana"),
        ),
    ]
    return [await world.api.open({**each, "place": {"channel": world.ops}}) for each in asked]


async def everything_that_went_wrong(world: World) -> None:
    lost = body([question_call("q", ask("Restart the mail server now?", "Yes", "No"))], policy={})
    await world.api.settled(
        await world.api.open({**lost, "place": {"channel": "C0NOWHERE"}, "title": "Mail is slow"})
    )
    dead = body(
        [], [approval("a", args={"zone": "example.com"})], policy=may(world, "ben"), title="Move a zone"
    )
    run = await world.api.open({**dead, "place": {"channel": world.ops}})
    await world.ben.click("Approve", message=await world.card(run))
    await world.api.settled(run)
    for resume in await world.api.claim():
        if resume["run"]["id"] == run["id"]:
            nack = {"lease": resume["lease"], "final": True, "error": "the zone is locked"}
            await world.api.ok("POST", f"/resumes/{run['id']}/nack", nack)


async def the_home_of_who_decides(screen: Screen) -> None:
    home = await screen.home("ana")
    await expect(home.get_by_text("Drop an unused index")).to_be_visible()
    await expect(home.get_by_role("button", name="One by one")).to_be_visible()
    await screen.keep(home, "home", tall=845)


async def what_somebody_asked_for_and_decided(screen: Screen) -> None:
    home = await screen.home("ana")
    await home.get_by_role("button", name=words.TABS["asked"]).click()
    await expect(home.get_by_text("Refund a customer")).to_be_visible()
    await screen.keep(home, "home-asked", tall=400)
    home = await screen.home("ben")
    await home.get_by_role("button", name=words.TABS["decided"]).click()
    await expect(home.get_by_text("Move a zone")).to_be_visible()
    await screen.keep(home, "home-decided", tall=400)


async def the_home_of_an_admin(screen: Screen) -> None:
    home = await screen.home("dan")
    await home.get_by_role("button", name=words.TABS["overview"]).click()
    await expect(home.get_by_text("the zone is locked")).to_be_visible()
    await screen.keep(home, "home-admin", tall=1080)


async def typed(screen: Screen, command: str, shown: str) -> Locator:
    """Run a command in #ops; returns its private answer."""
    await screen.page.get_by_role("textbox", name="Message #ops").fill(command)
    await screen.page.keyboard.press("Enter")
    answer = screen.page.get_by_role("article").filter(has_text="Only visible to you")
    await expect(answer.get_by_text(shown).first).to_be_visible()
    return answer


async def what_is_typed_and_what_it_lists(screen: Screen) -> None:
    await screen.enter("ana")
    answer = await typed(screen, "/gates list", "Drop an unused index")
    await screen.keep(answer, "gates-list")
    await answer.get_by_role("button", name="Decide").first.click()
    await expect(answer.get_by_role("button", name=words.BACK)).to_be_visible()
    await screen.keep(answer, "gates-decide")
    await screen.enter("dan")
    for command, shown in (
        ("list", "Refund a customer"),
        ("stats", "dead letter"),
        ("help", "put its deadline off"),
    ):
        answer = await typed(screen, f"/gates {command}", shown)
        await screen.keep(answer, f"gates-{command}-admin")
        await answer.get_by_role("button", name="Dismiss").click()
        await expect(answer).to_have_count(0)


async def a_copy_and_a_digest_in_a_direct_message(screen: Screen) -> None:
    world = screen.world
    for number, service in enumerate(("billing", "orders", "search", "mail", "login", "reports")):
        item = approval("a", args={"service": service, "version": "4.2.1"}, risk="medium")
        item["tool_name"] = "deploy"
        asked = body([], [item], policy=may(world, "eve"), title=f"Release {service}")
        more = {"remind_after_s": [1], "requester": from_(world, "ben")} if number == 5 else {}
        run = await world.api.open({**asked, "place": {"channel": world.ops}, **more})
        await world.card(run, copy=2)
    await screen.go("eve", world.eve.dm)
    copy = screen.page.locator("article", has=screen.page.get_by_role("heading", name="Release reports"))
    await expect(copy.get_by_text("go to the thread")).to_be_visible()
    await screen.keep(copy, "copy")
    digest = screen.page.locator("article", has=screen.page.get_by_role("heading", name="6 gates wait"))
    await expect(digest).to_be_visible(timeout=SLOW_MS)
    await screen.keep(digest, "digest")


SCENES = (
    the_home_of_who_decides,
    what_somebody_asked_for_and_decided,
    the_home_of_an_admin,
    what_is_typed_and_what_it_lists,
    a_copy_and_a_digest_in_a_direct_message,
)


async def test_each_list_shows_what_it_should_and_is_kept_as_a_picture(page: Page, world: World) -> None:
    await page.set_viewport_size({"width": 1020, "height": 1000})
    await a_morning(world)
    await everything_that_went_wrong(world)
    screen = Screen(page, world)
    for scene in SCENES:
        await scene(screen)
        await screen.leave()
    assert len(list(OUT.glob("*.png"))) >= len(SCENES)
