"""The benchmarks, at sizes at which they measure nothing: that all of them run, and what a broken bound does."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main
from bot.commands import bench as command
from tests.bench.__main__ import TINY, benches, measured, report
from tests.bench.rows import Row

WANTED = {
    "script": ["decide, 50 tasks", "suspend, 50 tasks", "claim, 100 at a time", "ack, 50 tasks"],
    "handover": ["commit to claimed"],
    "memory": ["memory of a pending gate, 1 a run", "memory of a pending gate, 4 a run"],
    "due": ["gates due in one second"],
    "late": ["lateness at"],
    "crowd": ["suspend, ", "decide, ", "list 50 by user", "list 50 by channel", "list 50 by host"],
    "clicks": ["beside Bolt alone", "one write to disk", "Bolt's default runner", "the card's update sent"],
}


@pytest.mark.parametrize("name", benches(TINY))
async def test_every_figure_stands_beside_a_baseline_of_the_same_run(name: str) -> None:
    rows = await measured(TINY, [name])
    assert len(rows) == len(WANTED[name])
    for row, words in zip(rows, WANTED[name], strict=True):
        assert words in row.name
        assert math.isfinite(row.ratio)
        # of so few gates the memory is lost in what the server gives back meanwhile
        assert row.ratio > 0 or name == "memory"
        assert row.measured
        assert row.baseline


def test_a_bound_that_is_not_kept_is_marked_and_makes_the_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = [
        Row("fast", "1", "2", 0.7, 0.6),
        Row("small", "1", "2", 0.9, 1.0, False),
        Row("free", "1", "2", 9.0),
    ]
    assert report(kept, "") == 0
    assert "✗" not in capsys.readouterr().out
    for broken in (Row("slow", "1", "2", 0.5, 0.6), Row("large", "1", "2", 1.1, 1.0, False)):
        assert report([*kept, broken], "") == 1
        assert capsys.readouterr().out.count("✗") == 1


def test_the_command_prints_one_table_and_exits_by_it() -> None:
    words = [sys.executable, "-c", "from bot.cli import main; main()", "bench", "--tiny", "--only", "memory"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "memory of a pending gate, 4 a run" in done.stdout
    assert "The machine's load was" in done.stdout
    assert done.returncode == ("✗" in done.stdout)


def test_without_the_source_the_command_says_where_the_benchmarks_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "SOURCE", tmp_path)
    said = CliRunner().invoke(main, ["bench"])
    assert said.exit_code == 2
    assert "In a checkout" in said.stderr
