"""The commands themselves: what there is, what they say when something does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bot.cli import main
from bot.manifest import EXAMPLE_URL, written
from tests.shell import Shell, bare

ROOT = Path(__file__).parents[2]
SERVE = {
    "SLACK_BOT_TOKEN": "xoxb-test",
    "SLACK_SIGNING_SECRET": "signing",
    "ASKGATE_API_KEYS": "ci=hush-hush-hush-hush",
}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    bare(monkeypatch, tmp_path)
    return Shell({"ASKGATE_DATA_DIR": str(tmp_path / "data")})


def commands(group: click.Group, words: tuple[str, ...] = ("askgate",)) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name))


def test_the_table_of_commands_has_each_one() -> None:
    table = (ROOT / "docs" / "api.md").read_text().split("## Commands")[1].split("\n## ")[0]
    told = [
        re.match(r"askgate( [a-z]+)+", row) for row in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    ]
    assert sorted(match[0] for match in told if match) == sorted(commands(main))


async def test_the_manifest_is_printed_for_http_or_for_socket_mode(shell: Shell) -> None:
    assert (await shell("manifest", "--url", f"{EXAMPLE_URL}/")).out == written(EXAMPLE_URL)
    assert (await shell("manifest", "--socket")).out == written(None)


@pytest.mark.parametrize(
    "words", [[], ["--url", EXAMPLE_URL, "--socket"], ["--url", "http://askgate.example.com"]]
)
async def test_a_manifest_for_nothing_in_particular_is_refused(shell: Shell, words: list[str]) -> None:
    said = await shell("manifest", *words)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(r"askgate: .*wanted .*\n", said.err)


@pytest.mark.parametrize(
    "url", ["redis+sentinel://:hush@127.0.0.1:1/name", "redis+cluster://:hush@127.0.0.1:1"]
)
async def test_serve_says_in_one_line_that_nobody_knows_the_store(shell: Shell, url: str) -> None:
    shell.settings |= SERVE | {"ASKGATE_REDIS_URL": url}
    said = await shell("serve")
    assert said.code == 2
    assert re.fullmatch(
        r"askgate: ASKGATE_REDIS_URL: the store there cannot be reached \((MasterNotFoundError|NoCluster)\)\n",
        said.err,
    )


@pytest.mark.parametrize("command", [["serve"], ["doctor"], ["gates", "list"], ["audit", "export"]])
async def test_a_set_that_is_no_pair_is_said_in_one_line(shell: Shell, command: list[str]) -> None:
    said = await shell(*command, "--set", "ASKGATE_BIND")
    assert (said.code, said.err) == (2, 'askgate: --set: got "ASKGATE_BIND"; wanted NAME=VALUE\n')
