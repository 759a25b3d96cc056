"""What both dialects of looprig share: how a gate is put to people, and which answer goes back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from core.hosts.base import APPLIED, Reply, Wait, Word
from core.hosts.config import LooprigConfig
from core.hosts.looprig import gates
from core.hosts.looprig.client import Answered, LooprigClient, LooprigError
from core.hosts.looprig.fold import Fold
from core.requests import RunRequest
from core.resumes import Resume

log = structlog.get_logger(__name__)

Json = dict[str, Any]

SAME_MS = 2_000
"""Deadlines that are no further apart are one: ours are in whole seconds."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer in looprig's words. ``text`` follows as input to the session, behind an `other`."""

    action: str
    values: Json
    text: str | None


def describe(config: LooprigConfig, wait: Wait, now_ms: int) -> RunRequest:
    """One gate, one run with one gate, open no longer than looprig's own policy waits."""
    gate, deadline_ms, timeout_s = wait.facts["gate"], wait.facts["deadline_ms"], config.timeout_s
    # a gate that was restored has no timer any more, though its time is over
    if deadline_ms is not None and deadline_ms > now_ms:
        left_s = max(1, (deadline_ms - now_ms) // 1000)
        timeout_s = min(left_s, timeout_s or left_s)
    title = str((gate.get("prompt") or {}).get("title") or "").strip()
    return RunRequest(
        **{**config.asked, "timeout_s": timeout_s},
        external_id=wait.external_id,
        title=title if 0 < len(title) <= 150 else None,
        pending=gates.pending(wait.facts, always=config.quorum == 1),
        state=json.dumps(wait.facts),
    )


async def answered(resume: Resume, say: Callable[[Resume, Json, Said], Awaitable[Reply]]) -> Reply:
    """Hand over what was decided, if looprig has a word for it."""
    facts = json.loads(resume.state or "null")
    if not isinstance(facts, dict) or "gate" not in facts:
        return Reply(Word.REFUSED, "this is no run that a looprig server opened")
    results: dict[str, dict[str, Json]] = json.loads(resume.body)
    result = next(result for category in results.values() for result in category.values())
    if result["outcome"] == "superseded":
        return Reply(Word.LOST, result.get("message") or result.get("reason"))
    if result["outcome"] == "expired" and _policy_answers(resume, facts):
        return APPLIED  # and says so in its journal
    try:
        said = Said(*gates.answer(facts, result))
    except gates.NoWord:
        return Reply(Word.REFUSED, "looprig takes nothing but an answer here; it waits on.")
    try:
        return await say(resume, facts, said)
    except Answered as error:
        # without the right, or where the session is not live for now: somebody can mend that
        lasting = not error.retryable and error.status < 500 and error.status not in (401, 403, 404)
        return Reply(Word.REFUSED if lasting else Word.RETRYABLE, f"looprig: {error}")
    except LooprigError as error:
        return Reply(Word.RETRYABLE, f"looprig: {error}")


def _policy_answers(resume: Resume, facts: Json) -> bool:
    """Whether the time that is over is looprig's own, so that it answers by its own policy."""
    deadline_ms = facts["deadline_ms"]
    return deadline_ms is not None and abs(resume.run.gates[0].deadline - deadline_ms) <= SAME_MS


async def folded(client: LooprigClient, session_id: str) -> Fold:
    """A session's gates as its whole journal has them now. Raises LooprigError."""
    fold = Fold()
    async for seq, event in client.journal(session_id):
        fold.add(seq, event)
    return fold


async def follow_up(client: LooprigClient, session_id: str, text: str | None) -> None:
    """Send the text behind an `other`. The answer counts without it: that it fails is no reason to answer again."""
    if text:
        try:
            await client.input(session_id, text)
        except LooprigError as error:
            log.error("looprig.text_lost", session=session_id, error=str(error))
