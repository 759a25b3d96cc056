"""Processes that are to be killed, as the test sees them: started by the nursery, heard, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]


class Life:
    """One process: what it says, in order; `{"exit": status}` is the last."""

    def __init__(self) -> None:
        self.ears: asyncio.Queue[Json] = asyncio.Queue()
        self._pid: int | None = None

    async def said(self) -> Json:
        said = await self.ears.get()
        self._pid = said.get("born", self._pid)
        if "exit" in said:
            self._pid = None
        return said

    async def end(self) -> None:
        """Kill it, if it lives, and wait until it is gone."""
        while "exit" not in await self._killed():
            pass

    async def _killed(self) -> Json:
        if self._pid is None and self.ears.empty():
            return {"exit": None}
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        return await self.said()


class Lives:
    """The nursery's program, and every process that it started."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lives: list[Life] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def nursed(cls) -> AsyncIterator[Lives]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.crash.nursery",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        lives = cls(process)
        listening = asyncio.create_task(lives._listen())
        try:
            yield lives
        finally:
            assert process.stdin
            process.stdin.close()
            await process.wait()
            await listening

    @contextlib.asynccontextmanager
    async def one(self, job: Json) -> AsyncIterator[Life]:
        """A process for a job, alive at most as long as this context."""
        life = Life()
        self._lives.append(life)
        assert self._process.stdin
        self._process.stdin.write(json.dumps({**job, "job": len(self._lives) - 1}).encode() + b"\n")
        assert "born" in await life.said()
        try:
            yield life
        finally:
            await life.end()

    async def _listen(self) -> None:
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            said = json.loads(line)
            self._lives[said["job"]].ears.put_nowait(said)
        for life in self._lives:  # with the nursery all of them are gone
            life.ears.put_nowait({"exit": None})
