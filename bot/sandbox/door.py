"""The door of the local Slack: web pages of other origins are kept out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FOR_APPS = ("/api/", "/response/", "/upload/", "/link")
"""Paths that programs use, under whatever host name they know this server by."""


def same_origin(hosts: set[str]) -> Middleware:
    """Refuse browsers that come from another page, and the page itself under a foreign host name.

    The second stops a name that a foreign site has pointed at this machine (DNS rebinding).
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return refuse(403, "only this server's own page may do that")
        if not request.path.startswith(FOR_APPS) and _name(request.host) not in hosts:
            return refuse(403, f"this page is served as {' or '.join(sorted(hosts))} only")
        return await handler(request)

    return check


def refuse(status: int, error: str) -> web.Response:
    """An answer in the form of all others, `{"ok": false, "error"}`."""
    return web.json_response({"ok": False, "error": error}, status=status)


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
