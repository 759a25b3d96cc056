"""An a13n Service as a host: told by webhooks, reconciled by a poll, resumed once by a frozen body under a key."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Final

import structlog

from core.clock import Clock
from core.gates import Outcome
from core.hosts.a13n import gates, webhook
from core.hosts.a13n.client import A13nAway, A13nClient, A13nRefused, Run, Thread
from core.hosts.base import (
    AsksAgain,
    Course,
    NotGenuine,
    Present,
    Reply,
    Seen,
    Sequel,
    Sessions,
    Wait,
    Word,
)
from core.hosts.config import A13nConfig
from core.requests import RunRequest
from core.resumes import Resume

log = structlog.get_logger(__name__)

ANSWERED: Final = "It was answered elsewhere in a13n."
ARCHIVED: Final = "Its thread was archived in a13n."
GONE: Final = "a13n no longer has this run."
OTHERWISE: Final = (
    "a13n has had other answers under this decision's key. Which of them count, its console tells."
)
OTHER_RUN: Final = (
    "a13n knows this decision's key for something else. "
    "Have it decided again (reopen), which makes another key."
)
ARCHIVES: Final = ("agent", "workspace")
"""What a13n calls disabled and its console archived."""
AT_A_TIME: Final = 20
"""How many of the sessions that are not listed are read with each reading."""


class A13nHost:
    """One workspace of a Service, by its key. See `core.hosts.base`: Host, Follows and Calls."""

    def __init__(self, config: A13nConfig, clock: Clock, sessions: Sessions) -> None:
        self.name = config.name
        self._config = config
        self._clock = clock
        self._sessions = sessions
        self._client = A13nClient(config.url, config.api_key)
        self._names: dict[str, str] = {}
        # what a run waits for never changes, so it is read once
        self._waits: dict[str, Wait | None] = {}
        # sessions, and their latest run, whose threads are all archived: their runs wait for ever, and for nobody
        self._closed: dict[str, str] = {}
        # how far the sessions that are not listed have been read
        self._read = 0
        self._woken = asyncio.Event()

    async def close(self) -> None:
        await self._client.close()

    # watching

    async def watch(self) -> AsyncIterator[Seen]:
        """Read what waits, again and again. Raises HostAway when the Service cannot be read."""
        while True:
            self._woken.clear()
            asked_ms = self._clock.now_ms()
            waits = await self._found()
            for wait in waits:
                yield wait
            yield Present(frozenset(wait.external_id for wait in waits), asked_ms, self._why_gone)
            try:
                async with asyncio.timeout(self._config.poll_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _found(self) -> list[Wait]:
        """There is no list of runs that wait: they are heads of the threads of sessions.

        The sessions whose latest run waits are listed. Those in which something else began later are not, so of those
        that are remembered some more are read each time.
        """
        heads: set[str] = set()
        closed: dict[str, str] = {}
        listed: set[str] = set()
        async for session_id, latest in self._client.waiting_sessions():
            listed.add(session_id)
            threads: list[Thread] = []
            if self._closed.get(session_id) != latest:
                threads = await self._client.threads(session_id)
            heads |= {thread.idle_head for thread in threads if thread.idle_head}
            if all(thread.archived for thread in threads):
                closed[session_id] = latest
        self._closed = closed
        heads |= await self._hidden(listed)
        self._waits = {run_id: self._waits[run_id] for run_id in heads & self._waits.keys()}
        found = [wait for run_id in sorted(heads) if (wait := await self._wait(run_id))]
        await self._sessions.met(self.name, sorted({wait.session for wait in found}))
        return found

    async def _hidden(self, listed: set[str]) -> set[str]:
        """The heads of the next sessions that are remembered and not listed: a few each time, in turn."""
        known = [s for s in await self._sessions.met(self.name, ()) if s not in listed]
        turn = known[self._read : self._read + AT_A_TIME]
        self._read = self._read + AT_A_TIME if self._read + AT_A_TIME < len(known) else 0
        heads: set[str] = set()
        for session_id in turn:
            with contextlib.suppress(A13nRefused):  # it was deleted, and holds up no other
                heads |= {
                    thread.idle_head for thread in await self._client.threads(session_id) if thread.idle_head
                }
        return heads

    async def _wait(self, run_id: str) -> Wait | None:
        if run_id not in self._waits:
            try:
                run = await self._client.run(run_id)
            except A13nRefused:  # deleted meanwhile, and it holds up no other
                return None
            self._waits[run_id] = await self._wait_of(run)
        return self._waits[run_id]

    async def _wait_of(self, run: Run) -> Wait | None:
        """What a run waits for; None if it does not wait, or is somebody else's to see to."""
        if run.pending is None or not self._mine(run):
            return None
        if not self._config.client_tools and gates.wants_client(run.pending):
            return None
        facts = {"agent": await self._agent_name(run.agent_id), "pending": run.pending}
        return Wait(run.id, facts, run.session_id)

    def _mine(self, run: Run) -> bool:
        return not self._config.agents or run.agent_id in self._config.agents

    async def _agent_name(self, agent_id: str) -> str:
        if agent_id not in self._names:
            try:
                self._names[agent_id] = await self._client.agent_name(agent_id)
            except A13nRefused:
                return agent_id
        return self._names[agent_id]

    async def _why_gone(self, run_id: str) -> str | None:
        """A run that is missing among the latest ones of their sessions may wait all the same."""
        try:
            return await self._why_closed(await self._client.run(run_id))
        except A13nRefused:
            return GONE

    async def _why_closed(self, run: Run) -> str | None:
        """Why a run that waited can no longer be answered; None if it can. Only a resume moves a thread past it."""
        thread = await self._client.thread(run.thread_id)
        if thread.archived:
            return ARCHIVED
        return None if thread.idle_head == run.id else ANSWERED

    # being told

    def delivery(self, headers: Mapping[str, str], body: bytes) -> str:
        """Raises NotGenuine: also when no secret is set, for then nobody can be told from the Service."""
        if self._config.webhook_secret is None:
            raise NotGenuine("no webhook_secret is set")
        secret = self._config.webhook_secret.get_secret_value()
        return webhook.check(headers, body, secret, self._clock.now_ms() / 1000)

    async def heard(self, body: bytes) -> list[Wait]:
        """The delivery does not say what is asked, and may be late: the run itself is read."""
        run_id = webhook.waiting_run(body)
        if run_id is None:
            return []
        try:
            run = await self._client.run(run_id)
            if self._mine(run):
                await self._sessions.met(self.name, [run.session_id])
            wait = await self._wait_of(run)
            return [wait] if wait and not await self._why_closed(run) else []
        except A13nRefused:
            return []

    # describing

    def describe(self, wait: Wait) -> RunRequest:
        """One waiting run, one run with a gate for each thing that it waits for."""
        return RunRequest(
            **self._config.asked,
            external_id=wait.external_id,
            title=wait.facts["agent"][:150],
            pending=gates.pending(wait.facts["pending"]),
        )

    # resuming

    async def resume(self, resume: Resume) -> Reply:
        """Hand over the results. The key makes a repetition harmless, so no reading comes first."""
        for gate in resume.run.gates:
            if gate.status == Outcome.SUPERSEDED and gate.decision:
                return Reply(Word.LOST, gate.decision.detail)
        run_id = resume.run.doc.external_id or ""
        try:
            body = gates.body(json.loads(resume.body))
            return await self._answer(run_id, body, f"slack:{resume.key}")
        except gates.TooLarge as error:
            return Reply(Word.REFUSED, str(error))
        except A13nAway as error:
            return Reply(Word.RETRYABLE, str(error))
        finally:
            self._woken.set()

    async def _answer(self, run_id: str, body: bytes, key: str) -> Reply:
        try:
            await self._client.resume(run_id, body, key)
        except A13nRefused as error:
            if error.reason == "idempotency_key_reused":
                return await self._key_reused(run_id)
            return _refusal(error)
        return Reply(Word.APPLIED, follow=True)

    async def _key_reused(self, run_id: str) -> Reply:
        """a13n has had something else under a key of ours, which must not be: whether it was for this run, it tells."""
        log.error("a13n.key_reused", host=self.name, external_id=run_id)
        try:
            closed = await self._why_closed(await self._client.run(run_id))
        except A13nRefused:
            return Reply(Word.LOST, GONE)
        if closed:
            return Reply(Word.UNKNOWN, OTHERWISE, follow=True)
        return Reply(Word.REFUSED, OTHER_RUN)

    # what came of it

    async def follow(self, external_id: str) -> Sequel:
        """The successor, until it has ended: another wait, or nothing, for which the same run waits once more."""
        try:
            run = await self._client.run(external_id)
            thread = await self._client.thread(run.thread_id)
            if thread.current:
                return Course.GOES_ON
            if thread.archived or thread.head is None:
                return Course.OVER
            if thread.head != external_id:
                return await self._wait_of(await self._client.run(thread.head)) or Course.OVER
            if thread.last in (None, external_id):
                return Course.OVER
            return AsksAgain(_ending(await self._client.run(thread.last)))
        except A13nRefused:
            return Course.OVER


