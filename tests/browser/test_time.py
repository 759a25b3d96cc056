"""Time travel on the page: an hour or a day passes at a click, and the page shows what that changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from bot.testing import Local
from tests.browser.conftest import Desk
from tests.runs import approval, ask, body, question_call

OUT = Path(__file__).parent / "out"


@pytest.fixture
async def local(redis_url: str, redis: object, tmp_path: Path) -> AsyncIterator[Local]:
    async with Local(tmp_path, redis_url=redis_url) as found:
        yield found


async def test_a_skipped_day_expires_a_card_and_the_page_shows_which(page: Page, local: Local) -> None:
    place = {"channel": local.channel}
    policy = {"approvers": [local.id("ana")]}
    short = body([], [approval("a")], title="Nightly", place=place, policy=policy, timeout_s=7200)
    long = body([question_call("q", ask())], title="Weekly", place=place, policy={}, timeout_s=10 * 86_400)
    for run in (short, long):
        await local.call("POST", "/runs", run)
        await local.sees("ana", run["title"])
    await page.goto(local.slack.url)
    time = page.get_by_role("group", name="Time")
    await expect(page.get_by_role("article").filter(has_text="Nightly")).to_be_visible()

    await time.get_by_role("button", name="Skip 1 h").click()
    await expect(time.get_by_role("status")).to_contain_text("1 hour passed: nothing changed")
    await expect(time).to_contain_text("1 h ahead")
    await time.get_by_role("button", name="Skip 1 day").click()
    await expect(time.get_by_role("status")).to_contain_text("1 day passed: 1 message changed")
    await expect(time).to_contain_text("1 day 1 h ahead")
    changed = page.locator(".message.after-skip")
    await expect(changed).to_have_count(1)
    await expect(changed).to_contain_text("Expired: nobody decided in time")
    OUT.mkdir(exist_ok=True)
    await page.screenshot(path=OUT / "time.png")

    # the other card lives on, and is answered in the time that it is there
    await page.get_by_role("button", name="Focused").click()
    await expect(page.get_by_text("Answered by @Ana")).to_be_visible()
    await expect(changed).to_have_count(1)
    await page.set_viewport_size({"width": 420, "height": 800})
    await page.screenshot(path=OUT / "time-narrow.png")


async def test_the_clock_and_the_days_of_a_slack_without_askgate_go_forward_too(
    page: Page, desk: Desk
) -> None:
    await desk.post(text="hello")
    await page.goto(desk.slack.url)
    await expect(page.get_by_text("Today", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Skip 1 day").click()
    await expect(page.get_by_text("Yesterday", exact=True)).to_be_visible()
