"""What people see, as pictures: each surface is shown once, looked for by its words, and kept in `out`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from redis.asyncio import Redis

from tests.acceptance.world import World, world_in
from tests.browser.screen import OUT, Json, Screen
from tests.runs import approval, ask, body, form_call, option, question_call


@pytest.fixture
async def world(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    async with world_in("http", redis_url, tmp_path) as found:
        await found.start()
        yield found


ROTATION = [
    option("All at once", "Every service restarts tonight; about a minute of errors."),
    option("One by one", "Two hours, and nobody notices."),
    option("Only the leaked key", "The rest waits for the next rotation."),
]


async def a_question_then_its_answer(screen: Screen) -> None:
    text = "The key of the billing service leaked into a log. How shall I rotate the service keys?"
    question = {**ask(text, header="Rotation"), "options": ROTATION}
    _, card = await screen.open(body([question_call("q", question)], policy={}), "Rotate the service keys")
    await expect(card.get_by_role("button", name="One by one")).to_be_visible()
    await screen.keep(card, "question")
    await card.get_by_role("button", name="One by one").click()
    await expect(card.get_by_text("Answered by @Ana")).to_be_visible()
    await expect(card.get_by_role("button", name="One by one")).to_have_count(0)
    await screen.keep(card, "settled")


def choice(header: str, text: str, *options: Json, multi: bool = False) -> Json:
    return {"question": text, "header": header, "options": list(options), "multiSelect": multi}


MOVE = [
    choice(
        "Database",
        "Which database should be moved first?",
        option("orders", "210 GB, written to all day"),
        option("billing", "40 GB, written to at night"),
    ),
    choice(
        "Tables",
        "Which tables may be left behind?",
        option("audit_2019", "Kept for the auditors until 2027"),
        option("sessions", "People would have to log in again"),
        option("tmp_import", "Nothing has read it since March"),
        multi=True,
    ),
    choice(
        "When",
        "When may it be read-only for ten minutes?",
        option("Tonight at 22:00", "Before the nightly jobs"),
        option("Saturday at 06:00", "With nobody on call"),
    ),
]


async def several_questions_with_picks_and_the_form_for_all_of_them(screen: Screen) -> None:
    call = question_call("q", *MOVE)
    _, card = await screen.open(body([call], policy={}), "Move a database to the new cluster")
    await card.get_by_role("button", name="orders").click()
    await card.get_by_role("combobox").click()
    menu = screen.page.get_by_role("listbox")
    await menu.get_by_role("option", name="sessions").click()
    await menu.get_by_role("option", name="tmp_import").click()
    await screen.page.keyboard.press("Escape")
    await expect(card.get_by_text("2 of 3 answered")).to_be_visible()
    await expect(card.get_by_text("2 picked: sessions, tmp_import")).to_be_visible()
    await screen.keep(card, "questions")
    await card.get_by_role("button", name="Answer in a form").click()
    dialog = screen.page.get_by_role("dialog")
    await expect(dialog.get_by_text("Something else: Database")).to_be_visible()
    await screen.keep(dialog, "questions-form")


def many_rows(count: int) -> Json:
    return {
        "bucket": "invoices-eu",
        "dry_run": False,
        "objects": [{"key": f"2019/{n:04}.pdf", "bytes": 48_213 + n} for n in range(count)],
    }


async def an_approval_whose_arguments_are_long(screen: Screen) -> None:
    item = approval(
        "a", args=many_rows(400), reason="Retention is seven years; these are older.", risk="high"
    )
    item["tool_name"] = "delete_objects"
    policy = {"approvers": [screen.world.ids[name] for name in ("ana", "ben", "cho")]}
    _, card = await screen.open(body([], [item], policy=policy), "Delete invoices of 2019")
    await expect(card.get_by_text("read them in full")).to_be_visible()
    await screen.keep(card, "approval-long")
    await card.get_by_role("button", name="View in full").click()
    dialog = screen.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Next").click()
    await dialog.get_by_role("button", name="Approve").scroll_into_view_if_needed()
    await screen.keep(dialog, "approval-last-page")


async def an_approval_whose_arguments_are_in_a_file(screen: Screen) -> None:
    item = approval("a", args=many_rows(6000), risk="extra_high") | {"tool_name": "delete_objects"}
    policy = {"approvers": [screen.world.ids["ana"]]}
    _, card = await screen.open(body([], [item], policy=policy), "Delete invoices of all years")
    await card.get_by_text("1 reply").click()
    thread = screen.page.get_by_role("complementary", name="Thread")
    await expect(thread.get_by_text("Arguments", exact=False).last).to_be_visible()
    await expect(thread.get_by_role("link")).to_have_count(1)
    await screen.keep(thread, "approval-file")


async def a_quorum_that_is_half_reached(screen: Screen) -> None:
    names = ("ana", "ben", "cho")
    policy = {"approvers": [screen.world.ids[name] for name in names], "quorum": 2, "edits": True}
    args = {"host": "db-7.internal", "command": "DROP INDEX CONCURRENTLY orders_by_day", "timeout_s": 900}
    item = approval("a", args=args, reason="The index is unused since May.", risk="medium")
    item["tool_name"] = "run_sql"
    run, card = await screen.open(body([], [item], policy=policy), "Drop an unused index")
    await screen.world.ben.click("Approve", message=await screen.world.card(run))
    await expect(card.get_by_text("1 of 2 approvals: @Ben")).to_be_visible()
    await screen.keep(card, "quorum")


async def several_approvals_and_the_list_before_all_are_given(screen: Screen) -> None:
    items = [
        approval(f"a{n}", args={"service": name, "version": "4.2.1"}, risk="medium") | {"tool_name": "deploy"}
        for n, name in enumerate(("billing", "orders", "search"))
    ]
    policy = {"approvers": [screen.world.ids[name] for name in ("ana", "ben")]}
    _, card = await screen.open(body([], items, policy=policy), "Release 4.2.1")
    await screen.keep(card, "approvals")
    await card.get_by_role("button", name="Approve all 3").click()
    dialog = screen.page.get_by_role("dialog")
    await expect(dialog.get_by_text("search")).to_be_visible()
    await screen.keep(dialog, "approve-all")


async def silence(screen: Screen) -> None:
    question = ask("May I restart the search nodes now?", "Yes", "In an hour", header="Restart")
    run, card = await screen.open(
        body([question_call("q", question)], policy={}, timeout_s=1), "Search is slow"
    )
    await expect(card.get_by_text("Expired: nobody decided in time")).to_be_visible()
    assert (await screen.world.api.settled(run))["calls"]["q"]["outcome"] == "expired"
    await screen.keep(card, "expired")


async def a_form_in_its_modal(screen: Screen) -> None:
    rooms = [{"value": value, "label": label} for value, label in (("s", "Six seats"), ("l", "Twenty seats"))]
    call = form_call(
        "f",
        {
            "name": "city",
            "label": "City",
            "kind": "text",
            "required": True,
            "description": "Where the team meets",
        },
        {"name": "day", "label": "Day", "kind": "text", "format": "date", "required": True},
        {"name": "ends", "label": "Until", "kind": "text", "format": "date-time"},
        {"name": "mail", "label": "Mail", "kind": "text", "format": "email"},
        {"name": "people", "label": "How many people", "kind": "integer", "minimum": 1, "default": 6},
        {"name": "room", "label": "Room", "kind": "select", "options": rooms, "default": "s"},
        {"name": "lunch", "label": "With lunch", "kind": "confirm", "default": True},
        title="Book a room",
        body="For the offsite in March.",
    )
    _, card = await screen.open(body([call], policy={}), "Plan the offsite")
    await screen.keep(card, "form")
    await card.get_by_role("button", name="Answer in a form").click()
    dialog = screen.page.get_by_role("dialog")
    await dialog.get_by_label("City").fill("Bonn")
    await dialog.get_by_label("Day").fill("2026-03-05")
    await dialog.get_by_label("Until").fill("2026-03-06T17:30")
    await dialog.get_by_label("Mail").fill("ana")
    await dialog.get_by_role("button", name="Submit").click()
    await expect(dialog.get_by_role("alert").filter(has_text="e-mail")).to_be_visible()
    await screen.keep(dialog, "form-modal")


SCENES = (
    a_question_then_its_answer,
    several_questions_with_picks_and_the_form_for_all_of_them,
    an_approval_whose_arguments_are_long,
    an_approval_whose_arguments_are_in_a_file,
    a_quorum_that_is_half_reached,
    several_approvals_and_the_list_before_all_are_given,
    silence,
    a_form_in_its_modal,
)


async def test_each_surface_shows_what_it_should_and_is_kept_as_a_picture(page: Page, world: World) -> None:
    await page.set_viewport_size({"width": 1020, "height": 1000})
    screen = Screen(page, world)
    for scene in SCENES:
        await screen.enter()
        await scene(screen)
        await screen.leave()
    assert len(list(OUT.glob("*.png"))) >= len(SCENES)
