"""An MCP client whose servers ask people in Slack: elicitation by form and by url; accept, decline, cancel.

    pip install 'mcp>=2.3'
    export ASKGATE_URL=http://127.0.0.1:8080 ASKGATE_KEY=agent-secret-0123456789 ASKGATE_CHANNEL=C0123456789
    python with_mcp.py deploy '{"version": "1.4"}' python server.py    # a tool, its arguments, the server's command

The client waits in a callback, so its process has to be there when people have decided. It may die before, though: the
file MEMORY (memory.db) has what it waits for. The same command again makes the server ask the same again, and is joined
with the card that stands already. Each answer is used once: who asks for the same later is asked anew.

Whoever is in the channel may answer, and sees where a url leads, all of it. One that signs a person in belongs into a
direct message to them: `"place": {"user": "U0123456789"}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import sys
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from uuid import uuid4

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext

Json = dict[str, Any]
CHANNEL = os.environ["ASKGATE_CHANNEL"]
CONTROLS = ["accept", "decline", "cancel"]


class People:
    """Asks people for one command."""

    def __init__(self, memory: sqlite3.Connection, command: list[str]) -> None:
        self._memory, self._command = memory, command
        self._waiting: set[str] = set()

    async def elicit(self, _: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asks: Json = {"tool_call_id": "asked", "tool_name": self._command[0]}
        if isinstance(params, types.ElicitRequestURLParams):
            link = {"title": params.message, "url": params.url, "controls": CONTROLS}
            result = await self._settled(asks | {"kind": "link", "link": link})
            return types.ElicitResult(action=action(result))
        form = {"title": params.message, "schema": params.requested_schema, "controls": CONTROLS}
        result = await self._settled(asks | {"kind": "form", "form": form})
        return types.ElicitResult(action=action(result), content=result.get("value"))

    async def _settled(self, asks: Json) -> Json:
        """What people decided about this."""
        digest = json.dumps([self._command, asks], sort_keys=True)
        while digest in self._waiting:
            digest += "+"  # the same twice at once: each has an answer of its own
        self._waiting.add(digest)
        try:
            while (result := await self._joined(digest, asks)) is None:
                pass
            return result
        finally:
            self._waiting.remove(digest)

    async def _joined(self, digest: str, asks: Json) -> Json | None:
        """What people decided on the card that stands for this, or on a new one; None if that is not there any more."""
        with self._memory:
            self._memory.execute("INSERT OR IGNORE INTO wait VALUES (?, ?, NULL)", [digest, uuid4().hex])
        key, run = self._memory.execute("SELECT key, run FROM wait WHERE asks = ?", [digest]).fetchone()
        queue = f"mcp.{key}"  # this wait has a queue of its own, to acknowledge it there
        if run is None:
            body = {
                "host": queue,
                "title": "MCP",
                "pending": {"calls": [asks]},
                "place": {"channel": CHANNEL},
            }
            run = (await askgate("/runs", body, key))["id"]
            with self._memory:
                self._memory.execute("UPDATE wait SET run = ? WHERE asks = ?", [run, digest])
        try:
            while (found := await askgate(f"/runs/{run}?wait=30"))["status"] == "waiting":
                pass
        except HTTPError as error:
            if error.code != 404:
                raise
            found = None
        with self._memory:  # before the server goes on, so that it does so once on this answer
            self._memory.execute("DELETE FROM wait WHERE asks = ?", [digest])
        if found is None:
            return None
        with contextlib.suppress(
            OSError, HTTPException
        ):  # askgate is told that it is used; nothing hangs on that
            for resume in (await askgate("/resumes/claim", {"host": queue}, again=False))["resumes"]:
                await askgate(f"/resumes/{run}/ack", {"lease": resume["lease"]}, again=False)
        return dict(found["results"]["calls"]["asked"])


def action(result: Json) -> str:
    """MCP has no word for silence; `cancel` is what it calls a request that nobody decided."""
    return str(result.get("action") or "cancel")


async def askgate(path: str, body: Json | None = None, key: str = "", *, again: bool = True) -> Json:
    """One call of askgate's HTTP API, ``again`` while it is away: it may arrive twice. Raises HTTPError if refused."""
    headers = {"Authorization": f"Bearer {os.environ['ASKGATE_KEY']}", "Content-Type": "application/json"}
    url, data = f"{os.environ['ASKGATE_URL']}/api/v1{path}", json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, headers | ({"Idempotency-Key": key} if key else {}))

    def call() -> Json:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    while True:
        try:
            return await asyncio.to_thread(call)
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500:
                error.msg = error.read().decode()  # says what is wrong, and where
                raise
            if not again:
                raise
            print(f"{url}: {error}; trying again", file=sys.stderr)
        await asyncio.sleep(1)


async def main(tool: str, args: str, *command: str, mode: str = "auto") -> None:
    memory = sqlite3.connect(os.environ.get("MEMORY", "memory.db"))
    memory.execute("CREATE TABLE IF NOT EXISTS wait (asks TEXT PRIMARY KEY, key TEXT NOT NULL, run TEXT)")
    people = People(memory, [tool, args, *command])
    server = StdioServerParameters(command=command[0], args=list(command[1:]))
    async with Client(server, elicitation_callback=people.elicit, mode=mode) as client:
        result = await client.call_tool(tool, json.loads(args))
        print(*(block.text for block in result.content if isinstance(block, types.TextContent)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
