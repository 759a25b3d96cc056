"""Dead letters: runs that their hosts refused, never took up, or had moved on from. Listed, put back, decided again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import structlog

from core.errors import NotFailed, NotFound, StoreUnavailable
from core.policy import Actor, Directory, check_admin
from core.runs import Run, RunStatus
from core.store.store import Store

log = structlog.get_logger(__name__)

DEAD = (RunStatus.FAILED, RunStatus.LOST)
_BATCH = 50


class DeadLetters:
    """What is done about runs that did not reach their hosts. Admins, and keys, may do it."""

    def __init__(
        self, store: Store, *, admins: Sequence[str], home: str | None, directory: Directory
    ) -> None:
        self._store = store
        self._admins = admins
        self._home = home
        self._directory = directory

    async def listed(
        self, before: tuple[int, str] | None = None
    ) -> AsyncGenerator[tuple[tuple[int, str], Run]]:
        """The dead letters, the newest end first, each with its position for ``before``."""
        batch: list[tuple[int, str]] = []
        async for position in self._store.handovers.dead(before):
            batch.append(position)
            if len(batch) == _BATCH:
                for found in await self._read(batch):
                    yield found
                batch = []
        for found in await self._read(batch):
            yield found

    async def _read(self, batch: Sequence[tuple[int, str]]) -> list[tuple[tuple[int, str], Run]]:
        """Those of a batch that are still there. One that cannot be read does not hide the others."""
        runs = await asyncio.gather(
            *(self._store.read(run_id) for _, run_id in batch), return_exceptions=True
        )
        found = []
        for position, run in zip(batch, runs, strict=True):
            match run:
                case None:
                    pass
                case Run():
                    if run.status in DEAD:
                        found.append((position, run))
                case Exception() if not isinstance(run, StoreUnavailable):
                    log.error("dead_letter.unreadable", run=position[1], exc_info=run)
                case BaseException():
                    raise run
        return found

    async def requeue(self, run_id: str, *, by: Actor, via: str) -> Run:
        """Have a run that failed or was lost handed out again: the same decisions, the same bytes, the same key.

        A callback that was given up is tried again. Raises NotAllowed, CannotVerify, NotFound, NotFailed or
        StoreUnavailable.
        """
        run = await self._allowed(run_id, by)
        word = await self._store.handovers.requeue(run, by=by.model_dump(), via=via)
        return await self._done(run, word == "requeued")

    async def relapse(self, run_id: str, reason: str, *, by: Actor, via: str) -> bool:
        """Make a dead letter of a run that its host took up in vain. Returns whether this call did.

        Raises NotFound or StoreUnavailable.
        """
        run = await self._run(run_id)
        return await self._store.handovers.relapse(run, reason, by=by.model_dump(), via=via) == "failed"

    async def reopen(self, run_id: str, *, by: Actor, via: str, timeout_s: int | None = None) -> Run:
        """Have people decide a failed run again, from the start. What they decide has an idempotency key of its own.

        Each gate has ``timeout_s`` seconds, else as long as it had before. Raises as `requeue` does.
        """
        run = await self._allowed(run_id, by)
        now = self._store.clock.now_ms()
        deadlines = [(gate, now + (timeout_s or gate.timeout_s) * 1000) for gate in run.gates]
        due = {}
        if run.doc.remind_after_s and run.doc.place:
            due["remind"] = now + run.doc.remind_after_s[0] * 1000
        if run.doc.escalate and not run.escalated:
            due["escalate"] = now + run.doc.escalate.after_s * 1000
        word = await self._store.handovers.reopen(run, deadlines, by=by.model_dump(), via=via, due=due)
        return await self._done(run, word == "reopened")

    async def _allowed(self, run_id: str, by: Actor) -> Run:
        await check_admin(self._admins, by, home=self._home, directory=self._directory)
        return await self._run(run_id)

    async def _done(self, run: Run, done: bool) -> Run:
        run = await self._run(run.id)
        if not done:
            raise NotFailed(f"The run has not failed; it is {run.status}.")
        return run

    async def _run(self, run_id: str) -> Run:
        run = await self._store.read(run_id)
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run
