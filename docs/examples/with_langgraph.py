"""A LangGraph agent that waits for people in Slack: `interrupt`, a checkpointer, and the HumanInTheLoop middleware.

    pip install 'langchain[openai]>=1.0' langgraph-checkpoint-sqlite
    export ASKGATE_URL=http://127.0.0.1:8080 ASKGATE_KEY=agent-secret-0123456789
    export ASKGATE_CHANNEL=C0123456789 ASKGATE_APPROVERS=U0123456789 MODEL=openai:gpt-5 OPENAI_API_KEY=…
    python with_langgraph.py 'Deploy 1.4 where you think best'
    python with_langgraph.py                    # only takes up what people have decided

The checkpointer keeps the thread in the file MEMORY (memory.db), and askgate knows which one it is: nothing runs while
people think. The file remembers too which resumes were begun: if a process dies in one, an approved tool may have run,
so it is not begun again but refused, which stands on the card; if it dies after the turn, the next one only says what
came of it. Both of the middleware's `interrupt_mode`s are served.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, StateSnapshot, interrupt

Json = dict[str, Any]
HOST, LEASE_S = "langgraph", float(os.environ.get("LEASE_S", "900"))  # seconds, longer than a turn takes
RETRY_S = 10
CHANNEL, APPROVERS = os.environ["ASKGATE_CHANNEL"], os.environ["ASKGATE_APPROVERS"].split(",")


@tool
def deploy(version: str, target: str) -> str:
    """Deploy a version. Put your own tool here."""
    with open(os.environ.get("DEPLOYED", "deployed"), "a") as file:
        file.write(f"{version} {target}\n")
    return f"{version} is on {target}"


@tool
def ask_user_question(questions: list[Json]) -> str:  # people respond in its place
    """Ask 1 to 4 questions, each {question, header (12 characters), options: 2 to 4 of {label, description}}."""


@tool
def change_number() -> str:
    """The number of the change that people have filed for this."""
    return str(interrupt({"title": "Which change is this?", "fields": [{"name": "number", "kind": "text"}]}))


TOOLS = {tool.name: tool for tool in (deploy, ask_user_question, change_number)}
REVIEW = {"deploy": ["approve", "edit", "reject"], "ask_user_question": ["respond", "reject"]}


def asks(item: Interrupt) -> list[tuple[str, Json]]:
    """What one interrupt asks, by ids: a form of a tool, or calls of the middleware (all of the turn, or one)."""
    return [(f"{item.id}.{n}", ask) for n, ask in enumerate(item.value.get("action_requests", [item.value]))]


def gate(key: str, ask: Json) -> Json:
    if "fields" in ask:
        return {"tool_call_id": key, "tool_name": "form", "kind": "form", "args": {}, "form": ask}
    name = ask["name"]
    fits = {"args_schema": TOOLS[name].tool_call_schema.model_json_schema()} if "edit" in REVIEW[name] else {}
    return {"tool_call_id": key, "tool_name": name, "args": ask["args"]} | fits


def decision(result: Json, ask: Json) -> Any:
    """Silence is a failure or a rejection too, with a sentence that says so."""
    if "fields" in ask:
        return result["value"] if result["status"] == "returned" else result["message"]
    if result.get("status") == "returned":
        return {"type": "respond", "message": json.dumps(result["value"])}
    if result.get("action") != "approve":
        return {"type": "reject", "message": result.get("reason") or result["message"]}
    if "override_args" in result:
        return {"type": "edit", "edited_action": {"name": ask["name"], "args": result["override_args"]}}
    return {"type": "approve"}


def settle(graph: CompiledStateGraph, config: Json) -> None:
    """What the thread has come to: said, or put to people. The key makes one run of it, however often it is sent."""
    state, thread = graph.get_state(config), config["configurable"]["thread_id"]
    if not state.interrupts:
        print(state.values["messages"][-1].text, flush=True)
        return
    asked = [gate(*ask) for item in state.interrupts for ask in asks(item)]
    approvals = [ask for ask in asked if "approve" in REVIEW.get(ask["tool_name"], ())]
    edits = all("args_schema" in ask for ask in approvals)  # which edited arguments have to fit
    run = {
        "host": HOST,
        "state": thread,
        "pending": {"calls": [ask for ask in asked if ask not in approvals], "approvals": approvals},
        "place": {"channel": CHANNEL},
        "policy": {"approvers": APPROVERS, "edits": edits},
    }
    askgate("/runs", run, "-".join([thread, *(item.id for item in state.interrupts)]))


def take_up(graph: CompiledStateGraph, memory: sqlite3.Connection, resume: Json) -> None:
    path, lease = f"/resumes/{resume['run']['id']}", {"lease": resume["lease"]}
    results = resume["run"]["results"]["calls"] | resume["run"]["results"]["approvals"]
    config = {"configurable": {"thread_id": resume["state"]}}
    state = graph.get_state(config)
    waits = {key.partition(".")[0] for key in results} <= {item.id for item in state.interrupts}
    with memory:
        first = memory.execute("INSERT OR IGNORE INTO begun VALUES (?)", [resume["idempotency_key"]]).rowcount
    try:
        if waits and first:
            graph.invoke(Command(resume=answers(state, results)), config)
        elif not waits and state.next == ("model",):  # it failed when the tools were done, and is asked again
            graph.invoke(None, config)
        elif waits or not ended(state):
            error = "It broke off in this: the tools may have run. Look how things are."
            askgate(f"{path}/nack", lease | {"final": True, "error": error})
            return
    except Exception as error:  # noqa: BLE001  # of a tool, the model, the network: the next try looks how far it came
        why = f"{type(error).__name__}: {error}"[:4096]
        askgate(f"{path}/nack", lease | {"retry_in_s": RETRY_S, "error": why})
        return
    try:
        settle(graph, config)
    except HTTPError as error:
        why = f"What it asks then cannot be put to people: {error}"[:4096]
        askgate(f"{path}/nack", lease | {"final": True, "error": why})
        return
    askgate(f"{path}/ack", lease)


def answers(state: StateSnapshot, results: Json) -> Json:
    """What each interrupt gets."""
    found: Json = {}
    for item in state.interrupts:
        decisions = [decision(results[key], ask) for key, ask in asks(item)]
        found[item.id] = {"decisions": decisions} if "action_requests" in item.value else decisions[0]
    return found


def ended(state: StateSnapshot) -> bool:
    """Whether a turn came to its end: the thread is over, or waits again, and what ran beside that is done."""
    done = all(task.interrupts or task.result is not None for task in state.tasks)
    return not state.tasks or (bool(state.interrupts) and done)


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


def main(model: BaseChatModel | str, **how: Any) -> None:
    memory = sqlite3.connect(os.environ.get("MEMORY", "memory.db"), check_same_thread=False)
    memory.execute("CREATE TABLE IF NOT EXISTS begun (key TEXT PRIMARY KEY)")
    on: Json = {name: {"allowed_decisions": decisions} for name, decisions in REVIEW.items()}
    review = HumanInTheLoopMiddleware(interrupt_on=on, **how)
    graph = create_agent(model, list(TOOLS.values()), middleware=[review], checkpointer=SqliteSaver(memory))
    if len(sys.argv) > 1:
        config = {"configurable": {"thread_id": uuid4().hex}}
        graph.invoke({"messages": [("user", sys.argv[1])]}, config)
        settle(graph, config)
    while True:
        claimed = askgate("/resumes/claim", {"host": HOST, "max": 1, "wait_s": 20, "lease_s": LEASE_S})
        for resume in claimed["resumes"]:
            try:
                take_up(graph, memory, resume)
            except HTTPError as error:  # it took longer than the lease, say
                print(f"{resume['run']['id']}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(os.environ["MODEL"])
