"""Gates over HTTP: list, read, decide."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from dirty_equals import IsPartialDict, IsStr
from freezegun import freeze_time

from core.api.paging import as_cursor
from core.engine import ResumeEngine
from core.gates import Action
from core.runs import Card
from tests.conftest import ANA, BEN
from tests.integration.conftest import KEY_POLICY, Api
from tests.runs import FOCUSED, Json, approval, body, question_call

CUSTOM = {"tool_call_id": "custom-1", "tool_name": "read_sensor", "args": {"sensor": 7}}


async def open_gate(api: Api, *, calls: list[Json] | None = None, **more: Any) -> str:
    """A run with an approval, or with the calls given; the id of its first gate."""
    run = await api.open(body(calls or [], [] if calls else [approval()], **{"policy": KEY_POLICY, **more}))
    gate: str = run["gates"][0]["id"]
    return gate


# read


async def test_a_gate_is_read_with_all_that_is_asked(api: Api) -> None:
    requester = {"team": "T1", "user": "U3"}
    run = await api.open(
        body(
            [question_call()],
            [approval(reason="Disk is 97% full", risk="high")],
            policy={"approvers": ["U1", "S2"], "quorum": 2, "reason": "on_reject"},
            requester=requester,
            title="Clean-up",
        )
    )
    question, permission = [await api.get(f"/gates/{gate['id']}") for gate in run["gates"]]
    assert question == {
        **run["gates"][0],
        "host": "api",
        "external_id": None,
        "title": "Clean-up",
        "place": IsPartialDict(channel="C1"),
        "requester": requester,
        "created_at": run["created_at"],
        "args": question_call()["args"],
        "reason": None,
        "risk": None,
        "policy": IsPartialDict(deciders=["channel"], quorum=1),
        "offered": ["answer", "decline"],
        "form": None,
        "link": None,
        "answer_schema": None,
        "args_schema": None,
        "saves": [],
        "edits": [],
        "votes": {"answer": 0, "decline": 0},
        "decision": None,
    }
    assert permission == IsPartialDict(
        args={"path": "/tmp/old.log"},
        reason="Disk is 97% full",
        risk="high",
        policy=IsPartialDict(deciders=["U1", "S2"], quorum=2, reason="on_reject"),
        offered=["approve", "deny"],
    )


async def test_a_gate_tells_which_message_shows_it(api: Api, engine: ResumeEngine) -> None:
    run = await api.open(body([question_call()], [approval()]))
    stored = await engine.run(run["id"])
    await engine.store.set_cards(stored, [Card(channel="C1", ts="1700000000.000100", gates=(1,))])
    gates = (await api.get(f"/runs/{run['id']}"))["gates"]
    assert [gate["card"] for gate in gates] == [None, {"channel": "C1", "ts": "1700000000.000100"}]


@pytest.mark.parametrize(
    "gate", ["gate_00_01M8MPM8FY82Y0KET4SETX4WP4_0", "gate_99_01M8MPM8FY82Y0KET4SETX4WP4_0", "x"]
)
async def test_there_is_no_such_gate(api: Api, gate: str) -> None:
    await api.refused("GET", f"/gates/{gate}", status=404, slug="not-found")
    await api.refused("POST", f"/gates/{gate}/decide", {"action": "deny"}, status=404, slug="not-found")


async def test_a_run_has_no_gate_beyond_its_last(api: Api) -> None:
    gate = await open_gate(api)
    await api.refused("GET", f"/gates/{gate[:-1]}1", status=404, slug="not-found")
    await api.refused("POST", f"/gates/{gate[:-1]}1/decide", {"action": "deny"}, status=404, slug="not-found")


# decide


async def test_an_approval_is_approved_by_a_key_that_the_policy_names(api: Api) -> None:
    gate = await open_gate(api)
    decided = await api.decide(gate, "approve", comment="Fine")
    assert decided["status"] == "approved"
    assert decided["offered"] == []
    assert decided["votes"] == {"approve": 1, "deny": 0}
    assert decided["decision"] == {
        "outcome": "approved",
        "by": [{"key": "ci"}],
        "decided_at": IsStr,
        "from": "api",
        "values": None,
        "comment": "Fine",
        "detail": None,
        "args_digest": decided["args_digest"],
    }
    assert await api.get(f"/gates/{gate}") == decided


async def test_a_key_may_say_for_whom_it_speaks(api: Api) -> None:
    gate = await open_gate(api)
    decided = await api.decide(gate, "deny", by={"team": "T1", "user": "U2"}, comment="wrong file")
    assert decided["decision"] == IsPartialDict(by=[{"team": "T1", "user": "U2"}], comment="wrong file")
    settled = next(line for line in await api.audit(gate=gate) if line["event"] == "gate.settled")
    assert settled["by"] == {"key": "ci", "for": {"team": "T1", "user": "U2"}}


async def test_a_question_is_answered_or_declined(api: Api) -> None:
    gate = await open_gate(api, calls=[question_call()])
    assert (await api.decide(gate, "answer", values=FOCUSED))["decision"]["values"] == FOCUSED
    gate = await open_gate(api, calls=[question_call()])
    assert (await api.decide(gate, "decline", comment="Not now"))["status"] == "declined"


@pytest.mark.parametrize("value", ["warm", 0, False, [], {"at": [1.5, None]}])
async def test_a_custom_gate_takes_any_json(api: Api, value: object) -> None:
    gate = await open_gate(api, calls=[CUSTOM])
    assert (await api.decide(gate, "answer", values=value))["decision"]["values"] == value


@pytest.mark.parametrize(
    ("decision", "loc"),
    [
        ({}, ["action"]),
        ({"action": "explode"}, ["action"]),
        ({"action": "approve"}, ["action"]),
        ({"action": "answer"}, ["values"]),
        ({"action": "answer", "values": {"answers": {"Which scope should be used?": ["Focused", "Broad"]}}},
         ["values", "answers", "Which scope should be used?"]),
        ({"action": "decline", "values": FOCUSED}, ["values"]),
        ({"action": "decline", "comment": "x" * 4097}, ["comment"]),
        ({"action": "decline", "by": {"team": "T1", "user": "ana"}}, ["by", "user"]),
        ({"action": "decline", "args_digest": "no"}, ["args_digest"]),
        ({"action": "decline", "surprise": 1}, ["surprise"]),
        ([], []),
    ],
)  # fmt: skip
async def test_a_decision_that_breaks_a_rule_is_told_where_and_settles_nothing(
    api: Api, decision: object, loc: list[str]
) -> None:
    gate = await open_gate(api, calls=[question_call()])
    problem = await api.refused("POST", f"/gates/{gate}/decide", decision, status=422, slug="invalid")
    assert problem["errors"][0]["loc"] == loc
    assert (await api.get(f"/gates/{gate}"))["status"] == "pending"


async def test_a_policy_may_want_a_reason(api: Api) -> None:
    gate = await open_gate(api, policy={**KEY_POLICY, "reason": "on_reject"})
    problem = await api.refused(
        "POST", f"/gates/{gate}/decide", {"action": "deny"}, status=422, slug="invalid"
    )
    assert problem["errors"][0]["loc"] == ["comment"]


async def test_a_key_that_the_policy_does_not_name_is_refused_and_that_is_written_down(api: Api) -> None:
    gate = await open_gate(api, policy={"approvers": ["anyone"]})
    await api.refused("POST", f"/gates/{gate}/decide", {"action": "deny"}, status=403, slug="not-allowed")
    assert (await api.get(f"/gates/{gate}"))["status"] == "pending"
    assert (await api.audit(gate=gate))[-1] == IsPartialDict(event="gate.refused", reason="not-allowed")


async def test_a_key_cannot_approve_for_the_requester(api: Api) -> None:
    person = {"team": "T1", "user": "U1"}
    gate = await open_gate(api, requester=person)
    decision = {"action": "approve", "by": person}
    await api.refused("POST", f"/gates/{gate}/decide", decision, status=403, slug="self-approval")


async def test_a_settled_gate_tells_how_it_was_settled(api: Api, engine: ResumeEngine) -> None:
    gate = await open_gate(api, policy={"approvers": ["U1", "key:ci"]})
    await engine.decide(gate, Action.APPROVE, by=ANA, via="slack")
    problem = await api.refused(
        "POST", f"/gates/{gate}/decide", {"action": "deny"}, status=409, slug="already-settled"
    )
    assert problem["results"]["approvals"]["call-2"]["by"] == [{"team": "T1", "user": "U1"}]


async def test_of_20_deciders_at_once_one_wins(api: Api) -> None:
    gate = await open_gate(api)
    path, decision = f"/gates/{gate}/decide", {"action": "approve"}
    responses = await asyncio.gather(*(api.send("POST", path, json=decision) for _ in range(20)))
    assert sorted(response.status for response in responses) == [200] + [409] * 19


async def test_a_decision_at_the_deadline_is_late_also_without_a_sweeper(api: Api) -> None:
    with freeze_time("2026-01-01", real_asyncio=True) as time:
        gate = await open_gate(api, timeout_s=60)
        time.tick(60)
        problem = await api.refused(
            "POST", f"/gates/{gate}/decide", {"action": "approve"}, status=409, slug="expired"
        )
    assert "2026-01-01T00:01:00.000Z" in problem["detail"]
    assert (await api.get(f"/gates/{gate}"))["decision"] == IsPartialDict(outcome="expired", by=[])


async def test_a_decision_on_other_arguments_than_the_stored_ones_is_refused(api: Api) -> None:
    gate = await open_gate(api)
    decision = {"action": "approve", "args_digest": "0" * 64}
    await api.refused("POST", f"/gates/{gate}/decide", decision, status=409, slug="arguments-changed")
    decision["args_digest"] = (await api.get(f"/gates/{gate}"))["args_digest"]
    assert (await api.post(f"/gates/{gate}/decide", decision))["status"] == "approved"


async def test_a_quorum_counts_the_votes_until_it_is_reached(api: Api, engine: ResumeEngine) -> None:
    gate = await open_gate(api, policy={"approvers": ["U2", "key:ci"], "quorum": 2})
    first = await api.decide(gate, "approve")
    assert (first["status"], first["votes"], first["decision"]) == (
        "pending",
        {"approve": 1, "deny": 0},
        None,
    )
    await engine.decide(gate, Action.APPROVE, by=BEN, via="slack")
    second = await api.get(f"/gates/{gate}")
    assert second["status"] == "approved"
    assert second["decision"]["by"] == [{"key": "ci"}, {"team": "T1", "user": "U2"}]


# list


async def listed(api: Api, **params: str) -> list[str]:
    page = await api.get("/gates", **params)
    assert page["next_cursor"] is None
    return [gate["tool_call_id"] for gate in page["gates"]]


async def test_pages_give_every_gate_once_newest_first(api: Api) -> None:
    with freeze_time("2026-01-01", real_asyncio=True) as time:
        for number in range(4):
            await api.open(body([question_call(f"q{number}a"), question_call(f"q{number}b")]))
            time.tick(1)
    pages, cursor = [], None
    while True:
        page = await api.get("/gates", limit="3", **({"cursor": cursor} if cursor else {}))
        pages.append([gate["tool_call_id"] for gate in page["gates"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == [["q3b", "q3a", "q2b"], ["q2a", "q1b", "q1a"], ["q0b", "q0a"]]


async def test_a_page_that_ends_with_the_last_gate_has_no_next(api: Api) -> None:
    await api.open(body([question_call("q1"), question_call("q2")]))
    assert await listed(api, limit="2") == ["q2", "q1"]


async def test_filters_narrow_the_list(api: Api) -> None:
    requester = {"team": "T1", "user": "U7"}
    await api.open(body([question_call("plain")], place={"channel": "C2"}))
    await api.open(body([], [approval("asked", tool_name="Drop_Table")], requester=requester, host="motus"))
    await api.open(body([question_call("named")], title="Nightly ÄRA clean-up", external_id="thread-7"))
    gate = await open_gate(api, policy={**KEY_POLICY, "approvers": ["key:ci", "T2:U8"]})
    await api.decide(gate, "deny")
    assert await listed(api, channel="C2") == ["plain"]
    assert await listed(api, host="motus") == ["asked"]
    assert await listed(api, user="U7") == ["asked"]
    assert await listed(api, user="T1:U7") == ["asked"]
    assert await listed(api, user="U8") == ["call-2"]
    assert await listed(api, user="T1:U8") == []
    assert await listed(api, status="denied") == ["call-2"]
    assert sorted(await listed(api, status="pending")) == ["asked", "named", "plain"]
    assert await listed(api, q="drop_") == ["asked"]
    assert await listed(api, q="ära") == ["named"]
    assert await listed(api, q="THREAD-7", status="pending", channel="C1") == ["named"]
    assert await listed(api, q="nothing like it") == []


async def test_an_admin_is_found_where_admins_decide(api: Api) -> None:
    await api.open(body([], [approval("for-admins")], policy={}))
    assert await listed(api, user="U9") == ["for-admins"]


@pytest.mark.parametrize(
    ("params", "status", "slug"),
    [
        ({"limit": "0"}, 422, "invalid"),
        ({"limit": "201"}, 422, "invalid"),
        ({"limit": "many"}, 400, "malformed"),
        ({"limit": "1.5"}, 400, "malformed"),
        ({"status": "open"}, 422, "invalid"),
        ({"channel": "general"}, 422, "invalid"),
        ({"host": "A B"}, 422, "invalid"),
        ({"user": "ana"}, 422, "invalid"),
        ({"q": ""}, 422, "invalid"),
        ({"chanel": "C1"}, 422, "invalid"),
        ({"cursor": "!"}, 400, "malformed"),
        ({"cursor": "bm90IG9uZQ"}, 400, "malformed"),
        ({"cursor": "é"}, 400, "malformed"),
        ({"cursor": ""}, 400, "malformed"),
        ({"cursor": as_cursor(1, "gate_ZZ")}, 400, "malformed"),
        ({"cursor": as_cursor(1, f"gate_01_{'Z' * 26}_0")}, 400, "malformed"),
    ],
)
async def test_a_filter_that_is_none_is_refused_by_its_name(
    api: Api, params: dict[str, str], status: int, slug: str
) -> None:
    problem = await api.refused("GET", "/gates", params=params, status=status, slug=slug)
    assert problem["errors"][0]["loc"] == list(params)
