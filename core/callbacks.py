"""Callbacks: settled runs pushed to the URL that their caller named, signed, until somebody takes them.

The signatures are those of Standard Webhooks. A push holds the run's lease while it lasts, as a host that claims it
does, so a run is never handed to two at once.
"""

from __future__ import annotations

import ipaddress
import json
import random
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from socket import AddressFamily
from typing import Any

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from standardwebhooks import Webhook
from yarl import URL

from core.agenda import TryAgain
from core.api.views import RunView, dumped
from core.egress import AddressRefused, Reach, host_of, literal
from core.engine import ResumeEngine
from core.errors import LeaseLost
from core.resumes import Held, Resume
from core.runs import RunStatus
from core.store.handovers import Ending, Push

log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0
"""How long one try may take, the look-up of the name included."""
LEASE_S = 30.0
GIVE_UP_MS = 3 * 24 * 3600 * 1000
FIRST_WAIT_MS = 1_000
LAST_WAIT_MS = 3_600_000
MAX_AT_ONCE = 20
"""Pushes at a time in this process: receivers that hang must not take all the slots of the agenda."""
READ_BUFFER = 32 * 1024
"""aiohttp reads ahead up to twice this. The answer's body is of no interest."""


class NotTaken(Exception):
    """The receiver did not take it: a short word says why."""


class Callbacks:
    """The agenda's handler for `callback:<run>`."""

    def __init__(
        self,
        engine: ResumeEngine,
        *,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``resolver`` looks names up (else the system does); ``tls`` says which certificates are trusted."""
        self._resumes = engine.resumes
        self._store = engine.store
        self._reach = engine.reach
        self._resolver = resolver
        self._tls = tls or ssl.create_default_context()
        self._running = 0

    async def push(self, run_id: str, _tries: int = 1) -> None:
        """Try once. Raises TryAgain while nobody has taken the run, up to three days after the first try."""
        if self._running >= MAX_AT_ONCE:
            raise TryAgain(FIRST_WAIT_MS)
        self._running += 1
        try:
            await self._push(run_id)
        finally:
            self._running -= 1

    async def _push(self, run_id: str) -> None:
        resume = await self._resumes.take(run_id, lease_s=LEASE_S)
        if isinstance(resume, Held):
            raise TryAgain(max(0, resume.until - self._store.clock.now_ms()) + FIRST_WAIT_MS)
        if resume is None:
            return
        message_id = f"msg{run_id[3:]}_{resume.run.attempt}"
        push = await self._store.handovers.freeze(resume.run, _message(message_id, resume))
        if push is None:
            return
        try:
            await self._post(push, message_id)
        except NotTaken as error:
            await self._not_taken(resume, push, f"callback: {error}")
            return
        log.info("callback.taken", run=run_id)
        try:
            await self._resumes.end(run_id, resume.lease, Ending(RunStatus.RESUMED, None))
        except LeaseLost:
            log.warning("callback.claimed_meanwhile", run=run_id)

    async def _not_taken(self, resume: Resume, push: Push, error: str) -> None:
        """Give the run back to its queue, and come again, unless three days are over."""
        now = self._store.clock.now_ms()
        given_up = now - push.since >= GIVE_UP_MS
        log.warning("callback.given_up" if given_up else "callback.failed", run=resume.run.id, error=error)
        ending = Ending(
            RunStatus.SETTLED, None, error=error, retry_at=now, event="run.failed" if given_up else None
        )
        try:
            await self._resumes.end(resume.run.id, resume.lease, ending)
        except LeaseLost:
            log.warning("callback.claimed_meanwhile", run=resume.run.id)
        if not given_up:
            raise TryAgain(wait_ms(now - push.since))

    async def _post(self, push: Push, message_id: str) -> None:
        """Send the message once. Raises NotTaken."""
        body = push.message.encode()
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            url = URL(push.url)
            host = host_of(url)
            if (address := literal(host)) is not None:
                self._reach.check(url.scheme, host, [address])
            # one connection, looked up for it alone: what was checked is what is connected to
            connector = aiohttp.TCPConnector(
                resolver=Guarded(self._reach, url.scheme, self._resolver or ThreadedResolver()),
                use_dns_cache=False,
                force_close=True,
                ssl=self._tls,
            )
            async with (
                aiohttp.ClientSession(
                    connector=connector,
                    timeout=timeout,
                    trust_env=False,
                    auto_decompress=False,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    read_bufsize=READ_BUFFER,
                ) as session,
                session.post(
                    url,
                    data=body,
                    headers=_headers(push, message_id, self._store.clock.now_ms()),
                    allow_redirects=False,
                ) as answer,
            ):
                status = answer.status
                answer.close()  # unread
        except TimeoutError as error:
            raise NotTaken(f"no answer within {TIMEOUT_S:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotTaken(_why(error)) from error
        if not 200 <= status < 300:
            raise NotTaken(f"it answered {status}")


class Guarded(AbstractResolver):
    """Looks a name up, and lets through only addresses that a callback may reach."""

    def __init__(self, reach: Reach, scheme: str, resolver: AbstractResolver) -> None:
        self._reach = reach
        self._scheme = scheme
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: AddressFamily = AddressFamily.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises AddressRefused, or OSError for a name that cannot be looked up."""
        found = await self._resolver.resolve(host, port, family)
        addresses = {ipaddress.ip_address(item["host"]): item for item in found}
        return [addresses[a] for a in self._reach.check(self._scheme, host.lower().rstrip("."), addresses)]

    async def close(self) -> None:
        """Nothing is kept; the resolver belongs to whoever gave it."""


def wait_ms(elapsed_ms: int) -> int:
    """How long to wait after a try: about as long as has been tried, from 1 s to 1 h, with jitter."""
    longest = min(max(elapsed_ms, FIRST_WAIT_MS), LAST_WAIT_MS)
    return random.randint(longest // 2, longest)  # noqa: S311  # jitter is no secret


def _message(message_id: str, resume: Resume) -> str:
    """What is posted, as JSON text. It says `settled`: that it is being handed over is nobody else's business."""
    run = resume.run.model_copy(update={"status": RunStatus.SETTLED, "error": None})
    message: dict[str, Any] = {
        "id": message_id,
        "type": "run.settled",
        "run": dumped(RunView.of(run, json.loads(resume.body))),
        "idempotency_key": resume.key,
        "state": resume.state,
    }
    return json.dumps(message, ensure_ascii=False)


def _headers(push: Push, message_id: str, now_ms: int) -> Mapping[str, str]:
    """Standard Webhooks: each try is signed anew, with its own time."""
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"askgate/{version('askgate')}",
        "webhook-id": message_id,
        "webhook-timestamp": str(now_ms // 1000),
        "webhook-signature": Webhook(push.secret).sign(message_id, now, push.message),
    }


def _why(error: BaseException) -> str:
    """A word for a try that failed. The texts of foreign errors may show the URL, which may hold a token."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return f"refused, {cause}"
        cause = cause.__cause__ or cause.__context__
    return f"it cannot be reached ({type(error).__name__})"
