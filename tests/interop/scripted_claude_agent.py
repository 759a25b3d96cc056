"""`with_claude_agent.py`, with a stand-in for Claude Code's program, which needs a model: the SDK is the real one.

The stand-in speaks the SDK's control protocol as the program does: it answers `initialize`, asks for permission to use
tools, runs those that are allowed with the input that comes back, and ends the turn. What it heard is its result.
"""

import asyncio
import json
import os

import with_claude_agent
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport

OPTIONS = [{"label": "Focused", "description": "One service"}, {"label": "Broad", "description": "All"}]
ALWAYS = {
    "type": "addRules",
    "rules": [{"toolName": "deploy", "ruleContent": "dev"}],
    "behavior": "allow",
    "destination": "session",
}
ANYWHERE = ALWAYS | {"rules": [{"toolName": "deploy", "ruleContent": "*"}]}


def question(text, multi=False):
    return {"questions": [{"question": text, "header": "Scope", "options": OPTIONS, "multiSelect": multi}]}


AT_ONCE = [
    ("q1", "AskUserQuestion", question("Which scopes?", multi=True), []),
    ("q2", "AskUserQuestion", question("Which next?"), []),
    ("d1", "deploy", {"version": "1.4", "target": "prod"}, [ANYWHERE]),
    ("d2", "deploy", {"version": "1.4", "target": "backup"}, []),
    ("d3", "deploy", {"version": "1.4", "target": "dev"}, [ALWAYS]),
]
if "TWINS" in os.environ:  # the same call twice
    AT_ONCE = [(use_id, "deploy", {"version": "1.4", "target": "backup"}, []) for use_id in ("d1", "d2")]
if "ODD" in os.environ:  # a question that lacks what askgate wants, and one that it does not take
    bare = {"question": "Which one?", "options": [{"label": "One"}, {"label": "Two", "description": ""}]}
    many = {"question": "Which?", "header": "Scope", "options": [{"label": f"{n}"} for n in range(9)]}
    AT_ONCE = [
        (use_id, "AskUserQuestion", {"questions": [q]}, []) for use_id, q in (("q1", bare), ("q2", many))
    ]
AFTERWARDS = ("d4", "deploy", {"version": "1.4", "target": "prod"}, [])


def deploy(version, target):
    with open("deployed", "a") as file:
        file.write(f"{version} {target}\n")


class Program(Transport):
    def __init__(self):
        self._said = asyncio.Queue()
        self._asked = {}
        self._turn = None

    async def connect(self):
        pass

    async def write(self, data):
        message = json.loads(data)
        if message["type"] == "control_request":
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._said.put_nowait({"type": "control_response", "response": response})
        elif message["type"] == "control_response":
            self._asked.pop(message["response"]["request_id"]).set_result(message["response"])
        elif message["type"] == "user":
            self._turn = asyncio.create_task(self._take_turn())

    async def read_messages(self):
        while message := await self._said.get():
            yield message

    async def close(self):
        self._said.put_nowait(None)

    def is_ready(self):
        return True

    async def end_input(self):
        pass

    async def _take_turn(self):
        heard = dict(await asyncio.gather(*(self._use(*call) for call in AT_ONCE)))
        heard |= dict([await self._use(*AFTERWARDS)])
        ended = {"subtype": "success", "is_error": False, "result": json.dumps(heard), "session_id": "s"}
        self._said.put_nowait(
            {"type": "result", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1, **ended}
        )

    async def _use(self, use_id, name, args, suggestions):
        request_id = f"ask-{use_id}"
        self._asked[request_id] = asyncio.get_running_loop().create_future()
        # another process of the program gives other ids
        request = {
            "subtype": "can_use_tool",
            "tool_name": name,
            "input": args,
            "tool_use_id": os.urandom(4).hex(),
        }
        request |= {"permission_suggestions": suggestions, "title": f"Claude wants to use {name}"}
        answer = self._asked[request_id]
        self._said.put_nowait({"type": "control_request", "request_id": request_id, "request": request})
        response = await answer
        if response["subtype"] == "error":
            raise RuntimeError(response["error"])
        if name == "deploy" and response["response"]["behavior"] == "allow":
            deploy(**response["response"]["updatedInput"])
        return use_id, response["response"]


class Client(ClaudeSDKClient):
    """The SDK's own, which notes the session that it begins or goes on with."""

    def __init__(self, how, transport):
        with open("sessions", "a") as file:
            file.write(f"{'resume' if how.resume else 'begin'} {how.resume or how.session_id}\n")
        super().__init__(how, transport)


with_claude_agent.ClaudeSDKClient = Client


async def main():
    await with_claude_agent.main(ClaudeAgentOptions(), Program())


asyncio.run(main())
