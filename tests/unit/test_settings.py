"""Settings: every one is checked, a wrong one is named in one line, and no secret is ever shown."""

import os
from ipaddress import ip_network
from pathlib import Path

import pytest

from core.parsing import Bind, Wait
from core.redaction import DEFAULT_FIELDS, MASK, NOTHING, Redaction
from core.settings import NAMES, SettingsError, default_data_dir, load_settings

KEY_1, KEY_2 = "A" * 43 + "=", "B" * 42 + "A="
SECRET = "s3cret-s3cret-s3cret"
SERVE = {
    "SLACK_BOT_TOKEN": "xoxb-test",
    "SLACK_SIGNING_SECRET": "signing",
    "ASKGATE_API_KEYS": f"agent={SECRET}",
}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting in the environment, no `.env` file."""
    for name in os.environ:
        if name.upper().startswith(("ASKGATE_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(overrides: dict[str, str], *, need_slack: bool = False) -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings(overrides, need_slack=need_slack)
    line = str(refused.value)
    assert "\n" not in line
    assert refused.value.__cause__ is None
    return line


def test_without_any_setting_the_defaults_hold() -> None:
    settings = load_settings()
    assert settings.bind == Bind("127.0.0.1", 8080)
    assert settings.redis_url is None
    assert settings.data_dir == default_data_dir()
    assert (settings.partitions, settings.retention_days, settings.audit_days) == (16, 30, 400)
    assert (settings.default_timeout_s, settings.grace_s, settings.log_level) == (86_400, 10, "info")
    assert settings.slack_api_url == "https://slack.com/api/"
    assert (settings.api_keys, settings.admins, settings.callback_allow) == ({}, (), ())


def test_every_setting_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text("")
    patterns = tmp_path / "patterns"
    patterns.write_text("# keys\n\nsk-[a-z]+\n")
    texts = {
        "SLACK_BOT_TOKEN": "xoxb-test",
        "SLACK_CLIENT_ID": "123.456",
        "SLACK_CLIENT_SECRET": "client-secret",
        "SLACK_SIGNING_SECRET": " signing\n",
        "SLACK_APP_TOKEN": "xapp-test",
        "SLACK_API_URL": "http://127.0.0.1:9000/api",
        "ASKGATE_REDIS_URL": "redis+sentinel://:pw@a:26379,b:26379/main",
        "ASKGATE_REDIS_WAIT": "2:300",
        "ASKGATE_DATA_DIR": "data",
        "ASKGATE_BIND": "[::1]:0",
        "ASKGATE_API_KEYS": f"agent={SECRET}, ci.2 = {SECRET}=x=",
        "ASKGATE_ENCRYPTION_KEYS": f"{KEY_1}, {KEY_2}",
        "ASKGATE_DEFAULT_TEAM": "T0123",
        "ASKGATE_DEFAULT_CHANNEL": "C0123",
        "ASKGATE_FALLBACK_CHANNEL": "C0456",
        "ASKGATE_DEFAULT_TIMEOUT_S": "60",
        "ASKGATE_ADMINS": "U1, T1:U2,S3,",
        "ASKGATE_HOSTS": str(hosts),
        "ASKGATE_CALLBACK_ALLOW": "127.0.0.0/8,10.1.2.3/8,::1,Agent.local",
        "ASKGATE_PARTITIONS": "1024",
        "ASKGATE_RETENTION_DAYS": "1",
        "ASKGATE_AUDIT_DAYS": "2",
        "ASKGATE_AUDIT_VALUES": "On",
        "ASKGATE_REDACT_FIELDS": "pin, X-Code",
        "ASKGATE_REDACT_PATTERNS": str(patterns),
        "ASKGATE_QUIET_HOURS": "22:00-07:00 Europe/Berlin",
        "ASKGATE_LANGUAGE": "ES",
        "ASKGATE_LOG_LEVEL": "DEBUG",
        "ASKGATE_GRACE_S": "0.5",
    }
    assert texts.keys() == NAMES.keys()
    for name, text in texts.items():
        monkeypatch.setenv(name, text)
    settings = load_settings()
    assert settings.oauth
    assert settings.slack_client_secret is not None
    assert settings.slack_client_secret.get_secret_value() == "client-secret"
    assert [key.get_secret_value() for key in settings.encryption_keys] == [KEY_1, KEY_2]
    assert settings.default_team == "T0123"
    assert settings.slack_signing_secret is not None
    assert settings.slack_signing_secret.get_secret_value() == "signing"
    assert settings.slack_api_url == "http://127.0.0.1:9000/api/"
    assert settings.redis_url is not None
    assert settings.redis_url.get_secret_value() == texts["ASKGATE_REDIS_URL"]
    assert settings.redis_wait == Wait(2, 300)
    assert settings.data_dir == tmp_path / "data"
    assert settings.bind == Bind("::1", 0)
    assert {name: key.get_secret_value() for name, key in settings.api_keys.items()} == {
        "agent": SECRET,
        "ci.2": f"{SECRET}=x=",
    }
    assert (settings.default_channel, settings.fallback_channel) == ("C0123", "C0456")
    assert settings.default_timeout_s == 60
    assert settings.admins == ("U1", "T1:U2", "S3")
    assert settings.hosts == hosts
    assert settings.callback_allow == (
        ip_network("127.0.0.0/8"),
        ip_network("10.0.0.0/8"),
        ip_network("::1/128"),
        "agent.local",
    )
    assert (settings.partitions, settings.retention_days, settings.audit_days) == (1024, 1, 2)
    assert (settings.language, settings.log_level, settings.grace_s) == ("es", "debug", 0.5)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (
            "SLACK_BOT_TOKEN",
            "xoxp-1-secret",
            'does not begin with "xoxb-", or has blanks in it; wanted the bot',
        ),
        ("SLACK_SIGNING_SECRET", "two words", "has blanks in it; wanted the signing secret of the app"),
        (
            "SLACK_APP_TOKEN",
            "xoxb-1-secret",
            'does not begin with "xapp-", or has blanks in it; wanted an app-level',
        ),
        ("SLACK_API_URL", "slack.com/api", "is no http or https URL; wanted the base URL of a Slack Web API"),
        (
            "ASKGATE_REDIS_URL",
            "http://:pw@h",
            "has another scheme or none; wanted a URL that begins with redis://,",
        ),
        ("ASKGATE_REDIS_URL", "valkey+unix:///s", "has another scheme or none; wanted"),
        ("ASKGATE_REDIS_URL", "unix://", "has no absolute path after unix://; wanted"),
        ("ASKGATE_REDIS_URL", "unix://rel/sock", "has no absolute path after unix://; wanted"),
        ("ASKGATE_REDIS_URL", "redis://:pw\u2100@h", "is no URL; wanted"),
        ("ASKGATE_REDIS_URL", "redis://:pw@", "names no server; wanted"),
        ("ASKGATE_REDIS_URL", f"redis+sentinel://:{SECRET}@a:1,b:2", "names no service"),
        (
            "ASKGATE_REDIS_WAIT",
            "0",
            'got "0"; wanted how many replicas, 1 to 99, and for how many ms (10 to 600',
        ),
        ("ASKGATE_REDIS_WAIT", "1:601", 'got "1:601"; wanted'),
        ("ASKGATE_REDIS_WAIT", "1:", 'got "1:"; wanted'),
        ("ASKGATE_REDIS_WAIT", "all", 'got "all"; wanted'),
        ("ASKGATE_BIND", "8080", 'got "8080"; wanted an address and a port, such as "127.0.0.1:8080"'),
        ("ASKGATE_BIND", ":8080", 'got ":8080"; wanted'),
        ("ASKGATE_BIND", "::1:8080", 'got "::1:8080"; wanted'),
        ("ASKGATE_BIND", "localhost:65536", 'got "localhost:65536"; wanted'),
        ("ASKGATE_DEFAULT_CHANNEL", "#general", "is no channel id; wanted a channel id"),
        ("ASKGATE_DEFAULT_TIMEOUT_S", "1h", 'got "1h"; wanted a whole number of seconds from 1 to 2592000'),
        ("ASKGATE_DEFAULT_TIMEOUT_S", "2592001", 'got "2592001"; wanted'),
        ("ASKGATE_ADMINS", "U1,bob", 'got "bob"; wanted ids of users and user groups'),
        ("ASKGATE_HOSTS", "hosts.toml", 'there is no file "hosts.toml"; wanted the path of a TOML file'),
        (
            "ASKGATE_CALLBACK_ALLOW",
            "10.0.0.0/33",
            'got "10.0.0.0/33"; wanted host names, addresses and networks',
        ),
        ("ASKGATE_CALLBACK_ALLOW", "127.0.0.300", 'got "127.0.0.300"; wanted'),
        ("ASKGATE_PARTITIONS", "many", 'got "many"; wanted a whole number from 1 to 1024'),
        ("ASKGATE_PARTITIONS", "0", 'got "0"; wanted a whole number from 1 to 1024'),
        ("ASKGATE_RETENTION_DAYS", "-1", 'got "-1"; wanted a whole number of days'),
        ("ASKGATE_AUDIT_DAYS", "0", 'got "0"; wanted a whole number of days'),
        ("ASKGATE_LANGUAGE", "fr", 'got "fr"; wanted the language that askgate speaks in Slack: "en" (Eng'),
        ("ASKGATE_LOG_LEVEL", "loud\nvery", r'got "loud\nvery"; wanted debug, info, warning or error'),
        ("ASKGATE_GRACE_S", "inf", 'got "inf"; wanted how long a stop waits'),
        ("ASKGATE_API_KEYS", SECRET, 'entry 1 has no "="; wanted "name=secret[,name=secret]" or "@file"'),
        ("ASKGATE_API_KEYS", f"a b={SECRET}", "entry 1 has a name that is not 1 to 64 of"),
        ("ASKGATE_API_KEYS", f"a={SECRET},b=s3cret", "entry 2 has a secret of 6 characters; wanted"),
        ("ASKGATE_API_KEYS", f"a={SECRET} {SECRET}", "entry 1 has a secret with blanks"),
        ("ASKGATE_API_KEYS", f"a={SECRET},a={SECRET}x", "entry 2 repeats an earlier name; wanted"),
        ("ASKGATE_API_KEYS", f"a={SECRET},b={SECRET}", "entry 2 repeats an earlier secret; wanted"),
        ("ASKGATE_API_KEYS", ",", "names no key; wanted"),
        ("ASKGATE_API_KEYS", "@keys", 'cannot read the file "keys" (No such file or directory); wanted'),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_wanted_and_no_secret(name: str, text: str, line: str) -> None:
    said = refusal({name: text})
    assert said.startswith(f"{name}: {line}")
    for secret in ("s3cret", "1-secret", "pw", "two words"):
        assert secret not in said


@pytest.mark.parametrize(
    ("missing", "line"),
    [
        ("SLACK_BOT_TOKEN", "SLACK_BOT_TOKEN: not set; wanted the bot token"),
        ("SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET: not set; wanted the signing secret"),
        ("ASKGATE_API_KEYS", 'ASKGATE_API_KEYS: not set; wanted "name=secret'),
    ],
)
def test_serving_a_workspace_names_what_is_missing(missing: str, line: str) -> None:
    load_settings(SERVE, need_slack=True)
    for overrides in ({k: v for k, v in SERVE.items() if k != missing}, {**SERVE, missing: " "}):
        assert refusal(overrides, need_slack=True).startswith(line)
        load_settings(overrides)


def test_an_app_token_stands_for_the_signing_secret() -> None:
    socket_mode = {**SERVE, "SLACK_APP_TOKEN": "xapp-test"}
    del socket_mode["SLACK_SIGNING_SECRET"]
    load_settings(socket_mode, need_slack=True)
    del socket_mode["SLACK_APP_TOKEN"]
    assert "SLACK_APP_TOKEN" in refusal(socket_mode, need_slack=True)


def test_overrides_come_before_the_environment_and_that_before_the_env_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        'ASKGATE_PARTITIONS=1\nASKGATE_AUDIT_DAYS=11\nASKGATE_BIND="a:1" # x\nOTHER=1\n'
    )
    monkeypatch.setenv("ASKGATE_PARTITIONS", "2")
    monkeypatch.setenv("ASKGATE_AUDIT_DAYS", "12")
    settings = load_settings({"ASKGATE_PARTITIONS": "3"})
    assert (settings.partitions, settings.audit_days, settings.bind) == (3, 12, Bind("a", 1))
    monkeypatch.setenv("ASKGATE_AUDIT_DAYS", "")
    assert load_settings().audit_days == 400


def test_a_name_that_is_no_setting_is_refused_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = "there is no such setting; did you mean ASKGATE_PARTITIONS?"
    assert refusal({"ASKGATE_PARTITION": "1"}) == f"ASKGATE_PARTITION: {line}"
    assert refusal({"PATH": "1"}).startswith(
        "PATH: there is no such setting; wanted one of SLACK_BOT_TOKEN, "
    )
    monkeypatch.setenv("askgate_partitions", "1")
    assert refusal({}) == f"askgate_partitions: {line}"
    monkeypatch.delenv("askgate_partitions")
    (tmp_path / ".env").write_text("ASKGATE_PARTITIONSS=1\n")
    assert refusal({}) == f"ASKGATE_PARTITIONSS: {line}"


def test_an_env_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"ASKGATE_BIND=\xff\n")
    assert refusal({}) == ".env: cannot be read (it is not UTF-8); wanted lines of NAME=value"


def test_keys_in_a_file_are_one_a_line_and_errors_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# keys\n\nagent={SECRET}\n  ci = {SECRET},2\n")
    keys = load_settings({"ASKGATE_API_KEYS": f"@{file}"}).api_keys
    assert {name: key.get_secret_value() for name, key in keys.items()} == {
        "agent": SECRET,
        "ci": f"{SECRET},2",
    }
    file.write_text("# keys\nagent=short\n")
    assert refusal({"ASKGATE_API_KEYS": "@keys"}).startswith(
        "ASKGATE_API_KEYS: line 2 of the file has a secret of 5"
    )
    file.write_bytes(b"\xff")
    assert "(it is not UTF-8)" in refusal({"ASKGATE_API_KEYS": "@keys"})


def test_a_file_of_hosts_is_toml(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text("just text\n")
    said = refusal({"ASKGATE_HOSTS": "hosts.toml"})
    assert said.startswith('ASKGATE_HOSTS: the file "hosts.toml" is no TOML (Expected')
    assert said.endswith("; wanted the path of a TOML file")
    file.write_bytes(b"\xff")
    assert "(it is not UTF-8)" in refusal({"ASKGATE_HOSTS": "hosts.toml"})


def test_no_representation_shows_a_secret() -> None:
    settings = load_settings(
        {**SERVE, "ASKGATE_REDIS_URL": f"redis://:{SECRET}@h", "SLACK_APP_TOKEN": "xapp-s3cret"}
    )
    for shown in (repr(settings), str(settings), repr(settings.model_dump()), settings.model_dump_json()):
        assert "s3cret" not in shown
        assert "xoxb-test" not in shown
        assert "signing'" not in shown


def test_the_data_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert default_data_dir() == tmp_path / ".local" / "share" / "askgate"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_data_dir() == tmp_path / ".local" / "share" / "askgate"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert default_data_dir() == tmp_path / "xdg" / "askgate"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_data_dir() == tmp_path / "Library" / "Application Support" / "askgate"


# what is hidden


def test_by_default_the_usual_names_are_hidden_and_the_audit_has_no_values() -> None:
    settings = load_settings()
    assert settings.redaction == Redaction.of(DEFAULT_FIELDS)
    assert settings.redaction.value({"apiKey": "x", "n": 1}) == {"apiKey": MASK, "n": 1}
    assert settings.audit_values is False


def test_names_and_patterns_of_the_settings_are_what_is_hidden(tmp_path: Path) -> None:
    file = tmp_path / "patterns"
    file.write_text("# keys\n\nsk-[a-z]+\n(?i)bearer \\S+\n")
    overrides = {"ASKGATE_REDACT_FIELDS": "PIN, X-Code", "ASKGATE_REDACT_PATTERNS": str(file)}
    redaction = load_settings(overrides).redaction
    shown = redaction.value(
        {"pin": 1, "x_code": "a", "password": "b", "say": "sk-abc and BEARER x, not # keys"}
    )
    assert shown == {"pin": MASK, "x_code": MASK, "password": "b", "say": f"{MASK} and {MASK} not # keys"}


@pytest.mark.parametrize("text", ["none", "None ", "NONE"])
def test_none_hides_no_names(text: str) -> None:
    assert load_settings({"ASKGATE_REDACT_FIELDS": text}).redaction == NOTHING


def test_a_file_without_patterns_hides_nothing(tmp_path: Path) -> None:
    file = tmp_path / "patterns"
    file.write_text("# nothing yet\n\n")
    assert load_settings({"ASKGATE_REDACT_PATTERNS": str(file)}).redact_patterns is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["# keys", "ok", "", "("], "line 4 of the file: missing"),
        ([r"(a)\1"], "line 1 of the file: invalid escape sequence"),
        (["ok", "x*"], "line 2 of the file: it finds the empty text"),
        (["(?<!a)b"], "line 1 of the file: invalid perl operator"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_named_by_its_line(
    tmp_path: Path, lines: list[str], says: str
) -> None:
    file = tmp_path / "patterns"
    file.write_text("\n".join(lines))
    said = refusal({"ASKGATE_REDACT_PATTERNS": str(file)})
    assert said.startswith(f"ASKGATE_REDACT_PATTERNS: {says}")
    assert "wanted a file of regular expressions (RE2), one a line" in said


def test_patterns_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    assert "cannot read the file" in refusal({"ASKGATE_REDACT_PATTERNS": str(tmp_path / "none")})
    file = tmp_path / "patterns"
    file.write_bytes(b"\xff")
    assert "it is not UTF-8" in refusal({"ASKGATE_REDACT_PATTERNS": str(file)})


@pytest.mark.parametrize("text", ["--", "password,._"])
def test_a_name_without_letters_and_digits_is_refused(text: str) -> None:
    assert "has no letter and no digit" in refusal({"ASKGATE_REDACT_FIELDS": text})


@pytest.mark.parametrize("text", ["maybe", "2", "on off"])
def test_a_switch_is_on_or_off(text: str) -> None:
    assert (
        refusal({"ASKGATE_AUDIT_VALUES": text}) == f'ASKGATE_AUDIT_VALUES: got "{text}"; wanted "on" or "off"'
    )


OAUTH = {
    "SLACK_CLIENT_ID": "1.2",
    "SLACK_CLIENT_SECRET": "client-hush",
    "SLACK_SIGNING_SECRET": "signing",
    "ASKGATE_API_KEYS": f"agent={SECRET}",
    "ASKGATE_ENCRYPTION_KEYS": KEY_1,
}


def test_with_oauth_no_bot_token_is_wanted() -> None:
    assert load_settings(OAUTH, need_slack=True).oauth


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-hush"}, "SLACK_BOT_TOKEN: set beside SLACK_CLIENT_ID"),
        ({"SLACK_CLIENT_SECRET": ""}, "SLACK_CLIENT_SECRET: not set"),
        ({"ASKGATE_ENCRYPTION_KEYS": ""}, "ASKGATE_ENCRYPTION_KEYS: not set"),
        ({"ASKGATE_ENCRYPTION_KEYS": f"{KEY_1},hush"}, "ASKGATE_ENCRYPTION_KEYS: entry 2 is no key"),
        ({"ASKGATE_ADMINS": "T1:U1,U2"}, 'ASKGATE_ADMINS: "U2" is of no workspace'),
        ({"SLACK_CLIENT_ID": "hush"}, "SLACK_CLIENT_ID: is no client id"),
    ],
)
def test_what_lacks_for_oauth_is_named_without_a_secret(change: dict[str, str], line: str) -> None:
    said = refusal({**OAUTH, **change}, need_slack=True)
    assert said.startswith(line)
    assert "hush" not in said
