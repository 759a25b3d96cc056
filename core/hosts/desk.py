"""The desk between one host and the engine: opens what waits, closes what is gone, resumes what is settled."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import structlog

from core.agenda import TryAgain
from core.conversations import Conversation, title_of
from core.engine import ResumeEngine
from core.errors import LeaseLost, NotFailed, StoreUnavailable
from core.gates import Outcome
from core.hosts.base import (
    AsksAgain,
    Calls,
    Course,
    Follows,
    Gone,
    Host,
    HostAway,
    Present,
    Reply,
    Seen,
    Talks,
    Wait,
    Word,
)
from core.hosts.troubled import unopened, where, why_away, why_unopened
from core.ids import new_token
from core.policy import Key
from core.requests import RunRequest
from core.resumes import Resume
from core.runs import Run
from core.served import Served
from core.store.events import DONE

log = structlog.get_logger(__name__)

UNOPENED = "unopened"
"""The name of the troubles that admins hear of: what cannot be put to people."""
LEASE_S = 90.0
RESUME_S = 60.0
"""How long one try of a resume may take: less than its lease, so that two never resume one run at a time."""
CLAIM_WAIT_S = 30.0
AT_ONCE = 20
FIRST_RETRY_S, LAST_RETRY_S = 5.0, 900.0
FOLLOW_S = 1.0
"""How soon after a resume it is looked at what came of it; then with the agenda's backoff."""
RECONCILE_MS = 60_000
"""How often all that is open is compared with what waits: another process may have opened what this one never saw."""
FIRST_REST_S, LAST_REST_S = 1.0, 30.0
"""How long to rest after a watch that failed: twice as long each time."""


