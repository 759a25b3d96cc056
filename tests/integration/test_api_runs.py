"""Runs over HTTP: create, read, wait, cancel, answer as a batch."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import pytest
from dirty_equals import IsPartialDict, IsStr
from freezegun import freeze_time
from redis.asyncio import Redis

from core.engine import ResumeEngine
from tests.integration.conftest import KEY_POLICY, SECRETS, Api
from tests.runs import FOCUSED, Json, approval, ask, body, question_call

TIME = IsStr(regex=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def batch(**more: Any) -> Json:
    """A question and an approval that the key may settle."""
    return body([question_call()], [approval()], policy=KEY_POLICY, **more)


def answers(**more: Any) -> Json:
    return {
        "calls": {"question-1": {"status": "returned", "value": FOCUSED}},
        "approvals": {"call-2": {"action": "approve"}},
        **more,
    }


async def nothing_stored(api: Api) -> bool:
    return not (await api.get("/gates"))["gates"] and not await api.audit()


# create


async def test_a_run_is_created_with_its_gates_and_where_to_read_it(api: Api) -> None:
    response = await api.send(
        "POST", "/runs", json=batch(external_id="thread-7/run-3", title="Nightly clean-up")
    )
    assert response.status == 201
    run = await response.json()
    assert run == {
        "id": IsStr(regex=r"run_0\d_[0-9A-Z]{26}"),
        "status": "waiting",
        "host": "api",
        "external_id": "thread-7/run-3",
        "title": "Nightly clean-up",
        "created_at": TIME,
        "gates": [
            {
                "id": IsStr(regex=r"gate_0\d_[0-9A-Z]{26}_0"),
                "run_id": run["id"],
                "tool_call_id": "question-1",
                "tool_name": "ask_user_question",
                "kind": "question",
                "status": "pending",
                "deadline": TIME,
                "args_digest": None,
                "card": None,
            },
            IsPartialDict(
                tool_call_id="call-2",
                kind="approval",
                status="pending",
                args_digest=IsStr(regex="[0-9a-f]{64}"),
            ),
        ],
        "results": None,
        "error": None,
        "attempt": 1,
    }
    assert response.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert await api.get(f"/runs/{run['id']}") == run


async def test_the_deadline_is_the_time_out_after_the_creation(api: Api) -> None:
    with freeze_time("2026-01-01T00:00:00Z", real_asyncio=True):
        run = await api.open(body(timeout_s=3600))
    assert run["created_at"] == "2026-01-01T00:00:00.000Z"
    assert run["gates"][0]["deadline"] == "2026-01-01T01:00:00.000Z"


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"pending": None}, ["pending"]),
        ({"pending": {}}, ["pending"]),
        ({"surprise": 1}, ["surprise"]),
        ({"host": "Not A Host"}, ["host"]),
        ({"title": "x" * 151}, ["title"]),
        ({"external_id": "x" * 256}, ["external_id"]),
        ({"state": 1}, ["state"]),
        ({"state": "x" * (1024 * 1024 + 1)}, ["state"]),
        ({"timeout_s": 0}, ["timeout_s"]),
        ({"timeout_s": 30 * 86400 + 1}, ["timeout_s"]),
        ({"place": {"channel": "general"}}, ["place", "channel"]),
        ({"place": {}}, ["place"]),
        ({"requester": {"team": "T1"}}, ["requester", "user"]),
        ({"policy": {"approvers": ["@everyone"]}}, ["policy", "approvers", 0]),
        ({"policy": {"quorum": 0}}, ["policy", "quorum"]),
        ({"pending": {"calls": [question_call(), question_call()]}}, ["pending"]),
        ({"pending": {"calls": [{"tool_name": "x", "args": {}}]}}, ["pending", "calls", 0, "tool_call_id"]),
        ({"pending": {"calls": [question_call("q", ask("A?", "one"))]}},
         ["pending", "calls", 0, "args", "questions", 0, "options"]),
        ({"pending": {"approvals": [approval(risk="none")]}}, ["pending", "approvals", 0, "risk"]),
        ({"pending": {"approvals": [approval(args=[])]}}, ["pending", "approvals", 0, "args"]),
    ],
)  # fmt: skip
async def test_a_broken_rule_is_told_with_its_place_and_nothing_is_stored(
    api: Api, change: Json, loc: list[str | int]
) -> None:
    problem = await api.refused("POST", "/runs", body(**change), status=422, slug="invalid")
    assert loc in [error["loc"] for error in problem["errors"]]
    assert all(error["msg"] and error["type"] for error in problem["errors"])
    assert await nothing_stored(api)


async def test_a_run_that_nobody_could_decide_is_refused(api: Api) -> None:
    undecidable = body([], [approval()], policy={"approvers": []})
    await api.refused("POST", "/runs", undecidable, status=422, slug="nobody-may-decide")
    for policy in ({"responders": ["anyone"]}, {}):
        homeless = body(place=None, policy=policy)
        await api.refused("POST", "/runs", homeless, status=422, slug="no-place")
    assert await nothing_stored(api)


@pytest.mark.parametrize("approvals", [0, 1])
async def test_a_run_owns_at_most_128_gates(api: Api, approvals: int) -> None:
    def of(count: int) -> Json:
        calls = [question_call(f"q{n}") for n in range(count - approvals)]
        return body(calls, [approval()] * approvals, policy=KEY_POLICY)

    problem = await api.refused("POST", "/runs", of(129), status=422, slug="invalid")
    assert problem["errors"][0]["loc"] == ["pending"]
    assert "1 to 128" in problem["detail"]
    assert await nothing_stored(api)
    assert len((await api.open(of(128)))["gates"]) == 128


# Idempotency-Key


async def test_the_same_key_and_body_give_the_first_run(api: Api) -> None:
    key = {"Idempotency-Key": "~a-key!"}
    first = await api.post("/runs", batch(), status=201, **key)
    response = await api.send("POST", "/runs", json=batch(), headers=key)
    assert response.status == 200
    assert await response.json() == first
    assert response.headers["Location"] == f"/api/v1/runs/{first['id']}"
    assert len((await api.get("/gates"))["gates"]) == 2


async def test_ten_creations_at_once_with_one_key_make_one_run(api: Api) -> None:
    sent = [api.send("POST", "/runs", json=batch(), headers={"Idempotency-Key": "k"}) for _ in range(10)]
    responses = await asyncio.gather(*sent)
    assert sorted(response.status for response in responses) == [200] * 9 + [201]
    assert len({(await response.json())["id"] for response in responses}) == 1


async def test_the_same_key_with_another_body_is_refused(api: Api) -> None:
    await api.post("/runs", batch(), status=201, **{"Idempotency-Key": "k"})
    await api.refused(
        "POST",
        "/runs",
        batch(title="another"),
        headers={"Idempotency-Key": "k"},
        status=409,
        slug="idempotency-key-reused",
    )
    assert len((await api.get("/gates"))["gates"]) == 2


async def test_an_idempotency_key_belongs_to_its_api_key(api: Api, engine: ResumeEngine) -> None:
    # one that leads both into one partition, where nothing else keeps them apart
    def parts(key: str) -> set[int]:
        return {zlib.crc32(f"{name} {key}".encode()) % engine.store.partitions for name in SECRETS}

    key = {"Idempotency-Key": next(k for k in map(str, range(1000)) if len(parts(k)) == 1)}
    first = await api.post("/runs", batch(), status=201, **key)
    second = await api.as_key("bo.t_2").post("/runs", batch(title="another"), status=201, **key)
    assert first["id"][:6] == second["id"][:6]
    assert first["id"] != second["id"]
    assert (await api.post("/runs", batch(), **key))["id"] == first["id"]


@pytest.mark.parametrize("key", ["", "two words", "é", "x" * 256])
async def test_an_idempotency_key_that_is_none_is_malformed(api: Api, key: str) -> None:
    headers = {"Idempotency-Key": key}
    problem = await api.refused("POST", "/runs", body(), headers=headers, status=400, slug="malformed")
    assert problem["errors"][0]["loc"] == ["Idempotency-Key"]
    assert await nothing_stored(api)


# read and wait


@pytest.mark.parametrize(
    "run_id", ["run_00_01M8MPM8FY82Y0KET4SETX4WP4", "run_99_01M8MPM8FY82Y0KET4SETX4WP4", "7", "%FF"]
)
async def test_there_is_no_such_run(api: Api, run_id: str) -> None:
    await api.refused("GET", f"/runs/{run_id}", status=404, slug="not-found")
    await api.refused("GET", f"/runs/{run_id}?wait=60", status=404, slug="not-found")
    await api.refused("POST", f"/runs/{run_id}/cancel", {}, status=404, slug="not-found")
    await api.refused("POST", f"/runs/{run_id}/resume", {}, status=404, slug="not-found")
    await api.refused("POST", f"/resumes/{run_id}/ack", {"lease": "l"}, status=404, slug="not-found")


async def test_a_wait_ends_as_soon_as_the_run_is_settled(api: Api) -> None:
    run = await api.open(batch())
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(api.get(f"/runs/{run['id']}", wait="60"))
        await api.post(f"/runs/{run['id']}/resume", answers())
    assert waiting.result()["status"] == "settled"
    assert waiting.result()["results"]["approvals"]["call-2"]["outcome"] == "approved"


async def test_a_wait_that_is_over_gives_the_run_as_it_is(api: Api) -> None:
    run = await api.open(batch())
    assert await api.get(f"/runs/{run['id']}", wait="0.01") == run


@pytest.mark.parametrize(
    ("query", "status", "slug", "loc"),
    [
        ("wait=soon", 400, "malformed", ["wait"]),
        ("wait=nan", 400, "malformed", ["wait"]),
        ("wait=", 400, "malformed", ["wait"]),
        ("wait=1&wait=2", 400, "malformed", ["wait"]),
        ("wait=-1", 422, "invalid", ["wait"]),
        ("wait=60.5", 422, "invalid", ["wait"]),
        ("wiat=5", 422, "invalid", ["wiat"]),
    ],
)
async def test_a_wait_is_a_number_of_0_to_60(
    api: Api, query: str, status: int, slug: str, loc: list[str]
) -> None:
    run = await api.open(body())
    problem = await api.refused("GET", f"/runs/{run['id']}?{query}", status=status, slug=slug)
    assert problem["errors"][0]["loc"] == loc


# cancel


async def test_a_cancelled_run_is_settled_as_cancelled_by_nobody(api: Api) -> None:
    run = await api.open(batch())
    run = await api.post(f"/runs/{run['id']}/cancel", {"reason": "The agent was stopped"})
    assert run["status"] == "settled"
    call, decided = run["results"]["calls"]["question-1"], run["results"]["approvals"]["call-2"]
    assert call == IsPartialDict(
        status="failed", outcome="cancelled", by=[], message="Cancelled: The agent was stopped"
    )
    assert decided == IsPartialDict(action="deny", outcome="cancelled", by=[])
    assert [gate["status"] for gate in run["gates"]] == ["cancelled", "cancelled"]
    problem = await api.refused("POST", f"/runs/{run['id']}/cancel", {}, status=409, slug="not-waiting")
    assert "settled" in problem["detail"]


async def test_a_cancel_needs_no_body(api: Api) -> None:
    run = await api.open(body())
    response = await api.send("POST", f"/runs/{run['id']}/cancel")
    assert (await response.json())["status"] == "settled"


# resume: the complete batch


async def test_a_batch_settles_all_gates_in_the_name_of_the_key(api: Api) -> None:
    run = await api.open(batch())
    run = await api.post(f"/runs/{run['id']}/resume", answers())
    assert run["status"] == "settled"
    by = [{"key": "ci"}]
    assert run["results"] == {
        "calls": {
            "question-1": {
                "status": "returned", "value": FOCUSED, "outcome": "answered", "by": by, "decided_at": TIME,
            }
        },
        "approvals": {
            "call-2": {
                "action": "approve", "outcome": "approved", "by": by, "decided_at": TIME,
                "args_digest": run["gates"][1]["args_digest"],
            }
        },
    }  # fmt: skip


async def test_a_failed_call_is_a_decline_and_a_denial_has_its_reason(api: Api) -> None:
    run = await api.open(batch())
    given = answers(
        calls={"question-1": {"status": "failed", "message": "Ask me tomorrow"}},
        approvals={"call-2": {"action": "deny", "reason": "wrong file"}},
    )
    run = await api.post(f"/runs/{run['id']}/resume", given)
    call, decided = run["results"]["calls"]["question-1"], run["results"]["approvals"]["call-2"]
    assert call == IsPartialDict(status="failed", outcome="declined", comment="Ask me tomorrow")
    assert decided == IsPartialDict(action="deny", outcome="denied", reason="wrong file")


@pytest.mark.parametrize(
    ("given", "missing", "unexpected"),
    [
        ({}, ["approvals.call-2", "calls.question-1"], []),
        ({"calls": answers()["calls"]}, ["approvals.call-2"], []),
        ({"calls": {"call-2": {"status": "returned", "value": 1}, **answers()["calls"]}},
         ["approvals.call-2"], ["calls.call-2"]),
        (answers(approvals={"call-2": {"action": "approve"}, "call-3": {"action": "approve"}}),
         [], ["approvals.call-3"]),
    ],
)  # fmt: skip
async def test_a_batch_covers_every_item_in_its_category_and_nothing_else(
    api: Api, given: Json, missing: list[str], unexpected: list[str]
) -> None:
    run = await api.open(batch())
    problem = await api.refused(
        "POST", f"/runs/{run['id']}/resume", given, status=422, slug="pending_coverage_mismatch"
    )
    assert (problem["missing"], problem["unexpected"]) == (missing, unexpected)
    assert await api.get(f"/runs/{run['id']}") == run


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"calls": {"question-1": {"status": "returned", "value": {"answers": {"Which?": "Focused"}}}}},
         ["calls", "question-1", "value", "answers", "Which?"]),
        ({"calls": {"question-1": {"status": "returned"}}}, ["calls", "question-1", "value"]),
        ({"calls": {"question-1": {"status": "failed"}}}, ["calls", "question-1", "message"]),
        ({"calls": {"question-1": {"status": "maybe"}}}, ["calls", "question-1"]),
        ({"calls": {"question-1": "Focused"}}, ["calls", "question-1"]),
        ({"calls": []}, ["calls"]),
        ({"approvals": {"call-2": {"action": "always"}}}, ["approvals", "call-2", "action"]),
        ({"approvals": {"call-2": {"action": "deny", "reason": "x" * 4097}}}, ["approvals", "call-2", "reason"]),
        ({"surprise": {}}, ["surprise"]),
    ],
)  # fmt: skip
async def test_one_wrong_answer_refuses_the_whole_batch(api: Api, change: Json, loc: list[str]) -> None:
    run = await api.open(batch())
    problem = await api.refused(
        "POST", f"/runs/{run['id']}/resume", answers(**change), status=422, slug="invalid"
    )
    assert problem["errors"][0]["loc"] == loc
    assert await api.get(f"/runs/{run['id']}") == run


async def test_a_missing_reason_is_told_at_the_approval(api: Api) -> None:
    run = await api.open(body([], [approval()], policy={**KEY_POLICY, "reason": "always"}))
    given = {"approvals": {"call-2": {"action": "approve"}}}
    problem = await api.refused("POST", f"/runs/{run['id']}/resume", given, status=422, slug="invalid")
    assert problem["errors"][0]["loc"] == ["approvals", "call-2", "reason"]


async def test_a_repeated_batch_is_told_the_results(api: Api) -> None:
    run = await api.open(batch())
    run = await api.post(f"/runs/{run['id']}/resume", answers())
    problem = await api.refused(
        "POST", f"/runs/{run['id']}/resume", answers(), status=409, slug="already-settled"
    )
    assert problem["results"] == run["results"]
    assert problem["run"] == run


async def test_a_batch_after_the_deadline_is_refused_also_without_a_sweeper(api: Api) -> None:
    with freeze_time("2026-01-01", real_asyncio=True) as time:
        run = await api.open(batch(timeout_s=60))
        time.tick(60)
        problem = await api.refused(
            "POST", f"/runs/{run['id']}/resume", answers(), status=409, slug="expired"
        )
    assert problem["results"]["calls"]["question-1"]["outcome"] == "expired"


async def test_the_policy_applies_to_a_key(api: Api) -> None:
    run = await api.open(batch())
    other = api.as_key("bo.t_2")
    await other.refused("POST", f"/runs/{run['id']}/resume", answers(), status=403, slug="not-allowed")
    assert await api.get(f"/runs/{run['id']}") == run
    refusal = (await api.audit(run=run["id"]))[-1]
    assert refusal == IsPartialDict(event="gate.refused", reason="not-allowed", by={"key": "bo.t_2"})
    run = await api.open(body(policy={"responders": ["anyone"]}))
    await other.post(f"/runs/{run['id']}/resume", {"calls": answers()["calls"]})


async def test_a_stored_run_that_cannot_be_read_is_a_500_that_tells_nothing(
    api: Api, redis: Redis, engine: ResumeEngine
) -> None:
    run = await api.open(body())
    await redis.hset(f"ag:{{{run['id'][4:6]}}}:run:{run['id']}", "doc", '{"secret": "hunter2"}')
    response = await api.client.get(
        f"/api/v1/runs/{run['id']}", headers={"Authorization": "Bearer ci-secret-0123456789"}
    )
    assert response.status == 500
    problem = await response.json()
    assert problem["type"] == "/problems/internal"
    assert "hunter2" not in str(problem)
    assert problem["request_id"] == response.headers["X-Request-Id"]
