"""apps.manifest.* and blocks.validate: what Slack offers to who builds apps."""

from __future__ import annotations

from typing import Any

from bot.cards import limits
from bot.sandbox.methods.register import Call, Refused, method

Json = dict[str, Any]


@method("apps.manifest.export")
def manifest_export(call: Call) -> Json:
    app = call.world.apps.get(call.args.need("app_id"))
    if app is None:
        raise Refused("invalid_app_id")
    if app.manifest is None:
        raise Refused("failed_export")
    return {"manifest": {"_metadata": {"major_version": 1, "minor_version": 1}, **app.manifest}}


@method("blocks.validate")
def blocks_validate(call: Call) -> Json:
    """Exactly one of blocks, message and view; each fault with its place."""
    given = [name for name in ("blocks", "message", "view") if call.args.text(name)]
    if len(given) != 1:
        raise Refused("invalid_arguments")
    [kind] = given
    value = call.args.json(kind, "invalid_arguments")
    if not isinstance(value, list if kind == "blocks" else dict):
        raise Refused("invalid_arguments")
    if problems := _problems(kind, value):
        raise Refused(
            f"invalid_{kind}",
            errors=[
                {"pointer": found.pointer, "code": "failed_constraint", "message": found.message}
                for found in problems
            ],
        )
    return {}


def _problems(kind: str, value: Any) -> list[limits.Problem]:
    match kind:
        case "blocks":
            return limits.check_blocks(value)
        case "view":
            return limits.check_view(value)
    return limits.check_message(value)
