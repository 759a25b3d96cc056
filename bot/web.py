"""The one HTTP port: Slack, the API, health and metrics."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from pydantic import SecretStr

from bot.door import Door
from bot.install import Install
from core.agenda import Worker
from core.api.app import PREFIX, build_api
from core.api.health import Check, build_health
from core.api.metrics import Metrics
from core.engine import ResumeEngine
from core.hosts.desks import Desks
from core.hosts.door import HostDoor
from core.parsing import Bind
from core.settings import SettingsError

SHUTDOWN_S = 5.0
"""How long open requests may go on after the port has closed; waits end at once."""


class Web:
    """Listens between entering and leaving. Say what it serves before."""

    def __init__(
        self,
        engine: ResumeEngine,
        bind: Bind,
        checks: Mapping[str, Check],
        worker: Worker | None,
        desks: Desks,
    ) -> None:
        self._engine = engine
        self._bind = bind
        self._metrics = Metrics(engine.store)
        self._app = web.Application()
        self._app.add_routes(build_health(checks, self._metrics, desks.served))
        self._metrics.watch_hosts(desks.served)
        if worker:
            self._metrics.watch_agenda(lambda: worker.behind_ms)
        self._runner = web.AppRunner(
            self._app, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S
        )
        self.url = ""

    def serve_slack(self, door: Door) -> None:
        async def closed(_: web.Application) -> None:
            await door.close()

        self._app.router.add_post("/slack/events", door.handle)
        self._app.on_shutdown.append(closed)

    def serve_install(self, install: Install) -> None:
        self._app.add_routes(install.routes())

    def serve_api(self, keys: Mapping[str, SecretStr]) -> None:
        self._app.add_subapp(PREFIX, build_api(self._engine, keys, self._metrics))

    def serve_hosts(self, door: HostDoor) -> None:
        self._app.add_routes(door.routes())

    async def __aenter__(self) -> Web:
        await self._runner.setup()
        host, port = self._bind
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise SettingsError(f"ASKGATE_BIND: cannot listen on {host}:{port} ({error.strerror})") from error
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
