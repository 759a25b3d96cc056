"""The demo's agent: no model, a script of five steps. It knows askgate by its HTTP API alone, as any agent would.

It keeps nothing in memory between two steps. What it needs to go on is in the run's `state`, which askgate gives back
with the results, so it can die while people think and be started again.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import aiohttp

HOST: Final = "demo"
CLAIM_WAIT_S: Final = 30
LEASE_S: Final = 60
TIMEOUT_S: Final = 24 * 3600
"""The deadline of every question but the one that is there to pass it, in seconds."""

Json = dict[str, Any]


class DemoAgent:
    """Talks to askgate at ``api_url`` with ``key``, and to Slack (to say what it did) with ``slack_token``."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        api_url: str,
        key: str,
        slack_url: str,
        slack_token: str,
        channel: str,
        approvers: list[str],
        last_timeout_s: int,
    ) -> None:
        self._session = session
        self._api = api_url
        self._auth = {"Authorization": f"Bearer {key}"}
        self._slack = slack_url
        self._slack_auth = {"Authorization": f"Bearer {slack_token}"}
        self._channel = channel
        self._approvers = approvers
        self._last_timeout_s = last_timeout_s
        self.asking = asyncio.Event()
        """Set once it has a thread to ask in."""

    async def run(self) -> None:
        """Take up what was settled, and go on, until cancelled. With nothing pending, begin the script."""
        if not await self._go_on(wait_s=0) and not await self._pending():
            await self._begin()
        self.asking.set()
        while True:
            await self._go_on(wait_s=CLAIM_WAIT_S)

    async def _pending(self) -> bool:
        found = await self._call("GET", f"/gates?status=pending&host={HOST}&limit=1")
        return bool(found["gates"])

    async def _begin(self) -> None:
        thread_ts = await self.say(GREETING)
        await self._ask("begin-" + thread_ts, {"step": "scope", "thread_ts": thread_ts, "known": {}})

    async def _go_on(self, *, wait_s: int) -> int:
        body = {"host": HOST, "max": 10, "wait_s": wait_s, "lease_s": LEASE_S}
        claimed = await self._call("POST", "/resumes/claim", body)
        for resume in claimed["resumes"]:
            await self._take_up(resume["run"], json.loads(resume["state"]))
            await self._call("POST", f"/resumes/{resume['run']['id']}/ack", {"lease": resume["lease"]})
        return len(claimed["resumes"])

    async def _take_up(self, run: Json, state: Json) -> None:
        """Say what became of a step, and ask the next one. The key makes a second try of this harmless."""
        results = run["results"]
        result = next(iter({**results["calls"], **results["approvals"]}.values()))
        said, following = self._react(state, result)
        await self.say(said, state["thread_ts"])
        if following:
            await self._ask(f"after-{run['id']}", {**state, "step": following})

    def _react(self, state: Json, result: Json) -> tuple[str, str | None]:
        """What the agent says to a result, and its next step. A failure is a failure, never an answer."""
        known, step = state["known"], state["step"]
        if step == "approve":
            if result["action"] == "approve":
                return f"Approved. I deleted: {', '.join(known['folders'])}.", "report"
            return f"I deleted nothing: {result['reason']}", "report"
        if result["status"] == "failed":
            said, following = _WITHOUT[step]
            return f"I got no answer ({result['outcome']}): {result['message']} {said}", following
        picked = _picked(result["value"])
        if step == "again":
            return ("Once more, then.", "scope") if picked == [AGAIN] else (GOODBYE, None)
        known[step] = picked
        return f"Thank you. {_QUESTIONS[step]['header']}: {', '.join(picked)}.", _AFTER[step]

    async def _ask(self, key: str, state: Json) -> None:
        """Suspend: the questions, and all that it takes to go on."""
        body = {
            "host": HOST,
            "title": f"Nightly clean-up: {_TITLES[state['step']]}",
            "pending": self._pending_of(state),
            "state": json.dumps(state),
            "place": {"channel": self._channel, "thread_ts": state["thread_ts"]},
            "policy": {"approvers": self._approvers},
            "timeout_s": self._last_timeout_s if state["step"] == "report" else TIMEOUT_S,
        }
        await self._call("POST", "/runs", body, {"Idempotency-Key": key})

    def _pending_of(self, state: Json) -> Json:
        step = state["step"]
        if step != "approve":
            question = _QUESTIONS[step]
            call = {
                "tool_call_id": step,
                "tool_name": "ask_user_question",
                "args": {"questions": [question]},
            }
            return {"calls": [call], "approvals": []}
        folders = state["known"].get("folders", [])
        approval = {
            "tool_call_id": "approve",
            "tool_name": "delete_folders",
            "args": {"folders": folders, "older_than_days": 30, "scope": state["known"]["scope"][0]},
            "reason": "The disk is 97% full.",
            "risk": "high",
        }
        return {"calls": [], "approvals": [approval]}

    async def say(self, text: str, thread_ts: str | None = None) -> str:
        """Say something in Slack. What people wrote is part of it, so none of it may make markup."""
        body = {"channel": self._channel, "text": _escaped(text), "mrkdwn": False}
        body |= {"thread_ts": thread_ts} if thread_ts else {}
        async with self._session.post(
            f"{self._slack}chat.postMessage", json=body, headers=self._slack_auth
        ) as response:
            reply = await response.json()
        if not reply["ok"]:
            raise RuntimeError(f"the local Slack refused the agent's message: {reply['error']}")
        return str(reply["ts"])

    async def _call(
        self, method: str, path: str, body: Json | None = None, headers: Json | None = None
    ) -> Json:
        async with self._session.request(
            method, f"{self._api}/api/v1{path}", json=body, headers={**self._auth, **(headers or {})}
        ) as response:
            reply: Json = await response.json(content_type=None)
        if response.status >= 400:
            raise RuntimeError(f"askgate refused {method} {path}: {reply.get('detail')}")
        return reply


