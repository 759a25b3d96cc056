"""A real a13n Service with a PostgreSQL of its own, and a scripted model: all of it on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from core.hosts.config import A13nConfig
from tests.interop.upstream import environment, serving

Json = dict[str, Any]
PATIENCE_S = 30
PASSWORD = "correct horse battery"
EMAIL = "admin@example.com"
TOOLS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_program(name: str) -> str:
    """A program of PostgreSQL's, which Debian keeps off the path. Skips the test if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    path = str(found[-1]) if found else shutil.which(name)
    return path or pytest.skip(f"PostgreSQL's {name} is not installed here")


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A database of its own, which says in ``folder`` what it does; yields its URL."""
    # PostgreSQL does not run as root, so it is somebody else then. Folders of pytest's are closed to others, and
    # closed again whenever another pytest starts; so it has one of its own.
    user: str | None = None
    if os.getuid() == 0:
        user = "postgres" if any(p.pw_name == "postgres" for p in pwd.getpwall()) else "nobody"
    with tempfile.TemporaryDirectory(prefix="askgate-pg-") as own, (folder / "pg.log").open("wb") as log:
        if user:
            shutil.chown(own, user)
        made = ["-D", own, "-U", "a13n", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(
            [postgres_program("initdb"), *made], check=True, capture_output=True, user=user, cwd="/"
        )
        port = free_port()
        command = [postgres_program("postgres"), "-D", own, "-h", "127.0.0.1", "-p", str(port), "-k", own]
        command += ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=32MB"]
        server = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd="/", start_new_session=True)
        try:
            yield f"postgresql+psycopg://a13n@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGQUIT)  # at once, with all its processes
            server.wait()


def etag(found: Json) -> str:
    return f'"{found["id"]}:{found["version"]}"'


@dataclass
class Door:
    """Calls the Service over HTTP, as an administrator's browser does, or with a key."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method)
        for name, value in {**self.headers, "Content-Type": "application/json", **headers}.items():
            request.add_header(name, value)
        try:
            with self._opener.open(request, timeout=30) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            raw, status = error.read(), error.code
        return status, json.loads(raw) if raw else None

    def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        status, answer = self.call(method, path, body, **headers)
        assert 200 <= status < 300, (method, path, status, answer)
        return answer


@dataclass(frozen=True)
class Running:
    """A Service that runs: ``admin`` may do all, ``key`` is a runner's, ``agent`` the id of the scripted agent.

    ``lead`` is that of one who has it for a helper, which works on its own.
    """

    url: str
    admin: Door
    key: str
    agent: str
    lead: str


