"""One askgate process: store, engine, worker, HTTP port and Socket Mode, started in order and stopped in reverse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, Literal

import aiohttp
import structlog
from pydantic import SecretStr
from slack_sdk.web.async_client import AsyncWebClient

from bot import words
from bot.deliveries import Deliveries
from bot.door import Door
from bot.slack.client import TIMEOUT_S
from bot.slack.mending import mend_cards
from bot.slack.reachable import Reachable
from bot.socket import Socket
from bot.tenancy import Tenancy, several, single
from bot.web import Web
from core.agenda import Handler, Worker
from core.api.health import Check
from core.bell import Bell
from core.callbacks import Callbacks
from core.clock import REANCHOR_S, Clock, StoreClock
from core.embedded import EmbeddedServer
from core.ending import end
from core.engine import ResumeEngine
from core.errors import AskgateError, StoreUnavailable
from core.hosts.desks import Desks
from core.hosts.door import HostDoor
from core.record import Record
from core.retention import Retention
from core.settings import Settings, SettingsError
from core.store.connect import fast_client, listening_client
from core.store.store import Store

log = structlog.get_logger(__name__)

Role = Literal["all", "web", "worker"]
BEHIND_MS: Final = 30_000
"""How late the agenda may be before this process no longer counts as ready."""


class NotReady(AskgateError):
    """This process cannot do its work now."""

    slug = "not-ready"


class Service:
    """An askgate process. Use it as an async context manager; `url` is where it listens."""

    def __init__(
        self, settings: Settings, role: Role = "all", *, clock: Callable[[Clock], Clock] | None = None
    ) -> None:
        """``clock`` makes the engine's clock of the store's; without it that is the engine's."""
        self._settings = settings
        self._clock = clock
        self._role = role
        self._stack = AsyncExitStack()
        self.worker: Worker | None = None
        self.web: Web | None = None
        self.engine: ResumeEngine

    async def __aenter__(self) -> Service:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        """What is started later depends on what is started first, so the stack stops it the other way round."""
        settings, stack = self._settings, self._stack
        words.speak(settings.language)
        url = await self._redis_url()
        store, bell = await self._open_store(url)
        client = await stack.enter_async_context(slack_client(settings))
        tenancy = await (several if settings.oauth else single)(settings, store, bell, client)
        stack.push_async_callback(tenancy.close)
        self.engine = tenancy.engine
        desks = tenancy.desks
        stack.push_async_callback(desks.stop, settings.grace_s)
        if self._role in ("all", "worker"):
            await self._start_worker(tenancy, desks)
        await self._start_web(tenancy, client, desks)

    async def _redis_url(self) -> str:
        if self._settings.redis_url:
            return self._settings.redis_url.get_secret_value()
        server = EmbeddedServer(self._settings.data_dir)
        await server.start()
        self._stack.push_async_callback(server.stop)
        return server.url

    async def _open_store(self, url: str) -> tuple[Store, Bell]:
        redis = fast_client(url)
        self._stack.push_async_callback(redis.aclose)
        clock = StoreClock(lambda: store.server_ms())
        settings = self._settings
        record = Record(settings.redaction, keeps_values=settings.audit_values)
        store = Store(
            redis,
            partitions=settings.partitions,
            clock=self._clock(clock) if self._clock else clock,
            record=record,
            wait=settings.redis_wait,
        )
        try:
            await clock.anchor()
            await store.check_partitions()
        except StoreUnavailable as error:
            why = type(error.__cause__).__name__
            raise SettingsError(f"ASKGATE_REDIS_URL: the store there cannot be reached ({why})") from error
        await self._stack.enter_async_context(_kept_anchored(clock))
        bell = Bell(listening_client(url))
        bell.start()
        self._stack.push_async_callback(bell.stop)
        return store, bell

    async def _start_worker(self, tenancy: Tenancy, desks: Desks) -> None:
        settings, store = self._settings, self.engine.store
        retention = Retention(store, runs_days=settings.retention_days, audit_days=settings.audit_days)
        await retention.keep_due()
        handlers: dict[str, Handler] = {
            **tenancy.handlers,
            "escalate": self.engine.escalate,
            "callback": Callbacks(self.engine).push,
            "follow": desks.follow,
            "trim": retention.trim,
        }
        self.worker = Worker(self.engine.store, self.engine.bell, handlers)
        self.worker.start()
        self._stack.push_async_callback(self.worker.stop, self._settings.grace_s)
        desks.start()

    async def _start_web(self, tenancy: Tenancy, client: AsyncWebClient, desks: Desks) -> None:
        """The HTTP port. A worker alone has one too, for health and metrics."""
        settings, checks = self._settings, self._checks(client)
        self.web = Web(self.engine, settings.bind, checks, self.worker, desks)
        if self._role != "worker":
            self.web.serve_api(settings.api_keys)
            self.web.serve_hosts(HostDoor(desks, self.engine.store.events))
            secret = settings.slack_signing_secret
            deliveries = Deliveries(tenancy.dispatch, self.engine.store.events)
            if tenancy.install:
                self.web.serve_install(tenancy.install)
            if settings.slack_app_token:
                checks["slack_socket"] = await self._connect_socket(
                    deliveries, client, settings.slack_app_token
                )
            elif secret:
                self.web.serve_slack(Door(deliveries, secret.get_secret_value()))
        await self._stack.enter_async_context(self.web)

    async def _connect_socket(
        self, deliveries: Deliveries, client: AsyncWebClient, token: SecretStr
    ) -> Check:
        after_gap = partial(mend_cards, self.engine.store)
        socket = Socket(deliveries, client, token.get_secret_value(), after_gap)
        self._stack.push_async_callback(socket.close, self._settings.grace_s)
        await socket.connect()

        async def connected() -> None:
            if not socket.connected:
                raise NotReady("the Socket Mode connection is down")

        return connected

    def _checks(self, client: AsyncWebClient) -> dict[str, Check]:
        async def agenda() -> None:
            if self.worker and self.worker.behind_ms > BEHIND_MS:
                raise NotReady(f"the agenda is {self.worker.behind_ms // 1000} s behind")

        # where workspaces come and go, each has a token of its own
        ask = (lambda: client.api_test()) if self._settings.oauth else (lambda: client.auth_test())
        return {"store": self.engine.store.ping, "agenda": agenda, "slack": Reachable(ask)}


@contextlib.asynccontextmanager
async def slack_client(settings: Settings) -> AsyncIterator[AsyncWebClient]:
    """The Web API client: one shared session, no retries of its own (a second try may post twice)."""
    token = settings.slack_bot_token
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session:
        yield AsyncWebClient(
            token=token.get_secret_value() if token else None,
            base_url=settings.slack_api_url,
            session=session,
            retry_handlers=[],
        )


@contextlib.asynccontextmanager
async def _kept_anchored(clock: StoreClock) -> AsyncIterator[None]:
    async def anchor() -> None:
        while True:
            await asyncio.sleep(REANCHOR_S)
            try:
                await clock.anchor()
            except StoreUnavailable:
                # the monotonic clock carries on; the next minute tries again
                log.warning("clock.not_anchored")

    task = asyncio.create_task(anchor(), name="clock")
    try:
        yield
    finally:
        await end([task])
