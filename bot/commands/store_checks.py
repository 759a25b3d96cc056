"""What the doctor looks at in the store: is it there, new enough, durable, the right one, and on time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from redis.exceptions import RedisError, ResponseError

from bot.commands.findings import Finding, fault, ok, unknown
from core.address import Topology, parse_address
from core.embedded import OLDEST
from core.settings import Settings
from core.store.connect import fast_client, leading_servers, sentinels_of
from core.store.keys import META
from core.store.reach import refuses

MAX_SKEW_MS: Final = 30_000
"""Slack's requests count as too old after 5 minutes of this machine's clock; far less is already amiss."""

Check = Callable[[Any, Settings], Awaitable[Finding]]
_AWAY: Final = (RedisError, OSError)


async def check_store(url: str, settings: Settings) -> AsyncIterator[Finding]:
    """Look at every server at ``url`` that takes writes, and at what watches them. They are only read."""
    topology = parse_address(url).topology
    async with AsyncExitStack() as stack:
        try:
            servers = await stack.enter_async_context(leading_servers(url))
            versions = [await server.info("server") for server in servers]
        except _AWAY as error:
            yield _away(error)
            if topology == "sentinel":
                yield await _sentinels(url)
            return
        yield _version(versions, topology)
        for check in (_append_only, _fsync, _eviction, _replicas, _clock):
            yield await _of_all(check, servers, settings)
    if topology == "sentinel":
        yield await _sentinels(url)
    yield await _partitions(url, settings.partitions)


def _away(error: Exception) -> Finding:
    if refuses(error):
        return fault("store", f"refuses the login ({error})", "check user and password in ASKGATE_REDIS_URL")
    what = f"{type(error).__name__}: {error}"
    return fault(
        "store", f"cannot be reached ({what})", "start the server, or set ASKGATE_REDIS_URL to one that runs"
    )


async def _of_all(check: Check, servers: Sequence[Any], settings: Settings) -> Finding:
    """One finding for all servers: the first that is not fine, named; else that of the first."""
    found = [await _looked(check, server, settings) for server in servers]
    if len(found) == 1:
        return found[0]
    for state in ("fault", "unknown"):
        for server, finding in zip(servers, found, strict=True):
            if finding.state == state:
                return replace(finding, said=f"{_name(server)}: {finding.said}")
    return replace(found[0], said=f"on each of {len(found)} primaries: {found[0].said}")


def _name(server: Any) -> str:
    where = server.get_connection_kwargs()
    return f"{where['host']}:{where['port']}"


async def _looked(check: Check, server: Any, settings: Settings) -> Finding:
    try:
        return await check(server, settings)
    except ResponseError as error:  # a managed server may forbid CONFIG, an ACL may forbid INFO
        return unknown(check.__name__.strip("_").replace("_", " "), f"the server refuses to say ({error})")
    except _AWAY as error:
        return _away(error)


def _version(servers: Sequence[dict[str, Any]], topology: Topology) -> Finding:
    """Of several, the oldest counts."""
    _, found, kind = min(map(_kind, servers))
    if min(map(_kind, servers))[0] < OLDEST[kind]:
        wanted = " or ".join(f"{name.title()} {major}.{minor}" for name, (major, minor) in OLDEST.items())
        return fault("store", f"{found} is too old", f"install {wanted} or later")
    how = {
        "one": "",
        "sentinel": ", as the sentinels name it",
        "cluster": f", a cluster of {len(servers)} primaries",
    }
    return ok("store", f"{found} answers{how[topology]}")


def _kind(server: dict[str, Any]) -> tuple[tuple[int, ...], str, str]:
    """Its version as numbers, its name with the version, and which of the two kinds it is."""
    kind = "valkey" if server.get("server_name") == "valkey" else "redis"
    version = str(server.get(f"{kind}_version", "0.0"))
    return tuple(int(part) for part in version.split(".")[:2]), f"{kind.title()} {version}", kind


async def _append_only(client: Any, _settings: Settings) -> Finding:
    persistence = await client.info("persistence")
    if not persistence["aof_enabled"]:
        return fault(
            "append only",
            "off: a restart of the server loses all that came after its last snapshot",
            "set `appendonly yes` in its configuration",
        )
    if persistence["aof_last_write_status"] != "ok":
        return fault(
            "append only",
            "its last write failed: nothing can be saved",
            "look at the server's disk and its log",
        )
    return ok("append only", "on")


async def _fsync(client: Any, _settings: Settings) -> Finding:
    found = (await client.config_get("appendfsync")).get("appendfsync")
    match found:
        case "always":
            return ok("fsync", "always: what was acknowledged is on disk")
        case "everysec":
            lost = "everysec: a crash loses up to a second of decisions that people saw taken"
        case None:
            return unknown("fsync", "the server does not say")
        case _:
            lost = f"{found}: a crash loses whatever the system had not yet written, often 30 s of decisions"
    return fault("fsync", lost, "set `appendfsync always`")


async def _eviction(client: Any, _settings: Settings) -> Finding:
    policy = (await client.info("memory"))["maxmemory_policy"]
    if policy != "noeviction":
        return fault(
            "eviction",
            f"{policy}: a server that runs full drops runs and audit events",
            "set `maxmemory-policy noeviction`",
        )
    return ok("eviction", "none: a server that runs full refuses writes, and people see that it did not work")


async def _replicas(client: Any, settings: Settings) -> Finding:
    found, wait = await client.info("replication"), settings.redis_wait
    if found["role"] != "master":
        return fault(
            "replicas",
            "this server is itself a replica: it takes no writes",
            "name its primary in ASKGATE_REDIS_URL",
        )
    each = [found[f"slave{number}"] for number in range(found["connected_slaves"])]
    count = sum(replica["state"] == "online" for replica in each)
    if wait and count < wait.replicas:
        return fault(
            "replicas",
            f"{count} in step, and ASKGATE_REDIS_WAIT waits for {wait.replicas}: nobody can decide anything",
            "start the replicas, or wait for fewer",
        )
    if wait:
        lost = (
            "; a failover to another may lose it"
            if count > wait.replicas
            else "; a failover to one loses nothing"
        )
        return ok("replicas", f"{count}; what was acknowledged is on {wait.replicas} of them{lost}")
    if not count:
        return ok("replicas", "none: what is stored is as safe as this server's disk")
    return ok(
        "replicas",
        f"{count}; a failover may lose what had not reached one"
        f" (ASKGATE_REDIS_WAIT={count} has each decision wait for it)",
    )


async def _sentinels(url: str) -> Finding:
    """Whether each sentinel that the URL names answers and knows the server."""
    service, silent, quorum = parse_address(url).service, [], 0
    async with sentinels_of(url) as sentinels:
        for sentinel in sentinels:
            try:
                quorum = (await sentinel.sentinel_masters())[service]["quorum"]
            except (RedisError, OSError, KeyError) as error:
                silent.append(f"{_name(sentinel)} ({type(error).__name__})")
    if silent:
        return fault(
            "sentinels",
            f"{len(silent)} of {len(sentinels)} named cannot say who leads: {', '.join(silent)}",
            "start them, or name others in ASKGATE_REDIS_URL",
        )
    return ok("sentinels", f"{len(sentinels)} answer; {quorum} have to agree that the server is down")


async def _clock(client: Any, _settings: Settings) -> Finding:
    before = time.time()
    seconds, micros = await client.time()
    here_ms = (before + time.time()) / 2 * 1000
    skew_ms = round(here_ms - (seconds * 1000 + micros / 1000))
    if abs(skew_ms) > MAX_SKEW_MS:
        return fault(
            "clock",
            f"this machine and the server are {abs(skew_ms) / 1000:.0f} s apart",
            "set both by NTP: deadlines follow the server, the age of Slack's requests this machine",
        )
    return ok("clock", f"within {max(abs(skew_ms), 1)} ms of the server's")


async def _partitions(url: str, wanted: int) -> Finding:
    try:
        client: Any
        async with fast_client(url) as client:
            stored = await client.hget(META, "partitions")
    except _AWAY as error:
        return fault("partitions", f"cannot be read ({error})", "let this user read the keys ag:*")
    if stored is None:
        return ok("partitions", f"the store is empty; its first start makes {wanted}")
    if stored != str(wanted):
        return fault(
            "partitions", f"the store has {stored}, not {wanted}", f"set ASKGATE_PARTITIONS={stored}"
        )
    return ok("partitions", f"{stored}, as the store has them")
