"""`askgate doctor`: a line a check, exit code 1 on a fault, and no secret in any of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from redis.asyncio import Redis

from bot.commands import host_checks
from bot.manifest import bot_scopes
from bot.sandbox.slack import LocalSlack
from bot.service import Service
from core.embedded import EmbeddedServer
from core.settings import load_settings
from core.store.connect import fast_client
from core.store.keys import META
from tests.a13n_standin import A13nStandin
from tests.shell import Said, Shell, bare

SECRETS = {
    "SLACK_BOT_TOKEN": "xoxb-test-hush",
    "SLACK_SIGNING_SECRET": "signing-hush",
    "SLACK_APP_TOKEN": "xapp-test-hush",
    "ASKGATE_API_KEYS": "ci=hush-hush-hush-hush",
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tmp_path / "server") as server:
        yield server


@pytest.fixture
async def store(server: EmbeddedServer) -> AsyncIterator[Redis]:
    """The doctor's store, to be made ill."""
    client = fast_client(server.url)
    yield client
    await client.aclose()


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    tokens = {"bot_token": SECRETS["SLACK_BOT_TOKEN"], "app_token": SECRETS["SLACK_APP_TOKEN"]}
    async with LocalSlack(**tokens) as slack:
        yield slack


@pytest.fixture
def doctor(
    server: EmbeddedServer, slack: LocalSlack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Shell:
    bare(monkeypatch, tmp_path)
    return Shell(
        {
            **SECRETS,
            "SLACK_API_URL": slack.api_url,
            "ASKGATE_REDIS_URL": server.url,
            "ASKGATE_BIND": f"127.0.0.1:{free_port()}",
        }
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def line(said: Said, what: str) -> str:
    """The one line about something."""
    [found] = [text for text in said.lines if text[7:].startswith(what)]
    return found


async def look(doctor: Shell, *words: str) -> Said:
    said = await doctor("doctor", *words)
    assert "hush" not in said.out + said.err
    assert said.err == ""
    assert (said.code == 1) == any(text.startswith("FAULT") for text in said.lines)
    for text in said.lines:
        if text.startswith("FAULT"):
            assert " → " in text, f"a fault says what to do: {text}"
    return said


async def test_a_sound_set_up_has_no_fault(doctor: Shell) -> None:
    said = await look(doctor)
    assert said.code == 0
    names = [
        *("settings", "store", "append only", "fsync", "eviction", "replicas", "clock", "partitions"),
        *("bot token", "scopes", "app token", "manifest", "port"),
    ]
    assert [text[7:18].strip() for text in said.lines] == names
    assert [text[:5].strip() for text in said.lines] == ["ok"] * 9 + ["?", "ok", "?", "ok"]
    assert "cannot tell: this Slack names none" in line(said, "scopes")


async def test_a_missing_setting_is_named_and_the_rest_is_looked_at(doctor: Shell) -> None:
    del doctor.settings["ASKGATE_API_KEYS"]
    said = await look(doctor)
    assert line(said, "settings").startswith("FAULT  settings    ASKGATE_API_KEYS: not set → wanted ")
    assert line(said, "store").startswith("ok")


async def test_a_malformed_setting_is_named(doctor: Shell) -> None:
    said = await look(doctor, "--set", "ASKGATE_PARTITIONS=many")
    assert said.code == 1
    assert 'ASKGATE_PARTITIONS: got "many"' in line(said, "settings")


async def test_a_store_that_is_away_is_a_fault_and_slack_is_looked_at_all_the_same(doctor: Shell) -> None:
    said = await look(doctor, "--set", "ASKGATE_REDIS_URL=redis://ann:hush@127.0.0.1:1/0")
    assert line(said, "store").startswith("FAULT")
    assert line(said, "bot token").startswith("ok")


@pytest.mark.parametrize(
    ("option", "value", "what", "says"),
    [
        ("appendonly", "no", "append only", "loses all that came after its last snapshot"),
        ("appendfsync", "everysec", "fsync", "up to a second of decisions"),
        ("appendfsync", "no", "fsync", "whatever the system had not yet written"),
        ("maxmemory-policy", "allkeys-lru", "eviction", "drops runs and audit events"),
    ],
)
async def test_a_store_that_may_lose_something_is_a_fault(
    doctor: Shell, store: Redis, option: str, value: str, what: str, says: str
) -> None:
    await store.config_set(option, value)
    found = line(await look(doctor), what)
    assert found.startswith("FAULT")
    assert says in found


async def test_a_replica_is_no_store(doctor: Shell, store: Redis) -> None:
    await store.replicaof("127.0.0.1", 1)
    assert "it takes no writes" in line(await look(doctor), "replicas")


async def test_what_the_server_will_not_say_is_no_fault(
    doctor: Shell, store: Redis, server: EmbeddedServer
) -> None:
    await store.execute_command("ACL", "SETUSER", "ann", "on", ">hush", "~ag:*", "&*", "+@all", "-config")
    said = await look(doctor, "--set", f"ASKGATE_REDIS_URL={server.url}&username=ann&password=hush")
    assert said.code == 0
    assert line(said, "fsync").startswith("?      fsync       cannot tell: the server refuses to say")


async def test_a_wrong_password_is_said_as_such(doctor: Shell, store: Redis, server: EmbeddedServer) -> None:
    said = await look(doctor, "--set", f"ASKGATE_REDIS_URL={server.url}&username=ann&password=hush")
    assert "refuses the login" in line(said, "store")


async def test_partitions_must_be_those_of_the_store(doctor: Shell, store: Redis) -> None:
    assert "its first start makes 16" in line(await look(doctor), "partitions")
    assert await store.exists(META) == 0
    await store.hset(META, "partitions", "8")
    found = line(await look(doctor), "partitions")
    assert found.startswith("FAULT")
    assert "set ASKGATE_PARTITIONS=8" in found


async def test_tokens_that_slack_does_not_know_are_faults(doctor: Shell, slack: LocalSlack) -> None:
    said = await look(
        doctor, "--set", "SLACK_BOT_TOKEN=xoxb-hush-other", "--set", "SLACK_APP_TOKEN=xapp-hush-2"
    )
    assert "Slack says invalid_auth" in line(said, "bot token")
    assert "Slack says invalid_auth" in line(said, "app token")
    assert slack.called("chat.postMessage") == []


async def test_a_slack_that_cannot_be_reached_is_a_fault(doctor: Shell) -> None:
    said = await look(doctor, "--set", "SLACK_API_URL=http://127.0.0.1:1/api/")
    assert "cannot be reached" in line(said, "bot token")
    assert "cannot be reached" in line(said, "app token")


@contextlib.asynccontextmanager
async def slack_that_grants(scopes: str) -> AsyncIterator[str]:
    """Answers auth.test with the header in which Slack names a token's scopes; yields the base URL."""

    async def auth_test(_: web.Request) -> web.Response:
        body = {"ok": True, "team_id": "T1", "team": "Acme", "user": "askgate"}
        return web.json_response(body, headers={"X-OAuth-Scopes": scopes})

    app = web.Application()
    app.router.add_post("/api/auth.test", auth_test)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("scopes", "state", "says"),
    [
        (",".join(bot_scopes()), "ok", "all that the manifest asks for"),
        (", ".join([*bot_scopes(), "files:read"]), "ok", "not needed: files:read"),
        ("chat:write,commands", "FAULT", "channels:history"),
    ],
)
async def test_granted_scopes_are_those_of_the_manifest(
    doctor: Shell, scopes: str, state: str, says: str
) -> None:
    del doctor.settings["SLACK_APP_TOKEN"]
    async with slack_that_grants(scopes) as url:
        found = line(await look(doctor, "--set", f"SLACK_API_URL={url}"), "scopes")
    assert found.startswith(state)
    assert says in found


async def test_a_port_in_use_is_a_fault_unless_askgate_has_it(doctor: Shell, slack: LocalSlack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        said = await look(doctor, "--set", f"ASKGATE_BIND={bind}")
    assert line(said, "port").startswith(f"FAULT  port        cannot listen on {bind}")
    async with Service(load_settings(doctor.settings, need_slack=True)):
        assert line(await look(doctor), "port").endswith(
            "an askgate answers at " + doctor.settings["ASKGATE_BIND"]
        )


async def test_without_a_url_the_embedded_server_is_looked_at(doctor: Shell, tmp_path: Path) -> None:
    del doctor.settings["ASKGATE_REDIS_URL"]
    doctor.settings["ASKGATE_DATA_DIR"] = str(tmp_path / "own")
    said = await look(doctor)
    assert said.code == 0
    assert "always: what was acknowledged is on disk" in line(said, "fsync")
    (tmp_path / "file").touch()
    doctor.settings["ASKGATE_DATA_DIR"] = str(tmp_path / "file" / "own")
    assert line(await look(doctor), "store").startswith("FAULT")


async def test_each_host_is_asked_and_what_cannot_be_put_to_people_is_a_fault(
    doctor: Shell, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.toml"
    doctor.settings["ASKGATE_HOSTS"] = str(hosts)
    async with A13nStandin().serving() as a13n:
        hosts.write_text(f'[a13n.a]\nurl = "{a13n.url}"\napi_key = "hush"\n')
        assert line(await look(doctor), "host").endswith("a13n.a answers")
        a13n.wait("run_1", "send", {"text": "hush"})
        assert line(await look(doctor), "host").endswith("a13n.a answers; it waits for 1")
        a13n.wait("run_2", "pay", {"cents": 2**60})
        found = line(await look(doctor), "host")
        assert found.startswith("FAULT")
        assert "a13n.a: run_2 cannot be put to people" in found
        a13n.status = 401
        assert "a13n.a: it answered 401" in line(await look(doctor), "host")
    assert "a13n.a: it cannot be reached" in line(await look(doctor), "host")
    hosts.write_text("[a13n.a]\n")
    assert "[a13n.a] url: Field required → mend the file" in line(await look(doctor), "hosts")


async def test_a_host_that_says_nothing_is_not_waited_for_for_ever(
    doctor: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_checks, "LOOK_S", 0.2)
    hosts = tmp_path / "hosts.toml"
    doctor.settings["ASKGATE_HOSTS"] = str(hosts)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts.write_text(f'[a13n.a]\nurl = "http://127.0.0.1:{silent.getsockname()[1]}"\napi_key = "k"\n')
        assert "cannot tell: a13n.a named nothing within 0.2 s" in line(await look(doctor), "host")
