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
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.embedded import find_program

SERVICE = "askgate"
PATIENT_MS, HASTY_MS = 15_000, 1_000
"""After how long of silence a server counts as down: a busy machine's may be silent; tests of failovers cannot wait."""
UP_S = 20.0
PING_BYTES = 40
"""What a primary's ping of its replicas adds to what it has written, at the most."""


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

    async def in_step(self) -> bool:
        """Whether its replica has all of its writes, but for pings. The first word of one takes up to 1 s."""
        found = await self.info("replication")
        replica = found.get("slave0", {})
        return replica.get("state") == "online" and (
            0 < replica["offset"] > found["master_repl_offset"] - 3 * PING_BYTES
        )

    @contextlib.asynccontextmanager
    async def cut_off(self) -> AsyncIterator[None]:
        """A replica that runs on and gets nothing more: it may not log in at its primary."""
        async with self.client() as client:
            await client.config_set("masteruser", "nobody")
            await client.config_set("masterauth", "wrong")
            await client.execute_command("CLIENT", "KILL", "TYPE", "master")
            try:
                yield
            finally:
                await client.config_set("masteruser", "")
                await client.config_set("masterauth", "")


DURABLE = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    ("save", '""'),
    ("repl-diskless-sync-delay", "0"),
]


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


class SetUp(Protocol):
    """Servers that stand in for each other. Tests may share one: `fresh` mends what a test before has left."""

    url: str
    nodes: list[Node]

    async def pair(self, number: int = 0) -> tuple[Node, Node]:
        """The server that leads (in a cluster: the ``number``th), and the one that would take its place."""

    async def settled(self) -> bool:
        """Whether everything is up, and every replica in step."""

    async def hasten(self, down_after_ms: int) -> None:
        """After how long of silence a server counts as down."""

    async def fail_over(self) -> None:
        """Have the first pair change places."""


async def fresh(found: SetUp) -> None:
    for node in found.nodes:
        if node.process is None:
            node.start()
        node.send(signal.SIGCONT)
        await node.up()
    await until(found.settled, "a settled set-up")
    await found.hasten(PATIENT_MS)  # last, because a cluster forgives a failure after twice that time
    for number in range(3 if isinstance(found, Cluster) else 1):
        await (await found.pair(number))[0].ask("FLUSHALL")
    await until(found.settled, "a settled set-up")


async def led_by_another(found: SetUp, old: Node) -> None:
    """Wait until another server leads in its place, for all that live."""

    async def done() -> bool:
        if (await found.pair())[0] is old:
            return False
        return not isinstance(found, Cluster) or await found.ok(besides=old)

    await until(done, "the failover")


@dataclass
class Watched:
    """A primary, a replica and three sentinels that agree by two."""

    servers: list[Node]
    sentinels: list[Node]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    @property
    def nodes(self) -> list[Node]:
        return [*self.servers, *self.sentinels]

    async def pair(self, _number: int = 0) -> tuple[Node, Node]:
        """As all sentinels see it; they are asked again until they agree, and the server says so too."""

        async def agreed() -> tuple[Node, Node] | None:
            asked = [
                await sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
                for sentinel in self.sentinels
            ]
            if len({port for _, port in asked}) > 1:
                return None
            one, other = self.servers
            return (one, other) if one.port == int(asked[0][1]) else (other, one)

        found: tuple[Node, Node] = await until(agreed, "sentinels that agree")
        return found

    async def settled(self) -> bool:
        leading, standing = await self.pair()
        if (await leading.info("replication"))["role"] != "master" or not await leading.in_step():
            return False
        for sentinel in self.sentinels:
            async with sentinel.client() as client:
                state = (await client.sentinel_masters())[SERVICE]
                replicas = await client.sentinel_slaves(SERVICE)
            if state["num-other-sentinels"] != 2 or state["flags"] != "master":
                return False
            if [(replica["port"], replica["flags"]) for replica in replicas] != [(standing.port, "slave")]:
                return False
        return True

    async def hasten(self, down_after_ms: int) -> None:
        for sentinel in self.sentinels:
            await sentinel.ask("SENTINEL", "SET", SERVICE, "down-after-milliseconds", down_after_ms)
            # which else look for replicas every 10 s, and say hello every 2 s
            await sentinel.ask("SENTINEL", "DEBUG", "INFO-PERIOD", 400, "PUBLISH-PERIOD", 500)

    async def fail_over(self) -> None:
        # which wants a sentinel that looked at the replica a moment ago
        await until(lambda: self.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE), "a good replica")


@contextlib.asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[Watched]:
    ports = free_ports(5)
    quick = [("repl-ping-replica-period", "1"), ("repl-timeout", "5")]
    primary = Node(folder / "primary", ports[0], [*DURABLE, *quick])
    replica = Node(folder / "replica", ports[1], [*DURABLE, *quick, ("replicaof", f"127.0.0.1 {ports[0]}")])
    watching = [
        ("sentinel monitor", f"{SERVICE} 127.0.0.1 {ports[0]} 2"),
        ("sentinel failover-timeout", f"{SERVICE} 3000"),
    ]
    sentinels = [
        Node(folder / f"sentinel{n}", port, watching, sentinel=True) for n, port in enumerate(ports[2:])
    ]
    found = Watched([primary, replica], sentinels)
    async with running(primary, replica, *sentinels):
        await found.hasten(PATIENT_MS)
        await until(found.settled, "the sentinels")
        yield found


@dataclass
class Cluster:
    """Three pairs of servers: `nodes[n]` and `nodes[n + 3]`, the first of which leads in the beginning."""

    nodes: list[Node]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])

    async def pair(self, number: int = 0) -> tuple[Node, Node]:
        """As another pair's nodes see it."""
        one, other = self.nodes[number], self.nodes[number + 3]
        witness = self.nodes[(number + 1) % 3]
        for line in str(await witness.ask("CLUSTER", "NODES")).splitlines():
            _, address, flags, *_ = line.split()
            if address.startswith(f"127.0.0.1:{other.port}@") and "master" in flags and "fail" not in flags:
                return other, one
        return one, other

    async def ok(self, besides: Node | None = None) -> bool:
        """Whether all slots are served, for every node that lives."""
        alive = [node for node in self.nodes if node is not besides]
        return all(["cluster_state:ok" in await node.ask("CLUSTER", "INFO") for node in alive])

    async def settled(self) -> bool:
        if not await self.ok():
            return False
        for node in self.nodes:
            states = str(await node.ask("CLUSTER", "NODES"))
            if (states.count("master"), states.count("slave"), states.count("fail")) != (3, 3, 0):
                return False
        return all([await (await self.pair(number))[0].in_step() for number in range(3)])

    async def hasten(self, down_after_ms: int) -> None:
        for node in self.nodes:
            await node.ask("CONFIG", "SET", "cluster-node-timeout", down_after_ms)

    async def fail_over(self) -> None:
        await (await self.pair())[1].ask("CLUSTER", "FAILOVER", "TAKEOVER")


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
                ("cluster-node-timeout", str(PATIENT_MS)),
                ("cluster-replica-validity-factor", "0"),
                ("repl-ping-replica-period", "1"),
            ],
        )
        for n in range(6)
    ]
    async with running(*nodes):
        await _join(nodes)
        found = Cluster(nodes)
        await until(found.settled, "the cluster")
        yield found


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
