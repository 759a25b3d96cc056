"""An agent of the OpenAI Agents SDK that waits for people in Slack: its RunState as JSON, in askgate meanwhile.

    pip install 'openai-agents>=0.24'
    export ASKGATE_URL=http://127.0.0.1:8080 ASKGATE_KEY=agent-secret-0123456789
    export ASKGATE_CHANNEL=C0123456789 ASKGATE_APPROVERS=U0123456789 MODEL=gpt-5 OPENAI_API_KEY=…
    python with_openai_agents.py 'Deploy 1.4 where you think best'
    python with_openai_agents.py                # only takes up what people have decided

Nothing has to run while people think. Any number of these processes may take up what was decided. The file MEMORY
(memory.db) remembers which resumes were begun, and what came of each: if a process dies in one, an approved tool may
have run, so it is not begun again but refused, which stands on the card; if it dies after the turn, the next one only
says what came of it.

The SDK runs a call with the arguments that the model gave, so approvers are not offered to edit them. It stops for
approvals alone: a question is one too, whose tool returns what people answered.
"""

from __future__ import annotations

import asyncio
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

from agents import Agent, Runner, RunResult, RunState, function_tool
from agents.items import ToolApprovalItem
from agents.models.interface import Model
from agents.tool_context import ToolContext
from pydantic import Field
from typing_extensions import TypedDict

Json = dict[str, Any]
HOST, LEASE_S = "openai-agents", float(os.environ.get("LEASE_S", "900"))  # seconds, longer than a turn takes
WHOM: Json = {
    "place": {"channel": os.environ["ASKGATE_CHANNEL"]},
    "policy": {"approvers": os.environ["ASKGATE_APPROVERS"].split(",")},
}
MAY_HAVE_RUN = "The tools may have run: look before you have it decided again."


class Option(TypedDict):
    label: Annotated[str, Field(min_length=1, max_length=60)]
    description: Annotated[str, Field(min_length=1, max_length=500)]


class Question(TypedDict):
    question: Annotated[str, Field(min_length=1, max_length=500)]
    header: Annotated[str, Field(min_length=1, max_length=12, description="a word or two")]
    options: Annotated[list[Option], Field(min_length=2, max_length=4)]


@function_tool(needs_approval=True)
def deploy(version: str, target: str) -> str:
    """Deploy a version. Put your own tool here."""
    with open(os.environ.get("DEPLOYED", "deployed"), "a") as file:
        file.write(f"{version} {target}\n")
    return f"{version} is on {target}"


@function_tool(needs_approval=True)
def ask_user_question(context: ToolContext[Json], questions: list[Question]) -> str:
    """Ask people in Slack 1 to 4 questions."""
    return json.dumps(context.context[context.tool_call_id])


def came_to(result: RunResult) -> Json:
    """What a turn came to: words, or a run of askgate to be put to people."""
    if not result.interruptions:
        return {"said": result.final_output}
    questions = [item for item in result.interruptions if item.tool_name == "ask_user_question"]
    others = [item for item in result.interruptions if item not in questions]
    run = {
        "host": HOST,
        "state": result.to_state().to_string(),
        "pending": {
            "calls": [asked(item) for item in questions],
            "approvals": [asked(item) for item in others],
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


def asked(item: ToolApprovalItem) -> Json:
    args = json.loads(item.arguments or "{}")
    return {"tool_call_id": item.call_id, "tool_name": item.tool_name, "args": args}


async def decided(agent: Agent[Json], resume: Json) -> RunState[Json, Agent[Json]]:
    """Found by its id, never by order or text. Silence is a rejection too, with a sentence that says so."""
    answers: Json = {}
    state = await RunState.from_string(agent, resume["state"], context_override=answers)
    results = resume["run"]["results"]["calls"] | resume["run"]["results"]["approvals"]
    for item in state.get_interruptions():
        result = results[item.call_id]
        if result["outcome"] in ("answered", "approved"):
            answers[item.call_id] = result.get("value")
            state.approve(item)
        else:
            state.reject(item, rejection_message=result.get("reason") or result["message"])
    return state


async def take_up(agent: Agent[Json], memory: sqlite3.Connection, resume: Json) -> None:
    key, run, lease = resume["idempotency_key"], resume["run"], {"lease": resume["lease"]}
    if memory.execute("INSERT OR IGNORE INTO turns VALUES (?, NULL)", [key]).rowcount:
        try:
            result = await Runner.run(agent, await decided(agent, resume))
        except Exception as error:  # noqa: BLE001  # of the model, the network
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


async def main(model: Model | str) -> None:
    agent = Agent[Json](name="Deployer", model=model, tools=[deploy, ask_user_question])
    memory = sqlite3.connect(os.environ.get("MEMORY", "memory.db"), isolation_level=None)
    memory.execute("CREATE TABLE IF NOT EXISTS turns (key TEXT PRIMARY KEY, came_to TEXT)")
    if len(sys.argv) > 1:
        tell(came_to(await Runner.run(agent, sys.argv[1], context={})), key=f"begun-{uuid4()}")
    while True:
        claimed = askgate("/resumes/claim", {"host": HOST, "max": 1, "wait_s": 20, "lease_s": LEASE_S})
        for resume in claimed["resumes"]:
            try:
                await take_up(agent, memory, resume)
            except HTTPError as error:  # it took longer than the lease, say
                print(f"{resume['run']['id']}: {error}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(os.environ["MODEL"]))
