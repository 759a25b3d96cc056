"""Motus' own clock of a turn: deadlines stay inside it, whoever counts, and whenever they began to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from freezegun.api import FrozenDateTimeFactory

from core.engine import ResumeEngine
from core.hosts.motus.client import Session, Status
from core.hosts.motus.turnclock import TurnClock
from tests.conftest import now_ms

TURN_S = 600
INSIDE_S = TURN_S - 5


@pytest.fixture(autouse=True)
def stands_still(clock: FrozenDateTimeFactory) -> Iterator[FrozenDateTimeFactory]:
    return clock


def started(engine: ResumeEngine) -> TurnClock:
    """One more process has come up."""
    return TurnClock("motus.x", TURN_S, engine.talks, engine.store.clock)


async def look(turns: TurnClock, status: Status, messages: int = 0) -> int | None:
    await turns.look([Session("s", status, messages)], now_ms())
    return turns.left_s("s")


async def test_a_message_that_is_not_taken_begins_no_turn_and_the_one_that_runs_counts_as_before(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    turns = started(engine)
    await look(turns, "idle")
    await look(turns, "running")
    clock.tick(60)
    does_not = await turns.begins("s")
    await does_not()
    assert await look(turns, "running") == INSIDE_S - 60
    assert await look(started(engine), "running") == INSIDE_S - 60
    fresh = started(engine)
    await fresh.look([], now_ms())
    clock.tick(3)
    await (await fresh.begins("t"))()
    await fresh.look([Session("t", "running", 0)], now_ms())
    assert fresh.left_s("t") == INSIDE_S - 3


async def test_a_turn_counts_from_the_last_look_at_which_it_did_not_run(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    turns = started(engine)
    await look(turns, "idle")
    clock.tick(30)
    assert await look(turns, "running") == INSIDE_S - 30
    clock.tick(30.5)
    assert await look(turns, "interrupted") == INSIDE_S - 61


async def test_after_a_restart_a_turn_counts_from_where_it_did(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    assert await look(started(engine), "running") == INSIDE_S
    clock.tick(200)
    assert await look(started(engine), "interrupted") == INSIDE_S - 200
    clock.tick(INSIDE_S)
    assert await look(started(engine), "interrupted") == INSIDE_S  # that turn is over: this is another one


async def test_a_turn_that_askgate_begins_counts_from_the_sending_in_every_process(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    sender, watcher = started(engine), started(engine)
    await look(sender, "error")
    await look(watcher, "error")
    clock.tick(20)
    await sender.begins("s")
    clock.tick(3)
    assert await look(watcher, "running") == INSIDE_S - 3
    assert await look(started(engine), "running") == INSIDE_S - 3
    assert await look(sender, "running") == INSIDE_S - 3


async def test_a_turn_counts_for_itself_if_the_one_before_it_ran_at_the_last_look(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    turns = started(engine)
    await look(turns, "running")
    clock.tick(100)
    await look(turns, "running")
    clock.tick(5)
    assert await look(turns, "running", messages=2) == INSIDE_S - 5
    # a turn that fails leaves no messages
    await turns.begins("s")
    assert await look(turns, "running", messages=2) == INSIDE_S


async def test_without_the_setting_nothing_is_counted(engine: ResumeEngine) -> None:
    turns = TurnClock("motus.x", None, engine.talks, engine.store.clock)
    await turns.begins("s")
    assert await look(turns, "running") is None
    assert await engine.talks.begun("motus.x", "s") is None
