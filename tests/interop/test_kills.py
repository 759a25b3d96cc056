"""askgate killed before real hosts: what they wait for is answered, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.engine import ResumeEngine
from tests.interop import kills_talk
from tests.interop.a13n_server import A13n
from tests.interop.conftest import Motus
from tests.interop.kills import kill
from tests.interop.looprig_standin import Looprig, permission

pytestmark = pytest.mark.timeout(900)

Json = dict[str, Any]
FETCH = {"name": "fetch", "arguments": {"url": "http://127.0.0.1:9/x"}}
APPROVAL = {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}
SEED, TIMES = 7, 20


class OfA13n:
    has_keys = True

    def __init__(self, a13n: A13n) -> None:
        self._a13n = a13n
        self._runs: dict[str, Json] = {}

    @property
    def block(self) -> Json:
        config = self._a13n.config()
        return {**config.model_dump(exclude_unset=True), "api_key": self._a13n.key}

    async def begin(self) -> str:
        run = await self._a13n.turn([FETCH])
        self._runs[run["id"]] = run
        return str(run["id"])

    async def heard(self, handle: str) -> list[bool]:
        """One for each successor: a second answer would be a second one."""
        await self._a13n.heard(self._runs[handle])
        runs = await self._a13n.runs(self._runs[handle])
        answers = [run["resume"]["approvals"].values() for run in runs if run["resume"]]
        return [answer["action"] == "approve" for given in answers for answer in given]


class OfMotus:
    has_keys = False

    def __init__(self, motus: Motus) -> None:
        self._motus = motus

    @property
    def block(self) -> Json:
        return {"name": "motus.test", "url": self._motus.url, "channel": "C1", "approvers": ["U1"]}

    async def begin(self) -> str:
        return await self._motus.turn(in_turn=[APPROVAL])

    async def heard(self, handle: str) -> list[bool]:
        return [answer["approved"] for answer in await self._motus.heard(handle)]


class OfLooprig:
    """By `serve` there are no keys, but the journal tells which action closed a gate."""

    has_keys = True

    def __init__(self, looprig: Looprig, dialect: str) -> None:
        self._looprig = looprig
        self._dialect = dialect

    @property
    def block(self) -> Json:
        where = {
            "url": self._looprig.url,
            "api_key": self._looprig.token,
            "dialect": self._dialect,
            "poll_s": 0.1,
        }
        return {"name": "looprig.test", "channel": "C1", "approvers": ["U1"], **where}

    async def begin(self) -> str:
        session = self._looprig.session()
        session.open(permission())
        return session.id

    async def heard(self, handle: str) -> list[bool]:
        return [action == "Approve" for _, action, _ in self._looprig.sessions[handle].heard]


async def test_two_kills_before_a13n_lose_nothing_and_answer_nothing_twice(
    engine: ResumeEngine, redis_url: str, a13n: A13n, tmp_path: Path
) -> None:
    await kill(engine, redis_url, OfA13n(a13n), seed=SEED, times=2, folder=tmp_path)


@pytest.mark.slow
async def test_twenty_kills_before_a13n(
    engine: ResumeEngine, redis_url: str, a13n: A13n, tmp_path: Path
) -> None:
    await kill(engine, redis_url, OfA13n(a13n), seed=SEED + 1, times=TIMES, folder=tmp_path)


async def test_a_kill_before_motus_loses_nothing_and_answers_nothing_twice(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    await kill(engine, redis_url, OfMotus(motus), seed=SEED, times=1, folder=tmp_path)


@pytest.mark.slow
async def test_twenty_kills_before_motus(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    await kill(engine, redis_url, OfMotus(motus), seed=SEED + 1, times=TIMES, folder=tmp_path)


@pytest.mark.parametrize(("dialect", "seed"), [("serve", SEED), ("factory", SEED + 1)])
async def test_a_kill_before_looprig_loses_nothing_and_answers_nothing_twice(
    engine: ResumeEngine, redis_url: str, looprig: Looprig, tmp_path: Path, dialect: str, seed: int
) -> None:
    await kill(engine, redis_url, OfLooprig(looprig, dialect), seed=seed, times=1, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["serve", "factory"])
async def test_twenty_kills_before_looprig(
    engine: ResumeEngine, redis_url: str, looprig: Looprig, tmp_path: Path, dialect: str
) -> None:
    await kill(engine, redis_url, OfLooprig(looprig, dialect), seed=SEED, times=TIMES, folder=tmp_path)


async def test_two_kills_in_a_conversation_lose_nothing_and_say_nothing_twice(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as thread:
        await kills_talk.kill(thread, seed=SEED, times=2, points=kills_talk.CERTAIN)


@pytest.mark.slow
async def test_twenty_kills_in_a_conversation(
    engine: ResumeEngine, redis_url: str, motus: Motus, tmp_path: Path
) -> None:
    async with kills_talk.thread(engine, motus, redis_url, tmp_path) as thread:
        await kills_talk.kill(thread, seed=SEED, times=TIMES)
