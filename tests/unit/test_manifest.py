"""The manifest asks for exactly what the code needs, and the file in the repository is the generated one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

import bot
from bot.app import build_app
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
from bot.sandbox.scopes import KINDS, NEEDED
from core.engine import ResumeEngine
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


class Listening(AsyncApp):
    """The real app, which notes down what its listeners are for."""

    def __init__(self, *args: Any, **more: Any) -> None:
        self.heard: list[tuple[str, Any]] = []
        super().__init__(*args, **more)

    def event(self, event: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(("event", event))
        return super().event(event, *args, **more)

    def message(self, *args: Any, **more: Any) -> Any:
        self.heard.append(("event", "message"))
        return super().message(*args, **more)

    def command(self, command: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(("command", command))
        return super().command(command, *args, **more)

    def shortcut(self, constraints: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(("shortcut", constraints))
        return super().shortcut(constraints, *args, **more)

    def global_shortcut(self, callback_id: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(("global", callback_id))
        return super().global_shortcut(callback_id, *args, **more)

    def message_shortcut(self, callback_id: Any, *args: Any, **more: Any) -> Any:
        self.heard.append(("message", callback_id))
        return super().message_shortcut(callback_id, *args, **more)


@pytest.fixture
async def heard(
    monkeypatch: pytest.MonkeyPatch, new_engine: Callable[..., ResumeEngine]
) -> list[tuple[str, Any]]:
    """What the real app listens to, as kinds and names; what it only acknowledges (a pattern for all) left out."""
    monkeypatch.setattr("bot.app.AsyncApp", Listening)

    async def leave(_code: str, _since_s: int) -> None: ...

    app = build_app(
        new_engine(), AsyncWebClient("xoxb-test"), signing_secret="s", leave=leave, hosts=lambda _: None
    )
    assert isinstance(app, Listening)
    return [(kind, name) for kind, name in app.heard if not isinstance(name, re.Pattern)]


def names(heard: list[tuple[str, Any]], kind: str) -> set[Any]:
    return {name["type"] if isinstance(name, dict) else name for found, name in heard if found == kind}


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
    wanted = [*SCOPES.values(), *EVENTS.values()]
    assert set(asked) == {"commands"} | {scope for scopes in wanted for scope in scopes}


def test_the_local_slack_knows_the_scope_of_each_method_that_the_bot_calls() -> None:
    for name, scopes in SCOPES.items():
        scope = NEEDED.get(name)
        kinds = (*KINDS.values(), "mpim") if scope and "{kind}" in scope else ("",)
        assert set(scopes) == {scope.format(kind=kind) for kind in kinds if scope}, name


def test_every_event_that_is_listened_to_is_subscribed_and_no_other(heard: list[tuple[str, Any]]) -> None:
    subscribed = manifest(EXAMPLE_URL)["settings"]["event_subscriptions"]["bot_events"]
    assert subscribed == list(EVENTS)
    # messages are subscribed to by the kind of their conversation
    assert {event.partition(".")[0] for event in subscribed} == names(heard, "event")


def test_every_command_that_is_listened_to_is_there_and_no_other(heard: list[tuple[str, Any]]) -> None:
    made = manifest(EXAMPLE_URL)["features"]["slash_commands"]
    assert {command["command"] for command in made} == names(heard, "command") == {COMMAND}


def test_every_shortcut_that_is_listened_to_is_there_and_no_other(heard: list[tuple[str, Any]]) -> None:
    made = manifest(EXAMPLE_URL)["features"].get("shortcuts", [])
    by_kind = {kind: {s["callback_id"] for s in made if s["type"] == kind} for kind in ("global", "message")}
    either = names(heard, "shortcut")
    assert by_kind["global"] | by_kind["message"] == either | names(heard, "global") | names(heard, "message")
    assert by_kind["global"] - either == names(heard, "global") - either
    assert by_kind["message"] - either == names(heard, "message") - either


def test_the_home_tab_is_there() -> None:
    assert manifest(EXAMPLE_URL)["features"]["app_home"]["home_tab_enabled"]


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
