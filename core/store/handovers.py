"""What passes between the store and hosts: settled runs under leases, pushes, dead letters."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from core.gates import Gate
from core.ids import new_token
from core.record import Record
from core.runs import Run, RunStatus
from core.store import lua
from core.store.codec import spliced
from core.store.connect import Client
from core.store.keys import Keys
from core.store.merging import merged
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of a run that somebody had under a lease.

    ``by`` and ``via`` are whose word it is. Without ``retry_at`` (ms) it ends with ``status``; with it, it is handed
    out again: as ``settled``, unless it was handed out ``max_tries`` times already, then it fails with ``last_error``.
    ``note`` stands in the audit where there is no ``error``: what the host did about a run that it took up.
    ``event`` is what the audit says of it then, if anything. ``follow_at`` (ms): when to look what came of it.
    """

    status: RunStatus
    by: Fields | None
    via: str = "host"
    error: str | None = None
    note: str | None = None
    retry_at: int | None = None
    max_tries: int | None = None
    last_error: str | None = None
    event: str | None = None
    follow_at: int | None = None

    def command(self, record: Record) -> dict[str, Any]:
        """What the script takes; ``record`` says what of an error stands in the audit."""
        found: dict[str, Any] = {"status": self.status, **self._said(self.error, record, self.note)}
        if self.retry_at is not None:
            found["retry_at"] = self.retry_at
        if self.event is not None:
            found["event"] = self.event
        if self.follow_at is not None:
            found["follow_at"] = self.follow_at
        if self.max_tries is not None:
            found["last"] = {"tries": self.max_tries, **self._said(self.last_error, record)}
        return found

    def _said(self, error: str | None, record: Record, note: str | None = None) -> dict[str, Any]:
        fields = _by(self.by, self.via) + spliced({"reason": record.text(error or note)})
        return {"fields": fields} | ({"error": error} if error else {})


class Taken(NamedTuple):
    """What came of taking a run to push it: ``taken`` (``number``: its tries), ``held`` (until that ms) or ``over``."""

    word: str
    number: int
    host: str


class Push(NamedTuple):
    """What is posted to a callback: the message as it was first frozen, and since when it is tried (ms)."""

    url: str
    secret: str
    message: str
    since: int


class Handovers:
    """Hands runs over. Every method raises StoreUnavailable when Redis cannot be reached or cannot take a write."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._redis: Any = client

    async def start(
        self, run: Run, token: str, body: str, *, by: Fields | None = None
    ) -> tuple[str, str, bool] | None:
        """Freeze what the host gets. Returns (body, idempotency key) as they were frozen the first time, and whether
        that was this time.

        None if the run is gone, or the lease is no longer ours.
        """
        key, fields = f"{run.id}:{run.attempt}", _by(by, "host")
        command = {"token": token, "body": body, "key": key, "fields": fields}
        frozen = await self._store.about_run(lua.START_RESUME, run, command)
        return (frozen[0], frozen[1], bool(frozen[2])) if frozen else None

    async def end(self, run_id: str, host: str, token: str, ending: Ending) -> bool:
        """Say what became of a claimed run. Returns whether the lease was held."""
        command = {"token": token, **ending.command(self._store.record)}
        dead = self._store.keys_of(run_id).dead
        return bool(await self._store.about(lua.END_RESUME, run_id, host, (), command, [dead]) == "ended")

    async def last_error(self, run_id: str) -> str | None:
        """What a run's host last said went wrong, without reading the rest of the run."""
        keys = self._store.keys_of(run_id)
        async with reachable():
            return await self._redis.hget(keys.run(run_id), "error") or None

    async def take(self, run_id: str, token: str, lease_until: int) -> Taken:
        """Take one run that has a callback off its queue, to push it (see `scripts/take.lua`)."""
        keys = self._store.keys_of(run_id)
        async with reachable():
            host = await self._redis.hget(keys.run(run_id), "host")
        if host is None:
            return Taken("over", 0, "")
        command = {"token": token, "lease_until": lease_until}
        word, number = await self._store.about(lua.TAKE, run_id, host, (), command)
        return Taken(word, int(number), host)

    async def freeze(self, run: Run, message: str) -> Push | None:
        """Freeze what a run's callback is sent. Returns it as it was frozen the first time; None if there is none."""
        command = {"attempt": run.attempt, "message": message}
        found = await self._store.about_run(lua.FREEZE, run, command)
        if not found or found[0] is None:
            return None
        callback, frozen, since = found
        where = json.loads(callback)
        return Push(where["url"], where["secret"], frozen, int(since))

    # dead letters

    async def dead(
        self, before: tuple[int, str] | None = None, page: int = 100
    ) -> AsyncGenerator[tuple[int, str]]:
        """The dead letters newest first, as (ms it ended, run id); ``before``: the last one had."""
        sources = [
            self._store.newest_first(Keys(p).dead, before, page) for p in range(self._store.partitions)
        ]
        async for item in merged(sources, newest_first=True):
            yield item

    async def relapse(self, run: Run, error: str, *, by: Fields, via: str) -> str:
        """Make a dead letter of a run that its host took up in vain. Returns failed, missing or other."""
        fields = _by(by, via) + spliced({"reason": self._store.record.text(error)})
        command = {"token": new_token(), "error": error, "fields": fields}
        return str(await self._store.about_run(lua.RELAPSE, run, command, [self._dead(run)]))

    async def requeue(self, run: Run, *, by: Fields, via: str) -> str:
        """Put a dead letter back into its queue. Returns requeued, missing or other (see `scripts/requeue.lua`)."""
        command = {"token": new_token(), "fields": _by(by, via)}
        return str(await self._store.about_run(lua.REQUEUE, run, command, [self._dead(run)]))

    async def reopen(
        self,
        run: Run,
        deadlines: Sequence[tuple[Gate, int]],
        *,
        by: Fields,
        via: str,
        due: Mapping[str, int],
    ) -> str:
        """Have people decide a failed run again. Returns reopened, missing or other (see `scripts/reopen.lua`)."""
        gates = [
            {
                "deadline": deadline,
                "fields": spliced(self._store.record.gate_opened(gate.doc)),
            }
            for gate, deadline in deadlines
        ]
        command = {
            "made": run.doc.created_at,
            "token": new_token(),
            "by": json.dumps(by),
            "via": via,
            "gates": gates,
            "due": due,
        }
        return str(await self._store.about_run(lua.REOPEN, run, command, [self._dead(run)]))

    def _dead(self, run: Run) -> str:
        return self._store.keys_of(run.id).dead


def _by(by: Fields | None, via: str) -> str:
    return f',"by":{json.dumps(by)},"from":"{via}"'
