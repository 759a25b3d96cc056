"""views.*: modals and App Home."""

from __future__ import annotations

import secrets
from typing import Any

from bot.cards import limits
from bot.sandbox import blocks, payloads
from bot.sandbox.methods.register import Call, Refused, method
from bot.sandbox.world import App, Trigger, View, World

Json = dict[str, Any]
TRIGGER_S = 3.0
STACK = 3


def checked_view(raw: Any, kind: str) -> Json:
    """A view's body as it is kept, or Slack's refusal."""
    if not isinstance(raw, dict):
        raise Refused("invalid_arguments")
    if limits.view_bytes(raw) > limits.VIEW_BYTES:
        raise Refused("view_too_large")
    problems = limits.check_view(raw)
    if not problems and raw["type"] != kind:
        where = limits.Problem(
            "/view/type", "view.type", None, None, f"must be a {kind} [json-pointer:/view/type]"
        )
        problems = [where]
    if problems:
        raise Refused.blocks("invalid_arguments", problems)
    return {**blocks.dress(raw), "blocks": blocks.dress_blocks(raw["blocks"])}


def put(view: View, body: Json) -> None:
    """Give an open view another body. What people typed stays where block and action ids stay."""
    kept = blocks.values(body["blocks"], view.picks)
    view.picks = {
        block: {action: kept[block][action] for action in actions if action in kept.get(block, {})}
        for block, actions in view.picks.items()
    }
    view.body, view.hash = body, _hash(view.hash)


def push(world: World, app: App, user: str, body: Json) -> View:
    """Lay a view on top of the person's modal. Raises `push_limit_reached` above three."""
    stack = world.stacks.setdefault(user, [])
    if len(stack) >= STACK:
        raise Refused("push_limit_reached")
    view_id = world.new_id("V")
    view = View(
        view_id, app.id, user, body, _hash(), stack[0] if stack else view_id, stack[-1] if stack else None
    )
    world.views[view.id] = view
    stack.append(view.id)
    world.changed()
    return view


def clear(world: World, user: str) -> None:
    """Close the person's whole modal."""
    for view_id in world.stacks.pop(user, []):
        del world.views[view_id]
    world.changed()


def _hash(old: str = "") -> str:
    while (fresh := f"{secrets.randbelow(10**10)}.{secrets.token_hex(4)}") == old:
        pass
    return fresh


def _use_trigger(call: Call) -> Trigger:
    trigger_id = call.args.text("trigger_id") or call.args.text("interactivity_pointer")
    trigger = call.world.triggers.get(trigger_id)
    if trigger is None or trigger.app != call.app.id:
        raise Refused("invalid_trigger_id")
    if trigger.used:
        raise Refused("exchanged_trigger_id")
    if call.world.clock() - trigger.at > TRIGGER_S:
        raise Refused("expired_trigger_id")
    return trigger


def _view(call: Call) -> Any:
    return call.args.json("view", "invalid_arguments")


def _own_external_id(call: Call, body: Json, but: str = "") -> None:
    external_id = body.get("external_id")
    taken = external_id and any(
        view.body.get("external_id") == external_id and view.id != but for view in call.world.views.values()
    )
    if taken:
        raise Refused("duplicate_external_id")


@method("views.open")
def open_view(call: Call) -> Json:
    body = checked_view(_view(call), "modal")
    trigger = _use_trigger(call)
    _own_external_id(call, body)
    trigger.used = True
    clear(call.world, trigger.user)
    return {"view": payloads.view_json(call.world, push(call.world, call.app, trigger.user, body))}


@method("views.push")
def push_view(call: Call) -> Json:
    body = checked_view(_view(call), "modal")
    trigger = _use_trigger(call)
    _own_external_id(call, body)
    top = call.world.top_view(trigger.user)
    if top is None or top.app != call.app.id:
        raise Refused("not_found")
    view = push(call.world, call.app, trigger.user, body)
    trigger.used = True
    return {"view": payloads.view_json(call.world, view)}


@method("views.update")
def update_view(call: Call) -> Json:
    body = checked_view(_view(call), "modal")
    external_id = call.args.text("external_id")
    view = call.world.views.get(call.args.text("view_id"))
    if external_id:
        found = (v for v in call.world.views.values() if v.body.get("external_id") == external_id)
        view = next(found, None)
    if view is None or view.app != call.app.id or view.body["type"] != "modal":
        raise Refused("not_found")
    if call.args.text("hash") not in ("", view.hash):
        raise Refused("hash_conflict")
    _own_external_id(call, body, view.id)
    put(view, body)
    call.world.changed()
    return {"view": payloads.view_json(call.world, view)}


@method("views.publish")
def publish_view(call: Call) -> Json:
    user = call.user("user_id")
    body = checked_view(_view(call), "home")
    world, key = call.world, f"{user.id}:{call.app.id}"
    view = world.home(user.id, call.app.id)
    if call.args.text("hash") not in ("", view.hash if view else ""):
        raise Refused("hash_conflict")
    if view is None:
        view_id = world.new_id("V")
        view = View(view_id, call.app.id, user.id, body, _hash(), view_id)
        world.views[view.id], world.homes[key] = view, view.id
    else:
        put(view, body)
    world.changed()
    return {"view": payloads.view_json(world, view)}
