"""What Slack accepts in a message or a view: one table of limits over the rendered JSON.

Everything here takes plain dicts and lists as they would be sent, and needs nothing but the standard
library, so the same rules hold before each call, in the local Slack and in tests. The numbers are
Slack's Block Kit reference; where sources differ the smaller one is kept. Lengths are characters
(code points) unless a name says bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from bot.cards.rules import (
    Found,
    Json,
    Place,
    Rule,
    Shape,
    choices,
    enum,
    exactly_one,
    flag,
    many,
    number_range,
    one_of,
    own_action_ids,
    picked,
    some_text,
    string,
    text,
    text_range,
    whole,
)
from bot.cards.rules import (
    Problem as Problem,
)

MESSAGE_BLOCKS: Final = 50
VIEW_BLOCKS: Final = 100
SECTION_TEXT: Final = 3000
SECTION_FIELDS: Final = 10
SECTION_FIELD: Final = 2000
CONTEXT_TEXT: Final = 3000
HEADER_TEXT: Final = 150
CONTEXT_ELEMENTS: Final = 10
ACTIONS_ELEMENTS: Final = 25
BLOCK_ID: Final = 255
ACTION_ID: Final = 255
BUTTON_TEXT: Final = 75
BUTTON_VALUE: Final = 2000
BUTTON_URL: Final = 3000
ACCESSIBILITY_LABEL: Final = 75
SELECT_OPTIONS: Final = 100
SELECT_GROUPS: Final = 100
CHOICE_OPTIONS: Final = 10
"""Checkboxes and radio buttons."""
OVERFLOW_OPTIONS: Final = 5
OPTION_TEXT: Final = 75
OPTION_VALUE: Final = 75
"""Slack's type definitions say 75, its SDK 150: the smaller one is safe."""
OPTION_DESCRIPTION: Final = 75
OPTION_URL: Final = 3000
GROUP_LABEL: Final = 75
PLACEHOLDER: Final = 150
CONFIRM_TITLE: Final = 100
CONFIRM_TEXT: Final = 300
CONFIRM_BUTTON: Final = 30
INPUT_LABEL: Final = 2000
INPUT_HINT: Final = 2000
INPUT_TEXT: Final = 3000
"""The most that `max_length` of a plain_text_input may say, and what one holds without it."""
IMAGE_URL: Final = 3000
IMAGE_ALT: Final = 2000
IMAGE_TITLE: Final = 2000
VIEW_TITLE: Final = 24
VIEW_BUTTON: Final = 24
"""A modal's submit and close."""
PRIVATE_METADATA: Final = 3000
CALLBACK_ID: Final = 255
EXTERNAL_ID: Final = 255
VIEW_BYTES: Final = 250_000
UPDATE_TEXT: Final = 4000
"""`text` of chat.update; more is `msg_too_long`."""
POST_TEXT: Final = 40_000
"""`text` of chat.postMessage; Slack cuts the rest off without a word."""
MESSAGE_BYTES: Final = 9000
"""Our budget for the text of one message's blocks in UTF-8. Slack's own limit is not written down."""
REFUSED_BYTES: Final = 10_600
"""Above this many bytes Slack has been seen to answer `msg_blocks_too_long`."""


