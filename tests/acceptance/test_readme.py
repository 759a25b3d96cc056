"""What the papers say is true: the agent in the README runs, the commands are there, the tables are complete."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from bot.sandbox.slack import LocalSlack
from bot.service import Service
from core.api.app import OPENAPI, PREFIX
from core.api.openapi import build_openapi
from core.api.problems import status_of
from core.api.routes import ROUTES
from core.errors import AskgateError
from core.parsing import Bind
from core.settings import NAMES, Settings, load_settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()
DESIGN = (ROOT / "docs" / "design.md").read_text()
PAPERS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
KEY = "agent-secret-0123456789"
DEMO = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[embedded]' && .venv/bin/askgate demo"
TESTS = (
    "python3 -m venv .venv && .venv/bin/pip install -q -e '.[embedded,test]'"
    " && .venv/bin/pytest -n auto --dist loadfile"
)


def agent_of_the_readme() -> str:
    [block] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return str(block)


async def agent(channel: str, url: str) -> asyncio.subprocess.Process:
    """The README's agent as a process of its own, with its three constants filled in."""
    program = agent_of_the_readme()
    for said, meant in (("http://127.0.0.1:8080", url), ("C0123456789", channel)):
        assert program.count(said) == 1
        program = program.replace(said, meant)
    return await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)


@pytest.fixture
async def slack():
    async with LocalSlack() as slack:
        slack.add_user("ana")
        yield slack


@pytest.fixture
async def service(slack: LocalSlack, redis_url: str, redis: object):
    settings = {
        "SLACK_BOT_TOKEN": "xoxb-test",
        "SLACK_APP_TOKEN": "xapp-test",
        "SLACK_API_URL": slack.api_url,
        "ASKGATE_REDIS_URL": redis_url,
        "ASKGATE_API_KEYS": f"agent={KEY}",
        "ASKGATE_BIND": "127.0.0.1:0",
    }
    async with Service(load_settings(settings, need_slack=True)) as service:
        yield service


def test_both_commands_stand_there_each_on_one_line() -> None:
    lines = [line.strip() for line in README.splitlines()]
    assert lines.count(DEMO) == 1
    assert lines.count(TESTS) == 1
    assert "grep -E '^ *python3 -m venv .*pytest .*$' README.md" in (ROOT / ".ci" / "run").read_text()


async def test_the_agent_of_the_readme_gets_what_a_person_clicks(slack: LocalSlack, service: Service) -> None:
    channel = slack.add_channel("ops", ["ana"])
    assert service.web is not None
    process = await agent(channel, service.web.url)
    await slack.wait_for(lambda: slack.messages(channel), timeout=30)
    assert (await slack.as_user("ana").click("Focused")).ok
    printed, _ = await process.communicate()
    result = json.loads(printed)
    assert process.returncode == 0
    assert result["status"] == "returned"
    assert result["outcome"] == "answered"
    assert result["value"] == {"answers": {"Which scope should be used?": "Focused"}}
    assert [person["user"] for person in result["by"]] == [slack.as_user("ana").id]


def test_the_agent_of_the_readme_is_about_fifteen_lines() -> None:
    assert len([line for line in agent_of_the_readme().splitlines() if line.strip()]) <= 16


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)
def test_every_file_that_a_paper_names_is_there(paper: Path) -> None:
    text = paper.read_text()
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not link.startswith("http"):
            assert (paper.parent / link).exists(), link
    for path in re.findall(r"`((?:core|bot|tests|docs|\.ci)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_folder_map_names_modules_that_exist() -> None:
    part = README.split("    core/  ")[1].split("    tests/  ")[0]
    core, bot = part.split("    bot/  ")
    for package, text in (("core", core), ("bot", bot)):
        for name in re.findall(r"\b([a-z_]+(?:\.py|/))(?=\s)", text):
            assert (ROOT / package / name).exists(), f"{package}/{name}"


def test_the_table_of_settings_has_each_one_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]*) \|", API, re.MULTILINE))
    assert rows == {name: shown_default(name) for name in NAMES}


def shown_default(name: str) -> str:
    """A setting's default as the table has it."""
    field = Settings.model_fields[NAMES[name]]
    match field.get_default():
        case Bind(host, port):
            return f"`{host}:{port}`"
        case str() | int() | float() as plain:
            return f"`{plain}`"
    return "—"


def test_the_table_of_routes_is_that_of_the_openapi_document() -> None:
    document = build_openapi(ROUTES, prefix=PREFIX, here=OPENAPI, version="1")
    served = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    told = {
        (method, path)
        for method, path in re.findall(r"^\| `([A-Z]+) (/api/[^`?]*)[^`]*` \|", API, re.MULTILINE)
    }
    assert told == served


def test_the_table_of_errors_has_each_with_its_status() -> None:
    told = {
        slug: int(status) for status, slug in re.findall(r"^\| (\d{3}) \| `([\w-]+)` \|", API, re.MULTILINE)
    }
    raised: dict[str, int] = {}
    for route in ROUTES:
        for error in route.all_failures:
            raised[error.slug] = status_of(error) or 500
    assert told.keys() >= raised.keys()
    for slug, status in raised.items():
        assert told[slug] == status, slug
    known = {kind.slug for kind in every(AskgateError)}
    assert told.keys() <= known


def every(kind: type[AskgateError]) -> set[type[AskgateError]]:
    return {kind}.union(*(every(child) for child in kind.__subclasses__()))


def test_every_test_that_the_design_names_exists() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", DESIGN)
    assert named
    for name in named:
        assert f"def {name}(" in tests, name


def test_the_design_names_every_script_and_no_other() -> None:
    scripts = {path.stem for path in (ROOT / "core" / "store" / "scripts").glob("[a-z]*.lua")}
    table = DESIGN.split("## Scripts")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == scripts


def test_each_dependency_has_its_reason_and_no_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]
    assert not [d for d in wanted if "<" in d or "==" in d or "~=" in d]
    names = {re.split(r"[\[>=]", d)[0] for d in wanted}
    told = set(re.findall(r"^- `([\w-]+)`: \S", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert told == names
