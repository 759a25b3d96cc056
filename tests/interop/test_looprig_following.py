"""looprig, a stand-in of it: what happens in a session is had once each, and without a gap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.engine import ResumeEngine
from core.gates import Action, Kind, Outcome
from core.runs import RunStatus
from tests.conftest import ANA
from tests.interop.conftest import eventually
from tests.interop.looprig_served import Found, asks, served
from tests.interop.looprig_standin import Looprig, Session, ask_user, permission

pytestmark = pytest.mark.usefixtures("looprig_at_once")

REQUEST = {"tool_name": "bash", "command": "ls"}


# streams


async def test_more_live_sessions_than_a_pool_has_connections_starve_no_call(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    sessions = [looprig.session() for _ in range(110)]
    gate_id = sessions[0].open(permission(), REQUEST)
    async with served(engine, looprig, "serve"):
        await eventually(lambda: all(session.streams for session in sessions))
        [run] = await found(1)
        await engine.decide(run.gates[0].id, Action.APPROVE, by=ANA, via="slack")
        await found(1, RunStatus.RESUMED)
    assert sessions[0].heard == [(gate_id, "Approve", {})]


async def test_sessions_beyond_the_streams_that_stay_open_are_read_again_and_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.looprig.follower.FOLLOWED", 2)
    sessions = [looprig.session() for _ in range(6)]
    async with served(engine, looprig, "serve"):
        await eventually(lambda: all(looprig.times("GET events", s) > 0 for s in sessions))
        await eventually(lambda: sum(bool(s.streams) for s in sessions) == 2)
        for session in sessions:
            session.open(ask_user("Its name?"))
        await found(6)


async def test_nothing_falls_between_the_journal_and_the_stream(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    looprig.faults["GET events"] = [lambda: session.open(ask_user("Its name?"))]
    async with served(engine, looprig, "serve"):
        await found(1)
        assert looprig.times("GET events", session) == 1


async def test_what_comes_by_the_journal_and_by_the_stream_happens_once(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()

    def briefly() -> None:
        session.resolve(session.open(ask_user("Over by now?")), "answer")

    looprig.faults["GET journal"] = [briefly]
    async with served(engine, looprig, "serve"):
        await eventually(lambda: not looprig.faults["GET journal"])
        session.open(ask_user("Its name?"))
        [run] = await found(1, None)
    assert asks(run) == "Its name?"


async def test_a_stream_that_breaks_loses_nothing(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    first = session.open(permission())
    async with served(engine, looprig, "serve"):
        await found(1)
        session.break_streams()
        session.resolve(first, "Deny")
        session.open(ask_user("Its name?"))
        await found(1, RunStatus.LOST)
        [run] = await found(1)
        assert run.gates[0].doc.kind is Kind.FORM


async def test_a_session_that_is_joined_again_closes_nothing_of_another(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    one, another = looprig.session(), looprig.session()
    one.open(ask_user("Its name?"))
    another.open(ask_user("Its age?"))
    async with served(engine, looprig, "serve"):
        await found(2)
        one.break_streams()
        await eventually(lambda: looprig.times("GET events", one) == 2 and bool(one.streams))
        one.open(ask_user("Its colour?"))
        await found(3)


async def test_many_events_before_the_join_are_read_page_by_page(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    for _ in range(999):
        session.resolve(session.open(permission()), "Approve")
    session.open(ask_user("Its name?"))
    session.append("StepDone")
    async with served(engine, looprig, "serve"):
        await found(1)
    assert looprig.times("GET journal", session) == 3  # the second is full, so it may not be the last


async def test_a_permission_is_held_back_for_the_request_that_follows_it(
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.hosts.looprig.follower.REQUEST_S", 10)
    session = looprig.session()
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        [joined] = await found(1)
        gate = permission()
        session.open(gate)
        execution_id = gate["subject"]["tool_execution_id"]
        session.append("StepDone")
        session.append("PermissionRequested", tool_execution_id=execution_id, request=REQUEST)
        [run] = [run for run in await found(2) if run.id != joined.id]
    assert run.gates[0].doc.tool_name == "bash"


async def test_an_event_that_cannot_be_read_does_not_hide_those_behind_it(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.journal += [{}, {"type": "GateOpened", "gate": 7}]
    session.append("GateOpened", gate={"id": "odd", "kind": "harness.form", "response_policy": [1]})
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        [run] = await found(1)
        assert asks(run) == "Its name?"
        session.append("GateOpened", gate=7)
        session.open(ask_user("Its age?"))
        await found(2)
        assert looprig.times("GET events", session) == 1


# what ends


def _ends(session: Session) -> dict[str, Callable[[str], object]]:
    return {
        "own review": lambda gate_id: session.resolve(gate_id, "Approve", "classifier"),
        "own policy": lambda gate_id: session.resolve(gate_id, "Deny", "policy"),
        "elsewhere": lambda gate_id: session.resolve(gate_id, "Deny"),
        "could not be": lambda gate_id: session.resolve(gate_id, "", reason="restore_unavailable"),
        "closed it (owner_closed)": lambda gate_id: session.resolve(gate_id, "", reason="owner_closed"),
    }


async def test_what_was_answered_elsewhere_is_superseded_and_says_by_whom(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    async with served(engine, looprig, "serve"):
        for number, (word, end) in enumerate(_ends(session).items(), 1):
            gate_id = session.open(permission(), REQUEST)
            await found()
            end(gate_id)
            runs = await found(number, RunStatus.LOST)
            details = [run.gates[0].decision.detail for run in runs if run.gates[0].decision]
            assert any(word in (detail or "") for detail in details)
            assert all(run.gates[0].status == Outcome.SUPERSEDED for run in runs)


@pytest.mark.parametrize("ends", ["TurnDone", "TurnFailed", "TurnInterrupted"])
async def test_the_end_of_a_turn_closes_the_gates_of_that_turn_alone(
    engine: ResumeEngine, looprig: Looprig, found: Found, ends: str
) -> None:
    session = looprig.session()
    session.open({**ask_user("Its name?"), "subject": {"turn_id": "turn-1"}})
    session.open({**ask_user("Its age?"), "subject": {"turn_id": "turn-2"}})
    async with served(engine, looprig, "serve"):
        await found(2)
        session.append(ends, turn_id="turn-1")
        [lost] = await found(1, RunStatus.LOST)
        [left] = await found(1)
    assert lost.gates[0].decision
    assert (asks(lost), lost.gates[0].decision.detail) == ("Its name?", "The turn ended.")
    assert asks(left) == "Its age?"


async def test_factory_s_answerability_is_kept_to(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    suspended = session.open({**permission(), "answerability": "suspended"})
    session.open({**permission(), "answerability": "unavailable"})
    session.open({**permission(), "answerability": "submitted"})
    async with served(engine, looprig, "factory"):
        for over in ("expired", "submitted"):
            [run] = await found()
            assert (run.doc.external_id or "").endswith(suspended)
            session.gates[suspended]["answerability"] = "unavailable"
            marker = session.open(ask_user("Has it been read since?"))
            assert {r.id for r in await found(2)} > {run.id}, "its card stays"
            session.gates[suspended]["answerability"] = over
            assert run.id in {lost.id for lost in await found(1 if over == "expired" else 3, RunStatus.LOST)}
            session.resolve(marker, "answer")
            await found(2 if over == "expired" else 4, RunStatus.LOST)
            suspended = session.open({**permission(), "answerability": "suspended"})