class IllegalBlocks(ValueError):
    """Slack would refuse this message or view; `problems` says what is wrong and where."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.message for problem in self.problems))


def option(*, markup: bool = False) -> dict[str, Rule]:
    return {
        "text!": text(OPTION_TEXT, markup=markup),
        "value!": string(OPTION_VALUE),
        "description": text(OPTION_DESCRIPTION, markup=markup),
    }


def element(fields: Mapping[str, Rule], *also: Rule) -> Shape:
    return Shape({**fields, "action_id": string(ACTION_ID)}, also)


def block(fields: Mapping[str, Rule], *also: Rule) -> Shape:
    return Shape({**fields, "block_id": string(BLOCK_ID)}, also)


CONFIRM: Final = Shape(
    {
        "title!": text(CONFIRM_TITLE),
        "text!": text(CONFIRM_TEXT),
        "confirm!": text(CONFIRM_BUTTON),
        "deny!": text(CONFIRM_BUTTON),
        "style": enum("primary", "danger"),
    }
)
PICK: Final = Shape(option())
GROUP: Final = Shape({"label!": text(GROUP_LABEL), "options!": many(PICK, SELECT_OPTIONS)})
MENU: Final[Mapping[str, Rule]] = {
    "placeholder": text(PLACEHOLDER),
    "confirm": CONFIRM,
    "focus_on_load": flag,
}
LISTED: Final[Mapping[str, Rule]] = {
    **MENU,
    "options": many(PICK, SELECT_OPTIONS),
    "option_groups": many(GROUP, SELECT_GROUPS),
}
BOXES: Final[Mapping[str, Rule]] = {
    "options!": many(Shape(option(markup=True)), CHOICE_OPTIONS),
    "confirm": CONFIRM,
    "focus_on_load": flag,
}
TYPED: Final[Mapping[str, Rule]] = {
    "placeholder": text(PLACEHOLDER),
    "focus_on_load": flag,
    "dispatch_action_config": Shape(
        {"trigger_actions_on": many(enum("on_enter_pressed", "on_character_entered"), most=2)}
    ),
}
IMAGE: Final[Mapping[str, Rule]] = {
    "image_url": string(IMAGE_URL),
    "slack_file": Shape({"id": string(), "url": string(IMAGE_URL)}, (exactly_one("id", "url"),)),
    "alt_text!": string(IMAGE_ALT),
}

MENUS: Final[Mapping[str, Rule]] = {
    "static_select": element(
        {**LISTED, "initial_option": PICK}, exactly_one("options", "option_groups"), choices
    ),
    "multi_static_select": element(
        {**LISTED, "initial_options": many(PICK), "max_selected_items": whole(1)},
        *(exactly_one("options", "option_groups"), choices, picked("initial_options")),
    ),
    "users_select": element({**MENU, "initial_user": string()}),
    "multi_users_select": element(
        {**MENU, "initial_users": many(string()), "max_selected_items": whole(1)}, picked("initial_users")
    ),
    "checkboxes": element({**BOXES, "initial_options": many(Shape(option(markup=True)))}, choices),
    "radio_buttons": element({**BOXES, "initial_option": Shape(option(markup=True))}, choices),
    "datepicker": element({**MENU, "initial_date": string()}),
    "timepicker": element({**MENU, "initial_time": string(), "timezone": string()}),
    "datetimepicker": element({"confirm": CONFIRM, "focus_on_load": flag, "initial_date_time": whole(0)}),
}
BUTTONS: Final[Mapping[str, Rule]] = {
    "button": element(
        {
            "text!": text(BUTTON_TEXT),
            "value": string(BUTTON_VALUE),
            "url": string(BUTTON_URL),
            "style": enum("primary", "danger"),
            "confirm": CONFIRM,
            "accessibility_label": string(ACCESSIBILITY_LABEL),
        }
    ),
    "overflow": element(
        {
            "options!": many(Shape({**option(), "url": string(OPTION_URL)}), OVERFLOW_OPTIONS),
            "confirm": CONFIRM,
        },
        choices,
    ),
}
FIELDS: Final[Mapping[str, Rule]] = {
    "plain_text_input": element(
        {
            **TYPED,
            "initial_value": string(least=0),
            "multiline": flag,
            "min_length": whole(0, INPUT_TEXT),
            "max_length": whole(1, INPUT_TEXT),
        },
        text_range(INPUT_TEXT),
    ),
    "number_input": element(
        {
            **TYPED,
            "is_decimal_allowed!": flag,
            **dict.fromkeys(("initial_value", "min_value", "max_value"), string()),
        },
        number_range,
    ),
    "email_text_input": element({**TYPED, "initial_value": string()}),
    "url_text_input": element({**TYPED, "initial_value": string()}),
}

STYLED: Final[Mapping[str, Rule]] = {
    "style": Shape(dict.fromkeys(("bold", "italic", "strike", "code", "underline"), flag))
}
RICH: Final[Mapping[str, Rule]] = {
    "text": Shape({"text!": string(), **STYLED}),
    "link": Shape({"url!": string(), "text": string(), **STYLED}),
    "emoji": Shape({"name!": string(), "unicode": string(), "skin_tone": whole(1, 6), **STYLED}),
    "user": Shape({"user_id!": string(), **STYLED}),
    "channel": Shape({"channel_id!": string(), **STYLED}),
    "date": Shape(
        {"timestamp!": whole(0), "format!": string(), "url": string(), "fallback": string(), **STYLED}
    ),
}
SPAN: Final[Mapping[str, Rule]] = {"rich_text_section": Shape({"elements!": many(one_of(RICH), least=0)})}
RICH_BLOCKS: Final[Mapping[str, Rule]] = {
    **SPAN,
    "rich_text_quote": Shape({"elements!": many(one_of(RICH)), "border": whole(0, 1)}),
    "rich_text_preformatted": Shape(
        {"elements!": many(one_of(RICH, ("text", "link"))), "border": whole(0, 1)}
    ),
    "rich_text_list": Shape(
        {
            "elements!": many(one_of(SPAN)),
            "style!": enum("bullet", "ordered"),
            "indent": whole(0, 8),
            "offset": whole(0),
            "border": whole(0, 1),
        }
    ),
}

NOTES: Final[Mapping[str, Rule]] = {
    "image": Shape(IMAGE, (exactly_one("image_url", "slack_file"),)),
    "plain_text": text(CONTEXT_TEXT),
    "mrkdwn": text(CONTEXT_TEXT, markup=True),
}
INPUTS: Final[Mapping[str, Rule]] = {**MENUS, **FIELDS}
ACTIONS: Final[Mapping[str, Rule]] = {**MENUS, **BUTTONS}
ACCESSORIES: Final[Mapping[str, Rule]] = {
    "image": NOTES["image"],
    **{kind: rule for kind, rule in ACTIONS.items() if kind != "datetimepicker"},
}
BLOCKS: Final[Mapping[str, Rule]] = {
    "header": block({"text!": text(HEADER_TEXT)}),
    "section": block(
        {
            "text": text(SECTION_TEXT, markup=True),
            "fields": many(text(SECTION_FIELD, markup=True), SECTION_FIELDS),
            "accessory": one_of(ACCESSORIES),
            "expand": flag,
        },
        some_text,
    ),
    "context": block({"elements!": many(one_of(NOTES), CONTEXT_ELEMENTS)}),
    "actions": block({"elements!": many(one_of(ACTIONS), ACTIONS_ELEMENTS)}, own_action_ids),
    "input": block(
        {
            "label!": text(INPUT_LABEL),
            "element!": one_of(INPUTS),
            "hint": text(INPUT_HINT),
            "optional": flag,
            "dispatch_action": flag,
        }
    ),
    "divider": block({}),
    "rich_text": block({"elements!": many(one_of(RICH_BLOCKS))}),
    "image": block({**IMAGE, "title": text(IMAGE_TITLE)}, exactly_one("image_url", "slack_file")),
}
COMMON: Final[Mapping[str, Rule]] = {
    "blocks!": many(one_of(BLOCKS), VIEW_BLOCKS, least=0),
    "private_metadata": string(PRIVATE_METADATA, least=0),
    "callback_id": string(CALLBACK_ID, least=0),
    "external_id": string(EXTERNAL_ID, least=0),
}


def submit_for_inputs(value: Json, place: Place) -> Found:
    if "submit" not in value and any(b["type"] == "input" for b in value["blocks"]):
        yield place.problem("missing required field: submit (a modal with input blocks needs it)")


VIEWS: Final[Mapping[str, Rule]] = {
    "modal": Shape(
        {
            **COMMON,
            "title!": text(VIEW_TITLE),
            "submit": text(VIEW_BUTTON),
            "close": text(VIEW_BUTTON),
            **dict.fromkeys(("clear_on_close", "notify_on_close", "submit_disabled"), flag),
        },
        (submit_for_inputs,),
    ),
    "home": Shape(COMMON),
}


def check_blocks(blocks: object, pointer: str = "/blocks", most: int = MESSAGE_BLOCKS) -> list[Problem]:
    """Every rule of Slack's that `blocks` break, in reading order; `pointer` is where they stand."""
    found = list(many(one_of(BLOCKS), most, least=0)(blocks, Place(pointer, "blocks")))
    return found + _unique(blocks, Place(pointer, "blocks"))


