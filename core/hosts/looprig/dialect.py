"""What both dialects of looprig share: how a gate is put to people, and how what they decided is handed over."""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any, Final, Generic, TypeVar

from core.clock import Clock
from core.gates import Outcome
from core.hosts.base import APPLIED, Reply, Seen, Wait, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig import gates
from core.hosts.looprig.answering import Said
from core.hosts.looprig.client import Answered, LooprigClient, LooprigError
from core.hosts.looprig.fold import Fold
from core.requests import RunRequest
from core.resumes import Resume

Json = dict[str, Any]
Client = TypeVar("Client", bound=LooprigClient)

SAME_MS: Final = 2_000
"""Deadlines that are no further apart are one: ours are in whole seconds."""
OUTCOME_S: Final = 5.0
"""How long to wait for the journal to say what became of a gate."""
GLANCE_S: Final = 0.2


class Dialect(ABC, Generic[Client]):
    """A looprig server as a host, but for how its gates are found and answered. See `core.hosts.base.Host`."""

    def __init__(self, config: LooprigConfig, clock: Clock, client: Client) -> None:
        self.name = config.name
        self._config = config
        self._clock = clock
        self._client = client

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.close()

    @abstractmethod
    def watch(self) -> AsyncIterator[Seen]:
        """What waits and what no longer does. Raises LooprigError."""

    @abstractmethod
    async def _say(self, resume: Resume, facts: Json, said: Said) -> Reply:
        """Answer the gate, and say whether it was closed by that. Raises LooprigError."""

    @abstractmethod
    async def _add(self, resume: Resume, session_id: str, text: str) -> Reply:
        """Send the text behind an `other`, which is in the journal. Raises LooprigError."""

    def describe(self, wait: Wait) -> RunRequest:
        """One gate, one run with one gate, open no longer than looprig's own policy waits. Raises Undescribable."""
        gate, deadline_ms, timeout_s = wait.facts["gate"], wait.facts["deadline_ms"], self._config.timeout_s
        now_ms = self._clock.now_ms()
        # a gate that was restored has no timer any more, though its time is over
        if deadline_ms is not None and deadline_ms > now_ms:
            left_s = max(1, (deadline_ms - now_ms) // 1000)
            timeout_s = min(left_s, timeout_s or left_s)
        asked = gates.asked(wait.facts, always=self._config.quorum == 1)
        title = str((gate.get("prompt") or {}).get("title") or "").strip()
        return RunRequest(
            **{**self._config.asked, "timeout_s": timeout_s},
            external_id=wait.external_id,
            title=title if 0 < len(title) <= 150 else None,
            pending=asked.pending,
            state=json.dumps({**wait.facts, "as": asked.shape}),
        )

    async def resume(self, resume: Resume) -> Reply:
        """Hand over what was decided, if looprig has a word for it."""
        facts = json.loads(resume.state or "null")
        if not isinstance(facts, dict) or not {"gate", "as"} <= facts.keys():
            return Reply(Word.REFUSED, "this is no run that a looprig server opened")
        results: dict[str, dict[str, Json]] = json.loads(resume.body)
        result = next(result for category in results.values() for result in category.values())
        # a result alone may be so, of arguments that are not those that were approved: that is a denial
        if resume.run.gates[0].status == Outcome.SUPERSEDED:
            return Reply(Word.LOST, result.get("message") or result.get("reason"))
        try:
            return await self._hand_over(resume, facts, result)
        except Answered as error:
            return Reply(Word.RETRYABLE if error.passing else Word.REFUSED, f"looprig: {error}")
        except LooprigError as error:
            return Reply(Word.RETRYABLE, f"looprig: {error}")

    async def _hand_over(self, resume: Resume, facts: Json, result: Json) -> Reply:
        if result["outcome"] == "expired" and _policy_answers(resume, facts):
            # unless the session was restored meanwhile: its gates have no timers, and silence is said to them
            closed = (await self._settled(facts)).closed.get(facts["gate"]["id"])
            if closed and closed.source == "policy":
                return APPLIED
        try:
            said = Said(*gates.answer(facts, result))
        except gates.NoWord as why:
            return Reply(Word.REFUSED, str(why))
        reply = await self._say(resume, facts, said)
        if reply.word is Word.APPLIED and said.text:
            return await self._add(resume, facts["session_id"], said.text)
        return reply

    async def _settled(self, facts: Json) -> Fold:
        """The session's gates, when this one is settled; somebody may be just about to. Raises LooprigError."""
        session_id, gate_id = facts["session_id"], facts["gate"]["id"]
        fold = await folded(self._client, facts)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(OUTCOME_S):
                while gate_id in fold.open:
                    await asyncio.sleep(GLANCE_S)
                    async for seq, event in self._client.journal(session_id, fold.next_seq):
                        fold.add(seq, event)
        return fold


async def folded(client: LooprigClient, facts: Json) -> Fold:
    """A session's gates, of what its journal has since this one was opened. Raises LooprigError."""
    fold = Fold()
    async for seq, event in client.journal(facts["session_id"], facts["opened_seq"]):
        fold.add(seq, event)
    return fold


def _policy_answers(resume: Resume, facts: Json) -> bool:
    """Whether the time that is over is looprig's own, so that it answers by its own policy."""
    deadline_ms = facts["deadline_ms"]
    return deadline_ms is not None and abs(resume.run.gates[0].deadline - deadline_ms) <= SAME_MS
