"""Redis as people run it, started from the embedded binary: one server, a primary with sentinels, a cluster.

Everything listens on free ports of 127.0.0.1 and is killed by pid at the end, also of a test that fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.embedded import find_program

SERVICE = "askgate"
NODE_TIMEOUT_MS = 1_000
"""After how long of silence a server counts as down: short, so that tests see whole failovers."""
UP_S = 20.0


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


async def until(done: Callable[[], Awaitable[Any]], what: str, seconds: float = UP_S) -> Any:
    """What ``done`` says once that is something; servers that are not there yet are asked again."""
    problem: object = None
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        try:
            if found := await done():
                return found
        except (RedisError, OSError) as error:
            problem = error
        await asyncio.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s ({problem!r})")


@dataclass
class Node:
    """One server process. ``options`` are those of its configuration file."""

    folder: Path
    port: int
    options: Sequence[tuple[str, str]] = ()
    sentinel: bool = False
    client_options: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.conf"
        if not config.exists():  # sentinels and clusters write into theirs
            common = [("bind", "127.0.0.1"), ("port", str(self.port)), ("dir", str(self.folder))]
            lines = [f'{name} "{value}"' if " " not in value else f"{name} {value}" for name, value in common]
            lines += [f"{name} {value}" for name, value in self.options]
            config.write_text("\n".join(lines) + "\n")
        command = [str(find_program()), str(config), *(["--sentinel"] if self.sentinel else [])]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL, as a crash; also of one that is stopped."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def client(self) -> Redis:
        return Redis(port=self.port, decode_responses=True, socket_timeout=5, **self.client_options)

    async def ask(self, *words: str | int) -> Any:
        async with self.client() as client:
            return await client.execute_command(*words)

    async def info(self, section: str) -> dict[str, Any]:
        async with self.client() as client:
            found: dict[str, Any] = await client.info(section)
            return found

    async def up(self) -> None:
        await until(lambda: self.ask("PING"), f"the server at {self.port}")


DURABLE = [("appendonly", "yes"), ("appendfsync", "always"), ("save", '""'), ("repl-diskless-sync-delay", "0")]


@contextlib.asynccontextmanager
async def running(*nodes: Node) -> AsyncIterator[None]:
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            await node.up()
        yield
    finally:
        for node in nodes:
            node.kill()


@contextlib.asynccontextmanager
async def one_server(folder: Path, *options: tuple[str, str], **client_options: Any) -> AsyncIterator[Node]:
    [port] = free_ports(1)
    node = Node(folder / "one", port, [*DURABLE, *options], client_options=client_options)
    async with running(node):
        yield node


@dataclass
class Watched:
    """A primary, a replica and three sentinels that agree by two."""

    servers: list[Node]
    sentinels: list[Node]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    async def primary(self) -> Node:
        """The server that leads, as the sentinels see it."""
        _, port = await self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(node for node in self.servers if node.port == int(port))

    async def failed_over(self, old: Node) -> None:
        """Wait until another server leads, for every sentinel, and knows it."""

        async def done() -> bool:
            for sentinel in self.sentinels:
                _, port = await sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
                if int(port) == old.port:
                    return False
            return (await (await self.primary()).info("replication"))["role"] == "master"

        await until(done, "the failover")

    async def settled(self, replicas: int = 1) -> None:
        """Wait until the primary has its replicas and the sentinels know all of each other."""

        async def done() -> bool:
            found = await (await self.primary()).info("replication")
            if [found.get(f"slave{n}", {}).get("state") for n in range(replicas)] != ["online"] * replicas:
                return False
            for sentinel in self.sentinels:
                async with sentinel.client() as client:
                    state = (await client.sentinel_masters())[SERVICE]
                if (state["num-slaves"], state["num-other-sentinels"]) != (len(self.servers) - 1, 2):
                    return False
            return True

        await until(done, "the sentinels")


@contextlib.asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[Watched]:
    ports = free_ports(5)
    quick = [("repl-ping-replica-period", "1"), ("repl-timeout", "5")]
    primary = Node(folder / "primary", ports[0], [*DURABLE, *quick])
    replica = Node(folder / "replica", ports[1], [*DURABLE, *quick, ("replicaof", f"127.0.0.1 {ports[0]}")])
    watching = [
        ("sentinel monitor", f"{SERVICE} 127.0.0.1 {ports[0]} 2"),
        ("sentinel down-after-milliseconds", f"{SERVICE} {NODE_TIMEOUT_MS}"),
        ("sentinel failover-timeout", f"{SERVICE} 3000"),
    ]
    sentinels = [
        Node(folder / f"sentinel{n}", port, watching, sentinel=True) for n, port in enumerate(ports[2:])
    ]
    found = Watched([primary, replica], sentinels)
    async with running(primary, replica, *sentinels):
        for sentinel in sentinels:  # which else look for replicas every 10 s, and say hello every 2 s
            await sentinel.ask("SENTINEL", "DEBUG", "INFO-PERIOD", 100, "PUBLISH-PERIOD", 100)
        await found.settled()
        yield found


@dataclass
class Cluster:
    """Three primaries, and behind each of them a replica: `nodes[n]` and `nodes[n + 3]`."""

    nodes: list[Node]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])

    async def failed_over(self, old: Node, new: Node) -> None:
        """Wait until the replica leads and every living node knows that all slots are served."""

        async def done() -> bool:
            if (await new.info("replication"))["role"] != "master":
                return False
            alive = [node for node in self.nodes if node is not old]
            return all(["cluster_state:ok" in await node.ask("CLUSTER", "INFO") for node in alive])

        await until(done, "the failover")


@contextlib.asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    ports = free_ports(12)
    nodes = [
        Node(
            folder / f"node{n}",
            ports[n],
            [
                *DURABLE,
                ("cluster-enabled", "yes"),
                ("cluster-port", str(ports[n + 6])),
                ("cluster-node-timeout", str(NODE_TIMEOUT_MS)),
                ("cluster-replica-validity-factor", "0"),
                ("repl-ping-replica-period", "1"),
            ],
        )
        for n in range(6)
    ]
    async with running(*nodes):
        await _join(nodes)
        yield Cluster(nodes)


async def _join(nodes: list[Node]) -> None:
    """Make a cluster of them, as `valkey-cli --cluster create` does."""
    for number, (first, last) in enumerate([(0, 5460), (5461, 10922), (10923, 16383)]):
        await nodes[number].ask("CLUSTER", "ADDSLOTSRANGE", first, last)
    for number, node in enumerate(nodes):
        await node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        bus = dict(node.options)["cluster-port"]
        await nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)

    async def met() -> bool:
        return all([f"cluster_known_nodes:{len(nodes)}" in await n.ask("CLUSTER", "INFO") for n in nodes])

    await until(met, "the nodes")
    for primary, replica in zip(nodes[:3], nodes[3:], strict=True):
        await replica.ask("CLUSTER", "REPLICATE", await primary.ask("CLUSTER", "MYID"))

    async def ok() -> bool:
        for node in nodes:
            if "cluster_state:ok" not in await node.ask("CLUSTER", "INFO"):
                return False
        for replica in nodes[3:]:
            if (await replica.info("replication"))["master_link_status"] != "up":
                return False
            for other in nodes:
                if str(await other.ask("CLUSTER", "NODES")).count("slave") != 3:
                    return False
        return True

    await until(ok, "the cluster")