def _escaped(text: str) -> str:
    """Text that makes no link, mention or broadcast (Slack: escaping text)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _picked(value: Json) -> list[str]:
    """The answers in a question's value, or the general response."""
    answers = [
        a for answer in value["answers"].values() for a in ([answer] if isinstance(answer, str) else answer)
    ]
    return answers or [value["response"]]


GREETING: Final = "Good morning! I am the nightly clean-up. I ask before I act, in this thread."
AGAIN: Final = "Again"
GOODBYE: Final = "That was all. The next start of the demo begins with me again."

_TITLES: Final = {
    "scope": "how far",
    "folders": "which folders",
    "approve": "may I delete?",
    "report": "a report",
    "again": "the end",
}

_AFTER: Final[dict[str, str | None]] = {"scope": "folders", "folders": "approve", "report": "again"}
"""The step after an answered one."""

_WITHOUT: Final[dict[str, tuple[str, str | None]]] = {
    "scope": ("So I delete nothing.", "report"),
    "folders": ("So I leave every folder alone.", "report"),
    "report": ("So I send no report.", "again"),
    "again": (GOODBYE, None),
}
"""What the agent does without an answer to a step: it never takes silence for one."""

_QUESTIONS: Final[dict[str, Json]] = {
    "scope": {
        "question": "How far should the clean-up go?",
        "header": "Scope",
        "options": [
            {"label": "Focused", "description": "Only what is older than 30 days"},
            {"label": "Broad", "description": "Everything that can be made again"},
        ],
    },
    "folders": {
        "question": "Which folders may I look into?",
        "header": "Folders",
        "multiSelect": True,
        "options": [
            {"label": "build", "description": "Compiled files, 41 GB"},
            {"label": "cache", "description": "Downloaded packages, 17 GB"},
            {"label": "logs", "description": "Old logs, 9 GB"},
        ],
    },
    "report": {
        "question": "Shall I mail a report? Leave this one alone to see what silence does.",
        "header": "Report",
        "options": [
            {"label": "Yes", "description": "To everybody in this channel"},
            {"label": "No", "description": "The thread says enough"},
        ],
    },
    "again": {
        "question": "That was the whole script. Shall I start over?",
        "header": "Once more",
        "options": [
            {"label": AGAIN, "description": "The same questions, in this thread"},
            {"label": "Enough", "description": "I stay quiet until the demo is started again"},
        ],
    },
}
