"""What the doctor looks at in the store: is it there, new enough, durable, the right one, and on time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from bot.commands.findings import Finding, fault, ok, unknown
from core.embedded import OLDEST
from core.settings import Settings
from core.store.connect import fast_client
from core.store.keys import META

MAX_SKEW_MS: Final = 30_000
"""Slack's requests count as too old after 5 minutes of this machine's clock; far less is already amiss."""


async def check_store(url: str, settings: Settings) -> AsyncIterator[Finding]:
    """Look at the server at ``url``. It is only read."""
    async with fast_client(url) as client:
        try:
            server: dict[str, Any] = await client.info("server")
        except (RedisError, OSError) as error:
            yield _away(error)
            return
        yield _version(server)
        for check in (_append_only, _fsync, _eviction, _replicas, _clock):
            yield await _looked(check, client)
        yield await _partitions(client, settings.partitions)


def _away(error: Exception) -> Finding:
    # while it connects, redis-py wraps what the login met
    if any(isinstance(met, AuthenticationError) for met in (error, error.__cause__, error.__context__)):
        return fault("store", f"refuses the login ({error})", "check user and password in ASKGATE_REDIS_URL")
    what = f"{type(error).__name__}: {error}"
    return fault(
        "store", f"cannot be reached ({what})", "start the server, or set ASKGATE_REDIS_URL to one that runs"
    )


async def _looked(check: Callable[[Any], Awaitable[Finding]], client: Any) -> Finding:
    try:
        return await check(client)
    except ResponseError as error:  # a managed server may forbid CONFIG, an ACL may forbid INFO
        return unknown(check.__name__.strip("_").replace("_", " "), f"the server refuses to say ({error})")
    except (RedisError, OSError) as error:
        return _away(error)


def _version(server: dict[str, Any]) -> Finding:
    kind = "valkey" if server.get("server_name") == "valkey" else "redis"
    version = str(server.get(f"{kind}_version", "0.0"))
    found = f"{kind.title()} {version}"
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST[kind]:
        wanted = " or ".join(f"{name.title()} {major}.{minor}" for name, (major, minor) in OLDEST.items())
        return fault("store", f"{found} is too old", f"install {wanted} or later")
    return ok("store", f"{found} answers")


async def _append_only(client: Any) -> Finding:
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


async def _fsync(client: Any) -> Finding:
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


async def _eviction(client: Any) -> Finding:
    policy = (await client.info("memory"))["maxmemory_policy"]
    if policy != "noeviction":
        return fault(
            "eviction",
            f"{policy}: a server that runs full drops runs and audit events",
            "set `maxmemory-policy noeviction`",
        )
    return ok("eviction", "none: a server that runs full refuses writes, and people see that it did not work")


async def _replicas(client: Any) -> Finding:
    found = await client.info("replication")
    if found["role"] != "master":
        return fault(
            "replicas",
            "this server is itself a replica: it takes no writes",
            "name its primary in ASKGATE_REDIS_URL",
        )
    count = found["connected_slaves"]
    if not count:
        return ok("replicas", "none: what is stored is as safe as this server's disk")
    return ok("replicas", f"{count}; a failover may lose what had not reached one")


async def _clock(client: Any) -> Finding:
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


async def _partitions(client: Any, wanted: int) -> Finding:
    try:
        stored = await client.hget(META, "partitions")
    except RedisError as error:
        return fault("partitions", f"cannot be read ({error})", "let this user read the keys ag:*")
    if stored is None:
        return ok("partitions", f"the store is empty; its first start makes {wanted}")
    if stored != str(wanted):
        return fault(
            "partitions", f"the store has {stored}, not {wanted}", f"set ASKGATE_PARTITIONS={stored}"
        )
    return ok("partitions", f"{stored}, as the store has them")