class Desk:
    """Serves one host until it is stopped. Any number of processes may serve the same host."""

    def __init__(self, engine: ResumeEngine, host: Host) -> None:
        self._engine = engine
        self._host = host
        self.calls = host if isinstance(host, Calls) else None
        self.talker = host.talker if isinstance(host, Talks) else None
        self._by = Key(key=host.name)
        self._opened: dict[str, str] = {}
        self._unopened: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._resuming: set[asyncio.Task[None]] = set()
        self._reconciled: dict[str, int] = {}
        self.problem: str | None = None

    def start(self) -> None:
        """Begin to watch and to resume. A desk that was not started opens what it is told of."""
        name = self._host.name
        self._tasks = [
            asyncio.create_task(self._watching(), name=f"watch {name}"),
            asyncio.create_task(self._claiming(), name=f"resume {name}"),
        ]

    async def stop(self, grace_s: float) -> None:
        """Take nothing more; let resumes end within ``grace_s``, then cancel them (their leases run out)."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._resuming:
            _, late = await asyncio.wait(self._resuming, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._host.close()

    @property
    def served(self) -> Served:
        """How it stands with the host, as far as this process knows."""
        return Served(self.problem, len(self._unopened))

    # opening and closing

    async def _watching(self) -> None:
        rest_s = FIRST_REST_S
        while True:
            try:
                async for seen in self._host.watch():
                    await self._see(seen)
                    self.problem, rest_s = None, FIRST_REST_S
            except StoreUnavailable:
                log.warning("host.store_away", host=self._host.name)
            except Exception as error:  # noqa: BLE001  # whatever it is, the host is watched again
                self.problem = why = why_away(error)
                log.warning("host.unreachable", host=self._host.name, error=why, at=where(error))
            await asyncio.sleep(rest_s * random.uniform(0.8, 1.2))  # noqa: S311  # jitter is no secret
            rest_s = min(2 * rest_s, LAST_REST_S)

    async def _see(self, seen: Seen) -> None:
        match seen:
            case Wait():
                if seen.external_id not in self._opened:
                    await self.open(seen)
            case Gone():
                self._unopened.pop(seen.external_id, None)
                if run_id := self._opened.get(seen.external_id):
                    await self._engine.supersede(run_id, seen.reason)
                    self._opened.pop(seen.external_id, None)
            case Present():
                await self._close_missing(seen)

    async def open(self, wait: Wait) -> None:
        """Put to people what the host waits for, once. Raises StoreUnavailable."""
        talks, what = self._engine.talks, wait.external_id
        talk = await talks.of(self._host.name, wait.session) if self.talker and wait.session else None
        try:
            request = self._host.describe(wait)
            run = await self._adopt(_in_conversation(request, talk) if talk else request, what)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # an agent may send anything, and the others are to be opened
            await self._tell_once(what, why_unopened(error))
            if talk:
                await talks.unopened(talk, unopened(what, error))
            return
        self._unopened.pop(what, None)
        self._opened[what] = run.id
        if talk:
            await talks.opened(talk, what)

    async def _adopt(self, request: RunRequest, external_id: str) -> Run:
        """The run of a wait; another one if it was taken for gone, and yet is there."""
        run, again = await self._engine.adopt(request, key=external_id), 1
        while not run.open and any(g.status == Outcome.SUPERSEDED for g in run.gates):
            again += 1
            run = await self._engine.adopt(request, key=f"{external_id} {again}")
        return run

    async def _tell_once(self, external_id: str, why: str) -> None:
        """Have admins told, once by whichever process is first, that something cannot be put to people."""
        if external_id in self._unopened:
            return
        name, events = self._host.name, self._engine.store.events
        once = f"unopened:{name}:{external_id}"
        word = await events.begin(once, new_token())
        if word == "first":
            told = False
            try:
                await self._engine.store.troubles.note(
                    UNOPENED, {"host": name, "what": external_id, "why": why}
                )
                told = True
            finally:
                await events.end(once, done=told)
        elif word != DONE:
            return  # another process is at it, and may die before it is done
        log.error("host.not_opened", host=name, external_id=external_id, error=why)
        self._unopened[external_id] = why

    async def _close_missing(self, present: Present) -> None:
        """Supersede the runs of this host that it no longer waits for, whoever opened them."""

        def missing(external_id: str) -> bool:
            return external_id.startswith(present.prefix) and external_id not in present.external_ids

        gone = [external_id for external_id in self._opened if missing(external_id)]
        for left in filter(missing, list(self._unopened)):
            if await present.why_gone(left) is not None:
                self._unopened.pop(left, None)
        now_ms = self._engine.store.clock.now_ms()
        if not gone and now_ms < self._reconciled.get(present.prefix, 0) + RECONCILE_MS:
            return
        kept: dict[str, str] = {}
        async for run in self._open_runs():
            external_id = run.doc.external_id
            if external_id is None or not missing(external_id):
                continue
            was_there = run.opened_at < present.asked_ms
            reason = await present.why_gone(external_id) if was_there else None
            if reason is None:
                kept[external_id] = run.id
            else:
                await self._engine.supersede(run.id, reason)
        self._reconciled[present.prefix] = now_ms
        for external_id in gone:
            self._opened.pop(external_id, None)
        self._opened.update(kept)

    async def _open_runs(self) -> AsyncIterator[Run]:
        """The runs of this host that have a pending gate."""
        last = ""
        async for _, run, _ in self._engine.gates(only_open=True, names=[f"host:{self._host.name}"]):
            if run.id != last:
                last = run.id
                yield run

    # resuming

    async def _claiming(self) -> None:
        while True:
            if len(self._resuming) >= AT_ONCE:
                await asyncio.wait(self._resuming, return_when=asyncio.FIRST_COMPLETED)
            try:
                claimed = await self._engine.resumes.claim(
                    self._host.name,
                    limit=AT_ONCE - len(self._resuming),
                    wait_s=CLAIM_WAIT_S,
                    lease_s=LEASE_S,
                    by=self._by,
                )
            except StoreUnavailable:
                log.warning("host.store_away", host=self._host.name)
                await asyncio.sleep(FIRST_REST_S)
                continue
            except Exception as error:  # noqa: BLE001  # whatever it is, the queue is asked again
                log.error(
                    "host.claim_failed", host=self._host.name, error=type(error).__name__, at=where(error)
                )
                await asyncio.sleep(LAST_REST_S)
                continue
            for resume in claimed:
                task = asyncio.create_task(self._resume(resume), name=f"resume {resume.run.id}")
                self._resuming.add(task)
                task.add_done_callback(self._resuming.discard)

    async def _resume(self, resume: Resume) -> None:
        try:
            reply = await self._asked(resume)
            await self._end(resume, reply)
        except LeaseLost:
            log.warning("host.lease_lost", host=self._host.name, run=resume.run.id)
        except StoreUnavailable:  # the lease runs out, and the next try begins by looking
            log.warning("host.store_away", host=self._host.name, run=resume.run.id)

    async def _asked(self, resume: Resume) -> Reply:
        try:
            async with asyncio.timeout(RESUME_S):
                return await self._host.resume(resume)
        except TimeoutError:
            return Reply(Word.RETRYABLE, f"no answer within {RESUME_S:g} s")
        except Exception as error:  # noqa: BLE001  # whatever it is, the run is tried again
            name = type(error).__name__
            log.error(
                "host.resume_failed", host=self._host.name, run=resume.run.id, error=name, at=where(error)
            )
            return Reply(Word.RETRYABLE, f"the adapter failed ({type(error).__name__})")

    async def _end(self, resume: Resume, reply: Reply) -> None:
        resumes, run_id, lease = self._engine.resumes, resume.run.id, resume.lease
        follow_in_s = FOLLOW_S if reply.follow else None
        say: Callable[..., None] = log.info if reply.word is Word.APPLIED else log.warning
        say("host.resumed", host=self._host.name, run=run_id, word=reply.word, reason=reply.reason)
        match reply.word:
            case Word.APPLIED:
                await resumes.ack(run_id, lease, by=self._by, note=reply.reason, follow_in_s=follow_in_s)
            case Word.LOST | Word.UNKNOWN:
                await resumes.lose(run_id, lease, by=self._by, error=reply.reason, follow_in_s=follow_in_s)
            case Word.REFUSED:
                await resumes.refuse(run_id, lease, by=self._by, error=reply.reason or "The host refused it.")
            case Word.RETRYABLE:
                await resumes.nack(
                    run_id,
                    lease,
                    by=self._by,
                    retry_in_s=_retry_in_s(resume.tries),
                    error=reply.reason,
                )

    # what came of it

    async def follow(self, run: Run, tries: int) -> None:
        """Look what the host made of a run that it took up. Raises TryAgain while it goes on, or is away."""
        if not isinstance(self._host, Follows) or run.doc.external_id is None:
            return
        try:
            sequel = await self._host.follow(run.doc.external_id)
        except HostAway as error:
            log.warning("host.not_followed", host=self._host.name, run=run.id, error=str(error), tries=tries)
            raise TryAgain from None
        match sequel:
            case Course.GOES_ON:
                raise TryAgain
            case Wait():
                await self._see(sequel)
            case AsksAgain():
                await self._ask_again(run, sequel.reason)

    async def _ask_again(self, run: Run, reason: str) -> None:
        """A dead letter, which people decide again. Not if nobody had decided it: it would come round for ever."""
        letters = self._engine.dead_letters
        await letters.relapse(run.id, reason, by=self._by, via="host")
        if any(gate.decision and gate.decision.by for gate in run.gates):
            with contextlib.suppress(NotFailed):  # somebody had it decided again meanwhile
                await letters.reopen(run.id, by=self._by, via="host")


def _in_conversation(request: RunRequest, talk: Conversation) -> RunRequest:
    """What is asked in a conversation stands in its thread, about and for who said what the turn is about."""
    by, policy = talk.said.by, request.policy
    if talk.direct and policy.approvers and "channel" in policy.approvers:
        # there it means one person, whom the rule that nobody approves their own may shut out
        named = [f"{by.team}:{by.user}" if p == "channel" else p for p in policy.approvers]
        policy = policy.model_copy(update={"approvers": named})
    about = {"place": talk.place, "requester": by, "title": title_of(talk.said), "policy": policy}
    return request.model_copy(update=about)


def _retry_in_s(tries: int) -> float:
    """Twice as long each time, so that a host may be away for hours before its runs are dead letters."""
    return float(min(FIRST_RETRY_S * 2 ** min(tries - 1, 16), LAST_RETRY_S))
