"""askgate's HTTP API, as far as a host needs it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """askgate does not take the call. ``status`` is HTTP's."""

    def __init__(self, status: int, problem: Json) -> None:
        self.status = status
        super().__init__(f"{status} {problem.get('title')}: {problem.get('detail')}")


class Askgate:
    """One key of one askgate. Raises Refused, or OSError when askgate cannot be reached."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url.rstrip("/"), key

    def open(self, body: Json, key: str) -> Json:
        """Put a suspended run in, once for a key."""
        return self._post("/runs", body, {"Idempotency-Key": key})

    def claim(self, host: str, *, wait_s: float, lease_s: float) -> Json | None:
        """A settled run to take up, for this process alone until the lease ends; None if there is none."""
        asked = {"host": host, "max": 1, "wait_s": wait_s, "lease_s": lease_s}
        found = self._post("/resumes/claim", asked, timeout_s=wait_s + 30)["resumes"]
        return found[0] if found else None

    def ack(self, resume: Json) -> None:
        self._post(f"/resumes/{resume['run']['id']}/ack", {"lease": resume["lease"]})

    def refuse(self, resume: Json, error: str) -> None:
        """Say that these decisions lead nowhere: it stands on the card, and an admin may have people decide again."""
        body = {"lease": resume["lease"], "final": True, "error": error[:4096]}
        self._post(f"/resumes/{resume['run']['id']}/nack", body)

    def lost(self, resume: Json, why: str) -> None:
        """Say that what was decided comes too late."""
        body = {"lease": resume["lease"], "lost": True, "error": why}
        self._post(f"/resumes/{resume['run']['id']}/nack", body)

    def _post(self, path: str, body: Json, headers: Json | None = None, timeout_s: float = 30) -> Json:
        request = urllib.request.Request(
            f"{self._url}/api/v1{path}", json.dumps(body).encode(), method="POST"
        )
        given = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        for name, value in given.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise Refused(error.code, json.load(error)) from None
