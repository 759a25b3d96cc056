"""`with_pydantic_ai.py`, with a model that asks two things and deploys twice at once, then says what it heard.

With DIE set, the process kills itself in the tool, after its effect. With FAIL set, the model fails after the tools.
"""

import json
import os
import signal

import with_pydantic_ai
from pydantic_ai import Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

OPTIONS = [{"label": "Focused", "description": "One service"}, {"label": "Broad", "description": "All"}]


def question(text):
    return {"questions": [{"question": text, "header": "Scope", "options": OPTIONS}]}


CALLS = [
    ToolCallPart("ask_user_question", question("Which scope?"), "q1"),
    ToolCallPart("ask_user_question", question("Which next?"), "q2"),
    ToolCallPart("deploy", {"version": "1.4", "target": "prod"}, "d1"),
    ToolCallPart("deploy", {"version": "1.4", "target": "backup"}, "d2"),
]


def model(messages, info):
    parts = [part for message in messages for part in message.parts]
    heard = {p.tool_call_id: [p.content, p.outcome] for p in parts if isinstance(p, ToolReturnPart)}
    if heard and "FAIL" in os.environ:
        raise ConnectionError("overloaded")
    return ModelResponse([TextPart(json.dumps(heard))] if heard else CALLS)


if "WIPE" in os.environ:  # another tool that wants approval, as whoever copies the program adds one

    def wipe(path: str) -> str:
        return f"{path} is gone"

    with_pydantic_ai.TOOLS["wipe"] = Tool(wipe, requires_approval=True)
    CALLS = [ToolCallPart("wipe", {"path": "/srv"}, "w1")]

if "DIE" in os.environ:
    deploy = with_pydantic_ai.deploying.function_schema.function

    def deploy_and_die(**args):
        deploy(**args)
        os.kill(os.getpid(), signal.SIGKILL)

    with_pydantic_ai.deploying.function_schema.function = deploy_and_die

with_pydantic_ai.main(FunctionModel(model))