def check_message(payload: Json, *, update: bool = False) -> list[Problem]:
    """What is wrong with a message's `text` and `blocks`; `update` applies the bounds of chat.update.

    Beside Slack's own rules this holds the text of all blocks within `MESSAGE_BYTES`.
    """
    root, found = Place("", "message"), list[Problem]()
    most = UPDATE_TEXT if update else POST_TEXT
    if payload.get("text") is not None:
        found += string(most, least=0)(payload["text"], root.at("text"))
    if not payload.get("text") and not payload.get("blocks"):
        found.append(root.problem("no text: a message needs text or blocks"))
    if payload.get("blocks") is not None:
        found += check_blocks(payload["blocks"])
        size = text_bytes(payload["blocks"])
        if size > MESSAGE_BYTES:
            where = Place("/blocks", "message.bytes")
            found.append(
                where.problem(f"text must be less than {MESSAGE_BYTES + 1} bytes", size, MESSAGE_BYTES)
            )
    return found


def check_view(view: Json) -> list[Problem]:
    """What is wrong with a modal or an App Home as views.open, push, update and publish take it."""
    root = Place("/view", "view")
    found = list(one_of(VIEWS)(view, root))
    size = view_bytes(view)
    if size > VIEW_BYTES:
        found.append(Place("/view", "view.bytes").problem("view is too large", size, VIEW_BYTES))
    return found + _unique(view.get("blocks"), root.at("blocks"))


