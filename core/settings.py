"""The settings: from overrides, the environment or a `.env` file, all checked before anything starts."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from core import parsing
from core.address import SCHEMES
from core.errors import AskgateError
from core.parsing import MAX_WAIT_MS, MIN_SECRET, MIN_WAIT_MS, WAIT_MS, Bind, Wait, from_text, matching
from core.policy import CHANNEL, TEAM
from core.quiet import Quiet, parse_quiet
from core.redaction import DEFAULT_FIELDS, Patterns, Redaction
from core.strictjson import quoted

ENV_FILE = Path(".env")
DAY_S = 86_400


class SettingsError(AskgateError):
    """A setting is missing or wrong."""


def default_data_dir() -> Path:
    """A user's own folder for askgate's data, by the platform's rule (macOS, else XDG)."""
    try:
        home = Path.home()
    except RuntimeError:  # a service's user may have none
        return Path("/var/lib/askgate")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "askgate"
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    # XDG: a path that is not absolute is invalid and to be ignored.
    return (named if named.is_absolute() else home / ".local" / "share") / "askgate"


def _name(field: str) -> str:
    return field.upper() if field.startswith("slack_") else f"ASKGATE_{field.upper()}"


class Settings(BaseSettings):
    """Every setting of askgate. In the environment `bind` is `ASKGATE_BIND`; those of Slack have no prefix.

    A field's description says what is wanted of its text. An empty text counts as unset.
    """

    model_config = SettingsConfigDict(
        alias_generator=_name,
        case_sensitive=True,
        enable_decoding=False,
        env_file_encoding="utf-8",
        extra="ignore",
        arbitrary_types_allowed=True,
        frozen=True,
        hide_input_in_errors=True,
    )

    slack_bot_token: Annotated[
        SecretStr | None, matching(r"xoxb-[!-~]+", 'does not begin with "xoxb-", or has blanks in it')
    ] = Field(None, description='the bot token of the app, "xoxb-…" (app settings, OAuth & Permissions)')
    slack_client_id: Annotated[str | None, matching(r"[0-9]+\.[0-9]+", "is no client id")] = Field(
        None, description='the client id of the app, such as "1234567890.1234567890" (Basic Information)'
    )
    slack_client_secret: Annotated[SecretStr | None, matching(r"[!-~]+", "has blanks in it")] = Field(
        None, description="the client secret of the app (app settings, Basic Information)"
    )
    slack_signing_secret: Annotated[SecretStr | None, matching(r"[!-~]+", "has blanks in it")] = Field(
        None, description="the signing secret of the app (app settings, Basic Information)"
    )
    slack_app_token: Annotated[
        SecretStr | None, matching(r"xapp-[!-~]+", 'does not begin with "xapp-", or has blanks in it')
    ] = Field(None, description='an app-level token, "xapp-…", with the scope connections:write')
    slack_api_url: Annotated[str, from_text(parsing.http_url)] = Field(
        "https://slack.com/api/", description="the base URL of a Slack Web API"
    )

    redis_url: Annotated[SecretStr | None, from_text(parsing.redis_url)] = Field(
        None, description=f"a URL that begins with {', '.join(f'{scheme}://' for scheme in SCHEMES)}"
    )
    redis_wait: Annotated[Wait | None, from_text(parsing.wait)] = Field(
        None,
        description=f"how many replicas, 1 to 99, and for how many ms ({MIN_WAIT_MS} to {MAX_WAIT_MS}, else {WAIT_MS})"
        ' to wait for them, such as "1" or "2:300"',
    )
    data_dir: Annotated[Path, from_text(lambda text: Path(text).expanduser().absolute())] = Field(
        default_factory=default_data_dir, description="a folder that askgate may write to"
    )
    partitions: int = Field(16, ge=1, le=1024, description="a whole number from 1 to 1024")
    retention_days: int = Field(30, ge=1, le=36_500, description="a whole number of days from 1 to 36500")
    audit_days: int = Field(400, ge=1, le=36_500, description="a whole number of days from 1 to 36500")

    audit_values: Annotated[bool, from_text(parsing.switch)] = Field(False, description='"on" or "off"')
    redact_fields: Annotated[tuple[str, ...], from_text(parsing.redact_fields)] = Field(
        DEFAULT_FIELDS, description='names of fields, such as "password,api_key", or "none"'
    )
    redact_patterns: Annotated[Patterns | None, from_text(parsing.redact_patterns)] = Field(
        None,
        description="a file of regular expressions (RE2), one a line, none of which finds the empty text",
    )

    bind: Annotated[Bind, from_text(parsing.bind)] = Field(
        Bind("127.0.0.1", 8080), description='an address and a port, such as "127.0.0.1:8080" or "[::1]:8080"'
    )
    api_keys: Annotated[dict[str, SecretStr], from_text(parsing.api_keys)] = Field(
        default_factory=dict,
        description=f'"name=secret[,name=secret]" or "@file" with one a line, secrets of {MIN_SECRET} or more'
        " characters, no name or secret twice",
    )
    encryption_keys: Annotated[tuple[SecretStr, ...], from_text(parsing.encryption_keys)] = Field(
        (),
        description='"key[,key]" or "@file" with one a line: 32 bytes each in URL-safe base64'
        " (openssl rand -base64 32 | tr +/ -_), of which the first encrypts and all decrypt",
    )
    default_team: Annotated[str | None, matching(TEAM, "is no team id")] = Field(
        None, description='the id of a workspace, "T…", or of an organisation, "E…"'
    )
    callback_allow: Annotated[tuple[IPv4Network | IPv6Network | str, ...], from_text(parsing.reachable)] = (
        Field((), description='host names, addresses and networks, such as "localhost,10.0.0.0/8"')
    )

    default_channel: Annotated[str | None, matching(CHANNEL, "is no channel id")] = Field(
        None, description='a channel id, such as "C0123456789" (in Slack: the channel\'s details, at the end)'
    )
    fallback_channel: Annotated[str | None, matching(CHANNEL, "is no channel id")] = Field(
        None, description='a channel id, such as "C0123456789" (in Slack: the channel\'s details, at the end)'
    )
    default_timeout_s: int = Field(
        DAY_S, ge=1, le=30 * DAY_S, description=f"a whole number of seconds from 1 to {30 * DAY_S} (30 days)"
    )
    admins: Annotated[tuple[str, ...], from_text(parsing.admins)] = Field(
        (), description='ids of users and user groups, such as "U012AB3CD,T1:U2,S012AB3CD"'
    )
    hosts: Annotated[Path | None, from_text(parsing.toml_file)] = Field(
        None, description="the path of a TOML file"
    )

    language: Annotated[Literal["en", "es"], from_text(str.lower)] = Field(
        "en", description='the language that askgate speaks in Slack: "en" (English) or "es" (Spanish)'
    )

    quiet_hours: Annotated[Quiet | None, from_text(parse_quiet)] = Field(
        None,
        description='hours, weekends or both, and a time zone or each person\'s own, such as "22:00-07:00",'
        ' "weekends" or "22:00-07:00 weekends Europe/Berlin"',
    )

    log_level: Annotated[Literal["debug", "info", "warning", "error"], from_text(str.lower)] = Field(
        "info", description="debug, info, warning or error"
    )
    grace_s: float = Field(
        10, ge=0, le=600, allow_inf_nan=False, description="how long a stop waits for work: 0 to 600 seconds"
    )

    @property
    def oauth(self) -> bool:
        """Whether workspaces install askgate by themselves, instead of one whose bot token is set."""
        return self.slack_client_id is not None

    @property
    def redaction(self) -> Redaction:
        """What is masked in logs, in the audit and on cards."""
        return Redaction.of(self.redact_fields, self.redact_patterns)

    @field_validator("*", mode="before")
    @classmethod
    def _blank_is_unset(cls, value: Any, info: Any) -> Any:
        if not isinstance(value, str):
            return value
        return value.strip() or cls.model_fields[info.field_name].get_default(call_default_factory=True)


