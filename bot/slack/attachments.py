"""Puts the files with long arguments into the threads of their cards: a part of the agenda's `card:<run>`."""

from __future__ import annotations

from typing import Final

import structlog

from bot import words
from bot.cards.files import file_data, file_name, file_of, file_title, file_wanted, short_digest
from bot.slack.client import Slack
from bot.slack.doors import Doors, Others
from bot.slack.errors import SlackBusy, SlackGone, SlackRefused, again
from core.agenda import Handler, TryAgain
from core.copies import thread_of
from core.engine import ResumeEngine
from core.errors import NotFound
from core.gates import Gate
from core.runs import Card, CardFile, Run
from core.shown import shown_run

NEVER_CAME: Final = "file_not_found"
"""What Slack says of an upload whose bytes it does not have (any more): it begins anew."""

log = structlog.get_logger(__name__)


class Attachments:
    """Draws cards by ``draw``, and then attaches what they need. It holds no state: what is where is in the store.

    An upload is three calls, and nothing that could be repeated makes the last one safe to repeat. So the file's id is
    remembered before it is shared, and who finds an id looks for the file in the thread first.
    """

    def __init__(
        self, engine: ResumeEngine, slack: Slack, draw: Handler, others: Others | None = None
    ) -> None:
        self._engine = engine
        self._doors = Doors(slack, others)
        self._draw = draw

    async def card(self, run_id: str, tries: int) -> None:
        """The agenda's handler. Raises TryAgain."""
        afresh, again = await self._is_stale(run_id), None
        try:
            await self._draw(run_id, tries)
        except TryAgain as error:
            # what is there already gets its files all the same
            again = error
        if await self._attach(run_id, afresh=afresh):
            await self._draw(run_id, tries)
        if again:
            raise again

    async def _is_stale(self, run_id: str) -> bool:
        """Whether somebody asked for everything to be shown again: what Slack refused before is tried once more."""
        try:
            return (await self._engine.run(run_id)).mend
        except NotFound:
            return False

    async def _attach(self, run_id: str, *, afresh: bool) -> bool:
        """Attach what is missing. Returns whether Slack refused something, which the card then says."""
        try:
            run = shown_run(await self._engine.run(run_id), self._engine.redaction)
        except NotFound:
            return False
        refused = False
        for number, card in enumerate(run.cards):
            for gate in [run.gates[index] for index in card.gates if card.ts]:
                if not file_wanted(gate):
                    continue
                file = file_of(card, gate)
                if file and (file.shared or (file.refused and not afresh)):
                    continue
                try:
                    run = await self._bring(run, number, gate, file)
                except SlackBusy as busy:
                    log.warning("file.later", gate=gate.id, code=busy.code)
                    raise again([busy]) from busy
                except (SlackRefused, SlackGone) as error:
                    run, refused = await self._refused(run, number, gate, error.code), True
        return refused

    async def _bring(self, run: Run, number: int, gate: Gate, file: CardFile | None) -> Run:
        """Upload the file and share it in its card's thread; or find that an earlier try has done so."""
        card = run.cards[number]
        thread_ts, slack = thread_of(run, card), await self._doors.of(run, card)
        if file is None or file.refused:
            file_id = await slack.upload(file_name(gate), file_data(gate))
            run = await self._keep(run, number, _file(gate, id=file_id))
        else:
            file_id = file.id
            since_ms = run.doc.created_at
            if await slack.has_file(card.channel, thread_ts, since_ms=since_ms, file_id=file_id):
                return await self._keep(run, number, _file(gate, id=file_id, shared=True))
        comment = words.file_comment(short_digest(gate))
        try:
            await slack.share(file_id, file_title(gate), card.channel, thread_ts, comment)
        except SlackGone as gone:
            if gone.code != NEVER_CAME:
                raise
            await self._keep(run, number, _file(gate, refused=NEVER_CAME))
            raise SlackBusy(NEVER_CAME) from gone
        return await self._keep(run, number, _file(gate, id=file_id, shared=True))

    async def _refused(self, run: Run, number: int, gate: Gate, code: str) -> Run:
        log.error("file.failed", gate=gate.id, code=code)
        return await self._keep(
            run, number, _file(gate, refused=code), event="card.failed", reason=f"file.{code}"
        )

    async def _keep(
        self, run: Run, number: int, file: CardFile, *, event: str = "", reason: str | None = None
    ) -> Run:
        """Remember how far a file is. Raises TryAgain if another worker has remembered a message meanwhile."""
        card = run.cards[number]
        files = (*(f for f in card.files if f.gate != file.gate), file)
        cards: list[Card] = list(run.cards)
        cards[number] = card.model_copy(update={"files": files})
        if not await self._engine.store.set_cards(run, cards, event=event, reason=reason):
            raise TryAgain(0)
        return run.model_copy(update={"cards": tuple(cards)})


def _file(gate: Gate, *, id: str = "", shared: bool = False, refused: str = "") -> CardFile:
    return CardFile(gate=gate.doc.index, digest=gate.digest or "", id=id, shared=shared, refused=refused)