def _ending(run: Run) -> str:
    """How a successor ended, for people."""
    if run.status == "cancelled":
        return "The run was cancelled in a13n."
    return f"The run failed in a13n: {run.failure}" if run.failure else "The run failed in a13n."


def _refusal(error: A13nRefused) -> Reply:
    """A resume that a13n refuses, each of its words by what it means (a13n: POST /runs/{id}/resume)."""
    kind = str(error.details.get("kind") or "run").replace("_", " ")
    match error.status, error.reason or error.code:
        case 404, _ if kind in ("run", "thread", "session"):
            return Reply(Word.LOST, GONE)
        case 404, _:
            return Reply(Word.REFUSED, f"a13n no longer has the {kind} that this run needs.")
        case 409, "not_idle_waiting_head":
            return Reply(Word.LOST, ANSWERED, follow=True)
        case 409, "archived":
            return Reply(Word.REFUSED, "The thread is archived in a13n, which takes no answers for it.")
        case 422, "disabled":
            what, mend = ("archived", "Unarchive") if kind in ARCHIVES else ("disabled", "Enable")
            return Reply(
                Word.REFUSED,
                f"The {kind} is {what} in a13n. {mend} it, then put this back into its queue (requeue).",
            )
        case _:
            return Reply(Word.REFUSED, f"a13n says: {error}")
