"""The menus of shortcuts in the local Slack's page: beside the box to write in, and on a message."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.browser.conftest import Desk


async def test_shortcuts_are_run_from_their_menus_by_mouse_and_keyboard(desk: Desk, page: Page) -> None:
    ts = await desk.post({"type": "section", "text": {"type": "plain_text", "text": "A card"}})
    await page.goto(f"{desk.slack.url}/#as={desk.ana}&in={desk.channel}")
    await page.get_by_role("button", name="Shortcuts").click()
    menu = page.get_by_role("menu", name="Shortcuts")
    await expect(menu.get_by_role("menuitem", name="Gates What waits for a decision")).to_be_visible()
    await page.keyboard.press("Enter")
    assert (await desk.next_act())["callback_id"] == "gates"
    await expect(menu).to_have_count(0)

    await page.get_by_text("A card").hover()
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name="Gates here").click()
    act = await desk.next_act()
    assert (act["type"], act["callback_id"], act["message"]["ts"]) == ("message_action", "gates_here", ts)
