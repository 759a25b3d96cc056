"""Counts every call that leaves this process, and strikes at one of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from core.store.lua import Script

_IDS = re.compile(r"(?:run|gate)_\d+_[0-9A-Z]{26}(?:_\d+)?|[a-z]+_[0-9a-f]{20,32}")
"""Ours, and those of a13n."""


class Points:
    """``met`` is told each place that is come by. At the point ``doom``, ``strike`` is called."""

    def __init__(self, doom: str | None, strike: Callable[[], None], met: Callable[[str], object]) -> None:
        self._met = met
        self._doom = doom
        self._strike = strike
        self._counts: Counter[str] = Counter()

    def install(self) -> None:
        """Wrap what every script and every HTTP request of this process goes through."""
        script, request = Script._sent, aiohttp.ClientSession._request

        async def counted_script(
            self_: Script, send: Any, keys: Sequence[str], args: Sequence[str | int]
        ) -> Any:
            place = self._come_by(f"script {self_.name}")
            reply = await script(self_, send, keys, args)
            self._at(f"{place} after")
            return reply

        async def counted_request(self_: aiohttp.ClientSession, method: str, url: Any, **more: Any) -> Any:
            place = self._come_by(_named(method, str(url)))
            reply = await request(self_, method, url, **more)
            self._at(f"{place} after")
            return reply

        Script._sent = counted_script  # type: ignore[method-assign,assignment]
        aiohttp.ClientSession._request = counted_request  # type: ignore[method-assign,assignment]

    def _come_by(self, name: str) -> str:
        self._counts[name] += 1
        place = f"{name}#{self._counts[name]}"
        self._met(place)
        self._at(f"{place} before")
        return place

    def _at(self, point: str) -> None:
        if point == self._doom:
            self._strike()


def _named(method: str, url: str) -> str:
    """Whom a request goes to, and for what."""
    path = _IDS.sub("*", urlsplit(url).path)
    if path.startswith("/api/v1/"):
        return f"host {method} {path.removeprefix('/api/v1')}"
    if path.startswith("/api/"):
        return f"slack {path.removeprefix('/api/')}"
    if path.startswith("/response/"):
        return "slack response_url"
    return "slack socket" if path == "/link" else f"out {method}"
