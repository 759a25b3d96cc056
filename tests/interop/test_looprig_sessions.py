"""looprig, a stand-in of it: its sessions are found and followed without a gap, and none hides another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from core.engine import ResumeEngine
from core.errors import StoreUnavailable
from core.gates import Action, Kind, Outcome
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.conftest import eventually
from tests.interop.looprig_served import Found, served
from tests.interop.looprig_standin import Looprig, Session, ask_user, form, permission, refused

pytestmark = pytest.mark.usefixtures("looprig_at_once")

BOTH = pytest.mark.parametrize("dialect", ["serve", "factory"])
REQUEST = {"tool_name": "bash", "command": "ls"}
HTML = "<html>bad gateway</html>"


def asks(run: Run) -> str:
    """The label of the field of a question."""
    assert run.gates[0].doc.form
    return run.gates[0].doc.form.fields[0].label


async def listed(looprig: Looprig, times: int) -> None:
    """Return when the list has been read so many more times."""
    until = looprig.asked.count(("GET sessions", "")) + times
    await eventually(lambda: looprig.asked.count(("GET sessions", "")) >= until)


# the list


@BOTH
async def test_all_pages_of_the_list_are_read(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"core.hosts.looprig.{dialect}_client.PAGE", 2)
    for _ in range(6):
        looprig.session().open(ask_user("Its name?"))
    async with served(engine, looprig, dialect):
        await found(6)


@BOTH
async def test_more_sessions_than_a_page_has_are_read_to_their_end_and_not_for_ever(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    for _ in range(210):
        looprig.session().crash()
    live = looprig.session()
    live.active_at = live.created_at - timedelta(days=1)  # the last one
    live.open(ask_user("Its name?"))
    async with served(engine, looprig, dialect, poll_s=5):
        await found(1)
        assert looprig.asked.count(("GET sessions", "")) == (1 if dialect == "serve" else 2)


async def test_a_factory_s_quiet_sessions_are_read_now_and_then(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=1)
    quiet, ended, busy = looprig.session(), looprig.session(), looprig.session()
    quiet.active_at, ended.state = long_ago, "stopped"
    async with served(engine, looprig, "factory"):
        await eventually(lambda: looprig.times("GET gates", busy) >= 5)
        assert [looprig.times("GET gates", session) for session in (quiet, ended)] == [1, 1]
        quiet.active_at = datetime.now(UTC)
        quiet.open(ask_user("Its name?"))
        await found(1)


# what is live


async def test_a_session_that_is_not_live_is_asked_more_and_more_seldom_and_told_of_once(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    old = [looprig.session() for _ in range(20)]
    for session in old:
        session.crash()
    looprig.session().open(ask_user("Its name?"))
    with capture_logs() as logs:
        async with served(engine, looprig, "serve"):
            await found(1)
            await listed(looprig, 15)
    # 1.5 s and more: every 0.05 s it would be thirty times
    assert all(2 <= looprig.times("GET events", session) <= 8 for session in old)
    told = [log["session"] for log in logs if log["event"].startswith("looprig.")]
    assert sorted(told) == sorted(session.id for session in old)


async def test_a_session_that_is_restored_is_followed_at_once(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.state = "stopped"
    session.crash()
    async with served(engine, looprig, "serve"):
        await listed(looprig, 5)
        assert looprig.times("GET events", session) == 1
        session.restore()
        session.open(ask_user("Its name?"))
        await found(1)


async def test_a_session_that_is_gone_from_the_list_keeps_its_cards(
    engine: ResumeEngine, looprig: Looprig, found: Found
) -> None:
    session = looprig.session()
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        await found(1)
        session.crash()
        del looprig.sessions[session.id]
        await listed(looprig, 3)
        looprig.session().open(ask_user("Another's?"))
        await found(2)
        looprig.sessions[session.id] = session
        session.restore()
        await found(1, RunStatus.LOST)


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
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch
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


# what goes wrong


@BOTH
async def test_a_session_that_answers_badly_hides_none_behind_it_and_is_told_of_once(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    looprig.session().open(ask_user("Its name?"))
    bad = looprig.session()  # the latest, so the first
    for asked in ("gates", "events"):
        looprig.faults[f"GET {asked} {bad.id}"] = [web.HTTPBadGateway(text=HTML) for _ in range(1000)]
    with capture_logs() as logs:
        async with served(engine, looprig, dialect) as desk:
            await found(1)
            await listed(looprig, 5)
            assert desk.problem is None
    told = [log["error"] for log in logs if log["event"] == "looprig.session_away"]
    assert told == ["it answered 502 without JSON"]


@BOTH
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lambda: web.HTTPBadGateway(text=HTML), "it answered 502 without JSON"),
        (lambda: refused(web.HTTPUnauthorized, "unauthorized"), "it answered 401 unauthorized"),
        (lambda: web.HTTPFound("/login"), "it answered 302, so the url is not the server's own"),
        (lambda: web.HTTPOk(text='{"items": []}'), "its reply is not one of looprig in this dialect"),
    ],
)
async def test_operators_read_why_a_server_is_away(
    engine: ResumeEngine, looprig: Looprig, dialect: str, fault: Callable[[], web.HTTPException], why: str
) -> None:
    looprig.faults["GET sessions"] = [fault() for _ in range(9)]
    async with served(engine, looprig, dialect) as desk:
        await eventually(lambda: desk.problem is not None)
        assert desk.problem == why


@BOTH
async def test_operators_read_that_a_server_is_down(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str
) -> None:
    looprig.session().open(ask_user("Its name?"))
    async with served(engine, looprig, dialect) as desk:
        await found(1)
        await looprig.server.close()
        await eventually(lambda: desk.problem is not None)
        assert desk.problem == "it cannot be reached (ClientConnectorError)"


@pytest.mark.parametrize("which", ["adopt", "supersede"])
async def test_what_a_store_that_was_away_could_not_take_is_told_again(
    engine: ResumeEngine, looprig: Looprig, found: Found, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr("core.hosts.desk.FIRST_REST_S", 0.05)
    away = [StoreUnavailable()]
    real = getattr(ResumeEngine, which)

    async def once(self: ResumeEngine, *args: Any, **more: Any) -> Any:
        if away:
            raise away.pop()
        return await real(self, *args, **more)

    monkeypatch.setattr(ResumeEngine, which, once)
    session = looprig.session()
    gate_id = session.open(ask_user("Its name?"))
    async with served(engine, looprig, "serve"):
        await found(1)
        session.resolve(gate_id, "answer")
        await found(1, RunStatus.LOST)
    assert not away


@BOTH
@pytest.mark.parametrize(
    "gate",
    [
        {
            **form({"name": "a", "kind": "text"}),
            "prompt": {"title": "x" * (1 << 20)},
        },  # more than a state holds
        ask_user("x" * 20_000),
        {"kind": "harness.plan", "prompt": {"title": "Plan", "controls": [{"action": "go", "label": "Go"}]}},
    ],
)
async def test_what_cannot_be_put_to_people_nor_dismissed_is_told_once_and_hides_nothing_else(
    engine: ResumeEngine, looprig: Looprig, found: Found, dialect: str, gate: Any
) -> None:
    session = looprig.session()
    session.open(gate)
    session.open(ask_user("Its name?"))
    async with served(engine, looprig, dialect) as desk:
        [run] = await found()
        assert desk.served.unopened == 1
    assert asks(run) == "Its name?"
