"""The engine on a real embedded server: opening, deciding, expiring, resuming."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from core.engine import ResumeEngine
from core.errors import AlreadySettled
from core.gates import Action
from core.policy import Key
from tests.conftest import ANA, BEN
from tests.runs import FOCUSED, approval, question_call, run_request


async def test_an_answer_and_an_approval_resume_the_run(engine: ResumeEngine) -> None:
    run, made = await engine.suspend(run_request([question_call()], [approval()], state="opaque"), owner="ci")
    assert made
    assert run.status == "waiting"
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    assert await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) == []
    run = await engine.decide(run.gates[1].id, Action.APPROVE, by=BEN, via="slack")
    assert run.status == "settled"
    [resume] = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30)
    assert resume.state == "opaque"
    results = resume.run.results()
    assert results is not None
    assert results["calls"]["question-1"]["value"] == FOCUSED
    assert results["approvals"]["call-2"]["action"] == "approve"
    run = await engine.resumes.ack(run.id, resume.lease, by=Key(key="ci"))
    assert run.status == "resumed"
    assert await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=30) == []


async def test_invariant_01_settled_once_50_deciders_one_winner(new_engine: Callable[[], ResumeEngine]) -> None:
    engines = [new_engine() for _ in range(3)]
    run, _ = await engines[0].suspend(run_request(), owner="ci")

    async def decide(number: int) -> bool:
        label = "Focused" if number % 2 else "Broad"
        values = {"answers": {"Which scope should be used?": label}}
        try:
            await engines[number % 3].decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=values)
        except AlreadySettled:
            return False
        return True

    assert sum(await asyncio.gather(*map(decide, range(50)))) == 1
