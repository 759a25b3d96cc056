"""A process to be killed: it does one thing with the engine, says so in a line of JSON, and never goes on by itself.

python -m tests.crashing URL WHAT ID…
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from core.agenda import Worker
from core.callbacks import Callbacks
from core.egress import Reach
from core.engine import ResumeEngine
from core.gates import Action
from tests.conftest import ANA, LOOPBACK
from tests.runs import FOCUSED
from tests.stores import engine_on


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def decide(engine: ResumeEngine, *gates: str) -> None:
    """Answers one gate after the other, and says each that was acknowledged."""
    for gate in gates:
        run = await engine.decide(gate, Action.ANSWER, by=ANA, via="slack", values=FOCUSED)
        say(gate=gate, status=run.status)


async def take(engine: ResumeEngine, queue: str, partition: str) -> None:
    """Stops in the middle of a claim: the lease is taken, nothing is frozen."""
    due = await engine.store.queues.claim(
        queue, int(partition), lease_ms=30_000, limit=10, token="lease_of_the_dead"
    )
    say(members=[item.member for item in due])


async def claim(engine: ResumeEngine, host: str) -> None:
    """Stops with the resume in hand, before the host heard of it."""
    [resume] = await engine.resumes.claim(host, limit=10, wait_s=0, lease_s=30)
    say(run=resume.run.id, lease=resume.lease, body=resume.body, key=resume.key)


async def work(engine: ResumeEngine, what: str) -> None:
    """A worker that stops in the middle of its handler."""

    async def handler(member: str, tries: int) -> None:
        say(member=member, tries=tries)
        await asyncio.Event().wait()

    Worker(engine.store, engine.bell, {what: handler}).start()


async def push(engine: ResumeEngine, run: str) -> None:
    """Pushes to a callback; killed while the receiver has not answered."""
    engine.reach = Reach((LOOPBACK,))
    await Callbacks(engine).push(run)
    say(pushed=run)


WHAT: dict[str, Callable[..., Awaitable[None]]] = {
    "decide": decide,
    "take": take,
    "claim": claim,
    "work": work,
    "push": push,
}


async def main(url: str, what: str, *about: str) -> None:
    async with engine_on(url) as engine:
        await WHAT[what](engine, *about)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
