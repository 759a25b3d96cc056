"""Starts processes to be killed, quickly: everything is imported once, and each of them is a fork of this one.

python -m tests.crash.nursery; a line of JSON in is a process to start, lines of JSON out are what the processes say,
with the number of their job, and how each of them ended. The end of the input ends them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import sys
import traceback
from typing import Any

from tests.crash import child

Json = dict[str, Any]


def say(**what: Any) -> None:
    """One write, shorter than what a pipe takes at once, so that lines of several processes do not mix."""
    os.write(1, json.dumps(what).encode() + b"\n")


class Nursery:
    """The processes that live, by pid."""

    def __init__(self) -> None:
        self._jobs: dict[int, int] = {}
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)

    def run(self) -> None:
        buffer = b""
        while True:
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._bury()
            if 0 in ready:
                data = os.read(0, 1 << 20)
                if not data:
                    return self._end()
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self._bear(json.loads(line))

    def _bear(self, job: Json) -> None:
        pid = os.fork()
        if pid == 0:
            _live(job)
        self._jobs[pid] = job["job"]
        say(job=job["job"], born=pid)

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while self._jobs:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                say(job=self._jobs.pop(pid), exit=os.waitstatus_to_exitcode(status))

    def _end(self) -> None:
        for pid in self._jobs:
            os.kill(pid, signal.SIGKILL)


def _live(job: Json) -> None:
    """Be the process of a job, and never return."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        asyncio.run(child.main(job, lambda **what: say(job=job["job"], **what)))
    except BaseException:  # noqa: BLE001  # it is a fork: nothing of what stands above may go on
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    Nursery().run()
