"""The store: every question to Redis and every change of it, one round trip each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from redis.asyncio import Redis

from core.clock import Clock, iso
from core.errors import StoreMismatch
from core.gates import GateDoc
from core.ids import new_token, partition_of
from core.parsing import Wait
from core.policy import Policy, names_people
from core.record import Record
from core.runs import Card, Copies, Run, RunDoc
from core.store import lua
from core.store.audit import AuditLog
from core.store.batch import Batched
from core.store.codec import json_text, load_run, run_fields, spliced
from core.store.connect import Client
from core.store.conversations import Conversations
from core.store.events import Events
from core.store.expiries import Expiries
from core.store.handovers import Handovers
from core.store.homes import Homes
from core.store.indexes import index_names, names_with
from core.store.installations import Installations
from core.store.keys import BELL, META, WORK, Keys, leases
from core.store.lists import Lists
from core.store.merging import merged
from core.store.nudges import Nudges
from core.store.pace import Pace
from core.store.queues import Queues
from core.store.reach import reachable
from core.store.tail import Tail
from core.store.tallies import Tallies
from core.store.troubles import Troubles

IDEMPOTENCY_MS = 24 * 3600 * 1000
SAID_MOST = 50
"""How many gates of a partition are kept for each person as those that they have had a word on."""
SAID_MS = 30 * 24 * 3600 * 1000
ADOPTED_MS = 400 * 24 * 3600 * 1000
"""How long the external id of a host's wait is known: longer than any run is kept."""


