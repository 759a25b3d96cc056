"""Settled runs, handed to their hosts over HTTP under leases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dirty_equals import IsPartialDict, IsStr
from freezegun import freeze_time

from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import FOCUSED, Json, body, question_call


async def settled(api: Api, **more: Any) -> Json:
    run = await api.open(body([question_call()], policy=KEY_POLICY, **more))
    answers = {"calls": {"question-1": {"status": "returned", "value": FOCUSED}}}
    resumed: Json = await api.post(f"/runs/{run['id']}/resume", answers)
    return resumed


async def claim(api: Api, **more: object) -> list[Json]:
    claimed: list[Json] = (await api.post("/resumes/claim", more))["resumes"]
    return claimed


async def test_a_settled_run_is_claimed_with_its_results_and_state_then_acknowledged(api: Api) -> None:
    run = await settled(api, state='{"step": 7}')
    with freeze_time("2099-01-01", real_asyncio=True):
        [resume] = await claim(api)
    assert resume == {
        "lease": IsStr,
        "lease_until": "2099-01-01T00:01:00.000Z",
        "idempotency_key": IsStr,
        "tries": 1,
        "run": {**run, "status": "resuming"},
        "state": '{"step": 7}',
    }
    assert await claim(api) == []
    acked = await api.post(f"/resumes/{run['id']}/ack", {"lease": resume["lease"]})
    assert acked["status"] == "resumed"
    assert await api.post(f"/resumes/{run['id']}/ack", {"lease": resume["lease"]}) == acked
    assert [line["event"] for line in await api.audit(run=run["id"])].count("run.resumed") == 1


async def test_a_claim_needs_no_body(api: Api) -> None:
    run = await settled(api)
    response = await api.send("POST", "/resumes/claim")
    assert [resume["run"]["id"] for resume in (await response.json())["resumes"]] == [run["id"]]


async def test_a_lease_that_runs_out_hands_out_the_same_results_again(api: Api) -> None:
    with freeze_time("2026-01-01", real_asyncio=True) as time:
        run = await settled(api)
        [first] = await claim(api, lease_s=5)
        time.tick(4.9)
        assert await claim(api, lease_s=5) == []
        time.tick(0.2)
        [second] = await claim(api, lease_s=5)
        assert second["run"]["results"] == first["run"]["results"]
        assert second["idempotency_key"] == first["idempotency_key"]
        assert second["tries"] == 2
        lost = {"lease": first["lease"]}
        await api.refused("POST", f"/resumes/{run['id']}/ack", lost, status=409, slug="lease-lost")
        await api.refused("POST", f"/resumes/{run['id']}/nack", lost, status=409, slug="lease-lost")
        await api.post(f"/resumes/{run['id']}/ack", {"lease": second["lease"]})


async def test_a_run_that_is_given_back_comes_again_after_the_time_said(api: Api) -> None:
    with freeze_time("2026-01-01", real_asyncio=True) as time:
        run = await settled(api)
        [first] = await claim(api)
        nack = {"lease": first["lease"], "retry_in_s": 30, "error": "out of memory"}
        given_back = await api.post(f"/resumes/{run['id']}/nack", nack)
        assert given_back == IsPartialDict(status="settled", error="out of memory")
        time.tick(29)
        assert await claim(api) == []
        time.tick(1)
        [second] = await claim(api)
    assert second["run"]["id"] == run["id"]


async def test_a_waiting_claim_ends_as_soon_as_a_run_is_settled(api: Api) -> None:
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(claim(api, wait_s=60))
        run = await settled(api)
    assert [resume["run"]["id"] for resume in waiting.result()] == [run["id"]]


async def test_each_host_gets_its_own_runs_and_no_more_than_it_wants(api: Api) -> None:
    ours = {(await settled(api))["id"] for _ in range(3)}
    other = await settled(api, host="motus")
    first = await claim(api, max=2)
    assert len(first) == 2
    assert {resume["run"]["id"] for resume in [*first, *await claim(api, max=2)]} == ours
    assert [resume["run"]["id"] for resume in await claim(api, host="motus")] == [other["id"]]


async def test_an_answer_as_deep_as_json_may_be_is_handed_out(api: Api) -> None:
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    call = {"tool_call_id": "c", "tool_name": "any", "args": {}}
    run = await api.open(body([call], policy=KEY_POLICY))
    await api.decide(run["gates"][0]["id"], "answer", values=deep)
    [resume] = await claim(api)
    assert resume["run"]["results"]["calls"]["c"]["value"] == deep


@pytest.mark.parametrize(
    ("path", "sent", "loc"),
    [
        ("claim", {"host": "A B"}, ["host"]),
        ("claim", {"max": 0}, ["max"]),
        ("claim", {"max": 101}, ["max"]),
        ("claim", {"max": "10"}, ["max"]),
        ("claim", {"wait_s": 61}, ["wait_s"]),
        ("claim", {"wait_s": True}, ["wait_s"]),
        ("claim", {"lease_s": 0.5}, ["lease_s"]),
        ("claim", {"lease_s": 3601}, ["lease_s"]),
        ("claim", {"limit": 5}, ["limit"]),
        ("{run}/ack", {}, ["lease"]),
        ("{run}/ack", {"lease": ""}, ["lease"]),
        ("{run}/ack", {"lease": None}, ["lease"]),
        ("{run}/nack", {"lease": "x", "retry_in_s": -1}, ["retry_in_s"]),
        ("{run}/nack", {"lease": "x", "retry_in_s": 86401}, ["retry_in_s"]),
        ("{run}/nack", {"lease": "x", "error": 5}, ["error"]),
    ],
)
async def test_what_is_out_of_bounds_is_refused_by_its_name(
    api: Api, path: str, sent: Json, loc: list[str]
) -> None:
    run = await settled(api)
    problem = await api.refused(
        "POST", f"/resumes/{path.format(run=run['id'])}", sent, status=422, slug="invalid"
    )
    assert problem["errors"][0]["loc"] == loc


async def test_a_run_that_nobody_claimed_cannot_be_acknowledged(api: Api) -> None:
    run = await settled(api)
    await api.refused(
        "POST", f"/resumes/{run['id']}/ack", {"lease": "lease_made_up"}, status=409, slug="lease-lost"
    )
