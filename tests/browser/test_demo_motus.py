"""The demo with a real Motus server behind it: somebody talks with its agent on the page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.async_api import Page, expect

from bot.cli import main
from bot.demo.demo import HINT, demo
from tests.interop.upstream import environment

OUT = Path(__file__).parent / "out"
SLOW_MS = 60_000
"""For the server's first turn: with it, it loads what all of them fork from."""


async def test_people_talk_with_the_agent_and_what_it_asks_stands_between(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = environment("motus", 12, ["lithosai-motus>=0.4.3"])
    monkeypatch.setenv("PATH", f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    async with demo(tmp_path / "demo", 0, host="motus") as running:
        await page.goto(running.page)
        await expect(page.get_by_text(HINT)).to_be_visible()
        write = page.get_by_role("textbox", name="Message #clean-up")
        await write.fill("@askgate clean up")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("button", name="2 replies").click(timeout=SLOW_MS)
        thread = page.get_by_role("complementary", name="Thread")
        await expect(thread.get_by_text("The agent waits for an answer")).to_be_visible()
        OUT.mkdir(exist_ok=True)
        await page.screenshot(path=OUT / "talk-waiting.png")
        await thread.get_by_role("button", name="Focused").click()
        await thread.get_by_role("button", name="Approve: ").click(timeout=SLOW_MS)
        await expect(thread.get_by_text("Cleaned up")).to_be_visible(timeout=SLOW_MS)
        await expect(thread.get_by_text("The agent waits for an answer")).to_have_count(0)
        await page.screenshot(path=OUT / "talk.png")


def test_without_the_program_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = CliRunner().invoke(main, ["demo", "--host", "motus", "--port", "0"])
    assert done.exit_code == 1
    assert "pip install lithosai-motus" in done.output
