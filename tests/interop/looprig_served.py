"""askgate's desk before the stand-in for looprig, and one gate that a person decides."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from core.engine import ResumeEngine
from core.gates import Action
from core.hosts.config import LooprigConfig
from core.hosts.desk import Desk
from core.hosts.opening import adapter
from core.runs import Run, RunStatus
from tests.conftest import ANA
from tests.interop.looprig_standin import Json, Looprig, Session, permission

Found = Callable[..., Any]


@contextlib.asynccontextmanager
async def served(engine: ResumeEngine, looprig: Looprig, dialect: str, **more: Any) -> AsyncIterator[Desk]:
    block = {"url": looprig.at(dialect), "api_key": looprig.token, "dialect": dialect, "poll_s": 0.1}
    config = LooprigConfig.model_validate(
        {"name": "looprig.test", "channel": "C1", "approvers": ["U1"], **block, **more}
    )
    desk = Desk(engine, adapter(config, engine.store.clock, engine.talks))
    desk.start()
    try:
        yield desk
    finally:
        await desk.stop(5)


def asks(run: Run) -> str:
    """The label of the field of a question."""
    assert run.gates[0].doc.form
    return run.gates[0].doc.form.fields[0].label


@dataclass
class Case:
    """A session with one gate. What its answer comes to is the test's affair."""

    engine: ResumeEngine
    looprig: Looprig
    found: Found
    session: Session
    gate_id: str = ""

    async def ends(
        self,
        dialect: str,
        status: RunStatus,
        gate: Json | None = None,
        *,
        action: Action = Action.APPROVE,
        faults: dict[str, list[Any]] | None = None,
        meanwhile: Callable[[], None] = lambda: None,
        **values: Any,
    ) -> Run:
        """Open a gate, have it decided, and return its run when that has come to ``status``.

        ``meanwhile`` happens, and ``faults`` are in force, from when people are asked.
        """
        self.gate_id = self.session.open(gate or permission())
        async with served(self.engine, self.looprig, dialect):
            [run] = await self.found()
            meanwhile()
            self.looprig.faults = faults or {}
            await self.engine.decide(run.gates[0].id, action, by=ANA, via="slack", values=values or None)
            [run] = await self.found(1, status)
        return run

    def resolved(self, action: str, source: str = "user", **more: Any) -> Callable[[], None]:
        """Somebody else answers it."""
        return lambda: self.session.resolve(self.gate_id, action, source, **more)
