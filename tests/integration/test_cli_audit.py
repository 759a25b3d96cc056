"""`askgate audit export`: every event once, oldest first, as the API has them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.engine import ResumeEngine
from tests.runs import run_request
from tests.shell import Shell, bare


@pytest.fixture
def shell(redis_url: str, redis: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    bare(monkeypatch, tmp_path)
    return Shell({"ASKGATE_REDIS_URL": redis_url, "ASKGATE_PARTITIONS": "4"})


async def two_runs(engine: ResumeEngine) -> tuple[str, str]:
    made = [(await engine.suspend(run_request(), owner="ci"))[0].id for _ in range(2)]
    return made[0], made[1]


async def test_every_event_is_there_once_oldest_first(engine: ResumeEngine, shell: Shell) -> None:
    first, second = await two_runs(engine)
    said = await shell("audit", "export")
    assert (said.code, said.err) == (0, "")
    found = [json.loads(line) for line in said.lines]
    assert sorted((e["run"], e["event"]) for e in found) == sorted(
        (run, event) for run in (first, second) for event in ("run.opened", "gate.opened")
    )
    assert [e["at"] for e in found] == sorted(e["at"] for e in found)
    assert len({e["id"] for e in found}) == 4
    assert found == [{"id": str(at), **json.loads(line)} async for at, line in engine.store.audit.events()]


async def test_one_run_is_exported_alone(engine: ResumeEngine, shell: Shell) -> None:
    first, _ = await two_runs(engine)
    found = [json.loads(line) for line in (await shell("audit", "export", "--run", first)).lines]
    assert [(e["run"], e["event"]) for e in found] == [(first, "run.opened"), (first, "gate.opened")]


async def test_since_leaves_out_what_was_before(engine: ResumeEngine, shell: Shell) -> None:
    first, _ = await two_runs(engine)
    every = [json.loads(line) for line in (await shell("audit", "export")).lines]
    last = every[-1]["at"]
    kept = [e for e in every if e["at"] >= last]
    assert [json.loads(x) for x in (await shell("audit", "export", "--since", last)).lines] == kept
    mine = [e for e in every if e["run"] == first]
    since = mine[0]["at"]
    assert [
        json.loads(x) for x in (await shell("audit", "export", "--run", first, "--since", since)).lines
    ] == mine
    assert (await shell("audit", "export", "--since", "2999-01-01")).out == ""
    assert (await shell("audit", "export", "--run", first, "--since", "2999-01-01")).out == ""


async def test_since_without_an_offset_is_utc(engine: ResumeEngine, shell: Shell) -> None:
    await two_runs(engine)
    today = datetime.now(UTC).date().isoformat()
    assert len((await shell("audit", "export", "--since", today)).lines) == 4


async def test_what_cannot_be_meant_is_said_in_one_line(shell: Shell) -> None:
    when = await shell("audit", "export", "--since", "yesterday")
    assert (when.code, when.err) == (
        2,
        "askgate: --since: got 'yesterday'; wanted a moment such as 2026-01-31T08:00Z\n",
    )
    run = await shell("audit", "export", "--run", "run_01_01JZ0000000000000000000000")
    assert run.code == 1
    assert run.err == "askgate: There is no run run_01_01JZ0000000000000000000000.\n"
