"""`askgate gates`: the same engine, rules and audit as everywhere, from a shell."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from core.clock import iso
from core.embedded import EmbeddedServer
from core.engine import ResumeEngine
from core.gates import Action, Outcome
from core.policy import Key
from core.runs import Run
from tests.conftest import ANA
from tests.runs import FOCUSED, approval, ask, form_call, link_call, question_call, run_request
from tests.shell import Shell, bare
from tests.stores import events

BY_CLI = {"approvers": ["U1", "key:cli"], "responders": ["key:cli"]}


@pytest.fixture
def shell(redis_url: str, redis: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    bare(monkeypatch, tmp_path)
    return Shell({"ASKGATE_REDIS_URL": redis_url, "ASKGATE_PARTITIONS": "4"})


async def opened(engine: ResumeEngine, *args: Any, **more: Any) -> Run:
    run, _ = await engine.suspend(run_request(*args, **more), owner="ci")
    return run


async def test_list_shows_what_is_pending_with_tabs_between(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [question_call()], [approval()], title="Nightly", host="deploys")
    await engine.decide(run.gates[0].id, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
    said = await shell("gates", "list")
    assert (said.code, said.err) == (0, "")
    [line] = said.lines
    gate, status, kind, deadline, host, what = line.split("\t")
    assert (gate, status, kind, host) == (run.gates[1].id, "pending", "approval", "deploys")
    assert deadline.endswith("Z")
    assert what == "Nightly · delete_file"


async def test_list_finds_by_status_and_host(engine: ResumeEngine, shell: Shell) -> None:
    first = await opened(engine, host="one")
    second = await opened(engine, host="two")
    await engine.cancel(second.id, None, by=Key(key="ci"), via="api")
    assert {line.split("\t")[0] for line in (await shell("gates", "list", "--status", "any")).lines} == {
        first.gates[0].id,
        second.gates[0].id,
    }
    assert second.gates[0].id in (await shell("gates", "list", "--status", "cancelled")).out
    assert (
        (await shell("gates", "list", "--status", "any", "--host", "one"))
        .lines[0]
        .startswith(first.gates[0].id)
    )
    assert (await shell("gates", "list", "--host", "two")).out == ""


async def test_list_says_when_there_is_more(engine: ResumeEngine, shell: Shell) -> None:
    await opened(engine, [], [approval("a"), approval("b")])
    said = await shell("gates", "list", "--limit", "1")
    assert len(said.lines) == 1
    assert said.err == "There are more than 1: raise --limit.\n"
    assert (await shell("gates", "list", "--limit", "2")).err == ""


async def test_on_a_terminal_the_list_is_a_table_with_whole_ids(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, title="A title that is far too long for a narrow terminal to hold on one line")
    ours, theirs = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from bot.cli import main; main()", "gates", "list"),
        env={**os.environ, **shell.settings, "COLUMNS": "80", "TERM": "xterm"},
        stdout=theirs,
    )
    os.close(theirs)
    assert await process.wait() == 0
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert run.gates[0].id in shown
    assert "deadline" in shown.splitlines()[0]


async def test_list_as_json_has_one_object_a_line(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [question_call()], [approval()])
    found = [json.loads(line) for line in (await shell("gates", "list", "--json")).lines]
    assert {item["id"] for item in found} == {gate.id for gate in run.gates}
    assert {item["run_id"] for item in found} == {run.id}


async def test_no_text_of_an_agent_moves_the_cursor(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(
        engine,
        [question_call("q\x1b[2J", ask("Really?\x1b]0;owned\x07\n\tgate_00_FORGED_0"))],
        title="\x1b[31mred\u202e",
    )
    for words in (
        ["list"],
        ["list", "--json"],
        ["show", run.gates[0].id],
        ["show", run.gates[0].id, "--json"],
    ):
        said = await shell("gates", *words)
        assert said.code == 0
        assert "\x1b" not in said.out
        assert "\x07" not in said.out
    assert len((await shell("gates", "list")).lines) == 1
    assert len((await shell("gates", "list")).lines[0].split("\t")) == 6


async def test_show_says_all_that_a_person_decides_on(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(
        engine, [], [approval(reason="Disk is full", risk="high")], policy={"approvers": ["U1"], "quorum": 1}
    )
    said = await shell("gates", "show", run.gates[0].id)
    for part in (
        "delete_file",
        "call-2",
        "Disk is full",
        "high",
        "may decide   U1",
        '"path": "/tmp/old.log"',
    ):
        assert part in said.out
    await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack", comment="wrong file")
    assert "denied by T1:U1 at " in (settled := await shell("gates", "show", run.gates[0].id)).out
    assert "from slack: wrong file" in settled.out


async def test_what_is_not_there_is_said_in_one_line(shell: Shell) -> None:
    for gate in ("nonsense", "gate_01_01JZ0000000000000000000000_0"):
        said = await shell("gates", "show", gate)
        assert said.code == 1
        assert said.err.startswith("askgate: There is no ")
        assert len(said.err.splitlines()) == 1


async def test_decide_settles_as_the_key_cli_where_the_policy_names_it(
    engine: ResumeEngine, shell: Shell
) -> None:
    run = await opened(engine, [], [approval()], policy=BY_CLI)
    said = await shell("gates", "decide", run.gates[0].id, "approve", "--comment", "looked at it")
    assert (said.code, said.out) == (0, f"{run.gates[0].id} is approved.\n")
    results = (await engine.run(run.id)).results()
    assert results is not None
    assert results["approvals"]["call-2"]["by"] == [{"key": "cli"}]
    assert results["approvals"]["call-2"]["comment"] == "looked at it"
    settled = next(e for e in await events(engine, run.id) if e["event"] == "gate.settled")
    assert (settled["by"], settled["from"]) == ({"key": "cli"}, "api")


async def test_decide_is_refused_where_the_policy_does_not_name_it(
    engine: ResumeEngine, shell: Shell
) -> None:
    run = await opened(engine, [], [approval()], policy={"approvers": ["U1"]})
    said = await shell("gates", "decide", run.gates[0].id, "approve")
    assert (said.code, said.out) == (1, "")
    assert said.err == "askgate: The API key 'cli' is not among those who may decide this.\n"
    assert (await engine.run(run.id)).open
    refused = (await events(engine, run.id))[-1]
    assert (refused["event"], refused["reason"], refused["by"]) == (
        "gate.refused",
        "not-allowed",
        {"key": "cli"},
    )


async def test_an_answer_may_stand_in_a_file(engine: ResumeEngine, shell: Shell, tmp_path: Path) -> None:
    run = await opened(engine, policy=BY_CLI)
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(FOCUSED))
    said = await shell("gates", "decide", run.gates[0].id, "answer", "--values", f"@{file}")
    assert said.out == f"{run.gates[0].id} is answered.\n"
    results = (await engine.run(run.id)).results()
    assert results is not None
    assert results["calls"]["question-1"]["value"] == FOCUSED


@pytest.mark.parametrize(
    ("values", "code", "says"),
    [
        ('{"answers": {"Which?": "Focused"}}', 1, "values.answers"),
        ("{", 2, "--values: line 1, column 2"),
        ("@none.json", 2, "--values: cannot read 'none.json' (No such file or directory)"),
    ],
)
async def test_an_answer_that_does_not_fit_changes_nothing(
    engine: ResumeEngine, shell: Shell, values: str, code: int, says: str
) -> None:
    run = await opened(engine, policy=BY_CLI)
    said = await shell("gates", "decide", run.gates[0].id, "answer", "--values", values)
    assert said.code == code
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert (await engine.run(run.id)).open


async def test_a_second_decision_hears_of_the_first(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [], [approval()], policy=BY_CLI)
    await engine.decide(run.gates[0].id, Action.DENY, by=ANA, via="slack")
    said = await shell("gates", "decide", run.gates[0].id, "approve")
    assert (said.code, said.err) == (1, "askgate: This was denied already.\n")


async def test_a_vote_says_how_many_are_wanted(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [], [approval()], policy=BY_CLI | {"quorum": 2})
    said = await shell("gates", "decide", run.gates[0].id, "approve")
    assert said.out == f"{run.gates[0].id} is pending: 1 of 2 approve, 0 of 1 reject.\n"


async def test_cancel_settles_one_gate_with_its_reason(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [], [approval("a"), approval("b")])
    said = await shell("gates", "cancel", run.gates[0].id, "--reason", "no longer needed")
    assert (said.code, said.out) == (0, f"{run.gates[0].id} is cancelled.\n")
    first, second = (await engine.run(run.id)).gates
    assert second.pending
    assert first.decision is not None
    assert (first.decision.outcome, first.decision.by, first.decision.detail) == (
        Outcome.CANCELLED,
        (),
        "no longer needed",
    )
    again = await shell("gates", "cancel", run.gates[0].id)
    assert (again.code, again.err) == (1, "askgate: Nothing is pending there; the run is waiting.\n")


async def test_cancel_takes_a_whole_run(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [question_call()], [approval()])
    assert (await shell("gates", "cancel", run.id)).out == f"{run.id} is settled.\n"
    assert {gate.status for gate in (await engine.run(run.id)).gates} == {Outcome.CANCELLED}
    settled = [e for e in await events(engine, run.id) if e["event"] == "gate.settled"]
    assert [e["by"] for e in settled] == [None] * 2, "nobody decided"
    assert [e["cancelled_by"] for e in settled] == [{"key": "cli"}] * 2


async def test_an_embedded_server_that_runs_is_joined_and_left_running(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare(monkeypatch, tmp_path)
    shell = Shell({"ASKGATE_DATA_DIR": str(tmp_path / "data")})
    async with EmbeddedServer(tmp_path / "data") as server:
        assert (await shell("gates", "list")).code == 0
        assert server.pid is not None
    assert (await shell("gates", "list")).code == 0


async def test_a_store_that_is_away_or_another_is_said_in_one_line(shell: Shell) -> None:
    assert (await shell("gates", "list")).code == 0
    away = await shell("gates", "list", "--set", "ASKGATE_REDIS_URL=redis://:hunter2@127.0.0.1:1/0")
    assert away.code == 2
    assert away.err.startswith("askgate: The store cannot be reached")
    assert "hunter2" not in away.err
    other = await shell("gates", "list", "--set", "ASKGATE_PARTITIONS=8")
    assert other.code == 2
    assert "set ASKGATE_PARTITIONS=4" in other.err
    cluster = await shell("gates", "list", "--set", "ASKGATE_REDIS_URL=redis+cluster://127.0.0.1:1")
    assert cluster.code == 2
    assert cluster.err.startswith("askgate: The store cannot be reached")


# the other kinds, and amendments


async def test_a_form_is_shown_and_filled_in_from_a_shell(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [form_call(title="Book a room")], policy=BY_CLI)
    gate = run.gates[0].id
    assert (await shell("gates", "list")).lines[0].endswith("\tBook a room")
    shown = (await shell("gates", "show", gate)).out
    assert all(
        word in shown for word in ('"title": "Book a room"', '"name": "city"', "accept, decline, cancel")
    )
    wrong = await shell("gates", "decide", gate, "accept", "--values", '{"town": 1}')
    assert (wrong.code, "city: this is required" in wrong.err) == (1, True)
    said = await shell("gates", "decide", gate, "accept", "--values", '{"city": "Bonn"}')
    assert (said.code, said.out) == (0, f"{gate} is answered.\n")


async def test_a_link_is_shown_and_dismissed_from_a_shell(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [link_call(url="https://example.com/x")], policy=BY_CLI)
    gate = run.gates[0].id
    assert '"url": "https://example.com/x"' in (await shell("gates", "show", gate)).out
    said = await shell("gates", "decide", gate, "cancel")
    assert (said.code, said.out) == (0, f"{gate} is declined.\n")
    assert (await engine.run(run.id)).results()["calls"]["link"]["action"] == "cancel"  # type: ignore[index]


async def test_arguments_are_edited_and_an_approval_is_for_always_from_a_shell(
    engine: ResumeEngine, shell: Shell
) -> None:
    asked = [approval("a"), approval("b", always=["delete_file in /tmp"])]
    run = await opened(engine, [], asked, policy=BY_CLI | {"edits": True})
    first, second = (gate.id for gate in run.gates)
    override = '{"override_args": {"path": "/tmp/b"}}'
    assert (await shell("gates", "decide", first, "approve", "--values", override)).code == 0
    shown = (await shell("gates", "show", first)).out
    assert "edited       by key:cli" in shown
    assert '"new": "/tmp/b"' in shown
    assert "saves        delete_file in /tmp" in (await shell("gates", "show", second)).out
    assert (await shell("gates", "decide", second, "approve_always")).out == f"{second} is approved.\n"


async def test_a_deadline_is_put_off_from_a_shell(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, timeout_s=60)
    gate = run.gates[0]
    said = await shell("gates", "extend", gate.id, "1h30m")
    later = (await engine.run(run.id)).gates[0].deadline
    assert later == gate.deadline + 5_400_000
    assert said.out == f"{gate.id} is open until {iso(later)}.\n"
    far = await shell("gates", "extend", gate.id, "31d")
    assert (far.code, "30 days" in far.err) == (1, True)
    for text in ("2", "h", "1x", "-2h", "soon"):
        wrong = await shell("gates", "extend", gate.id, "--", text)
        assert (wrong.code, "wanted one such as 90s" in wrong.err) == (2, True)
    extended = [e for e in await events(engine, run.id) if e["event"] == "gate.extended"]
    assert [e["by"] for e in extended] == [{"key": "cli"}]


async def test_a_gate_is_handed_to_others_from_a_shell(engine: ResumeEngine, shell: Shell) -> None:
    run = await opened(engine, [], [approval()])
    gate = run.gates[0].id
    said = await shell("gates", "reassign", gate, "U7", "key:cli")
    assert said.out == f"{gate} may be decided by U7, key:cli.\n"
    wrong = await shell("gates", "reassign", gate, "ana")
    assert (wrong.code, "'ana': wanted a user" in wrong.err) == (2, True)
    assert (await shell("gates", "decide", gate, "approve")).out == f"{gate} is approved.\n"
    late = await shell("gates", "reassign", gate, "U8")
    assert (late.code, late.err) == (1, "askgate: This was settled already.\n")
