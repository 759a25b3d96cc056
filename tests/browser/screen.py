"""One person's page in a browser, and pictures of it for `docs/pictures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.acceptance.world import World

Json = dict[str, Any]
OUT = Path(__file__).parent / "out"


class Screen:
    """One person's page, and pictures of it."""

    def __init__(self, page: Page, world: World) -> None:
        self.page = page
        self.world = world

    async def leave(self) -> None:
        """Close what is open, and take the mouse away."""
        for _ in range(2):
            await self.page.keyboard.press("Escape")
        await self.page.mouse.move(1, 1)

    async def enter(self, name: str = "ana") -> None:
        """Look at #ops as one of the people."""
        await self.go(name, self.world.ops)
        await expect(self.page.get_by_role("heading", name="ops")).to_be_visible()

    async def go(self, name: str, place: str) -> None:
        """As one of the people, look at a conversation, or at the app's Home (``home``)."""
        await self.page.goto(f"{self.world.slack.url}/#as={self.world.ids[name]}&in={place}")

    async def open(self, body: Json, title: str) -> tuple[Json, Locator]:
        """Open a run, and wait for its card on the page."""
        run = await self.world.api.open({**body, "title": title, "place": {"channel": self.world.ops}})
        card = self.page.locator("article", has=self.page.get_by_role("heading", name=title))
        await expect(card).to_be_visible()
        return run, card

    async def home(self, name: str) -> Locator:
        """As one of the people, look at the app's Home."""
        await self.go(name, "home")
        await expect(self.page.get_by_label("You are")).to_have_value(self.world.ids[name])
        return self.page.get_by_role("main")

    async def keep(self, what: Locator, name: str, *, tall: int = 1000) -> None:
        """Leave a picture of it in `out`, from a window so many pixels tall."""
        OUT.mkdir(exist_ok=True)
        await self.page.set_viewport_size({"width": 1020, "height": tall})
        await self.page.mouse.move(1, 1)
        await what.scroll_into_view_if_needed()
        await what.screenshot(path=OUT / f"{name}.png")
