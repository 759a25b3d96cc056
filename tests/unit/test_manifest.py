"""The manifest asks for exactly what the code needs, and the file in the repository is the generated one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from slack_sdk.web.async_client import AsyncWebClient

import bot
from bot.listeners.commands import COMMAND
from bot.manifest import (
    APP_SCOPES,
    EVENTS,
    EXAMPLE_URL,
    PATH,
    SCOPES,
    bot_scopes,
    manifest,
    public_url,
    written,
)
from core.settings import SettingsError

BOT = Path(bot.__file__).parent
ROOT = BOT.parent


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every call of a method in the bot's own code, without the local Slack, the demo and the shell commands."""
    for path in BOT.rglob("*.py"):
        if path.relative_to(BOT).parts[0] in ("sandbox", "demo", "commands"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node.func.attr, node


def web_api() -> dict[str, str]:
    """The methods of Slack's Web API by their names in slack_sdk: `chat_postMessage` is `chat.postMessage`."""
    return {
        name: name.replace("_", ".")
        for name in dir(AsyncWebClient)
        if "_" in name and not name.startswith("_")
    }


def registered(kind: str) -> set[str]:
    """What Bolt's `app.event("…")` and the like are given as a literal."""
    return {
        str(node.args[0].value)
        for name, node in calls()
        if name == kind and node.args and isinstance(node.args[0], ast.Constant)
    }


def test_manifest_yml_is_what_the_command_prints() -> None:
    assert (ROOT / "manifest.yml").read_text() == written(EXAMPLE_URL), (
        f"run: askgate manifest --url {EXAMPLE_URL} > manifest.yml"
    )


def test_the_tables_of_scopes_have_exactly_the_methods_that_the_bot_calls() -> None:
    known = web_api()
    called = {known[name] for name, _ in calls() if name in known}
    assert called == {*SCOPES, *APP_SCOPES}
    assert not {*SCOPES} & {*APP_SCOPES}


def test_the_manifest_asks_for_the_scopes_of_those_methods_and_no_more() -> None:
    asked = manifest(EXAMPLE_URL)["oauth_config"]["scopes"]["bot"]
    assert asked == bot_scopes()
    assert set(asked) == {"commands"} | {scope for scopes in SCOPES.values() for scope in scopes}


def test_every_event_that_is_listened_to_is_subscribed_and_no_other() -> None:
    assert registered("event") == set(EVENTS)
    assert manifest(EXAMPLE_URL)["settings"]["event_subscriptions"]["bot_events"] == list(EVENTS)


def test_the_slash_command_and_the_home_tab_are_there() -> None:
    features = manifest(EXAMPLE_URL)["features"]
    assert [command["command"] for command in features["slash_commands"]] == [COMMAND]
    assert features["app_home"]["home_tab_enabled"]


def test_over_http_all_of_slack_comes_to_the_one_door() -> None:
    made = manifest(EXAMPLE_URL)
    settings = made["settings"]
    assert not settings["socket_mode_enabled"]
    assert settings["interactivity"] == {"is_enabled": True, "request_url": EXAMPLE_URL + PATH}
    assert settings["event_subscriptions"]["request_url"] == EXAMPLE_URL + PATH
    assert made["features"]["slash_commands"][0]["url"] == EXAMPLE_URL + PATH


def test_socket_mode_needs_no_address() -> None:
    made = manifest(None)
    assert made["settings"]["socket_mode_enabled"]
    assert "https://" not in written(None)
    assert yaml.safe_load(written(None)) == made


def test_tokens_do_not_rotate_and_the_app_is_for_one_workspace() -> None:
    settings = manifest(None)["settings"]
    assert settings["token_rotation_enabled"] is False
    assert settings["org_deploy_enabled"] is False


@pytest.mark.parametrize(
    "given", ["https://a.example", "https://a.example/", "https://a.example/slack/events"]
)
def test_the_public_url_is_the_base(given: str) -> None:
    assert public_url(given) == "https://a.example"


@pytest.mark.parametrize(
    "given", ["http://a.example", "a.example", "https://", "https://a b", "https://a?x=1"]
)
def test_a_url_that_slack_could_not_call_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match=r"--url: got .*; wanted the public base URL"):
        public_url(given)
