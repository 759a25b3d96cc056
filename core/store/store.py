"""The store: every question to Redis and every change of it, one round trip each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from core.clock import Clock, iso
from core.errors import StoreMismatch
from core.gates import GateDoc
from core.ids import new_token, partition_of, run_of
from core.record import Record
from core.runs import Card, Run, RunDoc
from core.store import lua
from core.store.audit import AuditLog
from core.store.codec import load_run, run_fields, spliced
from core.store.keys import BELL, META, WORK, Keys, leases
from core.store.merging import merged
from core.store.reach import reachable

IDEMPOTENCY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed member of an agenda or of a queue. ``tries`` counts this one."""

    partition: int
    member: str
    tries: int
    token: str


class Store:
    """Runs, agenda, queues and audit in one Redis. ``record`` says what stands in the audit.

    Every method raises StoreUnavailable when Redis cannot be reached or cannot take a write.
    """

    def __init__(self, client: Redis, *, partitions: int, clock: Clock, record: Record | None = None) -> None:
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client
        self.partitions = partitions
        self.clock = clock
        self.audit = AuditLog(client, partitions, clock)
        self.record = record or Record()

    # the server

    async def server_ms(self) -> int:
        with reachable():
            seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def check_partitions(self) -> None:
        """Hold the number of partitions for the life of the store. Raises StoreMismatch."""
        with reachable():
            await self._redis.hsetnx(META, "partitions", str(self.partitions))
            stored = await self._redis.hget(META, "partitions")
        if stored != str(self.partitions):
            raise StoreMismatch(
                f"ASKGATE_PARTITIONS: the store was made with {stored} partitions, not {self.partitions}; "
                f"set ASKGATE_PARTITIONS={stored}"
            )

    async def ping(self) -> None:
        with reachable():
            await self._redis.ping()

    async def claim_event(self, event_id: str, kept_ms: int = 3_600_000) -> bool:
        """Whether this event of Slack's is heard for the first time."""
        token = new_token()
        with reachable():
            # a retry after a lost reply finds its own token
            first = await self._redis.set(f"ag:event:{event_id}", token, nx=True, px=kept_ms, get=True)
        return first in (None, token)

    # runs

    async def suspend(
        self,
        doc: RunDoc,
        gates: Sequence[GateDoc],
        *,
        deadline: int,
        state: str | None,
        by: Mapping[str, Any],
        callback: str | None = None,
        due: Mapping[str, int] | None = None,
        idempotency: tuple[str, str, str] | None = None,
    ) -> tuple[str, str]:
        """Put a run in. ``idempotency`` is (scope, key, digest of the body), ``due`` what else falls due when (ms).

        Returns ("opened" | "made" | "reused", the id of the run that was made first).
        """
        keys = self._of(doc.id)
        extra = [keys.state(doc.id), keys.state(doc.id)]
        command: dict[str, Any] = {
            "fields": run_fields(doc, gates, deadline, callback),
            "due": due or {},
            "gates": len(gates),
            "deadline": deadline,
            "opened": spliced({"by": by, "from": "api"} | self.record.run_opened(doc)),
            "gate_opened": [
                spliced({"by": by, "from": "api"} | self.record.gate_opened(gate)) for gate in gates
            ],
            "kept": IDEMPOTENCY_MS,
        }
        if state is not None:
            command["state"] = state
        if idempotency:
            scope, key, digest = idempotency
            extra[1] = keys.idempotency(scope, key)
            command["idem"] = {"digest": digest, "until": self.clock.now_ms() + IDEMPOTENCY_MS}
        word, run_id = await self._about(lua.SUSPEND, doc.id, doc.host, command, extra)
        return word, run_id

    async def read(self, run_id: str) -> Run | None:
        with reachable():
            fields = await self._redis.hgetall(self._of(run_id).run(run_id))
        return load_run(fields) if fields else None

    async def read_state(self, run_id: str) -> str | None:
        with reachable():
            state: str | None = await self._redis.get(self._of(run_id).state(run_id))
        return state

    async def decide(
        self, run: Run, items: Sequence[Mapping[str, Any]], *, by: Mapping[str, Any], via: str
    ) -> tuple[str, int]:
        """Take one person's word on gates of a run, all of it or nothing (see `scripts/decide.lua`)."""
        command = {"items": items, "by": json.dumps(by), "via": via}
        word, index = await self._about(lua.DECIDE, run.id, run.doc.host, command)
        return word, int(index)

    async def amend(
        self,
        run: Run,
        items: Sequence[Mapping[str, Any]],
        *,
        event: str,
        by: Mapping[str, Any] | None,
        via: str,
        flag: str | None = None,
    ) -> tuple[str, int]:
        """Change who may decide gates of a run, or until when (see `scripts/amend.lua`)."""
        command = {"items": items, "event": event, "by": json.dumps(by), "via": via}
        if flag:
            command["flag"] = flag
        word, index = await self._about(lua.AMEND, run.id, run.doc.host, command, [self._call_key(run)])
        return word, int(index)

    async def reminded(self, run: Run, given: int, due: int | None) -> None:
        """Note that ``given`` reminders were given, and when the next is ``due`` (ms)."""
        await self._about(lua.REMIND, run.id, run.doc.host, {"given": given} | ({"due": due} if due else {}))

    async def withdraw(
        self,
        run: Run,
        *,
        outcome: str,
        decision: str,
        by: Mapping[str, Any] | None,
        via: str,
        reason: str | None,
        index: int | None = None,
    ) -> int:
        """Settle what is pending with an outcome that nobody chose. Returns how many gates that settled.

        The audit's `by` names nobody, for nobody decided; ``by`` stands there as `cancelled_by`.
        """
        command: dict[str, Any] = {
            "outcome": outcome,
            "decision": decision,
            "via": via,
            "fields": spliced({"cancelled_by": by, "reason": self.record.text(reason)}),
            "token": new_token(),
        }
        if index is not None:
            command["index"] = index
        return int(await self._about(lua.WITHDRAW, run.id, run.doc.host, command))

    async def expire(self, run_id: str) -> int:
        """Make a run's expiries visible. Returns how many gates that settled."""
        with reachable():
            host = await self._redis.hget(self._of(run_id).run(run_id), "host")
        return int(await self._about(lua.EXPIRE, run_id, host, {})) if host else 0

    async def draft(self, run: Run, index: int, speaker: str, draft: object | None) -> str:
        """Keep (or with None forget) what somebody picked. Returns kept, missing, expired or taken."""
        text = "" if draft is None else json.dumps(draft)
        command = {"index": index, "speaker": speaker, "draft": text}
        return str(await self._about(lua.DRAFT, run.id, run.doc.host, command))

    async def refuse(
        self, run: Run, gate: str | None, *, by: Mapping[str, Any], via: str, reason: str, mend: bool = False
    ) -> None:
        """Write a refusal to the audit; ``mend`` has the card drawn again. No ``gate``: it was about the run."""
        fields = spliced({"by": by, "from": via, "reason": reason})
        command = {"fields": fields, "mend": mend} | ({"gate": gate} if gate else {})
        await self._about(lua.REFUSE, run.id, run.doc.host, command, [self._call_key(run)])

    async def set_cards(
        self,
        run: Run,
        cards: Sequence[Card],
        *,
        event: str = "",
        reason: str | None = None,
        mended: bool = False,
    ) -> None:
        """Remember where a run's cards are and what they show; with an audit event if named.

        ``mended``: all of them were drawn again, as `refuse` asked.
        """
        command = {
            "mended": mended,
            "cards": json.dumps([card.model_dump() for card in cards]),
            "event": event,
            "fields": ',"by":null' + spliced({"from": "slack", "reason": reason}),
        }
        await self._about(lua.CARD, run.id, run.doc.host, command, [self._call_key(run)])

    # resumes

    async def start_resume(
        self, run: Run, token: str, body: str, *, by: Mapping[str, Any] | None = None
    ) -> tuple[str, str] | None:
        """Freeze what the host gets. Returns (body, idempotency key) as they were frozen the first time.

        None if the run is gone, or the lease is no longer ours.
        """
        fields = f',"by":{json.dumps(by)},"from":"host"'
        command = {"token": token, "body": body, "key": f"{run.id}:1", "fields": fields}
        frozen = await self._about(lua.START_RESUME, run.id, run.doc.host, command)
        return (frozen[0], frozen[1]) if frozen else None

    async def end_resume(
        self,
        run: Run,
        token: str,
        *,
        status: str,
        by: Mapping[str, Any],
        retry_at: int | None = None,
        error: str | None = None,
    ) -> bool:
        """Say what became of a claimed run. Returns whether the lease was held."""
        command: dict[str, Any] = {
            "token": token,
            "status": status,
            "event": f"run.{status}",
            "by": json.dumps(by),
            "fields": spliced({"by": by, "from": "host", "reason": self.record.text(error)}),
        }
        if error:
            command["error"] = error
        if retry_at is not None:
            command["retry_at"] = retry_at
        return bool(await self._about(lua.END_RESUME, run.id, run.doc.host, command) == "ended")

    # agenda and queues

    def agenda(self, partition: int) -> str:
        return Keys(partition).agenda

    def queue(self, partition: int, host: str) -> str:
        return Keys(partition).queue(host)

    async def claim(self, queue: str, partition: int, *, lease_ms: int, limit: int, token: str) -> list[Due]:
        """Take up to ``limit`` members that are due, for ``lease_ms``."""
        with reachable():
            flat = await lua.CLAIM(
                self._redis, [queue, leases(queue)], [self.clock.now_ms(), lease_ms, limit, token]
            )
        return [Due(partition, m, int(n), token) for m, n in zip(flat[::2], flat[1::2], strict=True)]

    async def finish(
        self, queue: str, token: str, members: Mapping[str, int | None], *, tried: bool = True
    ) -> int:
        """Give claimed members back: done (None) or to be tried again at that ms.

        Not ``tried``: nobody began them, so this claim does not count. Returns how many became due again while they
        were worked on.
        """
        args: list[str | int] = [token, int(tried)]
        for member, retry_at in members.items():
            args += [member, "" if retry_at is None else retry_at]
        with reachable():
            return int(await lua.FINISH(self._redis, [queue, leases(queue)], args))

    async def next_due(self, queue: str) -> int | None:
        """When the first member falls due, in ms."""
        with reachable():
            first = await self._redis.zrange(queue, 0, 0, withscores=True)
        return int(first[0][1]) if first else None

    # lists

    async def gate_ids(
        self, *, only_open: bool, before: tuple[int, str] | None = None, page: int = 100
    ) -> AsyncGenerator[tuple[int, str]]:
        """Gates newest first, as (ms made, id), over all partitions; ``before``: the last one had."""
        sources = [
            self._partition_ids(Keys(p).open if only_open else Keys(p).gates, before, page)
            for p in range(self.partitions)
        ]
        async for item in merged(sources, newest_first=True):
            yield item

    async def _partition_ids(
        self, key: str, before: tuple[int, str] | None, page: int
    ) -> AsyncGenerator[tuple[int, str]]:
        position, skip = before, 0
        while True:
            highest: str | int = position[0] if position else "+inf"
            with reachable():
                rows = await self._redis.zrevrangebyscore(
                    key, highest, "-inf", start=skip, num=page, withscores=True
                )
            found = [(int(made), gate) for gate, made in rows]
            fresh = [item for item in found if position is None or item < position]
            for item in fresh:
                yield item
            if len(rows) < page:
                return
            # by position and not by number, for gates come and go meanwhile; a number only within one moment
            position, skip = (fresh[-1], 0) if fresh else (position, skip + page)

    async def read_gates(self, gates: Sequence[str]) -> list[tuple[Run, int]]:
        """The runs of these gates, with each gate's index there; what is gone meanwhile is left out."""
        places = [run_of(gate) for gate in gates]
        runs = dict.fromkeys(run_id for run_id, _ in places)
        found = dict(zip(runs, await asyncio.gather(*map(self.read, runs)), strict=True))
        return [(run, index) for run_id, index in places if (run := found[run_id]) is not None]

    # retention

    async def keep_due(self, partition: int, member: str) -> None:
        """Put a member on the agenda now, unless it is there."""
        agenda = self.agenda(partition)
        with reachable():
            await self._redis.zadd(agenda, {member: self.clock.now_ms()}, nx=True)

    async def forget(self, partition: int, before_ms: int, limit: int) -> int:
        """Delete up to ``limit`` of a partition's runs that were settled before that ms. Returns how many it tried.

        One whose host never took it up is `run.lost` in the audit. One that a host has in hand stays for its lease.
        """
        keys = Keys(partition)
        with reachable():
            found = await self._redis.zrange(
                keys.settled, "-inf", f"({before_ms}", byscore=True, offset=0, num=limit
            )
            hosts = await asyncio.gather(*(self._redis.hget(keys.run(run_id), "host") for run_id in found))
        command = {
            "before": before_ms,
            "work": WORK,
            "fields": ',"by":null' + spliced({"from": "clock", "reason": "retention"}),
        }
        for run_id, host in zip(found, hosts, strict=True):
            await self._about(lua.FORGET, run_id, host or "", command, [keys.state(run_id)])
        return len(found)

    # how a script is called

    def _of(self, run_id: str) -> Keys:
        return Keys(partition_of(run_id, self.partitions))

    def _call_key(self, run: Run) -> str:
        """A key that stands for one call, however often the client sends it."""
        return self._of(run.id).heard(new_token())

    async def _about(
        self,
        script: lua.Script,
        run_id: str,
        host: str,
        command: Mapping[str, Any],
        extra_keys: Sequence[str] = (),
    ) -> Any:
        """Run a script about one run, with the keys and the fields that `_common.lua` wants."""
        keys = self._of(run_id)
        queue = keys.queue(host)
        now = self.clock.now_ms()
        cmd = {
            **command,
            "now": now,
            "iso": iso(now),
            "run": run_id,
            "bell": BELL,
            "partition": f"{keys.partition:02d}",
        }
        names = [keys.run(run_id), keys.agenda, leases(keys.agenda), keys.audit, keys.audit_head]
        names += [queue, leases(queue), keys.open, keys.gates, keys.trail(run_id), keys.settled]
        names += extra_keys
        with reachable():
            return await script(self._redis, names, [json.dumps(cmd, ensure_ascii=False)])
