"""`with_openai_agents.py`, with a model that asks two things and deploys twice at once, then says what it heard.

With DIE set, the process kills itself in the tool, after its effect. With FAIL set, the model fails after the tools.
"""

import asyncio
import json
import os
import signal

import with_openai_agents
from agents import set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

OPTIONS = [{"label": "Focused", "description": "One service"}, {"label": "Broad", "description": "All"}]


def question(text):
    return {"questions": [{"question": text, "header": "Scope", "options": OPTIONS}]}


CALLS = [
    function_call("ask_user_question", question("Which scope?"), call_id="q1"),
    function_call("ask_user_question", question("Which next?"), call_id="q2"),
    function_call("deploy", {"version": "1.4", "target": "staging"}, call_id="d1"),
    function_call("deploy", {"version": "1.4", "target": "backup"}, call_id="d2"),
]


class Scripted(ScriptedModel):
    """A script that another process goes on with: what comes next is in the input."""

    async def get_response(self, system_instructions, input, *more, **named):
        items = [] if isinstance(input, str) else input
        heard = {i["call_id"]: i["output"] for i in items if i.get("type") == "function_call_output"}
        if heard and "FAIL" in os.environ:
            raise ConnectionError("overloaded")
        self.enqueue([assistant_message(json.dumps(heard))] if heard else CALLS)
        return await super().get_response(system_instructions, input, *more, **named)


if "DIE" in os.environ:
    deploy = with_openai_agents.deploy.on_invoke_tool

    async def deploy_and_die(context, args):
        await deploy(context, args)
        os.kill(os.getpid(), signal.SIGKILL)

    with_openai_agents.deploy.on_invoke_tool = deploy_and_die

set_tracing_disabled(True)
asyncio.run(with_openai_agents.main(Scripted()))
