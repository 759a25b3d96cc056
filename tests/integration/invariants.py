"""What the tests of the invariants share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from core.engine import ResumeEngine
from core.errors import AskgateError
from core.policy import Key
from core.resumes import Resume
from core.runs import Run
from tests.conftest import ANA
from tests.runs import run_request
from tests.stores import events

CI = Key(key="ci")
DOORS = [("slack", ANA), ("api", CI)]
ANYBODY = {"responders": ["anyone"], "approvers": ["U1", "U2", "U3", "key:ci"]}
NewEngine = Callable[[], ResumeEngine]


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **{"policy": ANYBODY, **more}), owner="ci")
    return run


async def claimed(engine: ResumeEngine, host: str = "api", lease_s: float = 30) -> Resume:
    [resume] = await engine.resumes.claim(host, limit=10, wait_s=0, lease_s=lease_s)
    return resume


async def nothing_due(engine: ResumeEngine, host: str = "api") -> bool:
    return await engine.resumes.claim(host, limit=10, wait_s=0, lease_s=30) == []


async def names(engine: ResumeEngine, run: Run) -> list[str]:
    return [event["event"] for event in await events(engine, run.id)]


async def outcome_of(call: Coroutine[Any, Any, Any]) -> str:
    try:
        await call
    except AskgateError as error:
        return error.slug
    return "done"


async def results_of(engine: ResumeEngine, run: Run) -> dict[str, dict[str, Any]]:
    results = (await engine.run(run.id)).results()
    assert results is not None
    return results
