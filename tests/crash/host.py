"""A scripted host: it suspends its runs, takes them up when they are settled, and acts once for each.

What it must not forget it writes into a journal, flushed to the disk before it goes on. It can be killed at any moment
and be started again with the same journal, as any careful host can.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

Json = dict[str, Any]
API_KEY = "crash-key-00000001"
KEY_NAME = "agent"
RETRY_S = 0.05
CLAIM_WAIT_S = 1


class Journal:
    """Lines of JSON in a file, each flushed to the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, **entry: Any) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, json.dumps(entry).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def entries(self, kind: str) -> list[Json]:
        """The entries that have this member, oldest first."""
        if not self._path.exists():
            return []
        lines = [json.loads(line) for line in self._path.read_text().splitlines()]
        return [line for line in lines if kind in line]


class Host:
    """One host, by its name. It calls the API at ``url``; what could not be answered now it asks again."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, journal: Journal, *, name: str, lease_s: float
    ) -> None:
        self._session = session
        self._url = url
        self._journal = journal
        self._name = name
        self._lease_s = lease_s

    async def run(self, asks: Sequence[Json]) -> None:
        """Have every ask settled, taken up and acknowledged; those that are pushed, by whom they are pushed to."""
        left, pushed = {}, []
        for ask in asks:
            run = await self._ask(ask)
            if ask["pushed"]:
                pushed.append(run["id"])
            elif run["status"] != "resumed":
                left[run["id"]] = ask
        while left:
            body = {"host": self._name, "max": 5, "wait_s": CLAIM_WAIT_S, "lease_s": self._lease_s}
            claimed = await self._call("POST", "/resumes/claim", body)
            for resume in claimed["resumes"]:
                run_id = resume["run"]["id"]
                if await self._take_up(resume, left[run_id]):
                    del left[run_id]
        for run_id in pushed:
            await self._resumed(run_id)

    async def _resumed(self, run_id: str) -> None:
        """Return when a run was taken up elsewhere."""
        while True:
            run = await self._call("GET", f"/runs/{run_id}")
            if run["status"] == "resumed":
                return
            await asyncio.sleep(RETRY_S)

    async def _ask(self, ask: Json) -> Json:
        """Suspend, and do what the host itself does about it."""
        run: Json = await self._call("POST", "/runs", ask["body"], ask["key"])
        self._journal.add(opened=ask["name"], run=run["id"])
        for act in ask["acts"]:
            path = act["path"].format(run=run["id"], gate=run["gates"][0]["id"])
            await self._call("POST", path, act["body"], refusals=(409,))
            self._journal.add(acted=ask["name"], path=act["path"])
        return run

    async def _take_up(self, resume: Json, ask: Json) -> bool:
        """Act on a settled run, once for its idempotency key. Returns whether askgate knows that it was taken up."""
        run_id, key = resume["run"]["id"], resume["idempotency_key"]
        got = {"key": key, "results": json.dumps(resume["run"]["results"]), "state": resume["state"]}
        self._journal.add(delivered=ask["name"], **got)
        lease = {"lease": resume["lease"]}
        if ask["nack"] and not any(e["nacked"] == run_id for e in self._journal.entries("nacked")):
            body = {**lease, "retry_in_s": 0, "error": "not now"}
            await self._call("POST", f"/resumes/{run_id}/nack", body, refusals=(409,))
            self._journal.add(nacked=run_id)
            return False
        if not any(entry["key"] == key for entry in self._journal.entries("effect")):
            self._journal.add(effect=ask["name"], **got)
        acked = await self._call("POST", f"/resumes/{run_id}/ack", lease, refusals=(409,))
        return acked is not None

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        key: str | None = None,
        *,
        refusals: Sequence[int] = (),
    ) -> Any:
        """Call until there is an answer. None: it was refused with one of ``refusals``."""
        headers = {"Authorization": f"Bearer {API_KEY}"} | ({"Idempotency-Key": key} if key else {})
        while True:
            try:
                async with self._session.request(
                    method, f"{self._url}/api/v1{path}", json=body, headers=headers
                ) as response:
                    text = await response.text()
            except aiohttp.ClientError:
                await asyncio.sleep(RETRY_S)
                continue
            if response.status == 503:
                await asyncio.sleep(RETRY_S)
            elif response.status in refusals:
                return None
            elif response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {text}")
            else:
                return json.loads(text)
