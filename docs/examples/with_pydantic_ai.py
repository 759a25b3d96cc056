"""A Pydantic AI agent that waits for people in Slack: deferred tools, in a process that may die meanwhile.

    pip install 'pydantic-ai-slim[openai]>=2.68'
    export ASKGATE_URL=http://127.0.0.1:8080 ASKGATE_KEY=agent-secret-0123456789
    export ASKGATE_CHANNEL=C0123456789 ASKGATE_APPROVERS=U0123456789 MODEL=openai:gpt-5 OPENAI_API_KEY=…
    python with_pydantic_ai.py 'Deploy 1.4 where you think best'
    python with_pydantic_ai.py                  # only takes up what people have decided

The agent's messages are the run's `state` in askgate, so nothing has to run while people think. Any number of these
processes may take up what was decided. The file MEMORY (memory.db) remembers which resumes were begun, and what came of
each: if a process dies in one, an approved tool may have run, so it is not begun again but refused, which stands on the
card; if it dies after the turn, the next one only says what came of it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import urllib.request
from http.client import HTTPException
from typing import Annotated, Any
from urllib.error import HTTPError
from uuid import uuid4

from pydantic import Field
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved, ToolDenied
from pydantic_ai.exceptions import CallDeferred, ToolFailed
from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult
from typing_extensions import TypedDict

Json = dict[str, Any]
HOST = "pydantic-ai"
LEASE_S = float(os.environ.get("LEASE_S", "900"))  # longer than a turn takes
WHOM: Json = {
    "place": {"channel": os.environ["ASKGATE_CHANNEL"]},
    "policy": {"approvers": os.environ["ASKGATE_APPROVERS"].split(","), "edits": True},
}
MAY_HAVE_RUN = "The tools may have run: look before you have it decided again."


class Option(TypedDict):
    label: Annotated[str, Field(min_length=1, max_length=60)]
    description: Annotated[str, Field(min_length=1, max_length=500)]


class Question(TypedDict):
    question: Annotated[str, Field(min_length=1, max_length=500)]
    header: Annotated[str, Field(min_length=1, max_length=12, description="a word or two")]
    options: Annotated[list[Option], Field(min_length=2, max_length=4)]


def ask_user_question(questions: Annotated[list[Question], Field(min_length=1, max_length=4)]) -> str:
    """Ask people in Slack."""
    raise CallDeferred(kind="question")


def deploy(version: str, target: str) -> str:
    """Deploy a version. Put your own tool here."""
    with open(os.environ.get("DEPLOYED", "deployed"), "a") as file:
        file.write(f"{version} {target}\n")
    return f"{version} is on {target}"


deploying = Tool(deploy, requires_approval=True)
TOOLS = {tool.name: tool for tool in (Tool(ask_user_question), deploying)}


def build(model: Model | str) -> Agent[None, str | DeferredToolRequests]:
    return Agent(model, tools=list(TOOLS.values()), output_type=[str, DeferredToolRequests])


def came_to(result: AgentRunResult[str | DeferredToolRequests]) -> Json:
    """What a turn came to: words, or a run of askgate to be put to people."""
    if isinstance(result.output, str):
        return {"said": result.output}
    run = {
        "host": HOST,
        "title": "Pydantic AI",
        "state": result.all_messages_json().decode(),
        "pending": {
            "calls": [asked(call) for call in result.output.calls],
            "approvals": [asked(call) | fits(call) for call in result.output.approvals],
        },
        **WHOM,
    }
    return {"run": run}


def tell(end: Json, key: str) -> None:
    """Say it, or put it to people. ``key`` makes one run of it, however often it is sent."""
    if "run" in end:
        askgate("/runs", end["run"], key)
    else:
        print(end["said"], flush=True)


def asked(call: ToolCallPart) -> Json:
    return {"tool_call_id": call.tool_call_id, "tool_name": call.tool_name, "args": call.args_as_dict()}


def fits(call: ToolCallPart) -> Json:
    """So that arguments that are edited in Slack are checked there."""
    return {"args_schema": TOOLS[call.tool_name].tool_def.parameters_json_schema}


def decided(results: Json) -> DeferredToolResults:
    """Silence is a failure or a denial too, with a sentence that says so."""
    return DeferredToolResults(
        calls={
            key: call["value"] if call["status"] == "returned" else ToolFailed(call["message"])
            for key, call in results["calls"].items()
        },
        approvals={
            key: ToolApproved(override_args=approval.get("override_args"))
            if approval["action"] == "approve"
            else ToolDenied(approval["reason"])
            for key, approval in results["approvals"].items()
        },
    )


def take_up(agent: Agent[None, str | DeferredToolRequests], memory: sqlite3.Connection, resume: Json) -> None:
    key, run, lease = resume["idempotency_key"], resume["run"], {"lease": resume["lease"]}
    if memory.execute("INSERT OR IGNORE INTO turns VALUES (?, NULL)", [key]).rowcount:
        history = ModelMessagesTypeAdapter.validate_json(resume["state"])
        try:
            result = agent.run_sync(message_history=history, deferred_tool_results=decided(run["results"]))
        except Exception as error:  # noqa: BLE001  # of a tool, the model, the network
            refuse(run, lease, f"{MAY_HAVE_RUN} {type(error).__name__}: {error}")
            return
        memory.execute("UPDATE turns SET came_to = ? WHERE key = ?", [json.dumps(came_to(result)), key])
    [end] = memory.execute("SELECT came_to FROM turns WHERE key = ?", [key]).fetchone()
    if end is None:
        refuse(run, lease, f"A process died in this. {MAY_HAVE_RUN}")
        return
    try:
        tell(json.loads(end), key=f"after-{key}")
    except HTTPError as error:
        refuse(run, lease, f"{MAY_HAVE_RUN} What it asks then cannot be put to people: {error}")
        return
    askgate(f"/resumes/{run['id']}/ack", lease)


def refuse(run: Json, lease: Json, why: str) -> None:
    """It stands on the card, and an admin may have people decide again."""
    askgate(f"/resumes/{run['id']}/nack", {**lease, "final": True, "error": why[:4096]})


def askgate(path: str, body: Json, key: str = "") -> Json:
    """One call of askgate's HTTP API, again while it is away: each may arrive twice. Raises HTTPError if refused."""
    headers = {"Authorization": f"Bearer {os.environ['ASKGATE_KEY']}", "Content-Type": "application/json"}
    url, data = f"{os.environ['ASKGATE_URL']}/api/v1{path}", json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers | ({"Idempotency-Key": key} if key else {}))
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return dict(json.load(answer))
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500:
                error.msg = error.read().decode()  # says what is wrong, and where
                raise
            print(f"{url}: {error}; trying again", file=sys.stderr)
        time.sleep(1)


def main(model: Model | str) -> None:
    agent = build(model)
    memory = sqlite3.connect(os.environ.get("MEMORY", "memory.db"), isolation_level=None)
    memory.execute("CREATE TABLE IF NOT EXISTS turns (key TEXT PRIMARY KEY, came_to TEXT)")
    if len(sys.argv) > 1:
        tell(came_to(agent.run_sync(sys.argv[1])), key=f"begun-{uuid4()}")
    while True:
        claim = {"host": HOST, "max": 1, "wait_s": 20, "lease_s": LEASE_S}
        for resume in askgate("/resumes/claim", claim)["resumes"]:
            try:
                take_up(agent, memory, resume)
            except HTTPError as error:  # it took longer than the lease, say
                print(f"{resume['run']['id']}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(os.environ["MODEL"])