class A13n:
    """Uses a Service as any of its clients does. The threads of one test are forgotten at its end."""

    def __init__(self, running: Running) -> None:
        self.url, self.key, self.agent = running.url, running.key, running.agent
        self.lead = running.lead
        self.admin = running.admin
        self._threads: list[str] = []
        self._subscriptions: list[str] = []

    def config(self, **more: Any) -> A13nConfig:
        block = {
            "name": "a13n.test",
            "url": self.url,
            "api_key": self.key,
            "channel": "C1",
            "approvers": ["U1"],
        }
        return A13nConfig.model_validate({**block, "poll_s": 1, **more})

    async def turn(self, *turns: list[Json], session: str | None = None) -> Json:
        """Begin a thread whose model calls these tools, turn after turn. Returns its run, waiting or ended."""
        return await self.sealed((await self.begin(*turns, session=session))["id"])

    async def begin(self, *turns: list[Json], session: str | None = None, agent: str | None = None) -> Json:
        """The same, and return the run at once."""
        content = [{"type": "text", "text": json.dumps({"turns": turns})}]
        body = {"agent_id": agent or self.agent, "payload": {"content": content}, "session_id": session}
        made = await self.ok("POST", "/threads", body, **{"Idempotency-Key": uuid4().hex})
        self._threads.append(made["thread"]["id"])
        return dict(made["run"])

    async def sealed(self, run_id: str) -> Json:
        """A run when it no longer goes on."""
        async with asyncio.timeout(PATIENCE_S):
            while (run := await self.ok("GET", f"/runs/{run_id}"))["status"] in ("accepted", "running"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return dict(run)

    async def last(self, run: Json) -> Json:
        """What the thread of a run came to, when it is idle."""
        async with asyncio.timeout(PATIENCE_S):
            while (thread := await self.thread(run))["current_run_id"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return await self.sealed(thread["last_run_id"])

    async def heard(self, run: Json) -> list[str]:
        """What the model heard from its tools, in the run that completed after this one."""
        async with asyncio.timeout(PATIENCE_S):
            while (last := await self.last(run))["status"] != "completed":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return list(json.loads(last["output"]))

    async def runs(self, run: Json) -> list[Json]:
        """All runs of a run's thread."""
        return list((await self.ok("GET", f"/threads/{run['thread_id']}/runs"))["items"])

    async def thread(self, run: Json) -> Json:
        return dict(await self.ok("GET", f"/threads/{run['thread_id']}"))

    async def answer(self, run: Json, approvals: Json | None = None, calls: Json | None = None) -> Json:
        """Resume a run as somebody else than askgate does."""
        body = {"approvals": approvals or {}, "calls": calls or {}}
        return dict(
            await self.ok("POST", f"/runs/{run['id']}/resume", body, **{"Idempotency-Key": uuid4().hex})
        )

    async def archive(self, run: Json) -> None:
        """Give a run's thread up for good."""
        thread = await self.thread(run)
        await self.ok("POST", f"/threads/{thread['id']}/archive", {}, **{"If-Match": etag(thread)})

    async def set_archived(self, archived: bool) -> None:
        """Archive the agent, or take that back."""
        found = await self.ok("GET", f"/agents/{self.agent}")
        word = "archive" if archived else "unarchive"
        await self.ok("POST", f"/agents/{self.agent}/{word}", {}, **{"If-Match": etag(found)})

    async def subscribe(self, url: str, secret: str) -> None:
        """Have the Service post to a URL what comes to wait."""
        body = {
            "name": "askgate",
            "url": url,
            "kinds": ["run.waiting"],
            "enabled": True,
            "signing_secret": secret,
        }
        made = await self.ok("POST", "/subscriptions", body)
        self._subscriptions.append(made["id"])

    async def ok(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return await asyncio.to_thread(self.admin.ok, method, path, body, **headers)

    def leave_nothing(self) -> None:
        for thread_id in self._threads:
            thread = self.admin.ok("GET", f"/threads/{thread_id}")
            if not thread["archived_at"]:
                self.admin.call("POST", f"/threads/{thread_id}/archive", {}, **{"If-Match": etag(thread)})
        for subscription in self._subscriptions:
            found = self.admin.ok("GET", f"/subscriptions/{subscription}")
            self.admin.ok("DELETE", f"/subscriptions/{subscription}", **{"If-Match": etag(found)})


@contextlib.contextmanager
def a13n_service(folder: Path) -> Iterator[Running]:
    root = environment("a13n-service", 13, ["a13n-service>=0.0.94"])
    port, model_port = free_port(), free_port()
    url, model = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{model_port}"
    script = Path(__file__).with_name("a13n_model.py")
    (folder / "model").mkdir()
    with (
        postgres(folder) as database,
        serving([sys.executable, str(script), str(model_port)], f"{model}/health", folder=folder / "model"),
    ):
        config = folder / "service.toml"
        config.write_text(settings(folder, port, database))
        program = [str(root / "bin" / "a13n-service"), "--config", str(config)]
        with serving([*program, "run", "--role", "all"], f"{url}/health/ready", folder=folder):
            yield prepared(url, model)


def settings(folder: Path, port: int, database: str) -> str:
    return f"""
[server]
port = {port}
public_url = "http://127.0.0.1:{port}"
[database]
url = "{database}"
[redis]
url = "redis://127.0.0.1:9/0"
[objects]
root = "{folder}/objects"
[encryption]
key_file = "{folder}/encryption.key"
[control]
scan_seconds = 0.1
[worker]
scan_seconds = 0.1
[providers]
require_https = false
"""


def prepared(url: str, model: str) -> Running:
    """Who may do what, and an agent whose model is the scripted one."""
    admin = Door(url, {"Origin": url})
    login = admin.ok("POST", "/auth/bootstrap", {"email": EMAIL, "password": PASSWORD})
    admin.headers["X-CSRF-Token"] = login["csrf_token"]
    [workspace] = admin.ok("GET", "/workspaces")["items"]
    admin.headers["X-Workspace-ID"] = workspace["id"]
    provider = {
        "type": "openai",
        "name": "scripted",
        "config": {"base_url": f"{model}/v1", "auth_mode": "none"},
    }
    provider_id = admin.ok("POST", "/model-providers", provider)["id"]
    config = {"model_api": "openai.chat_completions", "model_name": "scripted"}
    admin.ok(
        "POST",
        "/models",
        {"provider_id": provider_id, "key": "scripted", "name": "Scripted", "config": config},
    )
    tool = {"name": "look_up", "description": "Looks up a city", "parameters_json_schema": TOOLS}
    agent = {
        "model": "scripted",
        "user_questions": True,
        "client_tools": [tool],
        "toolsets": {"web": {"tools": {"fetch": {"permission": "ask"}}}},
    }
    agent_id = admin.ok("POST", "/agents", {"name": "Release agent", "config": agent})["id"]
    helper = {"agent_id": agent_id, "environment": {"mode": "none"}}
    lead = {"model": "scripted", "subagent_mode": "async", "subagents": {"helper": helper}}
    lead_id = admin.ok("POST", "/agents", {"name": "Lead agent", "config": lead})["id"]
    account = admin.ok("POST", f"/workspaces/{workspace['id']}/service-accounts", {"name": "askgate"})
    issued = admin.ok(
        "POST", f"/workspaces/{workspace['id']}/service-accounts/{account['id']}/keys", {"name": "askgate"}
    )
    return Running(url, admin, issued["secret"], agent_id, lead_id)
