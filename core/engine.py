"""ResumeEngine: the one façade. Everything that opens, reads, settles or resumes a run goes through it."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core.amendments import Amendments
from core.answers import Answer
from core.batches import batch_answers, placed
from core.bell import POLL_S, Bell, heard
from core.deadletters import DeadLetters
from core.deciding import Decider, too_late
from core.egress import AddressRefused, Allowed, Reach
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    CannotVerify,
    CoverageMismatch,
    IdempotencyKeyReused,
    Invalid,
    InvalidDecision,
    NotAllowed,
    NotFound,
    NotWaiting,
    NoWorkspace,
    Overtaken,
    Refused,
)
from core.feed import Feed
from core.gates import Action, Decision, Gate, Outcome, speaker
from core.ids import gate_id, new_run_id, new_token, partition_of, run_of
from core.opening import body_digest, callback_text, check_decidable, gate_docs, run_doc
from core.policy import Actor, Directory, NoDirectory, Person
from core.redaction import Redaction
from core.requests import RunRequest
from core.resumes import Resumes
from core.runs import Run, RunStatus
from core.store.store import Store
from core.talks import Talks
from core.workspaces import OneWorkspace, Serving, Workspaces

STALE_TRIES = 5
LIST_BATCH = 50
T = TypeVar("T")


@dataclass(slots=True)
class ResumeEngine:
    """The engine. ``home`` is the team id of the workspace served, if it is one alone and known; else ``workspaces``
    tells where a run takes place.

    ``directory`` looks up groups and channel members; the bot fills it. ``callback_allow`` are the hosts and networks
    that callbacks may reach although they are private.
    """

    store: Store
    bell: Bell
    admins: Sequence[str] = ()
    default_channel: str | None = None
    fallback_channel: str | None = None
    default_timeout_s: int = 86400
    home: str | None = None
    directory: Directory = field(default_factory=NoDirectory)
    callback_allow: Sequence[Allowed] = ()
    workspaces: Workspaces | None = None
    reach: Reach = field(init=False)
    resumes: Resumes = field(init=False)
    amendments: Amendments = field(init=False)
    dead_letters: DeadLetters = field(init=False)
    feed: Feed = field(init=False)
    _decider: Decider = field(init=False)
    talks: Talks = field(init=False)

    def __post_init__(self) -> None:
        self.reach = Reach(tuple(self.callback_allow))
        self.resumes = Resumes(self.store, self.bell)
        self.feed = Feed(self.store, self.bell)
        self._decider = Decider(self.store, admins=self.admins, home=self.home, directory=self.directory)
        self.talks = Talks(self.store)
        self.amendments = Amendments(
            self.store,
            admins=self.admins,
            home=self.home,
            directory=self.directory,
            workspaces=self.workspaces or OneWorkspace(self.home),
        )
        self.dead_letters = DeadLetters(
            self.store, admins=self.admins, home=self.home, directory=self.directory
        )

    @property
    def redaction(self) -> Redaction:
        """What nobody should read, on any surface that the engine's callers show."""
        return self.store.record.redaction

    def home_of(self, run: Run) -> str | None:
        """The team id of the workspace (or organisation) that a run takes place in."""
        return run.doc.team or self.home

    def is_home(self, person: Person) -> bool:
        """Whether somebody is of the one workspace; of several, the directory tells whose channels are whose."""
        return self.home in (None, person.team)

    # opening

    async def suspend(
        self, request: RunRequest, *, owner: str, idempotency_key: str | None = None
    ) -> tuple[Run, bool]:
        """Put a run in. Returns it and whether this call made it.

        ``owner`` is the name of the API key (or of the adapter) that opens it. Raises NobodyMayDecide, NoPlace,
        NoWorkspace, Invalid (a callback that may not be called), IdempotencyKeyReused or StoreUnavailable; nothing is
        stored then.
        """
        once = (owner, idempotency_key, body_digest(request)) if idempotency_key else None
        return await self._suspend(request, owner, once)

    async def adopt(self, request: RunRequest, *, key: str) -> Run:
        """Put in a run that a host's adapter found waiting, or read the one that was made for the same ``key``.

        Raises as `suspend` does, but for IdempotencyKeyReused: the settings by which a wait is described may change.
        """
        run, _ = await self._suspend(request, request.host, (request.host, key, ""), via="host")
        return run

    async def _suspend(
        self, request: RunRequest, owner: str, once: tuple[str, str, str] | None, via: str = "api"
    ) -> tuple[Run, bool]:
        """``once`` is (scope, key, digest of the body), for what may be put in only once."""
        if request.callback:
            self._check_callback(request.callback.url)
        serving = await self._serving(request)
        scope = f"{once[0]} {once[1]}" if once else new_token()
        now_ms = self.store.clock.now_ms()
        run_id = new_run_id(zlib.crc32(scope.encode()) % self.store.partitions, now_ms)
        doc = run_doc(
            run_id,
            request,
            owner,
            now_ms=now_ms,
            channel=self.default_channel,
            fallback=self.fallback_channel,
            serving=serving,
        )
        gates = gate_docs(doc, request, serving)
        for gate in gates:
            check_decidable(gate, gate.policy, doc, self.admins, home=serving.team)
        timeout_s = request.timeout_s or self.default_timeout_s
        due = {}
        if doc.remind_after_s and doc.place:
            due["remind"] = doc.created_at + doc.remind_after_s[0] * 1000
        if doc.escalate:
            due["escalate"] = doc.created_at + doc.escalate.after_s * 1000
        word, made = await self.store.suspend(
            doc,
            gates,
            deadline=doc.created_at + timeout_s * 1000,
            state=request.state,
            by={"key": owner},
            callback=callback_text(request),
            due=due,
            idempotency=once,
            via=via,
        )
        if word == "reused":
            raise IdempotencyKeyReused
        return await self.run(made), made == run_id

    async def _serving(self, request: RunRequest) -> Serving:
        """The workspace of a run; none for one that only keys decide. Raises NoWorkspace or StoreUnavailable."""
        workspaces = self.workspaces or OneWorkspace(self.home)
        placed = request.place or self.default_channel
        try:
            return await workspaces.serving(request.place.team if request.place else None)
        except NoWorkspace:
            if placed:
                raise
            return Serving(None, many=True)

    def _check_callback(self, url: str) -> None:
        try:
            self.reach.check_url(url)
        except (AddressRefused, ValueError) as error:
            item = {"loc": ["callback", "url"], "msg": str(error), "type": "address"}
            detail = f"callback.url: {error}; ASKGATE_CALLBACK_ALLOW names what else callbacks may reach"
            raise Invalid(detail, errors=[item]) from None

    # reading

    async def run(self, run_id: str) -> Run:
        """Raises NotFound or StoreUnavailable."""
        run = await self.store.read(run_id)
        if run is None:
            raise NotFound(f"There is no run {run_id}.")
        return run

    async def gate(self, gate: str) -> tuple[Run, Gate]:
        """A gate and its run. Raises NotFound or StoreUnavailable."""
        run_id, index = run_of(gate)
        run = await self.store.read(run_id)
        if run is None or index >= len(run.gates):
            raise NotFound(f"There is no gate {gate}.")
        return run, run.gates[index]

    async def wait(self, run_id: str, seconds: float) -> Run:
        """Read a run; while it is waiting, wait up to ``seconds`` for it to be no longer so."""
        with self.bell.heard(f"run:{run_id}") as rung:
            until = asyncio.get_running_loop().time() + seconds
            while True:
                rung.clear()
                run = await self.run(run_id)
                left = until - asyncio.get_running_loop().time()
                if run.status is not RunStatus.WAITING or left <= 0:
                    return run
                await heard(rung, min(left, POLL_S))

    # settling

    async def decide(
        self,
        gate: str,
        action: Action,
        *,
        by: Actor,
        via: str,
        values: object = None,
        comment: str | None = None,
        digest: str | None = None,
        speaks_for: Person | None = None,
        known: Run | None = None,
    ) -> Run:
        """Take one person's word on one gate, and return the run as it is then.

        ``via`` says where it came from (`slack`, `api`); ``known`` is the run as it was read a moment ago: if its gate
        is no longer the same, the store says so and it is read again. Raises a Refused (AlreadySettled, Expired,
        NotAllowed, SelfApproval, CannotVerify, InvalidDecision, ArgumentsChanged), NotFound or StoreUnavailable.
        """
        run_id, index = run_of(gate)
        answer = Answer(index, action, values, comment, digest)
        return await self.decide_all(run_id, [answer], by=by, via=via, speaks_for=speaks_for, known=known)

    async def decide_all(
        self,
        run_id: str,
        answers: Sequence[Answer],
        *,
        by: Actor,
        via: str,
        speaks_for: Person | None = None,
        known: Run | None = None,
    ) -> Run:
        """Take one person's word on several gates of a run: all of it or nothing. Raises as `decide` does.

        Raises ValueError for no answer, or two for one gate: a mistake of the caller's code.
        """
        if not answers or len({answer.index for answer in answers}) < len(answers):
            raise ValueError("wanted one answer for each of one or more gates")
        token = new_token()
        for _ in range(STALE_TRIES):
            run, known = known or await self.run(run_id), None
            items = []
            for answer in answers:
                if answer.index >= len(run.gates):
                    raise NotFound(f"There is no gate {gate_id(run_id, answer.index)}.")
                items.append(await self._decider.item(run, answer, by, via, token, speaks_for))
            word, index, fresh = await self.store.decide(run, items, by=_said_by(by, speaks_for), via=via)
            if word == "missing" or (fresh is None and word != "stale"):
                raise NotFound(f"There is no run {run_id}.")
            if fresh is not None and word in ("settled", "voted", "again"):
                return fresh
            if fresh is not None and word != "stale":
                raise await self._decider.refused(
                    fresh, fresh.gates[index], by, via, too_late(fresh.gates[index])
                )
        raise await self._decider.refused(run, run.gates[index], by, via, ArgumentsChanged())

    async def check_open(
        self, run: Run, gate: Gate, person: Person, *, via: str, approving: bool = False
    ) -> None:
        """Refuse, before somebody writes a long answer, what could only be refused afterwards.

        ``approving``: it is to be approved. Raises AlreadySettled, Expired, NotAllowed, SelfApproval, CannotVerify or
        StoreUnavailable.
        """
        try:
            if not gate.pending or gate.deadline <= self.store.clock.now_ms():
                raise too_late(gate)
            await self._decider.check_allowed(run, gate, person, approving=approving)
        except Refused as refusal:
            raise await self._decider.refused(run, gate, person, via, refusal) from None

    async def overtaken(self, run: Run, gate: Gate, person: Person, *, via: str) -> Overtaken:
        """The refusal for somebody who saw other gates than there are: written down, and the card is drawn again."""
        refusal = Overtaken()
        await self._decider.refused(run, gate, person, via, refusal)
        return refusal

    async def may_decide(self, run: Run, gate: Gate, by: Actor) -> bool:
        """Whether somebody is among those who may decide a gate. Raises CannotVerify."""
        try:
            await self._decider.check_allowed(run, gate, by, approving=False)
        except CannotVerify:
            raise
        except NotAllowed:
            return False
        return True

    async def cancel(
        self, run_id: str, reason: str | None, *, by: Actor, via: str, index: int | None = None
    ) -> Run:
        """Settle what is pending as cancelled. Admins, and keys, may do it.

        Raises NotFound, NotAllowed, CannotVerify, NotWaiting or StoreUnavailable.
        """
        run = await self.run(run_id)
        await self.amendments.check_admin(
            run, None if index is None else gate_id(run_id, index), by=by, via=via
        )
        if not await self._withdraw(run, Outcome.CANCELLED, reason, by=by, via=via, index=index):
            status = (await self.run(run_id)).status
            await self._decider.note_refused(run, by, via, NotWaiting)
            raise NotWaiting(f"Nothing is pending there; the run is {status}.")
        return await self.run(run_id)

    async def supersede(self, run_id: str, reason: str) -> int:
        """Settle what is pending as superseded: its host has moved on. Returns how many gates that were."""
        return await self._withdraw(await self.run(run_id), Outcome.SUPERSEDED, reason, by=None, via="host")

    async def undeliverable(self, run_id: str, reason: str, *, index: int | None = None) -> int:
        """Settle what is pending (or one gate) as undeliverable, with the reason. Returns how many gates that were."""
        return await self._withdraw(
            await self.run(run_id), Outcome.UNDELIVERABLE, reason, by=None, via="host", index=index
        )

    async def _withdraw(
        self,
        run: Run,
        outcome: Outcome,
        reason: str | None,
        *,
        by: Actor | None,
        via: str,
        index: int | None = None,
    ) -> int:
        decision = Decision(outcome=outcome, at=self.store.clock.now_ms(), via=via, detail=reason)
        return await self.store.withdraw(
            run,
            outcome=outcome,
            decision=decision.model_dump_json(exclude_none=True),
            by=by.model_dump() if by else None,
            via=via,
            reason=reason,
            index=index,
        )

    async def answer_batch(
        self, run_id: str, results: dict[str, dict[str, Any]], *, by: Actor, via: str
    ) -> Run:
        """Answer a run's complete batch: `{"calls": {id: …}, "approvals": {id: …}}`, in the API's result forms.

        Raises CoverageMismatch, and as `decide` does; nothing is stored then.
        """
        run = await self.run(run_id)
        if not run.open:
            await self._decider.note_refused(run, by, via, AlreadySettled)
            raise AlreadySettled(extra={"run": run})
        try:
            answers = batch_answers(run, results)
        except CoverageMismatch:
            await self._decider.note_refused(run, by, via, CoverageMismatch)
            raise
        try:
            return await self.decide_all(run_id, answers, by=by, via=via)
        except InvalidDecision as error:
            gate: Gate = error.extra["gate"]
            raise placed(error, gate.doc) from None

    async def draft(self, gate: str, person: Person, picks: object | None) -> Run:
        """Keep what a person has picked but not submitted (None forgets it).

        Raises a Refused, NotFound or StoreUnavailable.
        """
        run, found = await self.gate(gate)
        try:
            await self._decider.check_allowed(run, found, person, approving=False)
        except Refused as refusal:
            raise await self._decider.refused(run, found, person, "slack", refusal) from None
        word = await self.store.draft(run, found.doc.index, speaker(person), picks)
        fresh, found = await self.gate(gate)
        if word != "kept":
            raise await self._decider.refused(fresh, found, person, "slack", too_late(found))
        return fresh

    async def expire(self, run_id: str) -> int:
        """Make a run's expiries visible, as a worker does. Returns how many gates that settled."""
        return await self.store.expiries.settle(partition_of(run_id, self.store.partitions), [run_id])

    async def escalate(self, run_id: str, _tries: int = 1) -> None:
        """The agenda's handler for `escalate:<run>`."""
        with contextlib.suppress(NotFound):  # an id of no run of ours: nothing to do, now or later
            await self.amendments.escalate(run_id)

    # lists

    async def gates(
        self, *, only_open: bool, names: Sequence[str] = (), before: tuple[int, str] | None = None
    ) -> AsyncGenerator[tuple[tuple[int, str], Run, Gate]]:
        """Gates of the newest runs first, each with its position for ``before``; with ``names``, of these indexes."""
        start, skip = None, 0
        if before:
            run_id, skip = run_of(before[1])
            start = (before[0], run_id)
        ids = self.store.run_ids(only_open=only_open, names=names, start=start)
        async with contextlib.aclosing(ids):
            async for batch in _batched(ids, LIST_BATCH):
                made = {run_id: ms for ms, run_id in batch}
                for run in await self.store.read_all(list(made)):
                    for gate in reversed(run.gates):
                        had = start is not None and run.id == start[1] and gate.doc.index >= skip
                        if not had and (gate.pending or not only_open):
                            yield (made[run.id], gate.id), run, gate


def _said_by(by: Actor, speaks_for: Person | None) -> dict[str, Any]:
    said = by.model_dump()
    return said | {"for": speaks_for.model_dump()} if speaks_for else said


async def _batched(items: AsyncIterator[T], size: int) -> AsyncGenerator[list[T]]:
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