class Store:
    """Runs, agenda, queues and audit in one Redis. ``record`` says what stands in the audit.

    Every method raises StoreUnavailable when Redis cannot be reached or cannot take a write. With ``wait``, what a
    person or a host waits for (suspend, decide, withdraw, draft, and both ends of a resume) is on that many replicas
    before it returns; else StoreUnavailable says that it may have been saved.
    """

    def __init__(
        self,
        client: Client,
        *,
        partitions: int,
        clock: Clock,
        record: Record | None = None,
        wait: Wait | None = None,
    ) -> None:
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client
        self._fast: Any = Batched(client) if isinstance(client, Redis) else client
        self._wait = wait
        self.partitions = partitions
        self.clock = clock
        self.audit = AuditLog(client, partitions, clock)
        self.events = Events(client)
        self.tallies = Tallies(client)
        self.nudges = Nudges(self, client)
        self.expiries = Expiries(self, self._fast, clock)
        self.record = record or Record()
        self.handovers = Handovers(self, client)
        self.pace = Pace(self._fast, clock)
        self.queues = Queues(client, self._fast, clock)
        self.troubles = Troubles(client, clock)
        self.tail = Tail(client, partitions)
        self.lists = Lists(self, client)
        self.homes = Homes(self, client)
        self.conversations = Conversations(self, client)
        self.installations = Installations(self, client)

    # the server

    async def server_ms(self) -> int:
        async with reachable():
            # of the server that has this key: in a cluster one of many, so that all processes ask the same
            seconds, micros = await self._redis.eval("return redis.call('TIME')", 1, META)
        return int(seconds) * 1000 + int(micros) // 1000

    async def check_partitions(self) -> None:
        """Hold the number of partitions for the life of the store. Raises StoreMismatch."""
        async with reachable():
            await self._redis.hsetnx(META, "partitions", str(self.partitions))
            stored = await self._redis.hget(META, "partitions")
        if stored != str(self.partitions):
            raise StoreMismatch(
                f"ASKGATE_PARTITIONS: the store was made with {stored} partitions, not {self.partitions}; "
                f"set ASKGATE_PARTITIONS={stored}"
            )

    async def ping(self) -> None:
        async with reachable():
            await self._redis.ping()

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
        via: str = "api",
    ) -> tuple[str, str]:
        """Put a run in. ``idempotency`` is (scope, key, digest of the body), ``due`` what else falls due when (ms).

        A host's adapter (``via`` is `host`) may find the same wait again for as long as it lasts, and longer.

        Returns ("opened" | "made" | "reused", the id of the run that was made first).
        """
        kept_ms = ADOPTED_MS if via == "host" else IDEMPOTENCY_MS
        keys, index = self.keys_of(doc.id), index_names(doc, (gate.policy for gate in gates))
        extra = [keys.state(doc.id), keys.state(doc.id)]
        command: dict[str, Any] = {
            "fields": run_fields(doc, gates, deadline, callback, index),
            "made": doc.created_at,
            "due": due or {},
            "gates": len(gates),
            "deadline": deadline,
            "opened": spliced({"by": by, "from": via} | self.record.run_opened(doc)),
            "gate_opened": [
                spliced({"by": by, "from": via} | self.record.gate_opened(gate)) for gate in gates
            ],
            "kept": kept_ms,
        }
        if state is not None:
            command["state"] = state
        if idempotency:
            scope, key, digest = idempotency
            extra[1] = keys.idempotency(scope, key)
            command["idem"] = {"digest": digest, "until": self.clock.now_ms() + kept_ms}
        word, run_id = await self.about(lua.SUSPEND, doc.id, doc.host, index, command, extra)
        return word, run_id

    async def read(self, run_id: str) -> Run | None:
        async with reachable():
            fields = await self._fast.execute_command("HGETALL", self.keys_of(run_id).run(run_id))
        return load_run(run_id, fields) if fields else None

    async def read_state(self, run_id: str) -> str | None:
        async with reachable():
            state: str | None = await self._redis.get(self.keys_of(run_id).state(run_id))
        return state

    async def decide(
        self, run: Run, items: Sequence[Mapping[str, Any]], *, by: Mapping[str, Any], via: str
    ) -> tuple[str, int, Run | None]:
        """Take one person's word on gates of a run, all of it or nothing (see `scripts/decide.lua`).

        Returns what became of it, the gate that it failed at (or -1), and the run as it is then.
        """
        command: dict[str, Any] = {"items": items, "by": json_text(by), "via": via}
        command |= {"said_most": SAID_MOST, "said_kept": SAID_MS}
        said = [self.keys_of(run.id).said(items[0]["person"])]
        word, index, *rest = await self.about_run(lua.DECIDE, run, command, said)
        flat = rest[0] if rest else []
        fresh = load_run(run.id, dict(zip(flat[::2], flat[1::2], strict=True))) if flat else None
        return word, int(index), fresh

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
        changed = {
            item["index"]: Policy.model_validate_json(item["policy"]) for item in items if "policy" in item
        }
        policies = (changed.get(gate.doc.index, gate.policy) for gate in run.gates)
        names = tuple(dict.fromkeys((*run.index, *index_names(run.doc, policies))))
        command: dict[str, Any] = {"items": items, "event": event, "by": json_text(by), "via": via}
        command |= {"index": " ".join(names), "made": run.doc.created_at}
        if flag:
            command["flag"] = flag
        moved = flag == "escalated" and run.doc.escalate is not None and run.doc.escalate.place is not None
        command["placed"] = moved or any(names_people(policy.deciders) for policy in changed.values())
        extra = [self._call_key(run)]
        word, index = await self.about(lua.AMEND, run.id, run.doc.host, names, command, extra)
        return word, int(index)

    async def reminded(self, run: Run, given: int, due: int | None) -> None:
        """Note that ``given`` reminders were given, and when the next is ``due`` (ms)."""
        await self.about_run(lua.REMIND, run, {"given": given} | ({"due": due} if due else {}))

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
        return int(await self.about_run(lua.WITHDRAW, run, command))

    async def draft(self, run: Run, index: int, speaker: str, draft: object | None) -> str:
        """Keep (or with None forget) what somebody picked. Returns kept, missing, expired or taken."""
        text = "" if draft is None else json.dumps(draft)
        command = {"index": index, "speaker": speaker, "draft": text}
        return str(await self.about_run(lua.DRAFT, run, command))

    async def refuse(
        self, run: Run, gate: str | None, *, by: Mapping[str, Any], via: str, reason: str, mend: bool = False
    ) -> None:
        """Write a refusal to the audit; ``mend`` has the card drawn again. No ``gate``: it was about the run."""
        fields = spliced({"by": by, "from": via, "reason": reason})
        command = {"fields": fields, "mend": mend} | ({"gate": gate} if gate else {})
        await self.about_run(lua.REFUSE, run, command, [self._call_key(run)])

    async def set_cards(
        self,
        run: Run,
        cards: Sequence[Card],
        *,
        event: str = "",
        reason: str | None = None,
        mended: bool = False,
        resent: bool = False,
        copies: Copies | None = None,
    ) -> bool:
        """Remember where a run's cards are and what they show, and who gets copies; with an audit event if named.

        ``mended``: all of them were drawn again, as `refuse` asked; ``resent``: taken back, as `resend` asked. Returns
        False, with nothing changed, if somebody else has remembered one since ``run`` was read.
        """
        command: dict[str, Any] = {
            "mended": mended,
            "resent": resent,
            "cards": json.dumps([card.model_dump() for card in cards]),
            "had": len(run.cards),
            "seen": len(run.copies.seen),
            "event": event,
            "fields": ',"by":null' + spliced({"from": "slack", "reason": reason}),
        }
        if copies is not None:
            command["copies"] = copies.model_dump_json()
        names = names_with(run, cards)
        if names != run.index:
            command |= {"index": " ".join(names), "made": run.doc.created_at}
        extra = [self._call_key(run)]
        word = await self.about(lua.CARD, run.id, run.doc.host, names, command, extra)
        return bool(word != "overtaken")

    async def resend(self, run: Run, *, by: Mapping[str, Any], via: str) -> str:
        """Have a run's card sent again (see `scripts/resend.lua`)."""
        command = {"fields": spliced({"by": by, "from": via})}
        return str(await self.about_run(lua.RESEND, run, command, [self._call_key(run)]))

    async def mend(self, run: Run) -> None:
        """Have a run's card drawn again in any case."""
        await self.about_run(lua.MEND, run, {})

    # lists

    async def run_ids(
        self,
        *,
        only_open: bool,
        names: Sequence[str] = (),
        start: tuple[int, str] | None = None,
        page: int = 100,
    ) -> AsyncGenerator[tuple[int, str]]:
        """Runs newest first, as (ms made, id), over all partitions; those that wait, or all that are kept.

        With ``names``: those that stand in one of these indexes. ``start`` is the newest to begin with.
        """
        sources = [
            self.newest_first(key, (start[0], f"{start[1]}~") if start else None, page)
            for keys in map(Keys, range(self.partitions))
            for key in (map(keys.index, names) if names else [keys.open if only_open else keys.runs])
        ]
        last = None
        async for item in merged(sources, newest_first=True):
            if item != last:  # it may stand in several of the indexes
                yield item
            last = item

    async def newest_first(
        self, key: str, before: tuple[int, str] | None, page: int
    ) -> AsyncGenerator[tuple[int, str]]:
        """The members of one sorted set, highest first, as (score, member); ``before``: the last one had."""
        position, skip = before, 0
        while True:
            highest: str | int = position[0] if position else "+inf"
            async with reachable():
                rows = await self._redis.zrevrangebyscore(
                    key, highest, "-inf", start=skip, num=page, withscores=True
                )
            found = [(int(score), member) for member, score in rows]
            fresh = [item for item in found if position is None or item < position]
            for item in fresh:
                yield item
            if len(rows) < page:
                return
            # by position and not by number, for runs come and go meanwhile; a number only within one moment
            position, skip = (fresh[-1], 0) if fresh else (position, skip + page)

    async def read_all(self, run_ids: Sequence[str]) -> list[Run]:
        """Several runs at once; what is gone meanwhile is left out."""
        return [run for run in await asyncio.gather(*map(self.read, run_ids)) if run is not None]

    # retention

    async def forget(self, partition: int, before_ms: int, limit: int) -> int:
        """Delete up to ``limit`` of a partition's runs that were settled before that ms. Returns how many it tried.

        One whose host never took it up is `run.lost` in the audit. One that a host has in hand stays for its lease.
        """
        keys = Keys(partition)
        async with reachable():
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
            await self.about(lua.FORGET, run_id, host or "", (), command, [keys.state(run_id), keys.dead])
        return len(found)

    # how a script is called

    def keys_of(self, run_id: str) -> Keys:
        """The keys of a run's partition. Raises NotFound for what is no run's id."""
        return Keys(partition_of(run_id, self.partitions))

    def _call_key(self, run: Run) -> str:
        """A key that stands for one call, however often the client sends it."""
        return self.keys_of(run.id).heard(new_token())

    async def about_run(
        self, script: lua.Script, run: Run, command: Mapping[str, Any], extra_keys: Sequence[str] = ()
    ) -> Any:
        """As `about`, for a run that was read."""
        return await self.about(script, run.id, run.doc.host, run.index, command, extra_keys)

    async def about(
        self,
        script: lua.Script,
        run_id: str,
        host: str,
        index: Sequence[str],
        command: Mapping[str, Any],
        extra_keys: Sequence[str] = (),
        behind: Sequence[str] = (),
    ) -> Any:
        """Run a script about one run, with the keys and the fields that `_common.lua` wants, and keys behind them."""
        keys = self.keys_of(run_id)
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
        names += [queue, leases(queue), keys.open, keys.runs, keys.trail(run_id), keys.settled]
        names += extra_keys
        names += [keys.undeliverable, keys.homes, keys.expiries]
        cmd["first_index"] = len(names) + 1
        names += map(keys.index, index)
        cmd["last_index"] = len(names)
        names += behind
        return await self.transition(script, keys, names, [json_text(cmd)])

    async def transition(
        self, script: lua.Script, keys: Keys, names: Sequence[str], args: Sequence[str | int]
    ) -> Any:
        """Run a script on keys of one partition; one that waits for replicas does so, if that is set."""
        async with reachable():
            if self._wait and script.waits:
                return await script.replicated(self._redis, names, args, wait=self._wait, mark=keys.mark)
            return await script(self._fast, names, args)
