"""Blocks as Slack keeps them, and the values of the elements in them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from bot.cards import limits, rules

Json = dict[str, Any]

HOLDS = {
    "static_select": "selected_option",
    "radio_buttons": "selected_option",
    "multi_static_select": "selected_options",
    "checkboxes": "selected_options",
    "users_select": "selected_user",
    "multi_users_select": "selected_users",
    "datepicker": "selected_date",
    "timepicker": "selected_time",
    "datetimepicker": "selected_date_time",
    "plain_text_input": "value",
    "number_input": "value",
    "email_text_input": "value",
    "url_text_input": "value",
}
"""Element type -> the field of its value object. These are the elements that `state.values` lists."""

STARTS = {
    "selected_option": "initial_option",
    "selected_options": "initial_options",
    "selected_user": "initial_user",
    "selected_users": "initial_users",
    "selected_date": "initial_date",
    "selected_time": "initial_time",
    "selected_date_time": "initial_date_time",
    "value": "initial_value",
}
LISTS = ("selected_options", "selected_users")
REQUIRED = "Please complete this required field."


def dress(value: Any) -> Any:
    """A copy of blocks with what Slack fills in: action ids that were left out and the defaults of texts."""
    if isinstance(value, list | tuple):
        return [dress(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    result = {key: dress(item) for key, item in value.items()}
    kind = result.get("type")
    if kind == "plain_text":
        result.setdefault("emoji", True)
    elif kind == "mrkdwn":
        result.setdefault("verbatim", False)
    if kind in HOLDS or kind in ("button", "overflow"):
        result.setdefault("action_id", secrets.token_urlsafe(4))
    return result


def dress_blocks(blocks: Any) -> list[Json]:
    """`dress` for a list of blocks: each of them gets a block id."""
    dressed: list[Json] = dress(blocks or [])
    for block in dressed:
        block.setdefault("block_id", secrets.token_urlsafe(4))
    return dressed


def elements(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Every element a person can use, with its block, in reading order."""
    for block in blocks:
        for element in (block.get("accessory"), block.get("element"), *block.get("elements", ())):
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def element_at(blocks: list[Json], block_id: str, action_id: str) -> tuple[Json, Json] | None:
    for block, element in elements(blocks):
        if block["block_id"] == block_id and element["action_id"] == action_id:
            return block, element
    return None


def options_of(element: Json) -> list[Json]:
    return [
        *element.get("options", ()),
        *(option for group in element.get("option_groups", ()) for option in group["options"]),
    ]


def start_value(element: Json) -> Json:
    """The value object of an element that nobody has touched."""
    name = HOLDS[element["type"]]
    return {"type": element["type"], name: element.get(STARTS[name], [] if name in LISTS else None)}


def value_of(element: Json, raw: Any) -> Json:
    """The value object after a person chose `raw`: an option's value, a list of them, a user id, a text, a date such as
    2026-01-31, or a moment in seconds since 1970.

    Raises `ValueError` when the element offers no such thing.
    """
    kind = element["type"]
    name = "selected_option" if kind == "overflow" else HOLDS[kind]
    if name in ("selected_option", "selected_options"):
        offered = {option["value"]: option for option in options_of(element)}
        wanted = raw if name == "selected_options" else [raw]
        if name == "selected_option" and raw is None and kind != "overflow":
            return {"type": kind, name: None}
        if not isinstance(wanted, list) or any(value not in offered for value in wanted):
            raise ValueError(f"no such option in {element['action_id']}: {raw!r}")
        most = element.get("max_selected_items")
        if most is not None and len(wanted) > most:
            raise ValueError(f"at most {most} options may be selected in {element['action_id']}")
        chosen = [option for value, option in offered.items() if value in wanted]
        return {"type": kind, name: chosen if name == "selected_options" else chosen[0]}
    if name == "value" and raw is not None:
        raw = str(raw)
    if name == "selected_date" and raw:
        raw = date.fromisoformat(raw).isoformat()
    if name == "selected_date_time" and raw:
        raw = int(raw)
    return {"type": kind, name: raw or ([] if name in LISTS else None)}


def values(blocks: list[Json], picks: Mapping[str, Mapping[str, Json]]) -> dict[str, dict[str, Json]]:
    """`state.values`: the current value object of each stateful element, picked or at its start."""
    result: dict[str, dict[str, Json]] = {}
    for block, element in elements(blocks):
        if element["type"] in HOLDS:
            picked = picks.get(block["block_id"], {}).get(element["action_id"])
            fits = picked is not None and picked["type"] == element["type"]
            result.setdefault(block["block_id"], {})[element["action_id"]] = (
                dict(picked) if picked is not None and fits else start_value(element)
            )
    return result


def entry_errors(blocks: list[Json], current: Mapping[str, Mapping[str, Json]]) -> dict[str, str]:
    """What Slack's own form says before it submits: block id -> message."""
    errors = {}
    for block in blocks:
        if block["type"] == "input":
            element = block["element"]
            held = current[block["block_id"]][element["action_id"]][HOLDS[element["type"]]]
            if held in (None, "", []):
                if not block.get("optional"):
                    errors[block["block_id"]] = REQUIRED
            elif message := _range_error(element, held):
                errors[block["block_id"]] = message
    return errors


def _range_error(element: Json, held: Any) -> str | None:
    if element["type"] == "plain_text_input":
        least, most = element.get("min_length", 0), element.get("max_length", limits.INPUT_TEXT)
        if len(held) < least:
            return f"Please enter at least {least} characters."
        if len(held) > most:
            return f"Please enter at most {most} characters."
    if element["type"] == "number_input":
        form = rules.DECIMAL if element["is_decimal_allowed"] else rules.WHOLE
        if not form.fullmatch(held):
            return "Please enter a valid number."
        number = float(held)
        if "min_value" in element and number < float(element["min_value"]):
            return f"Please enter a number of at least {element['min_value']}."
        if "max_value" in element and number > float(element["max_value"]):
            return f"Please enter a number of at most {element['max_value']}."
    return None
