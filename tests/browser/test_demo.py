"""The demo as a new user meets it: one page, three answers, one silence, and a start after a stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Locator, Page, expect

from bot.demo.demo import demo

OUT = Path(__file__).parent / "out"
SLOW_MS = 15_000
"""For what waits on a deadline of a few seconds."""


async def thread_of(page: Page, url: str) -> Locator:
    """The demo's thread, which the printed address opens."""
    await page.goto(url)
    return page.get_by_role("complementary", name="Thread")


async def test_the_demo_shows_question_multi_select_approval_and_an_explicit_failure(
    page: Page, tmp_path: Path
) -> None:
    async with demo(tmp_path / "demo", 0, last_timeout_s=3) as running:
        thread = await thread_of(page, running.page)
        await expect(thread.get_by_text("How far should the clean-up go?")).to_be_visible()
        await thread.get_by_role("button", name="Focused").click()
        await expect(thread.get_by_text("Thank you. Scope: Focused.")).to_be_visible()
        await expect(thread.get_by_text("Answered by @Ana Ruiz")).to_be_visible()

        await thread.get_by_role("combobox").click()
        menu = page.get_by_role("listbox")
        await menu.get_by_role("option", name="build").click()
        await menu.get_by_role("option", name="logs").click()
        await page.keyboard.press("Escape")
        await thread.get_by_role("button", name="Submit").click()
        await expect(thread.get_by_text("Thank you. Folders: build, logs.")).to_be_visible()

        await expect(thread.get_by_text('"older_than_days": 30')).to_be_visible()
        OUT.mkdir(exist_ok=True)
        await page.screenshot(path=OUT / "demo.png")
        await thread.get_by_role("button", name="Approve: ").click()
        await expect(thread.get_by_text("Approved. I deleted: build, logs.")).to_be_visible()
        await expect(thread.get_by_text("Approved by @Ana Ruiz")).to_be_visible()

        # nobody answers the last question
        await expect(thread.get_by_text("Expired: nobody decided in time")).to_be_visible(timeout=SLOW_MS)
        await expect(thread.get_by_text("I got no answer (expired)")).to_be_visible(timeout=SLOW_MS)
        await expect(thread.get_by_text("Shall I start over?")).to_be_visible()
        await page.screenshot(path=OUT / "demo-expired.png")
        await thread.get_by_role("button", name="Again").click()
        await expect(thread.get_by_text("How far should the clean-up go?")).to_have_count(2)


@asynccontextmanager
async def started(data_dir: Path) -> AsyncIterator[str]:
    """`askgate demo` as a process of its own; yields the URL it prints, then stops it by Ctrl-C."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("askgate")),
        *("demo", "--port", "0", "--data-dir", str(data_dir)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            while "Open  " not in (line := (await process.stdout.readline()).decode()):
                assert line, "it ended before it printed the URL"
        yield line.rsplit(maxsplit=1)[-1]
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            said, complained = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complained.decode()
    assert "Traceback" not in complained.decode()
    assert "Stopped" in said.decode()


async def test_ctrl_c_stops_the_demo_and_the_next_start_finds_what_was_pending(
    page: Page, tmp_path: Path
) -> None:
    async with started(tmp_path / "demo") as url:
        thread = await thread_of(page, url)
        await thread.get_by_role("button", name="Broad").click()
        await expect(thread.get_by_text("Which folders may I look into?")).to_be_visible()
    async with started(tmp_path / "demo") as url:
        thread = await thread_of(page, url)
        await thread.get_by_role("combobox").click()
        await page.get_by_role("listbox").get_by_role("option", name="cache").click()
        await page.keyboard.press("Escape")
        await thread.get_by_role("button", name="Submit").click()
        await expect(thread.get_by_text("Thank you. Folders: cache.")).to_be_visible()
        assert await page.get_by_text("Good morning!").count() == 2  # in the channel and in the thread, once
