"""Logs: one line an event, without what the redaction hides, whoever wrote it and wherever it stands."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from bot import logs
from core.redaction import DEFAULT_FIELDS, MASK, Patterns, Redaction

HIDING = Redaction.of(DEFAULT_FIELDS, Patterns([r"sk-\w+"]))


SetUp = Callable[..., None]


@pytest.fixture
def set_up() -> Iterator[SetUp]:
    """Sets logs up as in a process in which nothing else has; afterwards they are as they were."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def fresh(*args: Any) -> None:
        root.handlers.clear()
        logs.set_up(*args)

    yield fresh
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_our_own_lines_hide_what_is_listed_and_what_patterns_find(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("info", HIDING)
    log = structlog.get_logger("test")
    log.info("x.done", run="run_1", token="hunter2", args={"password": "hunter2", "n": ["sk-hunter2", 1]})
    line = json.loads(capsys.readouterr().err)
    assert "hunter2" not in json.dumps(line)
    assert (line["event"], line["run"], line["level"]) == ("x.done", "run_1", "info")
    assert (line["token"], line["args"]) == (MASK, {"password": MASK, "n": [MASK, 1]})


def test_a_traceback_hides_what_patterns_find(set_up: SetUp, capsys: pytest.CaptureFixture[str]) -> None:
    set_up("info", HIDING)
    for log in (structlog.get_logger("test"), logging.getLogger("aiohttp.server")):
        try:
            raise ValueError("cannot use sk-hunter2")
        except ValueError:
            log.exception("failed with sk-hunter2")
    ours, *theirs = capsys.readouterr().err.splitlines()
    assert json.loads(ours)["exception"].endswith(f"ValueError: cannot use {MASK}")
    assert theirs[0] == f"ERROR aiohttp.server failed with {MASK}"
    assert theirs[-1] == f"ValueError: cannot use {MASK}"


def test_with_nothing_to_hide_a_line_is_as_it_was_written(
    set_up: SetUp, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up("info")
    structlog.get_logger("test").info("x.done", token="t", args=["sk-x"])
    line = json.loads(capsys.readouterr().err)
    assert (line["token"], line["args"]) == ("t", ["sk-x"])
