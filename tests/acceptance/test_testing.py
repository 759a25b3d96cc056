"""`docs/testing.md`: its example passes as it stands there, in a session of its own; and what its tables promise."""

from __future__ import annotations

import os
import re
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from bot.testing import Local
from tests.runs import approval, ask, body, question_call

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")

pytest_plugins = ["bot.testing.plugin"]


async def test_the_example_passes_as_it_stands(tmp_path: Path) -> None:
    conftest, *example = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_agent.py").write_text("\n".join(example))
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ASKGATE_", "SLACK_"))}
    process = await create_subprocess_exec(
        *command, cwd=tmp_path, env=env | {"PYTHONPATH": str(ROOT)}, stdout=PIPE, stderr=STDOUT
    )
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    assert "4 passed" in said


def test_the_tables_name_what_there_is() -> None:
    for name in re.findall(r"`(?:await )?askgate\.(\w+)[(`]", PAGE):
        assert hasattr(Local(Path()), name), name
    slack = Local(Path()).slack
    for row in re.findall(
        r"^\| (`[a-z_]+.*?) \|", PAGE.partition("which `local_slack` gives")[2], re.MULTILINE
    ):
        for name in re.findall(r"`([a-z_]+)[(`]", row):
            assert hasattr(slack, name), name


async def open_run(askgate: Local, **more: object) -> str:
    policy = {"approvers": [askgate.id("ana")]}
    place = {"channel": askgate.channel}
    run = await askgate.call("POST", "/runs", body([], [approval("a")], place=place, policy=policy, **more))
    return str(run["id"])


async def test_a_skip_of_days_expires_what_was_open_and_returns_when_the_card_says_so(askgate: Local) -> None:
    run = await open_run(askgate, timeout_s=86_400)
    await askgate.skip(hours=23)
    await askgate.sees("ana", "delete_file", "Open until Today")
    await askgate.skip(hours=2)
    [message] = askgate.slack.messages(askgate.channel)
    assert "nobody decided in time" in askgate.slack.text_of(message)
    assert (await askgate.settled(run))["approvals"]["a"]["outcome"] == "expired"


async def test_reminders_come_when_their_time_is_skipped(askgate: Local) -> None:
    await open_run(askgate, timeout_s=86_400, remind_after_s=[3600])
    await askgate.skip(minutes=59)
    assert len(askgate.slack.messages(askgate.channel)) == 1
    await askgate.skip(minutes=2)
    await askgate.sees("ana", "still open")


async def test_a_skip_right_behind_an_open_posts_one_card(askgate: Local) -> None:
    for _ in range(5):
        await open_run(askgate, timeout_s=30 * 86_400)
        await askgate.skip(hours=1)
    assert len(askgate.slack.messages(askgate.channel)) == 5


async def test_clicks_are_taken_also_days_ahead_of_the_time_outside(askgate: Local) -> None:
    await askgate.skip(days=3)
    run = await open_run(askgate, timeout_s=600)
    await askgate["ana"].click("Approve", message=await askgate.sees("ana", "delete_file"))
    assert (await askgate.settled(run))["approvals"]["a"]["outcome"] == "approved"
    assert (await askgate.call("GET", f"/runs/{run}"))["gates"][0]["status"] == "approved"


async def test_what_is_pending_outlives_a_restart(askgate: Local) -> None:
    run = await open_run(askgate)
    card = await askgate.sees("ana", "delete_file")
    await askgate.stop()
    assert not (await askgate["ana"].click("Approve", message=card)).ok
    await askgate.start()
    assert (await askgate["ana"].click("Approve", message=card)).ok
    assert (await askgate.settled(run))["approvals"]["a"]["outcome"] == "approved"


async def test_what_a_person_does_not_see_is_said_with_what_is_there(askgate: Local) -> None:
    await open_run(askgate)
    await askgate.sees("ana", "delete_file")
    with pytest.raises(AssertionError, match=r"ana does not see \('send_mail',\), but:\n(.|\n)*delete_file"):
        await askgate.sees("ana", "send_mail", timeout=0.05)


async def test_a_refusal_of_the_api_is_said_with_its_reason(askgate: Local) -> None:
    with pytest.raises(AssertionError, match=r"POST /runs: 4\d\d .*pending"):
        await askgate.call("POST", "/runs", {})


class TestSpanish:
    """Settings of the test's own."""

    @pytest.fixture
    def askgate_settings(self) -> dict[str, str]:
        return {"ASKGATE_LANGUAGE": "es"}

    async def test_settings_can_be_given(self, askgate: Local) -> None:
        run = body([question_call("q", ask())], place={"channel": askgate.channel}, policy={})
        await askgate.call("POST", "/runs", run)
        await askgate.sees("ana", "Abierto hasta", "Declinar")
