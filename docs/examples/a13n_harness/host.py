"""A host of a13n Harness whose processes may die at any moment while people think.

    python host.py say CONVERSATION TEXT      a turn: until the agent has answered, or waits for people
    python host.py work [--once]              takes up what people have decided
    python host.py show CONVERSATION          what was said last

ASKGATE_URL and ASKGATE_KEY say where askgate is; ASKGATE_CHANNEL and ASKGATE_APPROVERS who is asked; HOST_MEMORY is the
file of `memory.py` (host.db), HOST_LEASE_S how many seconds a turn may take (900).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from a13n_harness import (
    DeferredToolCall,
    DeferredToolRequests,
    DeferredToolResume,
    ExecutableAgent,
    HarnessRunResult,
    HarnessState,
    RunBindings,
    RunError,
)
from askgate import Askgate, Refused
from memory import Memory, Overtaken, Turn
from pydantic import TypeAdapter, ValidationError
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolApproved, ToolDenied

HOST = "a13n-harness"
# longer than a turn takes, so that nobody else takes a run up that goes on; and how long one waits whose process died
LEASE_S = float(os.environ.get("HOST_LEASE_S", "900"))
CHANNEL, APPROVERS = os.environ["ASKGATE_CHANNEL"], os.environ["ASKGATE_APPROVERS"].split(",")
UNPROCESSABLE = 422
QUESTION = "ask_user_question"
PRESENTATION = "a13n.harness.approval-presentation"
INTERRUPTED = (
    "This was approved and begun, and then the process died: it may have run, in part or wholly. It was not begun"
    " again. Look at how things are before you decide whether to."
)
MAY_HAVE_RUN = "What was approved may have run: look before you have it decided again."
requests_json = TypeAdapter(DeferredToolRequests)

Json = dict[str, Any]


class Waits(Exception):
    """The conversation waits for people. A turn would abandon what they were asked, without a word to them."""


class Host:
    def __init__(self, agent: ExecutableAgent[str], memory: Memory, askgate: Askgate) -> None:
        self._agent, self._memory, self._askgate = agent, memory, askgate

    async def say(self, conversation: str, text: str) -> None:
        """One turn. Raises Waits."""
        state, waits, _ = self._memory.conversation(conversation)
        if waits:
            raise Waits(f"{conversation} waits for people: {waits}")
        result = await self._agent.run(
            text,
            bindings=RunBindings.embedded(),
            previous_state=HarnessState.model_validate_json(state) if state else None,
        )
        key = f"{conversation}-{uuid4().hex}"
        self._memory.keep(conversation, turn(conversation, result, key), key=key, waited=None)
        await self.tell()

    async def tell(self) -> None:
        """Put to people what they have not been asked yet. Twice is as good as once: askgate knows the key."""
        for key, body in self._memory.untold():
            try:
                self._askgate.open(body, key)
            except Refused as error:
                if error.status != UNPROCESSABLE:
                    raise
                print(f"{body['external_id']}: {error}", file=sys.stderr)
                await self._fail(key, json.loads(body["state"]), f"It cannot be put to people. {error}")
            else:
                self._memory.told(key)

    async def _fail(self, key: str, kept: Json, why: str) -> None:
        """Go on from what cannot be put to people: the model hears why, and the conversation does not wait for ever."""
        asked = requests_json.validate_python(kept["deferred"])
        results: Json = {
            "calls": {
                call.target_call.tool_call_id: {"status": "failed", "message": why} for call in asked.calls
            },
            "approvals": {
                call.target_call.tool_call_id: {"action": "deny", "reason": why} for call in asked.approvals
            },
        }
        next_key = f"{key}-next"
        try:
            end = turn(kept["conversation"], await self._resumed(results, kept, again=False), next_key)
        except (
            RunError,
            RuntimeError,
            ValidationError,
        ) as error:  # the next process tries again; other conversations go on
            print(f"{kept['conversation']}: {error}", file=sys.stderr)
        else:
            self._memory.keep(kept["conversation"], end, key=next_key, waited=key)

    async def work(self, *, once: bool = False) -> None:
        await self.tell()
        while True:
            resume = self._askgate.claim(HOST, wait_s=0 if once else 20, lease_s=LEASE_S)
            if resume:
                await self.take_up(resume)
            if once:
                return

    async def take_up(self, resume: Json) -> None:
        """Resume once in effect. The harness itself would do it as often as it is told to."""
        key, kept = resume["idempotency_key"], json.loads(resume["state"])
        conversation = kept["conversation"]
        word = self._memory.begin(key, conversation, kept["key"])
        if word == "over":
            self._askgate.lost(resume, "The conversation has gone on without this.")
            return
        if word != "done":
            try:
                result = await self._resumed(resume["run"]["results"], kept, again=word == "again")
            except RunError as error:
                self._askgate.refuse(resume, f"The harness cannot go on from this: {error}")
                return
            except ValidationError:
                # its text would show what was asked
                left, here = kept["harness"], version("a13n-harness")
                why = (
                    f"a13n-harness {here} cannot read what a13n-harness {left} left when it stopped for this."
                )
                self._askgate.refuse(resume, why)
                return
            if result.status not in ("completed", "suspended"):
                # what the wait started from stays as it was, for what people decide next
                why = f"{MAY_HAVE_RUN} The run {result.status}: {result.failure}"
                self._askgate.refuse(resume, why)
                return
            next_key = f"{key}-next"
            end = turn(conversation, result, next_key)
            self._memory.keep(conversation, end, key=next_key, waited=kept["key"], resumed=key)
        await self.tell()
        self._askgate.ack(resume)

    async def _resumed(self, given: Json, kept: Json, *, again: bool) -> HarnessRunResult[str]:
        asked = requests_json.validate_python(kept["deferred"])
        results = asked.build_results(
            calls={call_id: answer(result) for call_id, result in given["calls"].items()},
            approvals={call_id: permission(result, again) for call_id, result in given["approvals"].items()},
        )
        return await self._agent.run(
            bindings=RunBindings.embedded(),
            previous_state=HarnessState.model_validate(kept["state"]),
            deferred_resume=DeferredToolResume(asked, results),
        )


def answer(result: Json) -> Any:
    return result["value"] if result["status"] == "returned" else ToolFailed(result["message"])


def permission(result: Json, again: bool) -> ToolApproved | ToolDenied:
    """``again``: somebody died after this was begun, so what was approved may have run already."""
    if result["action"] == "deny":
        return ToolDenied(result["reason"])
    return ToolDenied(INTERRUPTED) if again else ToolApproved(override_args=result.get("override_args"))


def turn(conversation: str, result: HarnessRunResult[str], key: str) -> Turn:
    """What a turn came to; ``key`` is that of the wait, if it waits. Raises RuntimeError if it failed."""
    if result.status == "completed":
        return Turn(said=result.output, state=result.state.model_dump_json())
    if result.deferred is None:
        raise RuntimeError(f"the run {result.status}: {result.failure}")
    kept = {
        # a later release may not read this: what a resume is then refused with names both
        "harness": version("a13n-harness"),
        "conversation": conversation,
        "key": key,
        "state": result.state.model_dump(mode="json"),
        "deferred": requests_json.dump_python(result.deferred, mode="json"),
    }
    wait = {
        "host": HOST,
        "external_id": conversation,
        "title": f"Conversation {conversation}",
        "state": json.dumps(kept),
        "pending": {
            "calls": [call(item) for item in result.deferred.calls],
            "approvals": [approval(item, result.deferred) for item in result.deferred.approvals],
        },
        "place": {"channel": CHANNEL},
        "policy": {"approvers": APPROVERS, "edits": True},
    }
    return Turn(wait=wait)


def call(item: DeferredToolCall) -> Json:
    """Anything but a question is shown as JSON, and answered with JSON or text."""
    kind = {} if item.target_call.tool_name == QUESTION else {"kind": "custom"}
    return {**asked(item), **kind}


def approval(item: DeferredToolCall, requests: DeferredToolRequests) -> Json:
    """The harness has cleaned reason, risk and target of secrets."""
    shown = requests.metadata.get(item.target_call.tool_call_id, {}).get(PRESENTATION, {})
    reason = " · ".join(filter(None, (shown.get("reason"), shown.get("target"))))
    return {**asked(item), "reason": reason or None, "risk": shown.get("risk")}


def asked(item: DeferredToolCall) -> Json:
    target = item.target_call
    return {"tool_call_id": target.tool_call_id, "tool_name": target.tool_name, "args": target.args_as_dict()}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", default="agent", help="the module whose `build` makes the agent")
    commands = parser.add_subparsers(dest="command", required=True)
    say = commands.add_parser("say")
    say.add_argument("conversation")
    say.add_argument("text")
    commands.add_parser("show").add_argument("conversation")
    commands.add_parser("work").add_argument("--once", action="store_true")
    given = parser.parse_args()
    memory = Memory(Path(os.environ.get("HOST_MEMORY", "host.db")))
    if given.command == "show":
        print(memory.conversation(given.conversation)[2])
        return
    askgate = Askgate(os.environ["ASKGATE_URL"], os.environ["ASKGATE_KEY"])
    host = Host(importlib.import_module(given.agent).build(), memory, askgate)
    try:
        await (
            host.say(given.conversation, given.text) if given.command == "say" else host.work(once=given.once)
        )
    except (Waits, Overtaken, Refused) as error:
        raise SystemExit(str(error)) from None
    except OSError as error:
        raise SystemExit(f"askgate is away ({error}). Nothing is lost: start this again.") from None


if __name__ == "__main__":
    asyncio.run(main())
