"""An agent of the Claude Agent SDK that waits for people in Slack: `can_use_tool` and AskUserQuestion.

    pip install 'claude-agent-sdk>=0.2'
    export ASKGATE_URL=http://127.0.0.1:8080 ASKGATE_KEY=agent-secret-0123456789
    export ASKGATE_CHANNEL=C0123456789 ASKGATE_APPROVERS=U0123456789 ANTHROPIC_API_KEY=…
    python with_claude_agent.py 'Deploy 1.4 where you think best'
    python with_claude_agent.py                 # goes on with that session, after its process has died

The SDK waits in a callback, so its process has to be there when people have decided. It may die before, though: the
file MEMORY (memory.db) has the session and what it waits for. The session that is resumed asks for the same again, and
is joined with the card that stands already. Each decision is used once: who asks for the same later is asked anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import sys
import urllib.request
from dataclasses import replace
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, Transport
from claude_agent_sdk.types import (
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

Json = dict[str, Any]
SCHEMA = """
CREATE TABLE IF NOT EXISTS session (last INTEGER PRIMARY KEY, id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS wait (asks TEXT PRIMARY KEY, key TEXT NOT NULL, run TEXT);
"""
CHANNEL, APPROVERS = os.environ["ASKGATE_CHANNEL"], os.environ["ASKGATE_APPROVERS"].split(",")
GO_ON = "Your process died. Look at how things are, and go on."


class People:
    """Asks people for one session."""

    def __init__(self, memory: sqlite3.Connection, session: str) -> None:
        self._memory, self._session = memory, session
        self._waiting: set[str] = set()

    async def can_use_tool(self, name: str, args: Json, context: ToolPermissionContext) -> PermissionResult:
        try:
            return await self._permission(name, args, context)
        except (
            HTTPError
        ) as error:  # too many options, say: the model reads what is wrong, and may ask otherwise
            return PermissionResultDeny(message=f"People could not be asked. {error}")

    async def _permission(self, name: str, args: Json, context: ToolPermissionContext) -> PermissionResult:
        if name == "AskUserQuestion":
            asks: Json = {"tool_name": "ask_user_question", "args": {"questions": questions(args)}}
            result = await self._settled("calls", asks)
            if result["status"] != "returned":
                return PermissionResultDeny(message=result["message"])
            return PermissionResultAllow(updated_input=args | answered(result["value"]))
        reason = (context.decision_reason or context.title or "")[:4096]
        asks = {"tool_name": name, "args": args, "reason": reason or None}
        saved = [json.dumps(update.to_dict()) for update in context.suggestions]
        if saved and max(map(len, saved)) <= 1024:
            asks["always"] = saved
        result = await self._settled("approvals", asks)
        if result["action"] != "approve":
            return PermissionResultDeny(message=result["reason"])
        # nothing is saved for always but what people have read
        updates = context.suggestions if result.get("always") else None
        return PermissionResultAllow(
            updated_input=result.get("override_args", args), updated_permissions=updates
        )

    async def _settled(self, category: str, asks: Json) -> Json:
        """What people decided about this. Silence is a failure or a denial too, with a sentence that says so."""
        digest = json.dumps([self._session, category, asks], sort_keys=True)
        while digest in self._waiting:
            digest += "+"  # the same twice at once: each has a decision of its own
        self._waiting.add(digest)
        try:
            while (result := await self._joined(digest, category, asks)) is None:
                pass
            return result
        finally:
            self._waiting.remove(digest)

    async def _joined(self, digest: str, category: str, asks: Json) -> Json | None:
        """What people decided on the card that stands for this, or on a new one; None if that is not there any more."""
        with self._memory:
            self._memory.execute("INSERT OR IGNORE INTO wait VALUES (?, ?, NULL)", [digest, uuid4().hex])
        key, run = self._memory.execute("SELECT key, run FROM wait WHERE asks = ?", [digest]).fetchone()
        queue = f"claude-agent.{key}"  # this wait has a queue of its own, to acknowledge it there
        if run is None:
            body = {
                "host": queue,
                "title": "Claude",
                "external_id": self._session,
                "pending": {category: [asks | {"tool_call_id": "asked"}]},
                "place": {"channel": CHANNEL},
                "policy": {"approvers": APPROVERS, "edits": True},
            }
            run = (await askgate("/runs", body, key))["id"]
            with self._memory:
                self._memory.execute("UPDATE wait SET run = ? WHERE asks = ?", [run, digest])
        try:
            while (found := await askgate(f"/runs/{run}?wait=30"))["status"] == "waiting":
                pass
        except HTTPError as error:
            if error.code != 404:
                raise
            found = None
        with self._memory:  # before the tool runs, so that no second run of it stands on this decision
            self._memory.execute("DELETE FROM wait WHERE asks = ?", [digest])
        if found is None:
            return None
        with contextlib.suppress(
            OSError, HTTPException
        ):  # askgate is told that it is used; nothing hangs on that
            for resume in (await askgate("/resumes/claim", {"host": queue}, again=False))["resumes"]:
                await askgate(f"/resumes/{run}/ack", {"lease": resume["lease"]}, again=False)
        return dict(found["results"][category]["asked"])


def questions(args: Json) -> list[Json]:
    return [
        {
            "question": asked["question"],
            "header": asked.get("header", "Question")[:12],
            "options": options(asked),
        }
        | {"multiSelect": asked.get("multiSelect", False)}
        for asked in args["questions"]
    ]


def options(asked: Json) -> list[Json]:
    return [
        {"label": option["label"], "description": option.get("description") or option["label"]}
        for option in asked["options"]
    ]


def answered(value: Json) -> Json:
    """Answers as AskUserQuestion takes them: several choices are one text, with commas between."""
    answers = value["answers"].items()
    told = {question: said if isinstance(said, str) else ", ".join(said) for question, said in answers}
    return {"answers": told} | ({"response": value["response"]} if "response" in value else {})


async def askgate(path: str, body: Json | None = None, key: str = "", *, again: bool = True) -> Json:
    """One call of askgate's HTTP API, ``again`` while it is away: it may arrive twice. Raises HTTPError if refused."""
    headers = {"Authorization": f"Bearer {os.environ['ASKGATE_KEY']}", "Content-Type": "application/json"}
    url, data = f"{os.environ['ASKGATE_URL']}/api/v1{path}", json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, headers | ({"Idempotency-Key": key} if key else {}))

    def call() -> Json:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    while True:
        try:
            return await asyncio.to_thread(call)
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500:
                error.msg = error.read().decode()  # says what is wrong, and where
                raise
            if not again:
                raise
            print(f"{url}: {error}; trying again", file=sys.stderr)
        await asyncio.sleep(1)


async def main(how: ClaudeAgentOptions, transport: Transport | None = None) -> None:
    memory = sqlite3.connect(os.environ.get("MEMORY", "memory.db"))
    memory.executescript(SCHEMA)
    if len(sys.argv) > 1:
        session, prompt = str(uuid4()), sys.argv[1]
        with memory:
            memory.execute("INSERT OR REPLACE INTO session VALUES (1, ?)", [session])
        how = replace(how, session_id=session)
    else:
        [session], prompt = memory.execute("SELECT id FROM session").fetchone(), GO_ON
        how = replace(how, resume=session)
    how = replace(how, can_use_tool=People(memory, session).can_use_tool)
    async with ClaudeSDKClient(how, transport) as client:
        await client.query(prompt)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result, flush=True)


if __name__ == "__main__":
    asyncio.run(main(ClaudeAgentOptions(cwd=".")))
