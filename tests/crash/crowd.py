"""The people of a run: they do what they mean to, and what did not work they do again, as people do."""

from __future__ import annotations

from typing import Any

from bot.sandbox import blocks
from bot.sandbox.acts import Impossible
from bot.sandbox.person import Person, Result
from bot.sandbox.words import bare
from tests.crash.scenes import Ask, Click, Fill
from tests.crash.stage import Play, Stage

Json = dict[str, Any]
WAIT_S = 40
AGAIN_S = 0.5
"""When somebody tries again, if nothing has visibly come up since."""


class Crowd:
    """Those who act on one run."""

    def __init__(self, stage: Stage, play: Play, ask: Ask) -> None:
        self._stage = stage
        self._slack = stage.slack
        self._play = play
        self._ask = ask

    async def act(self) -> None:
        """Do every step, each until it is acknowledged or seen to have counted."""
        for step in self._ask.steps:
            person = self._slack.as_user(self._play.name(self._ask, step.person))
            if await self._done(step, person):
                self._play.acked.append((self._ask.name, step.person, step.words))

    async def _done(self, step: Click | Fill, person: Person) -> bool:
        """Returns whether it was acknowledged. If not, the card shows that there is nothing to do any more."""
        tried = False
        while True:
            await self._slack.wait_for(lambda: person.modal or self._ready(step), WAIT_S)
            ups, card = self._stage.ups, self._card(step)
            if not person.modal and not _offers(card, step.words):
                assert tried or self._may_be_late, f"{step.words} is not there: {self._slack.text_of(card)}"
                return False
            tried = True
            result = await (self._fill(step, person) if isinstance(step, Fill) else self._click(step, person))
            if result is None:  # the card changed under the finger
                continue
            if result.ok and (isinstance(step, Click) or not person.modal):
                return not self._told_late(person)
            if not result.ok:
                await self._later(ups)

    async def _click(self, step: Click | Fill, person: Person) -> Result | None:
        try:
            return await person.click(step.words, message=self._card(step), near=step.near)
        except Impossible:
            return None

    async def _fill(self, step: Fill, person: Person) -> Result | None:
        """Open the modal, if it is not open, and submit it. One that only says something is closed."""
        if not person.modal:
            opened = await self._click(step, person)
            if opened is None or not person.modal:
                return opened if opened and not opened.ok else None
        if not (person.modal or {}).get("submit"):
            return await person.close_modal()
        await person.fill(step.fields)
        submitted = await person.submit()
        if submitted.ok and person.modal:
            return await person.close_modal()
        return Result(ok=False) if submitted.errors else submitted

    async def _later(self, ups: int) -> None:
        """Wait until something came up, or for a moment."""
        try:
            await self._slack.wait_for(lambda: self._stage.ups > ups, AGAIN_S)
        except TimeoutError:
            return

    def _ready(self, step: Click | Fill) -> bool:
        """Whether there is what somebody waits for before they act."""
        if step.reminded and not self._found(step, "reminder"):
            return False
        card = self._card(step)
        return bool(card) and step.sees in self._slack.text_of(card)

    def _card(self, step: Click | Fill) -> Json:
        """The message of the run's card that somebody looks at, or nothing."""
        return next(iter(self._found(step, "part")), {})

    def _found(self, step: Click | Fill, what: str) -> list[Json]:
        """Our messages of one sort where somebody looks, known by their metadata."""
        channel = (self._play.seconds if step.there else self._play.channels)[self._ask.name]
        if not self._slack.world.messages.of(channel):
            return []
        found = self._slack.messages(channel)
        return [m for m in found if what in (m.get("metadata") or {}).get("event_payload", {})]

    @property
    def _may_be_late(self) -> bool:
        return any(end.late for end in self._ask.ends.values())

    def _told_late(self, person: Person) -> bool:
        if not self._may_be_late:
            return False
        private = [m for m in person.sees(self._play.channels[self._ask.name]) if m["ephemeral"]]
        return any("Too late" in self._slack.text_of(message) for message in private)


def _offers(card: Json, words: str) -> bool:
    return any(
        element["type"] == "button" and bare(element["text"]["text"]) == words
        for _, element in blocks.elements(card.get("blocks", []))
    )
