"""looprig, a stand-in of it: its sessions are found, at a bounded price, and none hides another."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from core.engine import ResumeEngine
from core.errors import StoreUnavailable
from core.runs import RunStatus
from tests.interop.conftest import eventually
from tests.interop.looprig_served import Found, asks, served
from tests.interop.looprig_standin import Looprig, ask_user, form, refused

pytestmark = pytest.mark.usefixtures("looprig_at_once")

BOTH = pytest.mark.parametrize("dialect", ["serve", "factory"])
HTML = "<html>bad gateway</html>"


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
    assert all(2 <= looprig.times("GET events", session) <= 12 for session in old)
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
        asked = looprig.times("GET events", session)
        await listed(looprig, 10)
        assert looprig.times("GET events", session) == asked
        looprig.sessions[session.id] = session
        session.restore()
        await found(1, RunStatus.LOST)


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


async def test_operators_read_that_none_of_a_factory_s_sessions_can_be_read(
    engine: ResumeEngine, looprig: Looprig
) -> None:
    for _ in range(3):
        looprig.session()
    looprig.faults["GET gates"] = [refused(web.HTTPServiceUnavailable, "unavailable") for _ in range(30)]
    async with served(engine, looprig, "factory") as desk:
        await eventually(lambda: desk.problem == "it answered 503 unavailable")


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
