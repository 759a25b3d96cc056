"""A looprig server (`pkg/serve`) as a host: its sessions are followed, and their gates answered one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from core.clock import Clock
from core.hosts.base import APPLIED, Reply, Seen, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig.answering import Json, Said, same_answer
from core.hosts.looprig.client import Answered, Listed, LooprigError, Unreached
from core.hosts.looprig.dialect import Dialect, folded
from core.hosts.looprig.fold import Fold
from core.hosts.looprig.follower import Follower, Room
from core.hosts.looprig.serve_client import ServeClient
from core.resumes import Resume

TEXT_UNKNOWN: Final = "looprig took the answer; whether it has the text behind it, nobody can tell."


class LooprigHost(Dialect[ServeClient]):
    """One looprig server (`pkg/serve`). See `core.hosts.base.Host`."""

    def __init__(self, config: LooprigConfig, clock: Clock) -> None:
        super().__init__(config, clock, ServeClient(config.url, config.api_key))
        self._followers: dict[str, tuple[Follower, asyncio.Task[None]]] = {}
        self._room = Room()
        self._out: asyncio.Queue[Seen] = asyncio.Queue()

    async def close(self) -> None:
        await self._leave(list(self._followers))
        await super().close()

    # watching

    async def watch(self) -> AsyncIterator[Seen]:
        """Follow every session, and look now and then for further ones. Raises LooprigError."""
        # afresh, so that what was told and could not be dealt with is told again
        await self._leave(list(self._followers))
        self._out = asyncio.Queue()
        while True:
            await self._follow(await self._client.sessions())
            until = asyncio.get_running_loop().time() + self._config.poll_s
            while (left := until - asyncio.get_running_loop().time()) > 0:
                try:
                    async with asyncio.timeout(left):
                        seen = await self._out.get()
                except TimeoutError:
                    break
                yield seen

    async def _follow(self, sessions: list[Listed]) -> None:
        for listed in sessions:
            if listed.id in self._followers:
                self._followers[listed.id][0].note(listed)
                continue
            follower = Follower(listed, self._client, self._clock, self._out, self._room, self._config.poll_s)
            task = asyncio.create_task(follower.run(), name=f"looprig {listed.id}")
            self._followers[listed.id] = follower, task
        # one that is live may be missing: it is moved to the front of the list while that is read page by page
        missing = self._followers.keys() - {listed.id for listed in sessions}
        await self._leave([session_id for session_id in missing if not self._followers[session_id][0].live])

    async def _leave(self, session_ids: Iterable[str]) -> None:
        """Follow these no longer. Their cards stay: what waits in them may go on when they are restored."""
        tasks = [self._followers.pop(session_id)[1] for session_id in session_ids]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # resuming

    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Answer the gate once. Not found and not ready both mean: read what became of it."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        fold = await folded(self._client, facts)
        if gate_id in fold.open:
            try:
                await self._client.respond(session_id, gate_id, said.action, said.values)
            except Answered as error:
                if error.code not in ("gate_not_found", "gate_not_ready"):
                    raise
                fold = await self._settled(facts)
            else:
                return APPLIED
        return _outcome(resume, fold, facts["gate"], said)

    async def _add(self, resume: Resume, session_id: str, text: str) -> Reply:
        """looprig takes it as often as it comes, so only what surely did not get there is sent again, by another try,
        which finds its `other` in the journal."""
        try:
            await self._client.input(session_id, text)
        except Unreached as error:
            return Reply(Word.RETRYABLE, f"looprig: {error}")
        except Answered as error:
            if error.untaken:
                return Reply(Word.RETRYABLE, f"looprig: {error}")
            if error.status < 500:
                return Reply(Word.LOST, f"looprig took the answer, and not the text behind it: {error}.")
            return Reply(Word.UNKNOWN, TEXT_UNKNOWN)
        except LooprigError:
            return Reply(Word.UNKNOWN, TEXT_UNKNOWN)
        return APPLIED


def _outcome(resume: Resume, fold: Fold, gate: Json, said: Said) -> Reply:
    """What became of a gate that was not open for the answer. An earlier try may have closed it, and been cut off."""
    if gate["id"] in fold.open:
        return Reply(Word.RETRYABLE, "somebody else is answering it")
    closed = fold.closed.get(gate["id"])
    if closed is None:
        return Reply(Word.UNKNOWN, "looprig no longer waits for this.")
    if resume.first or closed.source != "user":
        return Reply(Word.LOST, closed.sentence)
    match same_answer(gate["kind"], said, closed):
        case True:  # or by somebody who said the same, which is the same to the agent
            return APPLIED
        case False:
            return Reply(Word.LOST, closed.sentence)
        case None:
            return Reply(Word.UNKNOWN, "It was answered; whether with this, looprig's journal does not tell.")
