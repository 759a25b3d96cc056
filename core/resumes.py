"""The resume queue: settled runs, handed to their hosts under leases, until the host says that it has them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from core.bell import POLL_S, Bell, heard
from core.errors import LeaseLost, NotFound
from core.ids import new_token
from core.policy import Actor
from core.runs import Run, RunStatus
from core.store.store import Due, Store


@dataclass(frozen=True, slots=True)
class Resume:
    """A settled run that a host has claimed. ``body`` is the frozen JSON text of its results."""

    run: Run
    lease: str
    lease_until: int
    body: str
    key: str
    state: str | None
    tries: int


class Resumes:
    """Hands settled runs to their hosts."""

    def __init__(self, store: Store, bell: Bell) -> None:
        self._store = store
        self._bell = bell

    async def claim(self, host: str, *, limit: int, wait_s: float, lease_s: float) -> list[Resume]:
        """Settled runs for a host to take up again, each under a lease of ``lease_s`` seconds.

        Waits up to ``wait_s`` seconds for the first one.
        """
        with self._bell.heard(f"queue:{host}") as rung:
            until = asyncio.get_running_loop().time() + wait_s
            while True:
                rung.clear()
                if found := await self._claim_now(host, limit, round(lease_s * 1000)):
                    return found
                left = until - asyncio.get_running_loop().time()
                if left <= 0:
                    return []
                await heard(rung, min(left, POLL_S))

    async def _claim_now(self, host: str, limit: int, lease_ms: int) -> list[Resume]:
        found: list[Resume] = []
        token = f"lease_{new_token()}"
        for partition in range(self._store.partitions):
            queue = self._store.queue(partition, host)
            due = await self._store.claim(
                queue, partition, lease_ms=lease_ms, limit=limit - len(found), token=token
            )
            lease_until = self._store.clock.now_ms() + lease_ms
            started = await asyncio.gather(*(self._start(item, lease_until) for item in due))
            found += [resume for resume in started if resume]
            if len(found) >= limit:
                break
        return found

    async def _start(self, due: Due, lease_until: int) -> Resume | None:
        run = await self._store.read(due.member)
        if run is None:
            return None
        body = json.dumps(run.results(), ensure_ascii=False)
        frozen, key = await self._store.start_resume(run, due.token, body)
        return Resume(
            run=await self._run(run.id),
            lease=due.token,
            lease_until=lease_until,
            body=frozen,
            key=key,
            state=await self._store.read_state(run.id),
            tries=due.tries,
        )

    async def ack(self, run_id: str, lease: str, *, by: Actor) -> Run:
        """The host has taken the run up. Saying it again is fine. Raises LeaseLost."""
        return await self._end(run_id, lease, by=by, status=RunStatus.RESUMED)

    async def nack(
        self, run_id: str, lease: str, *, by: Actor, retry_in_s: float = 1.0, error: str | None = None
    ) -> Run:
        """The host could not take it up: hand it out again in ``retry_in_s`` seconds. Raises LeaseLost."""
        retry_at = self._store.clock.now_ms() + round(retry_in_s * 1000)
        return await self._end(run_id, lease, by=by, status=RunStatus.SETTLED, retry_at=retry_at, error=error)

    async def _end(
        self,
        run_id: str,
        lease: str,
        *,
        by: Actor,
        status: RunStatus,
        retry_at: int | None = None,
        error: str | None = None,
    ) -> Run:
        run = await self._run(run_id)
        held = await self._store.end_resume(
            run, lease, status=status, by=by.model_dump(), retry_at=retry_at, error=error
        )
        if not held:
            raise LeaseLost
        return await self._run(run_id)

    async def _run(self, run_id: str) -> Run:
        run = await self._store.read(run_id)
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run
