"""What the tests of looprig's list share.

What looprig calls an append is the one script that checks, settles and writes the audit; a refused append is a server
that is told to refuse writes, an ambiguous one is a reply that is lost.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.gates import Action
from core.policy import Key, Person
from core.runs import Run
from tests.conftest import ANA
from tests.runs import Json, run_request
from tests.stores import events

CI = Key(key="ci")
NewEngine = Callable[[], ResumeEngine]
Call = Callable[[], Coroutine[Any, Any, Any]]

CONTROLS = ["accept", "decline", "cancel"]
FORM = {
    "kind": "form",
    "tool_call_id": "form-1",
    "tool_name": "book",
    "form": {
        "fields": [
            {"name": "city", "kind": "text", "required": True},
            {"name": "size", "kind": "select", "options": [{"value": "s"}, {"value": "m"}]},
            {"name": "sure", "kind": "confirm"},
        ],
        "controls": CONTROLS,
    },
}
URL = "https://pay.example.com/start?state=not-for-the-record"
LINK = {"kind": "link", "tool_call_id": "l", "tool_name": "pay", "link": {"url": URL, "controls": CONTROLS}}


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def answered(engine: ResumeEngine, run: Run, label: str = "Focused", by: Person = ANA) -> Run:
    values = {"answers": {"Which scope should be used?": label}}
    return await engine.decide(run.gates[0].id, Action.ANSWER, by=by, via="slack", values=values)


async def names(engine: ResumeEngine, run: Run) -> list[str]:
    return [event["event"] for event in await events(engine, run.id)]


async def listed(engine: ResumeEngine) -> set[str]:
    return {gate.id async for _, _, gate in engine.gates(only_open=True)}


async def handed_out(engine: ResumeEngine) -> list[Json]:
    """What the host gets now."""
    resumes = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    return [json.loads(resume.body) for resume in resumes]


@contextlib.asynccontextmanager
async def refusing(redis: Redis, how: str) -> AsyncIterator[None]:
    """The server answers, and takes no write."""
    setting, off, on = {
        "too few replicas": ("min-replicas-to-write", "0", "1"),
        "out of memory": ("maxmemory", "0", "1"),
    }[how]
    await redis.config_set(setting, on)
    try:
        yield
    finally:
        await redis.config_set(setting, off)


REFUSING = pytest.mark.parametrize("how", ["too few replicas", "out of memory"])
