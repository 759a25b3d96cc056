"""`askgate audit`: every event once, oldest first, as the API has them; and the chain that holds them together."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.engine import ResumeEngine
from core.store.keys import Keys
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


async def test_a_run_that_was_deleted_is_exported_from_what_the_audit_has(
    engine: ResumeEngine, shell: Shell, redis: Redis
) -> None:
    first, _ = await two_runs(engine)
    lines = (await shell("audit", "export", "--run", first)).lines
    keys = Keys(int(first[4:6]))
    await redis.delete(keys.run(first), keys.trail(first))
    assert (await shell("audit", "export", "--run", first)).lines == lines


# verify


async def tampered(redis: Redis, partition: int) -> str:
    """Takes the second event of a partition away; returns the id of the third."""
    [(second, _), (third, _)] = (await redis.xrange(Keys(partition).audit, count=3))[1:3]
    await redis.xdel(Keys(partition).audit, second)
    return f"{third}-{partition}"


async def test_verify_follows_every_chain_of_the_store(engine: ResumeEngine, shell: Shell) -> None:
    runs = [run for _ in range(4) for run in await two_runs(engine)]
    said = await shell("audit", "verify")
    partitions = {run[4:6] for run in runs}
    assert (said.code, said.err) == (0, f"16 events in {len(partitions)} partitions hold together.\n")
    rows = [line.split("\t") for line in said.lines]
    assert {f"{int(row[0]):02d}" for row in rows} == partitions
    assert sum(int(row[1]) for row in rows) == 16
    assert all(len(row[4]) == 40 and row[2] <= row[3] for row in rows)


async def test_verify_of_an_empty_store_has_nothing_to_say(shell: Shell, redis: Redis) -> None:
    said = await shell("audit", "verify")
    assert (said.code, said.out, said.err) == (0, "", "0 events in 0 partitions hold together.\n")


async def test_verify_names_the_first_broken_link(engine: ResumeEngine, shell: Shell, redis: Redis) -> None:
    runs = [run for _ in range(6) for run in await two_runs(engine)]
    partition = min(int(run[4:6]) for run in runs if sum(r[4:6] == run[4:6] for r in runs) > 1)
    third = await tampered(redis, partition)
    said = await shell("audit", "verify")
    assert said.code == 1
    assert said.out == ""
    assert said.err.startswith(f"askgate: Partition {partition}, event {third}: its prev is ")
    assert said.err.count("\n") == 1


async def test_an_export_can_be_verified_without_a_store(
    engine: ResumeEngine, shell: Shell, tmp_path: Path
) -> None:
    for _ in range(4):
        await two_runs(engine)
    export = (await shell("audit", "export")).out
    file = tmp_path / "audit.jsonl"
    file.write_text(export)
    bare_shell = Shell({"ASKGATE_REDIS_URL": "redis://127.0.0.1:1"})
    said = await bare_shell("audit", "verify", str(file))
    assert said.code == 0
    assert said.err.startswith("16 events in ")
    assert said.out == (await shell("audit", "verify")).out
    # from any place on, it still holds
    file.write_text("".join(export.splitlines(keepends=True)[7:]))
    assert (await bare_shell("audit", "verify", str(file))).err.startswith("9 events in ")
    file.write_text(export.replace('"key":"ci"', '"key":"ic"', 1))
    said = await bare_shell("audit", "verify", str(file))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("askgate: Line ")
    assert "was changed, or an event between them was removed or put in" in said.err


async def test_an_export_is_compared_with_what_the_store_has_since(
    engine: ResumeEngine, shell: Shell, redis: Redis, tmp_path: Path
) -> None:
    for _ in range(4):
        await two_runs(engine)
    file = tmp_path / "audit.jsonl"
    file.write_text((await shell("audit", "export")).out)
    for _ in range(2):
        await two_runs(engine)
    assert (await shell("audit", "verify", str(file), "--stored")).code == 0
    # trimmed since: nothing to compare with, and that is said
    partition = json.loads(file.read_text().splitlines()[-1])["id"].rpartition("-")[2]
    await engine.store.audit.trim(int(partition), engine.store.clock.now_ms() + 60_000, 500)
    said = await shell("audit", "verify", str(file), "--stored")
    assert said.code == 0
    assert f"Partition {partition}: the store has trimmed " in said.err
    # all of it written anew: every chain holds, and none is the one that was exported
    await redis.flushall()
    for _ in range(8):
        await two_runs(engine)
    assert (await shell("audit", "verify")).code == 0
    said = await shell("audit", "verify", str(file), "--stored")
    assert said.code == 1
    assert "its audit was written anew" in said.err


async def test_what_cannot_be_verified_is_said_in_one_line(shell: Shell, tmp_path: Path) -> None:
    missing = await shell("audit", "verify", str(tmp_path / "none"))
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "No such file" in missing.err
    file = tmp_path / "file"
    file.write_bytes(b"\xff")
    assert "it is not UTF-8" in (await shell("audit", "verify", str(file))).err
    file.write_text("{}\n")
    said = await shell("audit", "verify", str(file))
    assert (said.code, said.err) == (
        1,
        'askgate: Line 1: wanted a line of an export: a JSON object that begins with "id".\n',
    )
    assert (await shell("audit", "verify", "--stored")).code == 2
