"""Votes, quorums and duties on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.engine import ResumeEngine
from core.errors import AlreadySettled, AskgateError, CannotVerify, InvalidDecision, NotAllowed, SelfApproval
from core.gates import Action, Gate
from core.policy import Key, Person
from core.runs import Run
from tests.conftest import ANA, BEN, CHO, Members
from tests.runs import FOCUSED, approval, run_request
from tests.stores import events

ADMIN = Person(team="T1", user="U9")
GUEST = Person(team="T2", user="U9")
CI = Key(key="ci")
CD = Key(key="cd")
NewEngine = Callable[[], ResumeEngine]


async def asked(engine: ResumeEngine, *, approve: bool = True, **policy: Any) -> Gate:
    """A gate with this policy; an approval, or a question."""
    more = {"requester": policy.pop("requester", None), "place": policy.pop("place", {"channel": "C1"})}
    request = (
        run_request([], [approval()], policy=policy, **more)
        if approve
        else run_request(policy=policy, **more)
    )
    run, _ = await engine.suspend(request, owner="ci")
    return run.gates[0]


async def said(engine: ResumeEngine, gate: Gate, who: Person | Key, action: Action, **more: Any) -> Gate:
    run = await engine.decide(gate.id, action, by=who, via="slack", **more)
    return run.gates[0]


async def refused(engine: ResumeEngine, gate: Gate, who: Person | Key, action: Action, **more: Any) -> str:
    with pytest.raises(AskgateError) as refusal:
        await said(engine, gate, who, action, **more)
    return refusal.value.slug


# who


async def test_an_approval_without_a_policy_is_for_admins_alone(engine: ResumeEngine) -> None:
    gate = await asked(engine)
    assert gate.doc.policy.deciders == ("admins",)
    for who in (ANA, GUEST, CI):
        assert await refused(engine, gate, who, Action.APPROVE) == "not-allowed"
        assert await refused(engine, gate, who, Action.DENY) == "not-allowed"
    assert (await said(engine, gate, ADMIN, Action.APPROVE)).status == "approved"


async def test_a_question_without_a_policy_is_for_the_members_of_its_channel(engine: ResumeEngine) -> None:
    gate = await asked(engine, approve=False)
    for who in (ADMIN, GUEST, CI, Person(team="T2", user="U1")):
        assert await refused(engine, gate, who, Action.ANSWER, values=FOCUSED) == "not-allowed"
    assert (await said(engine, gate, CHO, Action.ANSWER, values=FOCUSED)).status == "answered"


async def test_a_question_in_a_dm_is_for_its_one_person(engine: ResumeEngine) -> None:
    gate = await asked(engine, approve=False, place={"user": "U2"})
    assert await refused(engine, gate, ANA, Action.DECLINE) == "not-allowed"
    assert (await said(engine, gate, BEN, Action.DECLINE)).status == "declined"


async def test_a_channel_that_cannot_be_looked_up_refuses_until_it_can(engine: ResumeEngine) -> None:
    gate = await asked(engine, approve=False, place={"channel": "C404"})
    assert await refused(engine, gate, ANA, Action.DECLINE) == "cannot-verify"
    with pytest.raises(CannotVerify):
        await engine.may_decide(await engine.run((await engine.gate(gate.id))[0].id), gate, ANA)
    assert isinstance(engine.directory, Members)
    engine.directory.channels["C404"] = {"U1"}
    assert (await said(engine, gate, ANA, Action.DECLINE)).status == "declined"


async def test_a_group_decides_by_who_is_in_it_at_that_moment(engine: ResumeEngine) -> None:
    assert isinstance(engine.directory, Members)
    engine.directory.groups["S1"] = set()
    gate = await asked(engine, approvers=["S1"])
    assert await refused(engine, gate, ANA, Action.APPROVE) == "not-allowed"
    engine.directory.groups["S1"] = {"U1"}
    assert (await said(engine, gate, ANA, Action.APPROVE)).status == "approved"


async def test_somebody_of_another_workspace_decides_only_by_full_name(engine: ResumeEngine) -> None:
    assert isinstance(engine.directory, Members)
    engine.directory.channels["C1"].add("U9")
    for deciders in (["anyone"], ["channel"], ["U9"]):
        gate = await asked(engine, approvers=deciders)
        assert await refused(engine, gate, GUEST, Action.APPROVE) == "not-allowed"
    gate = await asked(engine, approvers=["T2:U9"])
    assert await refused(engine, gate, ADMIN, Action.APPROVE) == "not-allowed"
    assert (await said(engine, gate, GUEST, Action.APPROVE)).status == "approved"


async def test_a_key_decides_as_itself_or_for_a_person_and_the_audit_has_both(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["key:ci", "U2"], quorum=2)
    await said(engine, gate, CI, Action.APPROVE, speaks_for=ANA)
    gate = await said(engine, gate, BEN, Action.APPROVE)
    assert gate.decision is not None
    assert gate.decision.by == (ANA, BEN)
    told = await events(engine, (await engine.gate(gate.id))[0].id)
    assert [e["by"] for e in told if e["event"] == "gate.voted"] == [{"key": "ci", "for": ANA.model_dump()}]


async def test_a_key_has_one_vote_whomever_it_names(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["key:ci", "U3"], quorum=2)
    for person in (ANA, BEN, None, ANA, BEN):
        gate = await said(engine, gate, CI, Action.APPROVE, speaks_for=person)
        assert gate.pending
        assert [vote.by for vote in gate.votes] == [person or CI]
    gate = await said(engine, gate, CHO, Action.APPROVE)
    assert gate.decision is not None
    assert gate.decision.by == (BEN, CHO)


@pytest.mark.parametrize("herself_first", [True, False])
async def test_a_person_has_one_vote_whoever_brings_it(engine: ResumeEngine, herself_first: bool) -> None:
    gate = await asked(engine, approvers=["key:ci", "key:cd", "U1", "U2"], quorum=2)
    herself: list[tuple[Person | Key, Person | None]] = [(ANA, None)]
    by_keys: list[tuple[Person | Key, Person | None]] = [(CI, ANA), (CD, ANA)]
    for who, speaks_for in herself + by_keys if herself_first else by_keys + herself:
        gate = await said(engine, gate, who, Action.APPROVE, speaks_for=speaks_for)
        assert gate.pending
        assert [vote.by for vote in gate.votes] == [ANA]
    gate = await said(engine, gate, BEN, Action.APPROVE)
    assert gate.decision is not None
    assert gate.decision.by == (ANA, BEN)


async def test_whether_somebody_may_decide_can_be_asked_without_a_trace(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["U1"], requester={"team": "T1", "user": "U2"})
    run, _ = await engine.gate(gate.id)
    assert await engine.may_decide(run, gate, ANA)
    assert not await engine.may_decide(run, gate, BEN)
    assert not await engine.may_decide(run, gate, CI)
    assert (await engine.run(run.id)) == run
    assert "gate.refused" not in [event["event"] for event in await events(engine, run.id)]


async def test_a_draft_is_for_those_who_may_decide(engine: ResumeEngine) -> None:
    gate = await asked(engine, approve=False, responders=["U1"])
    with pytest.raises(NotAllowed) as refusal:
        await engine.draft(gate.id, BEN, {"0": [1]})
    assert refusal.value.extra["gate"].id == gate.id
    run, gate = await engine.gate(gate.id)
    assert gate.drafts == {}
    assert (await events(engine, run.id))[-1]["reason"] == "not-allowed"


# duties


async def test_the_requester_may_reject_but_not_approve(engine: ResumeEngine) -> None:
    me = {"team": "T1", "user": "U1"}
    gate = await asked(engine, approvers=["U1", "U2"], requester=me)
    with pytest.raises(SelfApproval):
        await said(engine, gate, ANA, Action.APPROVE)
    assert (await said(engine, gate, ANA, Action.DENY)).status == "denied"
    gate = await asked(engine, approvers=["U1"], requester=me, self_approval=True)
    assert (await said(engine, gate, ANA, Action.APPROVE)).status == "approved"


async def test_the_requester_may_answer_the_agent_s_question(engine: ResumeEngine) -> None:
    gate = await asked(engine, approve=False, responders=["U1"], requester={"team": "T1", "user": "U1"})
    assert (await said(engine, gate, ANA, Action.ANSWER, values=FOCUSED)).status == "answered"


@pytest.mark.parametrize(
    ("rule", "approve_needs", "deny_needs"),
    [("never", False, False), ("on_reject", False, True), ("always", True, True)],
)
async def test_a_reason_is_wanted_when_the_policy_says_so(
    engine: ResumeEngine, rule: str, approve_needs: bool, deny_needs: bool
) -> None:
    for action, needs in ((Action.APPROVE, approve_needs), (Action.DENY, deny_needs)):
        gate = await asked(engine, approvers=["U1"], reason=rule)
        if needs:
            for comment in (None, "", " \n\t"):
                with pytest.raises(InvalidDecision) as refusal:
                    await said(engine, gate, ANA, action, comment=comment)
                assert refusal.value.errors[0]["loc"] == ["comment"]
            gate = await said(engine, gate, ANA, action, comment=" because ")
            assert gate.decision is not None
            assert gate.decision.comment == "because"
        else:
            gate = await said(engine, gate, ANA, action, comment="  ")
            assert gate.decision is not None
            assert gate.decision.comment is None


# quorums


async def test_a_quorum_takes_as_many_people_and_names_them_all(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["U1", "U2", "U3"], quorum=2)
    gate = await said(engine, gate, ANA, Action.APPROVE, comment="fine")
    gate = await said(engine, gate, ANA, Action.APPROVE, comment="still fine")  # one person, one vote
    assert gate.pending
    assert [vote.comment for vote in gate.votes] == ["still fine"]
    gate = await said(engine, gate, CHO, Action.APPROVE, comment="and by me")
    assert gate.decision is not None
    assert gate.decision.by == (ANA, CHO)
    assert gate.decision.comment == "still fine; and by me"
    with pytest.raises(AlreadySettled):
        await said(engine, gate, BEN, Action.DENY)


async def test_one_rejection_is_enough_unless_the_policy_wants_more(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["U1", "U2", "U3"], quorum=3)
    await said(engine, gate, ANA, Action.APPROVE)
    gate = await said(engine, gate, BEN, Action.DENY, comment="no")
    assert gate.decision is not None
    assert (gate.status, gate.decision.by, gate.decision.comment) == ("denied", (BEN,), "no")


async def test_a_vote_that_is_changed_counts_where_it_went(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["U1", "U2", "U3"], quorum=2, reject_quorum=2)
    await said(engine, gate, ANA, Action.APPROVE)
    await said(engine, gate, ANA, Action.DENY)
    gate = await said(engine, gate, BEN, Action.APPROVE)
    assert gate.pending
    gate = await said(engine, gate, BEN, Action.DENY)
    assert gate.decision is not None
    assert (gate.status, gate.decision.by) == ("denied", (ANA, BEN))


async def test_three_at_once_on_three_engines_make_one_quorum(new_engine: NewEngine) -> None:
    engines = [new_engine() for _ in range(3)]
    for _ in range(10):
        gate = await asked(engines[0], approvers=["U1", "U2", "U3"], quorum=2)
        votes = [said(e, gate, who, Action.APPROVE) for e, who in zip(engines, (ANA, BEN, CHO), strict=True)]
        results = await asyncio.gather(*votes, return_exceptions=True)
        assert sum(isinstance(result, AlreadySettled) for result in results) == 1
        run, gate = await engines[1].gate(gate.id)
        assert gate.decision is not None
        assert len(set(gate.decision.by)) == 2
        told = [event["event"] for event in await events(engines[2], run.id)]
        assert (told.count("gate.voted"), told.count("gate.settled")) == (1, 1)


async def test_an_unfinished_quorum_is_no_decision_when_time_is_up(engine: ResumeEngine) -> None:
    gate = await asked(engine, approvers=["U1", "U2"], quorum=2)
    await said(engine, gate, ANA, Action.APPROVE)
    run: Run = await engine.cancel((await engine.gate(gate.id))[0].id, None, by=CI, via="api")
    results = run.results()
    assert results is not None
    assert (results["approvals"]["call-2"]["outcome"], results["approvals"]["call-2"]["by"]) == (
        "cancelled",
        [],
    )


class Model:
    """Votes as a table of the last words; settled by whichever action reaches its number first."""

    def __init__(self, quorum: int, reject_quorum: int) -> None:
        self.need = {Action.APPROVE: quorum, Action.DENY: reject_quorum}
        self.votes: dict[Person, Action] = {}
        self.status = "pending"

    def vote(self, who: Person, action: Action) -> str:
        if self.status != "pending":
            return "already-settled"
        self.votes.pop(who, None)
        self.votes[who] = action
        if list(self.votes.values()).count(action) >= self.need[action]:
            self.status = action.outcome
        return "done"


@given(
    quorum=st.integers(1, 3),
    reject_quorum=st.integers(1, 3),
    votes=st.lists(
        st.tuples(st.sampled_from([ANA, BEN, CHO]), st.sampled_from([Action.APPROVE, Action.DENY])),
        max_size=8,
    ),
)
@example(3, 3, [(ANA, Action.APPROVE), (BEN, Action.DENY), (ANA, Action.DENY), (CHO, Action.DENY)])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_sequence_of_votes_ends_as_the_model_says(
    engine: ResumeEngine, quorum: int, reject_quorum: int, votes: list[tuple[Person, Action]]
) -> None:
    model = Model(quorum, reject_quorum)
    gate = await asked(engine, approvers=["U1", "U2", "U3"], quorum=quorum, reject_quorum=reject_quorum)
    for who, action in votes:
        try:
            await said(engine, gate, who, action)
            word = "done"
        except AlreadySettled as refusal:
            word = refusal.slug
        assert word == model.vote(who, action)
        _, gate = await engine.gate(gate.id)
        assert gate.status == model.status
        assert [(vote.by, vote.action) for vote in gate.votes] == list(model.votes.items())
    if gate.decision is not None:
        chosen = [who for who, action in model.votes.items() if action.outcome == model.status]
        assert list(gate.decision.by) == chosen
