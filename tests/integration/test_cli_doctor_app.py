"""What `askgate doctor` says of the live app: its manifest, its address, and what Slack's validator takes."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.commands import samples
from bot.manifest import PATH, manifest
from bot.sandbox.slack import LocalSlack
from bot.service import Service
from core.embedded import EmbeddedServer
from core.settings import load_settings
from tests.integration.test_cli_doctor import SECRETS, free_port, line, look
from tests.shell import Shell, bare

Json = dict[str, Any]
CONFIG = "xoxe.xoxp-hush"
APP_TOKEN = "xapp-1-{app}-hush"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    async with EmbeddedServer(tmp_path / "server") as server:
        yield server


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack(bot_token=SECRETS["SLACK_BOT_TOKEN"], config_token=CONFIG) as slack:
        slack.app.app_token = APP_TOKEN.format(app=slack.app.id)
        slack.install(manifest(None))
        yield slack


@pytest.fixture
def doctor(
    server: EmbeddedServer, slack: LocalSlack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Shell:
    """For Socket Mode, with a configuration token."""
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("SLACK_CONFIG_TOKEN", CONFIG)
    return Shell(
        {
            **SECRETS,
            "SLACK_APP_TOKEN": str(slack.app.app_token),
            "SLACK_API_URL": slack.api_url,
            "ASKGATE_REDIS_URL": server.url,
            "ASKGATE_BIND": f"127.0.0.1:{free_port()}",
        }
    )


async def test_an_app_that_was_made_from_the_manifest_has_no_fault(doctor: Shell) -> None:
    said = await look(doctor)
    assert said.code == 0
    assert line(said, "scopes").endswith("all that the manifest asks for")
    assert "app_home_opened" in line(said, "events")
    assert "/gates" in line(said, "commands")
    assert line(said, "switches").endswith("Socket Mode")
    assert all(text.startswith("ok") for text in said.lines)


def without(*path: Any) -> Callable[[Json], None]:
    def change(made: Json) -> None:
        for name in path[:-1]:
            made = made[name]
        del made[path[-1]]

    return change


def having(value: Any, *path: Any) -> Callable[[Json], None]:
    def change(made: Json) -> None:
        for name in path[:-1]:
            made = made[name]
        made[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "what", "says"),
    [
        (having([], "settings", "event_subscriptions", "bot_events"), "events", "missing: app_home_opened"),
        (without("settings", "event_subscriptions"), "events", "missing: app_home_opened"),
        (having([], "features", "slash_commands"), "commands", "missing: /gates"),
        (having(False, "settings", "interactivity", "is_enabled"), "switches", "is_enabled is False"),
        (without("features", "app_home"), "switches", "home_tab_enabled is None"),
        (having(False, "settings", "socket_mode_enabled"), "switches", "socket_mode_enabled is False"),
        (having(True, "settings", "token_rotation_enabled"), "switches", "token_rotation_enabled is True"),
    ],
)
async def test_what_the_live_app_lacks_is_named(
    doctor: Shell, slack: LocalSlack, change: Callable[[Json], None], what: str, says: str
) -> None:
    made = copy.deepcopy(manifest(None))
    change(made)
    slack.install(made)
    found = line(await look(doctor), what)
    assert found.startswith("FAULT")
    assert says in found


async def test_what_the_live_app_has_beside_is_no_fault(doctor: Shell, slack: LocalSlack) -> None:
    made = copy.deepcopy(manifest(None))
    made["settings"]["event_subscriptions"]["bot_events"].append("team_join")
    made["oauth_config"]["scopes"]["bot"].append("team:read")
    slack.install(made)
    said = await look(doctor)
    assert said.code == 0
    assert line(said, "events").endswith("not needed: team_join")
    assert line(said, "scopes").endswith("not needed: team:read")


async def test_a_scope_that_was_not_granted_is_named(doctor: Shell, slack: LocalSlack) -> None:
    made = copy.deepcopy(manifest(None))
    made["oauth_config"]["scopes"]["bot"].remove("chat:write")
    slack.install(made)
    assert "missing: chat:write" in line(await look(doctor), "scopes")


async def test_a_configuration_token_that_slack_does_not_take_is_a_fault(
    doctor: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_CONFIG_TOKEN", "xoxe.xoxp-hush-old")
    assert "Slack says invalid_auth" in line(await look(doctor), "manifest")
    monkeypatch.setenv("SLACK_CONFIG_TOKEN", SECRETS["SLACK_BOT_TOKEN"])
    assert "Slack says not_allowed_token_type" in line(await look(doctor), "manifest")


async def test_another_apps_id_is_a_fault(doctor: Shell) -> None:
    assert "Slack says invalid_app_id of A9" in line(await look(doctor, "--app", "A9"), "manifest")


# over HTTP


@pytest.fixture
async def serving(doctor: Shell, slack: LocalSlack) -> AsyncIterator[Service]:
    """askgate itself, over HTTP, at the address that the doctor is told."""
    del doctor.settings["SLACK_APP_TOKEN"]
    async with Service(load_settings(doctor.settings, need_slack=True)) as service:
        yield service


async def test_an_address_where_askgate_answers_is_sound_and_another_is_not(
    doctor: Shell, slack: LocalSlack, serving: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serving.web is not None
    # the public address ends TLS; here there is none
    monkeypatch.setattr("bot.commands.doctor.public_url", lambda url: url)
    said = await look(doctor, "--url", serving.web.url)
    assert line(said, "url").endswith(f"{serving.web.url}{PATH} answers, and asks for Slack's signature")
    said = await look(doctor, "--url", slack.url)
    assert "not askgate's 401" in line(said, "url")
    said = await look(doctor, "--url", f"http://127.0.0.1:{free_port()}")
    assert "cannot be reached" in line(said, "url")


async def test_the_addresses_of_the_live_app_are_one_and_askgate_answers_there(
    doctor: Shell, slack: LocalSlack, serving: Service
) -> None:
    assert serving.web is not None
    made = manifest(serving.web.url)
    slack.install(made)
    said = await look(doctor)
    assert line(said, "switches").endswith(f"all to {serving.web.url}{PATH}")
    assert line(said, "url").startswith("ok")
    made["features"]["slash_commands"][0]["url"] = "https://elsewhere.example.com/slack/events"
    slack.install(made)
    found = line(await look(doctor), "switches")
    assert found.startswith("FAULT")
    assert "/gates's url is https://elsewhere.example.com/slack/events" in found


async def test_a_public_url_that_slack_could_not_call_is_refused(doctor: Shell) -> None:
    said = await doctor("doctor", "--url", "http://askgate.example.com")
    assert (said.code, said.out) == (2, "")
    assert "wanted the public base URL" in said.err


# blocks


async def test_samples_of_every_kind_are_shown_to_the_validator_only_when_asked(
    doctor: Shell, slack: LocalSlack
) -> None:
    await look(doctor)
    assert slack.called("blocks.validate") == []
    said = await look(doctor, "--blocks")
    shown = slack.called("blocks.validate")
    assert len(shown) == len([*samples.messages(), *samples.views()]) > 12
    assert line(said, "blocks").endswith(f"Slack takes all {len(shown)} sample cards and modals")
    assert slack.called("chat.postMessage") == []


async def test_what_the_validator_refuses_is_said_with_its_place(
    doctor: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"text": "x", "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 200}}]}
    monkeypatch.setattr(samples, "messages", lambda: [wrong])
    found = line(await look(doctor, "--blocks"), "blocks")
    assert found.startswith("FAULT")
    assert "Slack says invalid_message of message 1: /blocks/0/text/text must be less than 151" in found
