"""`with_langgraph.py`, with a model that calls six tools at once, then says what it heard.

INTERRUPTS says how the middleware asks (`batched` or `per_call`). With DIE set, the process kills itself in the tool,
after its effect. With FAIL set, the model fails once after the tools.
"""

import json
import os
import signal

import with_langgraph
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

OPTIONS = [{"label": "Focused", "description": "One service"}, {"label": "Broad", "description": "All"}]


def question(text):
    return {"questions": [{"question": text, "header": "Scope", "options": OPTIONS}]}


CALLS = [
    ("ask_user_question", "q1", question("Which scope?")),
    ("ask_user_question", "q2", question("Which next?")),
    ("deploy", "d1", {"version": "1.4", "target": "prod"}),
    ("deploy", "d2", {"version": "1.4", "target": "backup"}),
    ("deploy", "d3", {"version": "1.4", "target": "dev"}),
    ("change_number", "n1", {}),
]


class Scripted(BaseChatModel):
    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        heard = {m.tool_call_id: [m.content, m.status] for m in messages if isinstance(m, ToolMessage)}
        if heard and os.environ.pop("FAIL", None):
            raise ConnectionError("overloaded")
        calls = [] if heard else [{"name": n, "id": i, "args": a, "type": "tool_call"} for n, i, a in CALLS]
        message = AIMessage(json.dumps(heard), tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    @property
    def _llm_type(self):
        return "scripted"


if "WIPE" in os.environ:  # another tool under review, as whoever copies the program adds one

    @tool
    def wipe(path: str) -> str:
        """Wipe a folder."""
        return f"{path} is gone"

    with_langgraph.TOOLS["wipe"] = wipe
    with_langgraph.REVIEW["wipe"] = ["approve", "reject"]
    CALLS = [("wipe", "w1", {"path": "/srv"})]

if "DIE" in os.environ:
    deploy = with_langgraph.deploy.func

    def deploy_and_die(version, target):
        deploy(version, target)
        os.kill(os.getpid(), signal.SIGKILL)

    with_langgraph.deploy.func = deploy_and_die

with_langgraph.main(Scripted(), interrupt_mode=os.environ.get("INTERRUPTS", "batched"))
