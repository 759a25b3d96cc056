"""auth.*, users.*, usergroups.*, bots.* and apps.*: who is who."""

from __future__ import annotations

from typing import Any

from bot.sandbox import payloads
from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.world import Group

Json = dict[str, Any]


@method("api.test")
def api_test(call: Call) -> Json:
    if error := call.args.text("error"):
        raise Refused(error, args=call.args.raw)
    return {"args": call.args.raw}


@method("auth.test")
def auth_test(call: Call) -> Json:
    app, world = call.app, call.world
    org = {"enterprise_id": app.enterprise} if app.enterprise else {}
    return {
        "url": f"{world.url}/",
        "team": world.orgs[app.enterprise][0] if app.enterprise else world.teams[app.team],
        "user": world.users[app.bot_user].name,
        "team_id": app.place,
        "user_id": app.bot_user,
        "bot_id": app.bot_id,
        "app_id": app.api_id,
        "is_enterprise_install": bool(app.enterprise),
        **org,
    }


@method("apps.connections.open")
def connections_open(call: Call) -> Json:
    address = call.world.url.replace("http://", "ws://")
    return {"url": f"{address}/link?ticket={call.links.ticket(call.app.api_id)}&app_id={call.app.api_id}"}


@method("bots.info")
def bots_info(call: Call) -> Json:
    app = call.world.app_by(bot_id=call.args.text("bot", call.app.bot_id))
    if app is None:
        raise Refused("bot_not_found")
    return {
        "bot": {
            "id": app.bot_id,
            "deleted": False,
            "name": app.name,
            "app_id": app.api_id,
            "user_id": app.bot_user,
            "updated": 0,
        }
    }


@method("users.info")
def users_info(call: Call) -> Json:
    return {"user": payloads.user_json(call.world, call.user())}


@method("users.list")
def users_list(call: Call) -> Json:
    own = [user for user in call.world.users.values() if call.world.in_reach(call.app, user.team)]
    rows, more = call.page(own)
    return {
        "members": [payloads.user_json(call.world, user) for user in rows],
        "cache_ts": int(call.world.clock()),
        "response_metadata": more,
    }


def _group_json(group: Group, *, users: bool) -> Json:
    body: Json = {
        "id": group.id,
        "team_id": group.team,
        "is_usergroup": True,
        "name": group.handle,
        "handle": group.handle,
        "description": "",
        "user_count": len(group.members),
        "date_delete": 0,
    }
    return body | {"users": group.members} if users else body


@method("usergroups.list")
def usergroups_list(call: Call) -> Json:
    users = call.args.flag("include_users")
    team = call.team()
    groups = [group for group in call.world.groups.values() if group.team == team]
    return {"usergroups": [_group_json(group, users=users) for group in groups]}


@method("usergroups.users.list")
def usergroups_users(call: Call) -> Json:
    team = call.team()
    group = call.world.groups.get(call.args.need("usergroup", "no_such_subteam"))
    if group is None or group.team != team:
        raise Refused("no_such_subteam")
    return {"users": group.members}
