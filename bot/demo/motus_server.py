"""The real `motus serve` of the demo, with a small agent of ours, on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import aiohttp

from core.ending import end
from core.errors import AskgateError

READY_S: Final = 120
"""How long the server may take to start: it loads a lot."""
END_S: Final = 1.0
"""How long it may take to end. While a turn waits for people it would not end by itself."""
SAID: Final = 1000
"""How much of its log an error repeats."""


class DemoError(AskgateError):
    """The demo cannot be started."""

    slug = "demo-error"


def motus_program() -> str:
    """The path of `motus`: beside this Python, or on the PATH. Raises DemoError."""
    beside = Path(sys.executable).with_name("motus")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("motus")
    if found is None:
        raise DemoError(
            "--host motus: there is no program `motus` here, neither on the PATH nor beside this Python; "
            "install it with `pip install lithosai-motus`, which wants Python 3.12 or later"
        )
    return found


@contextlib.asynccontextmanager
async def motus_server(folder: Path, port: int) -> AsyncIterator[str]:
    """The server, from when it answers, with what it keeps in ``folder``. Yields its URL. Raises DemoError."""
    program, url = motus_program(), f"http://127.0.0.1:{port}"
    _put_agent(folder)
    said = folder / "server.log"
    with said.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(program, "serve", "start", "motus_agent:agent", "--host", "127.0.0.1", "--port", str(port)),
            *("--workers", "6"),
            stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True,
            env={**os.environ, "HOME": str(folder), "PYTHONPATH": str(folder)},
        )  # fmt: skip
    try:
        await _until_ready(process, url, said)
        yield url
    finally:
        await _ended(process)


def _put_agent(folder: Path) -> None:
    """By itself in its folder: nothing beside it can be taken for a module of the server's."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("motus_agent.py"), folder)


async def _until_ready(process: asyncio.subprocess.Process, url: str, said: Path) -> None:
    over = asyncio.create_task(process.wait())
    try:
        async with asyncio.timeout(READY_S), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                await asyncio.wait([over], timeout=0.2)
                if over.done():
                    raise DemoError(f"--host motus: the server has ended ({over.result()}): {_tail(said)}")
    except TimeoutError:
        raise DemoError(f"--host motus: no answer within {READY_S} s: {_tail(said)}") from None
    finally:
        await end([over])


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/health", timeout=aiohttp.ClientTimeout(total=5)) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _tail(said: Path) -> str:
    return said.read_text(encoding="utf-8", errors="replace")[-SAID:].strip()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the server and the workers that it has made."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
