"""Installing an app: the page that asks for consent, the code that it gives, and the tokens for that (Slack: OAuth)."""

from __future__ import annotations

import html
import secrets
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web

from bot.sandbox.world import App, Code, User, World

Json = dict[str, Any]

CODE_S: Final = 600
"""How long a code is good (Slack: ten minutes), and once."""
TOKEN_S: Final = 12 * 3600
"""How long a token lives, where tokens rotate (Slack: token rotation)."""
PATH: Final = "/oauth/v2/authorize"


class Consent:
    """`GET /oauth/v2/authorize` asks, and its form answers: back to the app with a code, or with `access_denied`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PATH, self._ask), web.post(PATH, self._answer)]

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        app, problem = self._asked(dict(request.query))
        if app is None:
            return _page(f"<h1>Something went wrong</h1><p>{html.escape(problem)}</p>", 400)
        asked = {
            name: request.query.get(name, "") for name in ("client_id", "scope", "state", "redirect_uri")
        }
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
            for name, value in asked.items()
        )
        places = [*self._world.teams.items(), *((org, name) for org, (name, _) in self._world.orgs.items())]
        options = "".join(
            f'<option value="{html.escape(place)}"{" selected" if place == request.query.get("team") else ""}>'
            f"{html.escape(name)}{' (all of the organization)' if place.startswith('E') else ''}</option>"
            for place, name in places
        )
        scopes = "".join(f"<li>{html.escape(scope)}</li>" for scope in asked["scope"].split(",") if scope)
        return _page(
            f"<h1>{html.escape(app.name)} is requesting permission to access a workspace</h1>"
            f'<form method="post">{hidden}<label>Workspace <select name="place">{options}</select></label>'
            f"<h2>What will {html.escape(app.name)} be able to do?</h2><ul>{scopes}</ul><p class=buttons>"
            '<button name="answer" value="cancel">Cancel</button>'
            '<button name="answer" value="allow" class="primary">Allow</button></p></form>'
        )

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        form = {name: str(value) for name, value in (await request.post()).items()}
        app, problem = self._asked(form)
        place = form.get("place", "")
        if app is None or (place not in self._world.teams and place not in self._world.orgs):
            return _page(
                f"<h1>Something went wrong</h1><p>{html.escape(problem or 'no such workspace')}</p>", 400
            )
        uri = form["redirect_uri"] or app.redirect_urls[0]
        back = {"state": form.get("state", "")}
        if form.get("answer") == "allow":
            user = next((u for u in self._world.users.values() if u.app is None and u.team == place), None)
            code = Code(
                secrets.token_hex(16), app.id, place, user.id if user else "U0ADMIN",
                tuple(filter(None, form.get("scope", "").split(","))), form["redirect_uri"], self._world.clock(),
            )  # fmt: skip
            self._world.codes[code.code] = code
            back["code"] = code.code
        else:
            back["error"] = "access_denied"
        raise web.HTTPFound(f"{uri}?{urlencode(back)}")

    def _asked(self, given: Json) -> tuple[App | None, str]:
        """The app that asks, or what is wrong with how it does."""
        app = self._world.app_by(client_id=given.get("client_id") or "-")
        if app is None:
            return None, "Invalid client_id parameter"
        if (
            not app.redirect_urls
            or (given.get("redirect_uri") or app.redirect_urls[0]) not in app.redirect_urls
        ):
            return (
                None,
                f"redirect_uri did not match any configured URIs. Passed URI: {given.get('redirect_uri')}",
            )
        wanted = set(filter(None, str(given.get("scope", "")).split(",")))
        known = set((app.manifest or {}).get("oauth_config", {}).get("scopes", {}).get("bot", wanted))
        if not wanted or wanted - known:
            return None, f"Invalid scopes: {', '.join(sorted(wanted - known)) or 'none requested'}"
        return app, ""


def installed(world: World, app: App, place: str, scopes: tuple[str, ...]) -> App:
    """The app in a workspace, or in all of an organisation: with a bot user of its own there, and a fresh token."""
    found = next(
        (known for known in world.apps.values() if known.api_id == app.api_id and known.place == place), None
    )
    if found is None:
        team, org = ("", place) if place.startswith("E") else (place, "")
        found = replace(
            app,
            id=world.new_id("A"),
            bot_user=world.new_id("U"),
            bot_id=world.new_id("B"),
            of=app.api_id,
            team=team,
            enterprise=org,
            client_id="",
            bot_token="",
            old_tokens={},
        )
        world.apps[found.id] = found
        home = team or world.orgs[org][1][0]
        world.users[found.bot_user] = User(
            found.bot_user, f"{app.name}-{place}", app.name, home, app=found.id
        )
    found.scopes = frozenset(scopes)
    renew(world, found)
    return found


def renew(world: World, app: App) -> None:
    """Give an installation another token. Where tokens rotate, the old one is good to its own end."""
    rotates = bool((app.manifest or {}).get("settings", {}).get("token_rotation_enabled"))
    if rotates and app.bot_token and app.expires_at:
        app.old_tokens[app.bot_token] = app.expires_at
    app.bot_token = f"{'xoxe.xoxb-1' if rotates else 'xoxb'}-{secrets.token_hex(12)}"
    app.expires_at = world.clock() + TOKEN_S if rotates else None
    app.refresh_token = f"xoxe-1-{secrets.token_hex(12)}" if rotates else ""
    world.changed()


def _page(body: str, status: int = 200) -> web.Response:
    style = (
        "body{font:15px/1.5 Lato,Helvetica,Arial,sans-serif;color:#1d1c1d;max-width:560px;margin:48px auto;"
        "padding:0 24px}h1{font-size:26px;line-height:1.25}h2{font-size:15px;margin-top:24px}select{font:inherit;"
        "padding:6px 8px;margin-left:8px;border:1px solid #868686;border-radius:4px}"
        "li{font-family:monospace;font-size:13px}.buttons{display:flex;gap:12px;justify-content:flex-end}"
        "button{font:700 15px Lato,Helvetica,Arial,sans-serif;padding:9px 20px;border:1px solid #bbb;"
        "border-radius:4px;background:#fff;color:#1d1c1d;cursor:pointer}"
        "button.primary{background:#007a5a;border-color:#007a5a;color:#fff}"
    )
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Slack</title><style>{style}</style>{body}"
    )
    return web.Response(status=status, text=page, content_type="text/html")
