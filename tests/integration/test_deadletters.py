"""Runs that their hosts do not take up: they end, are listed with the reason, put back, or decided again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dirty_equals import IsPartialDict
from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory
from redis.asyncio import Redis

from core.agenda import Worker
from core.engine import ResumeEngine
from core.errors import Expired, LeaseLost, NotAllowed, NotFailed, NotFound
from core.gates import Action
from core.policy import Key, Person
from core.resumes import MAX_TRIES, Resume
from core.runs import Run
from core.store.keys import Keys
from tests.conftest import ANA, BEN, HOME
from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import FOCUSED, Json, approval, body, question_call, run_request
from tests.stores import Lossy, engine_on, events

CI = Key(key="ci")
ADMIN = Person(team=HOME, user="U9")
BY_CI = {"by": CI, "via": "api"}
START = datetime(2026, 1, 1, tzinfo=UTC)
NewEngine = Callable[..., ResumeEngine]


@pytest.fixture
def clock() -> Iterator[FrozenDateTimeFactory]:
    with freeze_time(START, real_asyncio=True) as moved:
        yield moved


async def settled(engine: ResumeEngine, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request([question_call()], [approval()], **more), owner="ci")
    return await decided(engine, run)


async def decided(engine: ResumeEngine, run: Run) -> Run:
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    return await engine.decide(run.gates[1].id, Action.APPROVE, by=BEN, via="slack")


async def claimed(engine: ResumeEngine) -> Resume | None:
    found = await engine.resumes.claim("api", limit=10, wait_s=0, lease_s=10)
    return found[0] if found else None


async def claim(engine: ResumeEngine) -> Resume:
    resume = await claimed(engine)
    assert resume
    return resume


async def failed(engine: ResumeEngine, **more: Any) -> Run:
    run = await settled(engine, **more)
    return await engine.resumes.refuse(run.id, (await claim(engine)).lease, by=CI, error="no such thread")


async def named(engine: ResumeEngine, run: Run, event: str) -> list[Json]:
    return [item for item in await events(engine, run.id) if item["event"] == event]


async def listed(engine: ResumeEngine) -> list[str]:
    return [run.id async for _, run in engine.dead_letters.listed()]


# how a run ends there


async def test_a_run_whose_lease_always_runs_out_fails_after_twenty_times(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine)
    for number in range(1, MAX_TRIES + 1):
        assert (await claim(engine)).tries == number
        clock.tick(10)
        assert await listed(engine) == []
    assert await claimed(engine) is None
    run = await engine.run(run.id)
    assert (run.status, run.error) == ("failed", "The lease ran out 20 times.")
    assert await named(engine, run, "run.failed") == [
        IsPartialDict({"by": None, "from": "clock", "reason": run.error})
    ]
    assert await listed(engine) == [run.id]
    clock.tick(timedelta(days=1))
    assert await claimed(engine) is None


async def test_a_run_that_is_always_given_back_fails_after_twenty_times_with_the_last_error(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine)
    for number in range(1, MAX_TRIES + 1):
        resume = await claim(engine)
        run = await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=0, error=f"down {number}")
        assert run.status == ("settled" if number < MAX_TRIES else "failed")
        # the same word again, for its reply was lost
        assert await engine.resumes.nack(run.id, resume.lease, by=CI, retry_in_s=0, error="down") == run
    assert run.error == "down 20"
    assert await named(engine, run, "run.failed") == [
        IsPartialDict({"by": {"key": "ci"}, "from": "host", "reason": "down 20"})
    ]
    assert await claimed(engine) is None


async def test_the_last_error_is_kept_when_the_rest_of_the_leases_run_out(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine)
    await engine.resumes.nack(run.id, (await claim(engine)).lease, by=CI, retry_in_s=0, error="out of memory")
    for _ in range(MAX_TRIES):
        await claimed(engine)
        clock.tick(10)
    assert (await engine.run(run.id)).error == "out of memory"
    assert (await named(engine, run, "run.failed"))[0]["reason"] == "out of memory"


async def test_a_run_that_is_given_back_without_a_word_says_so(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine)
    for _ in range(MAX_TRIES):
        run = await engine.resumes.nack(run.id, (await claim(engine)).lease, by=CI, retry_in_s=0)
    assert run.error == "Given back without a reason, after it was handed out 20 times."


async def test_a_run_that_cannot_be_read_ends_too_and_is_left_out_of_the_list(
    engine: ResumeEngine, redis: Redis, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine)
    await redis.hset(Keys(int(run.id[4:6])).run(run.id), "0:decision", "{}")
    for _ in range(MAX_TRIES + 1):
        assert await claimed(engine) is None
        clock.tick(10)
    assert await redis.zcard(Keys(int(run.id[4:6])).queue("api")) == 0
    sound = await failed(engine)
    assert await listed(engine) == [sound.id]


async def test_a_host_that_refuses_for_good_ends_it_at_once_with_its_reason(engine: ResumeEngine) -> None:
    run = await settled(engine)
    resume = await claim(engine)
    run = await engine.resumes.refuse(run.id, resume.lease, by=CI, error="no such thread")
    assert (run.status, run.error) == ("failed", "no such thread")
    assert await engine.resumes.refuse(run.id, resume.lease, by=CI, error="no such thread") == run
    assert await named(engine, run, "run.failed") == [
        IsPartialDict(by={"key": "ci"}, reason="no such thread")
    ]
    with pytest.raises(LeaseLost):
        await engine.resumes.ack(run.id, resume.lease, by=CI)
    assert await claimed(engine) is None


async def test_a_host_that_had_moved_on_says_lost(engine: ResumeEngine) -> None:
    run = await settled(engine)
    run = await engine.resumes.lose(run.id, (await claim(engine)).lease, by=CI, error="answered elsewhere")
    assert (run.status, run.error) == ("lost", "answered elsewhere")
    assert await named(engine, run, "run.lost") == [IsPartialDict(by={"key": "ci"}, reason=run.error)]
    assert await named(engine, run, "run.failed") == []
    assert await listed(engine) == [run.id]


# put back


async def test_a_dead_letter_that_is_put_back_comes_with_the_same_bytes_and_key(engine: ResumeEngine) -> None:
    run = await settled(engine, state="opaque")
    first = await claim(engine)
    for lease, word in ((first.lease, "failed"), (None, "lost")):
        lease = lease or (await claim(engine)).lease
        ended = await (
            engine.resumes.refuse(run.id, lease, by=CI, error="no")
            if word == "failed"
            else engine.resumes.lose(run.id, lease, by=CI)
        )
        assert ended.status == word
        run = await engine.dead_letters.requeue(run.id, by=ADMIN, via="slack")
        assert run.status == "settled"
        assert await listed(engine) == []
    again = await claim(engine)
    assert (again.body, again.key, again.state) == (first.body, first.key, "opaque")
    assert again.tries == 1
    assert (
        await named(engine, run, "run.requeued")
        == [IsPartialDict({"by": ADMIN.model_dump(), "from": "slack"})] * 2
    )
    assert (await engine.resumes.ack(run.id, again.lease, by=CI)).status == "resumed"


async def test_a_waiting_claim_gets_what_is_put_back_at_once(engine: ResumeEngine) -> None:
    run = await failed(engine)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(engine.resumes.claim("api", limit=1, wait_s=60, lease_s=10))
        await engine.dead_letters.requeue(run.id, **BY_CI)
    assert [resume.run.id for resume in waiting.result()] == [run.id]


@pytest.mark.parametrize("verb", ["requeue", "reopen"])
async def test_what_has_not_failed_is_left_alone(engine: ResumeEngine, verb: str) -> None:
    act = getattr(engine.dead_letters, verb)
    run, _ = await engine.suspend(run_request([question_call()], [approval()]), owner="ci")
    with pytest.raises(NotFailed, match="it is waiting"):
        await act(run.id, **BY_CI)
    await decided(engine, run)
    with pytest.raises(NotFailed, match="it is settled"):
        await act(run.id, **BY_CI)
    resume = await claim(engine)
    with pytest.raises(NotFailed, match="it is resuming"):
        await act(run.id, **BY_CI)
    await engine.resumes.ack(run.id, resume.lease, by=CI)
    with pytest.raises(NotFailed, match="it is resumed"):
        await act(run.id, **BY_CI)
    with pytest.raises(NotFound):
        await act("run_00_01M8MPM8FY82Y0KET4SETX4WP4", **BY_CI)
    assert await named(engine, run, "run.requeued") == await named(engine, run, "run.reopened") == []


@pytest.mark.parametrize("verb", ["requeue", "reopen"])
async def test_only_admins_and_keys_may(engine: ResumeEngine, verb: str) -> None:
    run = await failed(engine)
    with pytest.raises(NotAllowed):
        await getattr(engine.dead_letters, verb)(run.id, by=ANA, via="slack")
    assert (await engine.run(run.id)).status == "failed"
    await getattr(engine.dead_letters, verb)(run.id, by=ADMIN, via="slack")


@pytest.mark.parametrize("verb", ["requeue", "reopen"])
async def test_a_call_whose_reply_was_lost_counts_once(
    engine: ResumeEngine, redis_url: str, tmp_path: Path, verb: str
) -> None:
    run = await failed(engine)
    path = redis_url.removeprefix("unix://").partition("?")[0]
    async with Lossy(path, tmp_path).serving() as lossy, engine_on(lossy.url) as far:
        lossy.lose("EVALSHA")
        await getattr(far.dead_letters, verb)(run.id, **BY_CI)
        assert lossy.lost == 1
    event = {"requeue": "run.requeued", "reopen": "run.reopened"}[verb]
    assert len(await named(engine, run, event)) == 1


# decided again


async def test_a_failed_run_is_decided_again_with_a_key_of_its_own(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await settled(engine, timeout_s=600)
    first = await claim(engine)
    await engine.resumes.refuse(run.id, first.lease, by=CI, error="no")
    clock.tick(timedelta(days=2))
    run = await engine.dead_letters.reopen(run.id, **BY_CI)
    assert (run.status, run.attempt, run.open, run.results()) == ("waiting", 2, True, None)
    for gate in run.gates:
        assert (gate.status, gate.decision, gate.votes, gate.timeout_s) == ("pending", None, (), 600)
        assert gate.deadline == round(datetime.now(UTC).timestamp() * 1000) + 600_000
    assert await claimed(engine) is None
    await engine.decide(run.gates[0].id, Action.DECLINE, by=BEN, via="slack")
    run = await engine.decide(run.gates[1].id, Action.DENY, by=ANA, via="slack", comment="not again")
    second = await claim(engine)
    assert (first.key, second.key) == (f"{run.id}:1", f"{run.id}:2")
    assert second.run.results()["approvals"]["call-2"]["reason"] == "not again"
    assert second.body != first.body
    assert second.tries == 1
    assert (await engine.resumes.ack(run.id, second.lease, by=CI)).status == "resumed"


async def test_the_decisions_of_before_stay_in_the_audit(engine: ResumeEngine) -> None:
    run = await failed(engine)
    before = await events(engine, run.id)
    await engine.dead_letters.reopen(run.id, **BY_CI)
    after = await events(engine, run.id)
    assert after[: len(before)] == before
    assert [event["event"] for event in after[len(before) :]] == [
        "run.reopened",
        "gate.opened",
        "gate.opened",
    ]
    assert after[len(before)] == IsPartialDict({"by": {"key": "ci"}, "from": "api", "attempt": 2})
    assert after[-1] == IsPartialDict(kind="approval", args_digest=run.gates[1].doc.args_digest)


async def test_a_reopened_run_that_nobody_decides_expires_by_its_own_time(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    run = await failed(engine)
    clock.tick(timedelta(days=5))
    run = await engine.dead_letters.reopen(run.id, timeout_s=90, **BY_CI)
    clock.tick(89)
    worker = Worker(engine.store, engine.bell, {})
    await worker.run_once()
    assert (await engine.run(run.id)).open
    clock.tick(1)
    with pytest.raises(Expired):
        await engine.decide(run.gates[0].id, Action.DECLINE, by=ANA, via="slack")
    await worker.run_once()
    run = await engine.run(run.id)
    assert run.results()["calls"]["question-1"]["message"] == "No answer within 90 s."
    assert (await claim(engine)).key == f"{run.id}:2"


async def test_people_start_again_from_what_the_agent_asked(engine: ResumeEngine) -> None:
    """Votes, drafts and edits are of the attempt in which they were made; who may decide stays as it was changed."""
    policy = {"approvers": ["U1", "U2", "U3"], "quorum": 2, "edits": True}
    run, _ = await engine.suspend(run_request([question_call()], [approval()], policy=policy), owner="ci")
    question, permission = (gate.id for gate in run.gates)
    await engine.amendments.reassign(question, ["U2"], by=ADMIN, via="slack")
    await engine.draft(question, BEN, {"0": ["Broad"]})
    edited = {"override_args": {"path": "/tmp/new.log"}}
    await engine.decide(permission, Action.APPROVE, by=ANA, via="slack", values=edited)
    await engine.cancel(run.id, None, **BY_CI)
    await engine.resumes.refuse(run.id, (await claim(engine)).lease, by=CI, error="no")
    fresh = await engine.dead_letters.reopen(run.id, **BY_CI)
    asked, allowed = fresh.gates
    assert (asked.drafts, asked.policy.deciders) == ({}, ("U2",))
    assert (allowed.votes, allowed.edits, allowed.arguments) == ((), (), {"path": "/tmp/old.log"})
    assert allowed.digest == run.gates[1].doc.args_digest
    assert all(gate.rev > old.rev for gate, old in zip(fresh.gates, run.gates, strict=True))


async def test_a_reopened_run_is_in_the_lists_of_what_is_pending_at_its_old_place(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    old = await failed(engine)
    clock.tick(60)
    new, _ = await engine.suspend(run_request(), owner="ci")
    clock.tick(60)
    old = await engine.dead_letters.reopen(old.id, **BY_CI)
    pending = [gate.id async for _, _, gate in engine.gates(only_open=True)]
    assert pending == [new.gates[0].id, *sorted((gate.id for gate in old.gates), reverse=True)]


async def test_reminders_and_an_escalation_that_was_not_due_come_again(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, redis: Redis
) -> None:
    run = await failed(engine, remind_after_s=[60, 120], escalate={"after_s": 300, "approvers": ["U3"]})
    clock.tick(3600)
    now = round(datetime.now(UTC).timestamp() * 1000)
    await engine.dead_letters.reopen(run.id, **BY_CI)
    agenda = dict(await redis.zrange(Keys(int(run.id[4:6])).agenda, 0, -1, withscores=True))
    assert agenda[f"remind:{run.id}"] == now + 60_000
    assert agenda[f"escalate:{run.id}"] == now + 300_000


async def test_a_run_can_be_decided_again_as_often_as_its_host_refuses(engine: ResumeEngine) -> None:
    run = await failed(engine)
    for attempt in (2, 3, 4):
        run = await engine.dead_letters.reopen(run.id, **BY_CI)
        await decided(engine, run)
        resume = await claim(engine)
        assert resume.key == f"{run.id}:{attempt}"
        await engine.resumes.refuse(run.id, resume.lease, by=CI, error="no")
    assert len(await named(engine, run, "run.failed")) == 4


async def test_what_was_lost_cannot_be_decided_again(engine: ResumeEngine) -> None:
    run = await settled(engine)
    await engine.resumes.lose(run.id, (await claim(engine)).lease, by=CI)
    with pytest.raises(NotFailed, match="it is lost"):
        await engine.dead_letters.reopen(run.id, **BY_CI)


# over HTTP


async def over_http(api: Api, nack: Json, **more: Any) -> Json:
    """A run that its host gave back with this word. Returns it as the API shows it then."""
    run = await api.open(body([question_call()], policy=KEY_POLICY, **more))
    await api.post(
        f"/runs/{run['id']}/resume", {"calls": {"question-1": {"status": "returned", "value": FOCUSED}}}
    )
    [resume] = (await api.post("/resumes/claim", {"host": more.get("host", "api")}))["resumes"]
    ended: Json = await api.post(f"/resumes/{run['id']}/nack", {"lease": resume["lease"], **nack})
    return ended


async def test_a_host_says_final_or_lost_over_http(api: Api) -> None:
    refused = await over_http(api, {"final": True, "error": "no such thread"})
    assert refused == IsPartialDict(status="failed", error="no such thread")
    lost = await over_http(api, {"lost": True})
    assert lost == IsPartialDict(status="lost", error=None)
    assert await api.get("/runs") == {"runs": [lost, refused], "next_cursor": None}
    assert (await api.get("/runs", status="failed"))["runs"] == [refused]
    assert (await api.get("/runs", status="lost"))["runs"] == [lost]


@pytest.mark.parametrize(
    "nack",
    [{"final": True}, {"final": True, "error": "  "}, {"final": True, "lost": True, "error": "e"}, {"final": 1},
     {"lost": "x"}],
)  # fmt: skip
async def test_a_word_that_says_nothing_or_two_things_is_refused(api: Api, nack: Json) -> None:
    path = "/resumes/run_00_01M8MPM8FY82Y0KET4SETX4WP4/nack"
    await api.refused("POST", path, {"lease": "x", **nack}, status=422, slug="invalid")


async def test_the_list_has_pages_the_newest_end_first(api: Api) -> None:
    with freeze_time(START, real_asyncio=True) as time:
        ended = []
        for number in range(7):
            host = "motus" if number == 3 else "api"
            ended.append((await over_http(api, {"final": True, "error": "e"}, host=host))["id"])
            time.tick(1)
    seen, cursor = [], None
    while True:
        page = await api.get("/runs", limit="2", **({"cursor": cursor} if cursor else {}))
        seen += [run["id"] for run in page["runs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ended[::-1]
    assert [run["id"] for run in (await api.get("/runs", host="motus"))["runs"]] == [ended[3]]
    gates_cursor = (await api.get("/gates", limit="1"))["next_cursor"]
    await api.refused("GET", "/runs", params={"cursor": gates_cursor}, status=400, slug="malformed")
    await api.refused("GET", "/runs", params={"status": "waiting"}, status=422, slug="invalid")


async def test_a_dead_letter_is_put_back_over_http(api: Api) -> None:
    run = await over_http(api, {"final": True, "error": "e"})
    assert (await api.post(f"/runs/{run['id']}/requeue"))["status"] == "settled"
    await api.refused("POST", f"/runs/{run['id']}/requeue", status=409, slug="not-failed")
    assert len((await api.post("/resumes/claim", {}))["resumes"]) == 1


async def test_a_failed_run_is_reopened_over_http(api: Api) -> None:
    run = await over_http(api, {"final": True, "error": "e"})
    with freeze_time("2099-01-01", real_asyncio=True):
        again = await api.post(f"/runs/{run['id']}/reopen", {"timeout_s": 60})
    assert again == IsPartialDict(status="waiting", attempt=2, results=None, error="e")
    assert again["gates"][0] == IsPartialDict(status="pending", deadline="2099-01-01T00:01:00.000Z")
    await api.refused("POST", f"/runs/{run['id']}/reopen", status=409, slug="not-failed")
    await api.refused("POST", f"/runs/{run['id']}/reopen", {"timeout_s": 0}, status=422, slug="invalid")
    lost = await over_http(api, {"lost": True})
    await api.refused("POST", f"/runs/{lost['id']}/reopen", {}, status=409, slug="not-failed")


# how long they are kept


async def test_retention_takes_a_dead_letter_with_all_of_it(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, redis: Redis
) -> None:
    run = await failed(engine)
    clock.tick(timedelta(days=30))
    await trim(engine, run)
    assert await listed(engine) == []
    assert await redis.zcard(Keys(int(run.id[4:6])).dead) == 0
    with pytest.raises(NotFound):
        await engine.run(run.id)


@pytest.mark.parametrize("verb", ["requeue", "reopen"])
async def test_what_was_put_back_or_reopened_is_kept_from_then_on(
    engine: ResumeEngine, clock: FrozenDateTimeFactory, verb: str
) -> None:
    run = await failed(engine, timeout_s=30 * 86_400)
    clock.tick(timedelta(days=29))
    await getattr(engine.dead_letters, verb)(run.id, **BY_CI)
    clock.tick(timedelta(days=2))
    await trim(engine, run)
    assert (await engine.run(run.id)).status == ("settled" if verb == "requeue" else "waiting")


async def trim(engine: ResumeEngine, run: Run) -> None:
    """What the agenda does about runs that were settled 30 days ago."""
    before = datetime.now(UTC) - timedelta(days=30) + timedelta(milliseconds=1)
    await engine.store.forget(int(run.id[4:6]), round(before.timestamp() * 1000), 10)
