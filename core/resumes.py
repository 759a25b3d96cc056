"""The resume queue: settled runs, handed to their hosts under leases, until the host says that it has them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from core.bell import POLL_S, Bell, heard
from core.errors import LeaseLost, NotFound, StoreUnavailable
from core.ids import new_token, partition_of
from core.lookout import look
from core.policy import Actor
from core.runs import Run, RunStatus
from core.store.handovers import Ending
from core.store.queues import Due
from core.store.store import Store

log = structlog.get_logger(__name__)

MAX_TRIES = 20
"""How often a run is handed out to a host that never acknowledges it. Then it is a dead letter."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A settled run that a host has claimed. ``body`` is the frozen JSON text of its results.

    ``first``: nobody was handed these results before. ``tries`` begins at one again when a run is put back into its
    queue.
    """

    run: Run
    lease: str
    lease_until: int
    body: str
    key: str
    state: str | None
    tries: int
    first: bool


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody else has the run, until that ms."""

    until: int


class Resumes:
    """Hands settled runs to their hosts."""

    def __init__(self, store: Store, bell: Bell) -> None:
        self._store = store
        self._bell = bell
        self._first = 0

    async def claim(
        self, host: str, *, limit: int, wait_s: float, lease_s: float, by: Actor | None = None
    ) -> list[Resume]:
        """Settled runs for a host to take up again, each under a lease of ``lease_s`` seconds.

        Waits up to ``wait_s`` seconds for the first one. ``by``: the key that asks for them.
        """
        with self._bell.heard(f"queue:{host}") as rung:
            until = asyncio.get_running_loop().time() + wait_s
            while True:
                rung.clear()
                if found := await self._claim_now(host, limit, round(lease_s * 1000), by):
                    return found
                left = until - asyncio.get_running_loop().time()
                if left <= 0:
                    return []
                await heard(rung, min(left, POLL_S))

    async def _claim_now(self, host: str, limit: int, lease_ms: int, by: Actor | None) -> list[Resume]:
        found: list[Resume] = []
        token = f"lease_{new_token()}"
        for partition in await self._where(host):
            # read before the claim, so that the lease never ends before the host thinks so
            lease_until = self._store.clock.now_ms() + lease_ms
            try:
                due = await self._store.queues.claim(
                    self._store.queues.of(partition, host),
                    partition,
                    lease_ms=lease_ms,
                    limit=limit - len(found),
                    token=token,
                )
                found += await self._start_all(host, due, lease_until, by)
            except StoreUnavailable:
                if not found:
                    raise
                break  # what was claimed is the host's already
            if len(found) >= limit:
                break
        return found

    async def _where(self, host: str) -> list[int]:
        """The partitions in which something is due for a host; all of them, if some cannot be looked at.

        Each time from another one on, so that a full one does not starve the rest.
        """
        seen = await look(self._store, lambda partition: self._store.queues.of(partition, host))
        self._first += 1
        due = seen.due if seen.complete else range(self._store.partitions)
        return sorted(due, key=lambda partition: (partition - self._first) % self._store.partitions)

    async def _start_all(
        self, host: str, claimed: Sequence[Due], lease_until: int, by: Actor | None
    ) -> list[Resume]:
        """What was claimed, ready for the host. One run that cannot be read does not hold up the others."""
        started = await asyncio.gather(
            *(self._hand_out(host, due, lease_until, by) for due in claimed), return_exceptions=True
        )
        away: StoreUnavailable | None = None
        found = []
        for due, resume in zip(claimed, started, strict=True):
            match resume:
                case Resume():
                    found.append(resume)
                case StoreUnavailable():
                    away = resume
                case Exception():
                    log.error("resume.unreadable", run=due.member, tries=due.tries, exc_info=resume)
                case BaseException():
                    raise resume
        if away and not found:
            raise away
        return found

    async def _hand_out(self, host: str, due: Due, lease_until: int, by: Actor | None) -> Resume | None:
        if due.tries <= MAX_TRIES:
            return await self._start(host, due, lease_until, by)
        # before the run is read, for one that cannot be read ends here too
        error = await self._store.handovers.last_error(due.member)
        await self._store.handovers.end(
            due.member,
            host,
            due.token,
            Ending(RunStatus.FAILED, None, "clock", error or f"The lease ran out {MAX_TRIES} times."),
        )
        log.warning("resume.failed", run=due.member, tries=MAX_TRIES)
        return None

    async def _start(self, host: str, due: Due, lease_until: int, by: Actor | None) -> Resume | None:
        try:
            run = await self._store.read(due.member)
        except NotFound:
            run = None
        if run is None:  # deleted meanwhile, or never one of ours: nothing to take up, now or later
            await self._store.queues.finish(
                self._store.queues.of(due.partition, host), due.token, {due.member: None}
            )
            return None
        body = json.dumps(run.results(), ensure_ascii=False)
        started = await self._store.handovers.start(run, due.token, body, by=by.model_dump() if by else None)
        if started is None:
            return None
        frozen, key, first = started
        fresh, state = await asyncio.gather(self._run(run.id), self._store.read_state(run.id))
        return Resume(
            run=fresh,
            lease=due.token,
            lease_until=lease_until,
            body=frozen,
            key=key,
            state=state,
            tries=due.tries,
            first=first,
        )

    async def take(self, run_id: str, *, lease_s: float) -> Resume | Held | None:
        """One run that has a callback, under a lease, to push it there; None if there is nothing to push (any more)."""
        token = f"lease_{new_token()}"
        lease_until = self._store.clock.now_ms() + round(lease_s * 1000)
        taken = await self._store.handovers.take(run_id, token, lease_until)
        if taken.word == "held":
            return Held(taken.number)
        if taken.word != "taken":
            return None
        due = Due(partition_of(run_id, self._store.partitions), run_id, taken.number, token)
        return await self._start(taken.host, due, lease_until, None)

    async def ack(
        self,
        run_id: str,
        lease: str,
        *,
        by: Actor,
        note: str | None = None,
        follow_in_s: float | None = None,
    ) -> Run:
        """The host has taken the run up. Saying it again is fine. Raises LeaseLost.

        ``note`` stands in the audit. ``follow_in_s``: in so many seconds the agenda's `follow:<run>` looks what came of
        it.
        """
        ending = Ending(RunStatus.RESUMED, by.model_dump(), note=note, follow_at=self._at(follow_in_s))
        return await self.end(run_id, lease, ending)

    def _at(self, in_s: float | None) -> int | None:
        return None if in_s is None else self._store.clock.now_ms() + round(in_s * 1000)

    async def nack(
        self, run_id: str, lease: str, *, by: Actor, retry_in_s: float = 1.0, error: str | None = None
    ) -> Run:
        """The host could not take it up: hand it out again in ``retry_in_s`` seconds. Raises LeaseLost.

        After MAX_TRIES it is not handed out again: it failed.
        """
        ending = Ending(
            RunStatus.SETTLED,
            by.model_dump(),
            error=error,
            retry_at=self._store.clock.now_ms() + round(retry_in_s * 1000),
            max_tries=MAX_TRIES,
            last_error=error or f"Given back without a reason, after it was handed out {MAX_TRIES} times.",
        )
        return await self.end(run_id, lease, ending)

    async def refuse(self, run_id: str, lease: str, *, by: Actor, error: str) -> Run:
        """The host will never take it up: it failed, and people may decide it again. Raises LeaseLost."""
        return await self.end(run_id, lease, Ending(RunStatus.FAILED, by.model_dump(), error=error))

    async def lose(
        self,
        run_id: str,
        lease: str,
        *,
        by: Actor,
        error: str | None = None,
        follow_in_s: float | None = None,
    ) -> Run:
        """The host had already moved on: what was decided comes too late. Raises LeaseLost. See `ack`."""
        ending = Ending(RunStatus.LOST, by.model_dump(), error=error, follow_at=self._at(follow_in_s))
        return await self.end(run_id, lease, ending)

    async def end(self, run_id: str, lease: str, ending: Ending) -> Run:
        """Say what became of a run under a lease. The same again is fine. Raises NotFound or LeaseLost."""
        run = await self._run(run_id)
        if not await self._store.handovers.end(run_id, run.doc.host, lease, ending):
            if ending.by is not None:
                await self._store.refuse(run, None, by=ending.by, via="host", reason=LeaseLost.slug)
            raise LeaseLost
        return await self._run(run_id)

    async def _run(self, run_id: str) -> Run:
        run = await self._store.read(run_id)
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run
