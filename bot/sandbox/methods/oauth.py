"""oauth.v2.access, auth.revoke and auth.teams.list: tokens, and where they are good."""

from __future__ import annotations

from typing import Any

from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.oauth import CODE_S, TOKEN_S, installed, renew
from bot.sandbox.world import App

Json = dict[str, Any]


@method("oauth.v2.access")
def access(call: Call) -> Json:
    """A code for a token, once; or a refresh token for the next one (Slack: oauth.v2.access)."""
    grant = call.args.text("grant_type", "authorization_code")
    if grant == "refresh_token":
        token = call.args.text("refresh_token")
        app = call.world.app_by(refresh_token=token) if token else None
        if app is None or app.api_id != call.app.api_id:
            raise Refused("invalid_refresh_token")
        renew(call.world, app)
        return _granted(call, app)
    if grant != "authorization_code":
        raise Refused("invalid_grant_type")
    code = call.world.codes.get(call.args.need("code", "invalid_code"))
    if code is None or code.app != call.app.id or call.world.clock() - code.at > CODE_S:
        raise Refused("invalid_code")
    if code.used:
        raise Refused("code_already_used")
    if call.args.text("redirect_uri") != code.redirect_uri:
        raise Refused("bad_redirect_uri")
    code.used = True
    app = installed(call.world, call.app, code.place, code.scopes)
    return _granted(call, app) | {"authed_user": {"id": code.user}}


def _granted(call: Call, app: App) -> Json:
    """The token, and whose it is. `team` is null for a whole organisation."""
    org, world = app.enterprise, call.world
    rotation = {"expires_in": TOKEN_S, "refresh_token": app.refresh_token} if app.expires_at else {}
    return {
        "app_id": app.api_id,
        "authed_user": {},
        "scope": ",".join(sorted(app.scopes or ())),
        "token_type": "bot",
        "access_token": app.bot_token,
        "bot_user_id": app.bot_user,
        "team": None if org else {"id": app.team, "name": world.teams[app.team]},
        "enterprise": {"id": org, "name": world.orgs[org][0]} if org else None,
        "is_enterprise_install": bool(org),
        **rotation,
    }


@method("auth.revoke")
def revoke(call: Call) -> Json:
    """The token is good no more."""
    if call.args.flag("test"):
        return {"revoked": False}
    call.app.bot_token, call.app.refresh_token, call.app.expires_at = "", "", None
    call.app.old_tokens.clear()
    call.world.changed()
    return {"revoked": True}


@method("auth.teams.list")
def teams_list(call: Call) -> Json:
    """The workspaces in which a token is good: those of an organisation, or the one."""
    org = call.app.enterprise
    ids = call.world.orgs[org][1] if org else [call.app.team]
    rows, more = call.page([{"id": team, "name": call.world.teams[team]} for team in ids])
    return {"teams": rows, "response_metadata": more}
