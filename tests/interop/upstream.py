"""The real systems, each in a virtual environment of its own, made once and kept for the next run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from uv import find_uv_bin

CACHE = Path(__file__).parents[2] / ".interop"
READY_S = 90
INSTALL_S = 600


def python(minor: int) -> str:
    """A Python of at least 3.``minor``: on the path, or one that pyenv has. Skips the test if there is none.

    No registry has an interpreter, so its absence is no failure on a machine without one.
    """
    if sys.version_info >= (3, minor):
        return sys.executable
    for number in range(minor, minor + 4):
        if (found := shutil.which(f"python3.{number}")) and _runs(found):
            return found
    roots = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*"))
    for root in roots:
        match = re.fullmatch(r"3\.(\d+)\.\d+", root.name)
        if match and int(match[1]) >= minor and _runs(str(root / "bin" / "python")):
            return str(root / "bin" / "python")
    pytest.skip(f"there is no Python 3.{minor} or newer here, and no registry has one")


def _runs(path: str) -> bool:
    # pyenv's shims are there for each version and refuse to run what is not selected
    return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


def environment(name: str, minor: int, requirements: Sequence[str]) -> Path:
    """The folder of a virtual environment that has these. Made anew when the requirements change."""
    interpreter = python(minor)
    stamp = hashlib.sha256("\n".join([interpreter, *requirements]).encode()).hexdigest()[:12]
    folder = CACHE / f"{name}-{stamp}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        uv, own = find_uv_bin(), str(folder / "bin" / "python")
        for command in (
            ["venv", "--python", interpreter, str(folder)],
            ["pip", "install", "--python", own, *requirements],
        ):
            done = subprocess.run(
                [uv, *command], capture_output=True, text=True, check=False, timeout=INSTALL_S
            )
            assert done.returncode == 0, done.stderr
        (folder / "complete").touch()
    return folder


@contextlib.contextmanager
def serving(
    command: Sequence[str], url: str, *, folder: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, from when ``url`` answers. It is killed in the end, with its children."""
    said = folder / "server.log"
    with said.open("wb") as log:
        surroundings = {**os.environ, "HOME": str(folder), **(env or {})}
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=surroundings, start_new_session=True
        )
        try:
            until = time.monotonic() + READY_S
            while not _answers(url):
                assert process.poll() is None, said.read_text()
                assert time.monotonic() < until, said.read_text()
                time.sleep(0.05)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
