"""`askgate installations`, and what the doctor says where workspaces install askgate by OAuth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from cryptography.fernet import Fernet
from slack_sdk.oauth.installation_store import Installation

from bot.manifest import bot_scopes, manifest
from bot.sandbox.slack import LocalSlack
from bot.slack.installations import Installations
from core.engine import ResumeEngine
from core.sealing import Seals
from tests.integration.test_cli_doctor import free_port, line
from tests.shell import Shell, bare

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
BACK = "https://askgate.example.com/slack/oauth_redirect"


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack(config_token="xoxe.xoxp-hush") as slack:
        slack.install(manifest("https://askgate.example.com"))
        slack.offer(BACK)
        yield slack


@pytest.fixture
def shell(
    slack: LocalSlack, redis_url: str, redis: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Shell:
    bare(monkeypatch, tmp_path)
    return Shell(
        {
            "ASKGATE_REDIS_URL": redis_url,
            "ASKGATE_PARTITIONS": "4",
            "ASKGATE_ENCRYPTION_KEYS": f"{NEW},{OLD}",
            "ASKGATE_API_KEYS": "ci=hush-hush-hush-hush",
            "ASKGATE_BIND": f"127.0.0.1:{free_port()}",
            "SLACK_API_URL": slack.api_url,
            "SLACK_SIGNING_SECRET": "signing-hush",
            "SLACK_CLIENT_ID": "1.2",
            "SLACK_CLIENT_SECRET": "local-client-secret",
        }
    )


@pytest.fixture
async def installed(engine: ResumeEngine, slack: LocalSlack) -> Installations:
    """Where askgate is in one workspace, sealed with the old key."""
    slack.app.bot_token = "xoxb-hush"
    kept = Installations(engine.store, Seals([OLD.encode()]))
    await kept.keep(
        Installation(
            team_id="T0LOCAL",
            team_name="Local",
            bot_token="xoxb-hush",
            bot_id=slack.app.bot_id,
            bot_user_id=slack.app.bot_user,
            bot_scopes=bot_scopes(),
            user_id="U1",
            user_token="xoxp-hush",
            installed_at=1_767_225_600.0,
        )
    )
    return kept


async def test_list_says_where_and_with_which_key_and_shows_no_token(
    shell: Shell, installed: Installations
) -> None:
    said = await shell("installations", "list")
    assert said.lines == ["T0LOCAL\tLocal\t2026-01-01 00:00 UTC\tfor good\tanother key"]
    assert "hush" not in said.out + said.err


async def test_rotate_seals_with_the_first_key_and_the_old_one_is_wanted_no_more(
    shell: Shell, installed: Installations, engine: ResumeEngine
) -> None:
    assert (await shell("installations", "rotate")).out == "1 sealed anew\n"
    assert (await shell("installations", "rotate")).out == "0 sealed anew\n"
    found = await Installations(engine.store, Seals([NEW.encode()])).find("T0LOCAL")
    assert found is not None
    assert (found.bot_token, found.user_token) == ("xoxb-hush", None)
    assert (await shell("installations", "list")).lines[0].endswith("first key")


async def test_without_its_key_a_record_is_listed_and_named_by_the_doctor(
    shell: Shell, installed: Installations
) -> None:
    other = "--set", f"ASKGATE_ENCRYPTION_KEYS={NEW}"
    assert (await shell("installations", "list", *other)).lines == ["T0LOCAL\t?\t?\t?\tanother key"]
    said = await shell("doctor", *other)
    assert "no key opens its token" in line(said, "T0LOCAL")
    assert said.code == 1


async def test_remove_revokes_the_token_and_has_what_waits_there_ended(
    shell: Shell, installed: Installations, slack: LocalSlack, engine: ResumeEngine
) -> None:
    said = await shell("installations", "remove", "T0LOCAL")
    assert said.out == "T0LOCAL removed; the token of T0LOCAL is revoked\n"
    assert slack.app.bot_token == ""
    assert await engine.store.installations.names() == []
    said = await shell("installations", "remove", "T0LOCAL")
    assert (said.code, "not installed in T0LOCAL" in said.err) == (1, True)


async def test_the_doctor_finds_client_installations_and_redirect_in_order(
    shell: Shell, installed: Installations, slack: LocalSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_CONFIG_TOKEN", "xoxe.xoxp-hush")
    said = await shell("doctor", "--app", slack.app.id)
    assert "complete, for HTTP and OAuth" in line(said, "settings")
    assert line(said, "oauth").startswith("ok")
    assert line(said, "redirect").endswith(BACK)
    assert "hush" not in said.out
    slack.app.bot_token = "xoxb-other"
    said = await shell("doctor", "--set", "SLACK_CLIENT_SECRET=wrong")
    assert "bad_client_secret" in line(said, "oauth")
    assert "FAULT  T0LOCAL     Slack says invalid_auth" in said.out


async def test_what_is_sealed_under_one_name_does_not_open_under_another(
    installed: Installations, engine: ResumeEngine, shell: Shell
) -> None:
    sealed = await engine.store.installations.get("T0LOCAL")
    assert sealed is not None
    await engine.store.installations.put("T0EVIL", sealed)
    assert (await shell("installations", "list")).lines[0].startswith("T0EVIL\t?")


async def test_the_local_slack_gives_a_token_for_a_code_once_to_its_own_client(slack: LocalSlack) -> None:
    async with aiohttp.ClientSession() as session:

        async def call(**args: str) -> str:
            async with session.post(f"{slack.api_url}oauth.v2.access", data=args) as reply:
                body = await reply.json()
            return str(body.get("error") or body["team"]["id"])

        async def code(**form: str) -> tuple[int, str]:
            asked = {"client_id": "1.2", "scope": "chat:write", "state": "s", "redirect_uri": BACK}
            data = {**asked, "place": "T0LOCAL", "answer": "allow", **form}
            url = f"{slack.url}/oauth/v2/authorize"
            async with session.post(url, data=data, allow_redirects=False) as page:
                return page.status, page.headers.get("Location", "").rpartition("code=")[2]

        assert (await code(redirect_uri="https://evil.example.com/"))[0] == 400
        assert (await code(scope="admin"))[0] == 400
        assert (await code(client_id="9.9"))[0] == 400
        status, given = await code()
        assert status == 302
        client = {"client_id": "1.2", "client_secret": "local-client-secret", "redirect_uri": BACK}
        assert await call(code=given, **client | {"client_id": "9.9"}) == "invalid_client_id"
        assert await call(code=given, **client | {"client_secret": "no"}) == "bad_client_secret"
        assert await call(code=given, **client | {"redirect_uri": "https://x/"}) == "bad_redirect_uri"
        assert await call(code="nonsense", **client) == "invalid_code"
        assert await call(code=given, **client) == "T0LOCAL"
        assert await call(code=given, **client) == "code_already_used"
        _, late = await code()
        await slack.skip(601)
        assert await call(code=late, **client) == "invalid_code"
        grant = {**client, "grant_type": "refresh_token", "refresh_token": "xoxe-1-no"}
        assert await call(**grant) == "invalid_refresh_token"
