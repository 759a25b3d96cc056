"""The agent that the real a13n Harness runs in the tests: `ask` has it ask and deploy, `twice` deploy once more after.

It deploys by writing a line to the file DEPLOYED; with DIE set, the process then kills itself. With FAIL set, the model
fails when it has heard from its tools.
"""

import json
import os
import signal

from a13n_harness import AgentSpec, HarnessBuilder
from a13n_harness.capabilities import UserInteractionCapability
from pydantic_ai.capabilities import Toolset
from pydantic_ai.messages import RetryPromptPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

OPTIONS = [{"label": "Focused", "description": "One file"}, {"label": "Broad", "description": "All of it"}]
QUESTION = {"questions": [{"question": "Which scope?", "header": "Scope", "options": OPTIONS}]}
tools = FunctionToolset()


@tools.tool_plain(requires_approval=True)
def deploy(target: str) -> str:
    with open(os.environ["DEPLOYED"], "a") as file:
        file.write(f"{target}\n")
    if "DIE" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"deployed to {target}"


def calls(messages):
    """What the model wants to have called in this turn, by the id of the call; and what came back."""
    parts = [part for message in messages for part in message.parts]
    # the harness puts words of its own around the user's
    said = {n: str(p.content) for n, p in enumerate(parts) if isinstance(p, UserPromptPart)}
    last = max(n for n, text in said.items() if text.startswith("ask"))
    returned = [p for p in parts[last:] if isinstance(p, ToolReturnPart | RetryPromptPart)]
    wanted = []
    if not returned:
        wanted = [("q1", "ask_user_question", QUESTION), ("d1", "deploy", {"target": "prod"})]
    if "twice" in said[last] and len(returned) == 2:
        wanted = [("d2", "deploy", {"target": "dev"})]
    return wanted, [[str(p.content), getattr(p, "outcome", "retry")] for p in returned]


async def model(messages, info):
    wanted, heard = calls(messages)
    if heard and "FAIL" in os.environ:
        raise ConnectionError("overloaded")
    for number, (call_id, name, args) in enumerate(wanted):
        yield {number: DeltaToolCall(name=name, json_args=json.dumps(args), tool_call_id=call_id)}
    if not wanted:
        yield json.dumps(heard)


def build():
    return HarnessBuilder().build(
        AgentSpec(),
        output_type=str,
        model=FunctionModel(stream_function=model),
        capabilities=(UserInteractionCapability(), Toolset(tools)),
    )