def ensure_message(payload: Json, *, update: bool = False) -> None:
    """Raise `IllegalBlocks` when `check_message` finds anything."""
    if problems := check_message(payload, update=update):
        raise IllegalBlocks(problems)


def ensure_view(view: Json) -> None:
    """Raise `IllegalBlocks` when `check_view` finds anything."""
    if problems := check_view(view):
        raise IllegalBlocks(problems)


def text_bytes(blocks: object) -> int:
    """UTF-8 bytes of all text in `blocks`: every `text` and `alt_text`, whatever they stand in."""
    if isinstance(blocks, Mapping):
        own = sum(
            len(value.encode("utf-8", "surrogatepass"))
            for key in ("text", "alt_text")
            if isinstance(value := blocks.get(key), str)
        )
        return own + sum(text_bytes(value) for value in blocks.values())
    if isinstance(blocks, list | tuple):
        return sum(text_bytes(value) for value in blocks)
    return 0


def view_bytes(view: Json) -> int:
    """The size of a view as JSON in bytes, which Slack holds to `VIEW_BYTES`."""
    return len(json.dumps(view, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _unique(blocks: object, place: Place) -> list[Problem]:
    """Block ids are unique on a surface, and at most one element asks for the focus."""
    own = [b for b in blocks if isinstance(b, Mapping)] if isinstance(blocks, list | tuple) else []
    counts = Counter(str(b["block_id"]) for b in own if b.get("block_id") is not None)
    found = [
        Place(place.pointer, "block_id").problem(f"block_id must be unique: {name}", count, 1)
        for name, count in counts.items()
        if count > 1
    ]
    focused = sum(
        bool(element.get("focus_on_load"))
        for b in own
        for element in (b.get("element"), b.get("accessory"), *_listed(b.get("elements")))
        if isinstance(element, Mapping)
    )
    if focused > 1:
        found.append(
            Place(place.pointer, "focus_on_load").problem("only one element may have it", focused, 1)
        )
    return found


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
