"""The agent of `askgate demo --host motus`: a plain function, without a model, that asks before it acts.

Motus runs it: `motus serve start motus_agent:agent`. What it asks reaches people in Slack, and so does its reply, which
is Markdown. `interrupt` stops the turn until somebody has answered.
"""

from __future__ import annotations

import asyncio
from typing import Any

from motus.models import ChatMessage
from motus.serve.interrupt import interrupt

HELP = """I am a small agent of the demo, with no model behind me. Say one of these to me:

- `clean up` I ask how far, ask for approval, and report
- `think` I take half a minute, so that you see what happens meanwhile
- `fail` my turn fails

This is message **{count}** of our conversation."""

SCOPE = {
    "question": "How far should the clean-up go?",
    "header": "Scope",
    "multiSelect": False,
    "options": [
        {"label": "Focused", "description": "Only what is older than 30 days"},
        {"label": "Broad", "description": "Everything that can be made again"},
    ],
}

REPORT = """## Cleaned up

| folder | freed |
|---|---|
| build | 41 GB |
| cache | 17 GB |

I kept *logs*, as you would expect of a **{scope}** clean-up."""


async def agent(message: ChatMessage, state: list[ChatMessage]) -> tuple[ChatMessage, list[ChatMessage]]:
    """One turn: what was said and the messages before it, for the reply and the messages with it."""
    said = (message.content or "").strip().casefold()
    if "clean" in said:
        text = await clean_up()
    elif "think" in said:
        await asyncio.sleep(30)
        text = "I have thought about it. The answer is *yes*."
    elif "fail" in said:
        raise RuntimeError("the disk is on fire")
    else:
        text = HELP.format(count=len(state) // 2 + 1)
    reply = ChatMessage(role="assistant", content=text)
    return reply, [*state, message, reply]


async def clean_up() -> str:
    """Ask how far, then for approval. No answer is no answer, and nothing is deleted."""
    heard: Any = await interrupt({"type": "user_input", "questions": [SCOPE]})
    scope = heard["answers"].get(SCOPE["question"])
    if not scope:
        return f"I got no answer, so I delete nothing. ({heard.get('error', 'no reason given')})"
    call = {"folders": ["build", "cache"], "older_than_days": 30, "scope": scope}
    word: Any = await interrupt({"type": "tool_approval", "tool_name": "delete_folders", "tool_args": call})
    if word["approved"] is not True:
        return f"I deleted nothing: {word.get('reason') or 'you said no'}."
    return REPORT.format(scope=scope.lower())