NAMES: dict[str, str] = {_name(field): field for field in Settings.model_fields}
"""The name of each setting in the environment, and its field."""


def load_settings(
    overrides: Mapping[str, str] | None = None, *, need_slack: bool = False, env_file: Path = ENV_FILE
) -> Settings:
    """The settings: `overrides`, by their names in the environment, before the environment before `env_file`.

    With `need_slack` also what it takes to serve a workspace has to be set. Raises SettingsError, in one
    line, for the first that is wrong or missing, and for names with `ASKGATE_` in front that are no settings.
    """
    given: dict[str, Any] = dict(overrides or {})
    for name in given:
        if name not in NAMES:
            raise _unknown(name)
    for name in [*os.environ, *_names_in(env_file)]:
        if name.upper().startswith("ASKGATE_") and name not in NAMES:
            raise _unknown(name)
    try:
        settings = Settings(_env_file=env_file, **given)
    except ValidationError as error:
        # Without its cause, which holds what was given.
        raise _wrong(error.errors()[0]) from None
    if need_slack:
        _check_slack(settings)
    return settings


def _names_in(env_file: Path) -> list[str]:
    try:
        return list(dotenv_values(env_file, interpolate=False, encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{env_file}: cannot be read ({reason}); wanted lines of NAME=value") from None


def _check_slack(settings: Settings) -> None:
    if settings.oauth:
        _check_oauth(settings)
    elif settings.slack_bot_token is None:
        raise _missing("SLACK_BOT_TOKEN")
    if settings.slack_signing_secret is None and settings.slack_app_token is None:
        socket_mode = f"or for Socket Mode SLACK_APP_TOKEN, {_wanted('SLACK_APP_TOKEN')}"
        raise SettingsError(f"{_missing('SLACK_SIGNING_SECRET')}; {socket_mode}")
    if not settings.api_keys:
        raise _missing("ASKGATE_API_KEYS")


def _check_oauth(settings: Settings) -> None:
    if settings.slack_bot_token is not None:
        raise SettingsError(
            "SLACK_BOT_TOKEN: set beside SLACK_CLIENT_ID; wanted one of them: a bot token for one workspace, or OAuth"
        )
    if settings.slack_client_secret is None:
        raise _missing("SLACK_CLIENT_SECRET")
    if not settings.encryption_keys:
        raise _missing("ASKGATE_ENCRYPTION_KEYS")
    for admin in settings.admins:
        if ":" not in admin:
            raise SettingsError(
                f"ASKGATE_ADMINS: {quoted(admin)} is of no workspace; wanted people with their teams, such as"
                ' "T012AB3CD:U012AB3CD", for with OAuth there may be several'
            )


def _wanted(name: str) -> str:
    return Settings.model_fields[NAMES[name]].description or ""


def _missing(name: str) -> SettingsError:
    return SettingsError(f"{name}: not set; wanted {_wanted(name)}")


def _wrong(error: ErrorDetails) -> SettingsError:
    name = str(error["loc"][0])
    # Every check of a secret is one of ours and says what is wrong itself, so what was given may be shown.
    problem = (
        str(error["ctx"]["error"]) if error["type"] == "value_error" else f"got {quoted(str(error['input']))}"
    )
    return SettingsError(f"{name}: {problem}; wanted {_wanted(name)}")


def _unknown(name: str) -> SettingsError:
    near = difflib.get_close_matches(name.upper(), NAMES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"wanted one of {', '.join(NAMES)}"
    return SettingsError(f"{name}: there is no such setting; {hint}")
