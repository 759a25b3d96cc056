"""The worker: does what falls due on the agenda, under leases, with backoff, and sweeps, until told to stop.

A member of the agenda is `<what>:<id>`. A handler reads the state first and is idempotent: a lease may run out while it
works, and another worker then does it again. Expiries are none of them: the sweeper sees to those.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

import structlog

from core.bell import Bell, heard
from core.ending import end
from core.errors import StoreUnavailable
from core.ids import new_token
from core.leases import Leases
from core.lookout import Look, gathered, look
from core.store.queues import Due
from core.store.store import Store
from core.sweeper import Sweeper

log = structlog.get_logger(__name__)

LEASE_MS = 10_000
"""How long after the death of a worker another one takes up its work. A living worker renews its leases."""
MAX_IDLE_S = 1.0
"""How late a due member may be noticed if its ring was lost."""
LOST_RACE_MS = 50
"""When to look again if something is due that could not be claimed: others are at it."""
UNKNOWN_MS = 5_000
"""How long a member that this worker has no handler for is left to the workers that have one."""
FIRST_BACKOFF_MS = 500
LAST_BACKOFF_MS = 300_000


class TryAgain(Exception):  # it asks for something, it is no error
    """A handler asks to be called again, in ``in_ms`` (None: the usual backoff).

    Not ``tried``: it did nothing of which it does not know the end, so this call does not count.
    """

    def __init__(self, in_ms: int | None = None, *, tried: bool = True) -> None:
        self.in_ms = in_ms
        self.tried = tried
        super().__init__("try again")


Handler = Callable[[str, int], Awaitable[None]]
"""Gets the id and how often it was tried (1: the first time). Raises TryAgain, or anything: it is tried again."""


def backoff_ms(tries: int) -> int:
    """Exponential, with full jitter on its upper half, so that replicas do not march in step."""
    longest = min(FIRST_BACKOFF_MS * 2 ** min(tries - 1, 20), LAST_BACKOFF_MS)
    return random.randint(longest // 2, longest)  # noqa: S311  # jitter is no secret


class Worker:
    """Runs the handlers of this process for what is due in any partition, and expires what nobody decided in time."""

    def __init__(
        self,
        store: Store,
        bell: Bell,
        handlers: Mapping[str, Handler],
        *,
        parallel: int = 50,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self._store = store
        self._bell = bell
        self._handlers = dict(handlers)
        self._slots = asyncio.Semaphore(parallel)
        # no more at a time than find a slot soon: a lease runs also for what waits for one
        self._batch = max(1, parallel // store.partitions)
        self._lease_ms = lease_ms
        self._leases = Leases(store, lease_ms)
        self._renewing: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._sweeper = Sweeper(store, self._stopping)
        self._behind_ms = 0

    @property
    def behind_ms(self) -> int:
        """How late the work and the expiries are, whichever is later, as of the last look."""
        return max(self._behind_ms, self._sweeper.behind_ms)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._loop(), name="agenda"),
            asyncio.create_task(self._sweeper.run(), name="sweeper"),
        ]
        self._renewing = asyncio.create_task(self._leases.run(), name="leases")

    async def stop(self, grace_s: float) -> None:
        """Take nothing more; let what runs end within ``grace_s``, then cancel it (its lease runs out)."""
        self._stopping.set()
        self._bell.ring("due")
        await asyncio.gather(*self._tasks)
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=grace_s)
            for task in late:
                log.warning("agenda.cancelled", task=task.get_name())
            await end(late)
        if self._renewing:
            await end([self._renewing])

    async def run_once(self) -> int:
        """Do everything that is due at this moment, and what that makes due. Returns how many things that was."""
        done = await self._sweeper.sweep()
        while batch := await self._claim(await self._look()):
            done += len(batch)
            await asyncio.gather(*(self._work(due) for due in batch))
        return done

    async def finish(self) -> int:
        """Wait until all that this worker has in hand is done (it may take more meanwhile). Returns how much it was."""
        in_hand = set(self._running)
        if in_hand:
            await asyncio.wait(in_hand)
        return len(in_hand)

    async def _loop(self) -> None:
        with self._bell.heard("due") as rung:
            while not self._stopping.is_set():
                rung.clear()
                seen = await self._look()
                batch = await self._claim(seen)
                for number, due in enumerate(batch):
                    if not await self._slot():
                        await asyncio.gather(*map(self._leave, batch[number:]))
                        break
                    task = asyncio.create_task(self._in_slot(due), name=due.member)
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
                if not batch and not self._stopping.is_set():
                    await heard(rung, _until_next(seen))

    async def _slot(self) -> bool:
        """Take a slot. False: told to stop before one was free."""
        if self._slots.locked() and not self._stopping.is_set():
            ends = [*self._running, stopping := asyncio.create_task(self._stopping.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        if self._stopping.is_set():
            return False
        return await self._slots.acquire()

    async def _in_slot(self, due: Due) -> None:
        try:
            await self._work(due)
        finally:
            self._slots.release()

    async def _look(self) -> Look:
        seen = await look(self._store, self._store.queues.agenda)
        if seen.firsts or seen.complete:
            self._behind_ms = max(0, seen.late_ms or 0)
        return seen

    async def _claim(self, seen: Look) -> list[Due]:
        """What is due in every partition that can be reached."""
        token = new_token()
        claims = (
            self._store.queues.claim(
                self._store.queues.agenda(p), p, lease_ms=self._lease_ms, limit=self._batch, token=token
            )
            for p in seen.due
        )
        claimed = [due for batch in await gathered(claims) for due in batch]
        self._leases.hold(claimed)
        return claimed

    async def _leave(self, due: Due, in_ms: int = 0) -> None:
        """Give a member back that was not begun."""
        self._leases.drop(due)
        try:
            retry_at = self._store.clock.now_ms() + in_ms
            agenda = self._store.queues.agenda(due.partition)
            await self._store.queues.finish(agenda, due.token, {due.member: retry_at}, tried=False)
        except StoreUnavailable:
            log.warning("agenda.not_left", member=due.member)

    async def _work(self, due: Due) -> None:
        what, _, member_id = due.member.partition(":")
        handler = self._handlers.get(what)
        if handler is None:
            # another release's or another role's work: leave it to a worker that knows it
            await self._leave(due, UNKNOWN_MS)
            return
        if not self._leases.work(due):
            return
        retry_ms: int | None = None
        tried = True
        try:
            await handler(member_id, due.tries)
        except TryAgain as again:
            retry_ms = backoff_ms(due.tries) if again.in_ms is None else again.in_ms
            tried = again.tried
        except StoreUnavailable:
            retry_ms = backoff_ms(due.tries)
        except Exception:
            # one broken member must not stop the others; it is seen in the log and tried again
            log.exception("agenda.failed", what=what, id=member_id, tries=due.tries)
            retry_ms = backoff_ms(due.tries)
        finally:
            self._leases.drop(due)
        try:
            retry_at = None if retry_ms is None else self._store.clock.now_ms() + retry_ms
            agenda = self._store.queues.agenda(due.partition)
            changed = await self._store.queues.finish(agenda, due.token, {due.member: retry_at}, tried=tried)
            if changed or (retry_ms is not None and retry_ms < MAX_IDLE_S * 1000):
                self._bell.ring("due")  # it is due before the next look
        except StoreUnavailable:
            log.warning("agenda.not_finished", what=what, id=member_id)


def _until_next(seen: Look) -> float:
    """Seconds until something falls due, at most MAX_IDLE_S."""
    if seen.late_ms is None:
        return MAX_IDLE_S
    return min((-seen.late_ms if seen.late_ms < 0 else LOST_RACE_MS) / 1000, MAX_IDLE_S)
