"""What the host must not forget, in one SQLite file: conversations, what people are to be asked, resumes begun."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS conversation (id TEXT PRIMARY KEY, state TEXT, waits TEXT, said TEXT);
CREATE TABLE IF NOT EXISTS wait (key TEXT PRIMARY KEY, body TEXT NOT NULL, told INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS resume (key TEXT PRIMARY KEY, done INTEGER NOT NULL DEFAULT 0);
"""


@dataclass(frozen=True)
class Turn:
    """What a turn came to: ``said`` and the ``state`` to go on from, or a ``wait`` (the run that askgate gets)."""

    said: str | None = None
    state: str | None = None
    wait: dict[str, Any] | None = None


class Overtaken(Exception):
    """Two turns of one conversation went on at once."""


class Memory:
    """Every method is one transaction: after a crash it was done, or it was not."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def conversation(self, conversation: str) -> tuple[str | None, str | None, str | None]:
        """Its state, the key of what it waits for, and what was said last."""
        row = self._db.execute("SELECT state, waits, said FROM conversation WHERE id = ?", [conversation])
        return row.fetchone() or (None, None, None)

    def begin(self, key: str, conversation: str, wait: str) -> str:
        """Note, before anything runs, that a resume is begun.

        ``first``: nobody had; ``again``: somebody had, and died; ``done``: it was taken up; ``over``: the conversation
        no longer waits for this.
        """
        with self._transaction():
            done = self._db.execute("SELECT done FROM resume WHERE key = ?", [key]).fetchone()
            if done == (1,):
                return "done"
            if self._waits(conversation) != wait:
                return "over"
            self._db.execute("INSERT OR IGNORE INTO resume (key) VALUES (?)", [key])
            return "again" if done else "first"

    def keep(
        self, conversation: str, turn: Turn, *, key: str, waited: str | None, resumed: str | None = None
    ) -> None:
        """A turn's end, all of it or nothing. Raises Overtaken if the conversation no longer waits for ``waited``.

        ``key`` is that of what it waits for then, ``resumed`` that of the resume which it was.
        """
        with self._transaction():
            if self._waits(conversation) != waited:
                raise Overtaken(f"another turn of {conversation} ended first")
            self._db.execute(
                "INSERT OR REPLACE INTO conversation VALUES (?, ?, ?, ?)",
                [conversation, turn.state, key if turn.wait else None, turn.said],
            )
            self._db.execute("UPDATE wait SET told = 1 WHERE key = ?", [waited])  # it is over, told or not
            if turn.wait:
                self._db.execute("INSERT INTO wait (key, body) VALUES (?, ?)", [key, json.dumps(turn.wait)])
            if resumed:
                self._db.execute("UPDATE resume SET done = 1 WHERE key = ?", [resumed])

    def _waits(self, conversation: str) -> str | None:
        return self.conversation(conversation)[1]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            yield

    def untold(self) -> list[tuple[str, dict[str, Any]]]:
        """The waits that askgate may not have heard of, by their keys."""
        rows = self._db.execute("SELECT key, body FROM wait WHERE told = 0").fetchall()
        return [(key, json.loads(body)) for key, body in rows]

    def told(self, key: str) -> None:
        self._db.execute("UPDATE wait SET told = 1 WHERE key = ?", [key])
