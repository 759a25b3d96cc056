"""The Web API over HTTP: who calls, with what, through which fault, and how the answer looks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import BasicAuth, web

from bot.sandbox.faults import Faults
from bot.sandbox.links import Links
from bot.sandbox.methods import METHODS, Arguments, Call, Refused
from bot.sandbox.scopes import lacking
from bot.sandbox.world import App, World

Json = dict[str, Any]

SCOPES_HEADER = "X-OAuth-Scopes"
WITHOUT_TOKEN = {"api.test", "blocks.validate"}
BY_CLIENT = {"oauth.v2.access"}
"""Methods that are called with the app's client id and secret."""
SECRET = {"token", "client_secret", "refresh_token", "code"}
WITH_CONFIG_TOKEN = {"apps.manifest.export"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call of the Web API: `time` in seconds of the sandbox's clock, `error` when it was not ok.

    A call that met `reset_after_accept` is recorded with the outcome that its caller never heard.
    """

    method: str
    args: Mapping[str, Any]
    time: float
    ok: bool
    error: str | None = None
    app: str | None = None


class WebApi:
    """Serves `/api/<method>` and records every call in `calls`."""

    def __init__(self, world: World, links: Links) -> None:
        self.world = world
        self.links = links
        self.faults = Faults()
        self.calls: list[Recorded] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        raw = await _arguments(request) | _basic(request)
        fault = self.faults.take(name)
        if fault is not None:
            self.world.changes.ring()
        if fault is not None and fault.delay:
            await asyncio.sleep(fault.delay)
        if fault is not None and fault.status is not None:
            error = "ratelimited" if fault.status == 429 else "internal_error"
            self._record(name, raw, None, error)
            headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return _answer({"ok": False, "error": error}, fault.status, headers)
        if fault is not None and fault.error is not None:
            self._record(name, raw, None, fault.error)
            return _answer({"ok": False, "error": fault.error})
        token = raw.pop("token", None) or _bearer(request)
        body, app = self._run(name, raw, token, json_body=request.content_type == "application/json")
        if fault is not None and fault.reset_after_accept:
            assert request.transport is not None  # noqa: S101 - a request that is being served has one
            request.transport.abort()
        granted = app.scopes if app and app.bot_token == token else None
        return _answer(body, headers={} if granted is None else {SCOPES_HEADER: ",".join(sorted(granted))})

    def _run(self, name: str, raw: Json, token: str | None, *, json_body: bool) -> tuple[Json, App | None]:
        app: App | None = None
        try:
            app = self._caller(name, token, raw)
            if wanted := lacking(self.world, app, name, raw.get("channel")):
                provided = ",".join(sorted(app.scopes or ()))
                raise Refused("missing_scope", needed=",".join(wanted), provided=provided)
            call = Call(self.world, self.links, app, Arguments(raw), json_body=json_body)
            body = {"ok": True, **METHODS[name](call)}
        except Refused as refusal:
            self._record(name, raw, app, refusal.error)
            return {"ok": False, "error": refusal.error, **refusal.more}, app
        self._record(name, raw, app, None)
        return body, app

    def _client(self, raw: Json) -> App:
        """The app that a client id and its secret are of."""
        app = self.world.app_by(client_id=raw.get("client_id") or "-")
        if app is None:
            raise Refused("invalid_client_id")
        if raw.get("client_secret") != app.client_secret:
            raise Refused("bad_client_secret")
        return app

    def _holder(self, token: str) -> App | None:
        """The installation of a bot token. Refuses one that has ended."""
        for app in self.world.apps.values():
            ends = app.expires_at if app.bot_token == token else app.old_tokens.get(token)
            if token in (app.bot_token, *app.old_tokens):
                if ends is not None and ends <= self.world.clock():
                    raise Refused("token_expired")
                return app
        return None

    def _caller(self, name: str, token: str | None, raw: Json) -> App:
        if name not in METHODS:
            raise Refused("unknown_method", req_method=name)
        if name in BY_CLIENT:
            return self._client(raw)
        if name in WITHOUT_TOKEN:
            return next(iter(self.world.apps.values()))
        if not token:
            raise Refused("not_authed")
        if name in WITH_CONFIG_TOKEN or token == self.world.config_token:
            return self._configured(name, token)
        app = self._holder(token)
        if name == "apps.connections.open":
            linked = self.world.app_by(app_token=token)
            if app is not None and linked is None:
                raise Refused("not_allowed_token_type")
            app = linked
        elif app is None and self.world.app_by(app_token=token) is not None:
            raise Refused("not_allowed_token_type")
        if app is None:
            raise Refused("invalid_auth")
        return app

    def _configured(self, name: str, token: str) -> App:
        """Any app, for a configuration token is nobody's in particular."""
        if token != self.world.config_token or name not in WITH_CONFIG_TOKEN:
            known = token == self.world.config_token or self.world.app_by(bot_token=token)
            raise Refused("not_allowed_token_type" if known else "invalid_auth")
        return next(iter(self.world.apps.values()))

    def _record(self, name: str, args: Json, app: App | None, error: str | None) -> None:
        args = {key: value for key, value in args.items() if key not in SECRET}
        known = app.id if app else None
        self.calls.append(Recorded(name, args, self.world.clock(), error is None, error, known))
        self.world.changes.ring()


async def _arguments(request: web.Request) -> Json:
    raw: Json = dict(request.query)
    if request.content_type == "application/json":
        try:
            body = json.loads(await request.text() or "{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise web.HTTPOk(
                text=json.dumps({"ok": False, "error": "invalid_json"}), content_type="application/json"
            )
        return raw | body
    return raw | {name: value for name, value in (await request.post()).items() if isinstance(value, str)}


def _basic(request: web.Request) -> Json:
    """A client id and secret, as they may come instead of among the arguments (RFC 6749)."""
    try:
        found = BasicAuth.decode(request.headers.get("Authorization", ""))
    except ValueError:
        return {}
    return {"client_id": found.login, "client_secret": found.password}


def _bearer(request: web.Request) -> str | None:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _answer(body: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers=headers)
