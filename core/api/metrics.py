"""Metrics for Prometheus: what became of gates (in the whole store), how calls go, how late the agenda is."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.audit import Position
from core.errors import StoreUnavailable
from core.served import Served
from core.store.store import Store


class Metrics:
    """The metrics of one process. Make it once the store's clock is anchored.

    Gates are counted from the audit, so they are those of the whole store since this process began, whoever settled
    them: of several replicas take one, not the sum.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = Position(store.clock.now_ms(), 0, 0)
        self._reading = asyncio.Lock()
        self._registry = CollectorRegistry()
        self._opened = self._counter("askgate_gates_opened", "Gates that were opened.", "kind")
        self._settled = self._counter("askgate_gates_settled", "Gates that were settled.", "outcome")
        self._refused = self._counter("askgate_decisions_refused", "Decisions that were refused.", "reason")
        self.requests = Histogram(
            "askgate_api_request_seconds",
            "Calls of the HTTP API, waits included.",
            ("method", "route", "status"),
            registry=self._registry,
        )

    def _counter(self, name: str, text: str, label: str) -> Counter:
        return Counter(name, f"{text} Store-wide.", (label,), registry=self._registry)

    def watch_agenda(self, behind_ms: Callable[[], int]) -> None:
        """Show how late the oldest due work of this process's agenda worker is."""
        gauge = Gauge("askgate_agenda_behind_seconds", "How late the agenda is.", registry=self._registry)
        gauge.set_function(lambda: behind_ms() / 1000)

    def watch_hosts(self, served: Callable[[], Mapping[str, Served]]) -> None:
        """Show how it stands with each host that this process serves."""
        self._registry.register(_Hosts(served))

    async def exposed(self) -> bytes:
        """The metrics in Prometheus' text format."""
        with contextlib.suppress(
            StoreUnavailable
        ):  # counted at the next call; readiness tells that the store is away
            async with self._reading:
                await self._read_audit()
        return generate_latest(self._registry)

    async def _read_audit(self) -> None:
        async with contextlib.aclosing(self._store.audit.events(self._seen)) as events:
            async for position, line in events:
                self._seen = position
                event = json.loads(line)
                match event["event"]:
                    case "gate.opened":
                        self._opened.labels(event["kind"]).inc()
                    case "gate.settled":
                        self._settled.labels(event["outcome"]).inc()
                    case "gate.refused":
                        self._refused.labels(event["reason"]).inc()


class _Hosts(Collector):
    """Read when it is asked for, so that it shows no host that is served no more."""

    def __init__(self, served: Callable[[], Mapping[str, Served]]) -> None:
        self._served = served

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("askgate_host_up", "Whether a host can be asked.", labels=["host"])
        unopened = GaugeMetricFamily(
            "askgate_host_unopened",
            "What a host waits for that cannot be put to people.",
            labels=["host"],
        )
        for name, served in self._served().items():
            up.add_metric([name], served.problem is None)
            unopened.add_metric([name], served.unopened)
        yield from (up, unopened)
