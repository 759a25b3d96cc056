"""Each row of the table of limits: the largest legal value passes, one more is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from bot.cards import limits

Json = dict[str, Any]


def plain(size: int | str) -> Json:
    return {"type": "plain_text", "text": size if isinstance(size, str) else "x" * size}


def marked(size: int | str) -> Json:
    return {"type": "mrkdwn", "text": size if isinstance(size, str) else "x" * size}


def option(index: int = 0, **more: Any) -> Json:
    return {"text": plain(f"Option {index}"), "value": str(index), **more}


def options(count: int) -> list[Json]:
    return [option(index) for index in range(count)]


def button(**more: Any) -> Json:
    return {"type": "button", "text": plain("Go"), "action_id": "go", **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def entry(element: Json, **more: Any) -> Json:
    return {"type": "input", "label": plain("Why"), "element": element, **more}


def confirm(**more: Any) -> Json:
    return {
        "title": plain("Sure?"),
        "text": plain("Really"),
        "confirm": plain("Yes"),
        "deny": plain("No"),
        **more,
    }


def select(**more: Any) -> Json:
    return {
        "type": "static_select",
        "action_id": "pick",
        **({} if "option_groups" in more else {"options": options(2)}),
        **more,
    }


def multi(**more: Any) -> Json:
    return {"type": "multi_static_select", "action_id": "pick", "options": options(4), **more}


def typed(**more: Any) -> Json:
    return {"type": "plain_text_input", "action_id": "say", **more}


def number(**more: Any) -> Json:
    return {"type": "number_input", "action_id": "n", "is_decimal_allowed": False, **more}


def image(**more: Any) -> Json:
    return {"type": "image", "image_url": "https://example.com/a.png", "alt_text": "a", **more}


def rich(*elements: Json) -> Json:
    return {"type": "rich_text", "elements": list(elements)}


def group(index: int, count: int = 1) -> Json:
    return {"label": plain(f"Group {index}"), "options": [option(index * 1000 + i) for i in range(count)]}


# name of the limit, its size, and how a block of a given size is made
SIZES: list[tuple[str, int, Callable[[int], Json]]] = [
    ("header.text.text", 150, lambda n: {"type": "header", "text": plain(n)}),
    ("section.text.text", 3000, lambda n: {"type": "section", "text": marked(n)}),
    ("section.fields.text", 2000, lambda n: {"type": "section", "fields": [marked(n)]}),
    ("section.fields", 10, lambda n: {"type": "section", "fields": [marked("f")] * n}),
    ("section.block_id", 255, lambda n: {"type": "section", "text": plain("s"), "block_id": "b" * n}),
    ("context.elements", 10, lambda n: {"type": "context", "elements": [marked("c")] * n}),
    ("actions.elements", 25, lambda n: actions(*(button(action_id=str(i)) for i in range(n)))),
    ("button.action_id", 255, lambda n: actions(button(action_id="a" * n))),
    ("button.text.text", 75, lambda n: actions(button(text=plain(n)))),
    ("button.value", 2000, lambda n: actions(button(value="v" * n))),
    ("button.url", 3000, lambda n: actions(button(url="u" * n))),
    ("button.accessibility_label", 75, lambda n: actions(button(accessibility_label="a" * n))),
    ("button.confirm.title.text", 100, lambda n: actions(button(confirm=confirm(title=plain(n))))),
    ("button.confirm.text.text", 300, lambda n: actions(button(confirm=confirm(text=plain(n))))),
    ("button.confirm.confirm.text", 30, lambda n: actions(button(confirm=confirm(confirm=plain(n))))),
    ("button.confirm.deny.text", 30, lambda n: actions(button(confirm=confirm(deny=plain(n))))),
    ("static_select.options", 100, lambda n: actions(select(options=options(n)))),
    (
        "static_select.option_groups",
        100,
        lambda n: actions(select(option_groups=[group(i) for i in range(n)])),
    ),
    ("static_select.option_groups.options", 100, lambda n: actions(select(option_groups=[group(1, n)]))),
    (
        "static_select.option_groups.label.text",
        75,
        lambda n: actions(select(option_groups=[{**group(1), "label": plain(n)}])),
    ),
    ("static_select.options.text.text", 75, lambda n: actions(select(options=[option(text=plain(n))]))),
    ("static_select.options.value", 75, lambda n: actions(select(options=[option(value="v" * n)]))),
    (
        "static_select.options.description.text",
        75,
        lambda n: actions(select(options=[option(description=plain(n))])),
    ),
    ("static_select.placeholder.text", 150, lambda n: actions(select(placeholder=plain(n)))),
    ("multi_static_select.options", 100, lambda n: actions(multi(options=options(n)))),
    (
        "multi_static_select.initial_options",
        2,
        lambda n: actions(multi(max_selected_items=2, initial_options=options(n))),
    ),
    (
        "multi_users_select.initial_users",
        1,
        lambda n: actions(
            {"type": "multi_users_select", "max_selected_items": 1, "initial_users": ["U1"] * n}
        ),
    ),
    ("checkboxes.options", 10, lambda n: actions({"type": "checkboxes", "options": options(n)})),
    ("radio_buttons.options", 10, lambda n: actions({"type": "radio_buttons", "options": options(n)})),
    ("overflow.options", 5, lambda n: actions({"type": "overflow", "options": options(n)})),
    ("input.label.text", 2000, lambda n: entry(typed(), label=plain(n))),
    ("input.hint.text", 2000, lambda n: entry(typed(), hint=plain(n))),
    ("plain_text_input.max_length", 3000, lambda n: entry(typed(max_length=n))),
    ("plain_text_input.min_length", 3000, lambda n: entry(typed(min_length=n))),
    ("plain_text_input.initial_value", 7, lambda n: entry(typed(max_length=7, initial_value="x" * n))),
    ("plain_text_input.placeholder.text", 150, lambda n: entry(typed(placeholder=plain(n)))),
    ("image.image_url", 3000, lambda n: image(image_url="u" * n)),
    ("image.alt_text", 2000, lambda n: image(alt_text="a" * n)),
    ("image.title.text", 2000, lambda n: image(title=plain(n))),
]


@pytest.mark.parametrize(("name", "most", "make"), SIZES, ids=[row[0] for row in SIZES])
def test_the_largest_legal_size_passes_and_one_more_is_refused(
    name: str, most: int, make: Callable[[int], Json]
) -> None:
    assert limits.check_blocks([make(most)]) == []
    [problem] = limits.check_blocks([make(most + 1)])
    assert (problem.limit, problem.size, problem.allowed) == (name, most + 1, most)


VIEW_SIZES: list[tuple[str, int, Callable[[int], Json]]] = [
    ("modal.title.text", 24, lambda n: {"title": plain(n)}),
    ("modal.submit.text", 24, lambda n: {"submit": plain(n)}),
    ("modal.close.text", 24, lambda n: {"close": plain(n)}),
    ("modal.callback_id", 255, lambda n: {"callback_id": "c" * n}),
    ("modal.external_id", 255, lambda n: {"external_id": "c" * n}),
    ("modal.private_metadata", 3000, lambda n: {"private_metadata": "c" * n}),
    ("modal.blocks", 100, lambda n: {"blocks": [{"type": "divider"}] * n}),
]


def modal(**more: Any) -> Json:
    return {"type": "modal", "title": plain("Title"), "blocks": [], **more}


@pytest.mark.parametrize(("name", "most", "make"), VIEW_SIZES, ids=[row[0] for row in VIEW_SIZES])
def test_a_view_of_the_largest_legal_size_passes_and_one_more_is_refused(
    name: str, most: int, make: Callable[[int], Json]
) -> None:
    assert limits.check_view(modal(**make(most))) == []
    [problem] = limits.check_view(modal(**make(most + 1)))
    assert (problem.limit, problem.size, problem.allowed) == (name, most + 1, most)


DATE = {"type": "date", "timestamp": 1, "format": "{date}", "fallback": "a day"}
WORD = {"type": "text", "text": "word", "style": {"bold": True}}

LEGAL: dict[str, Json] = {
    "divider": {"type": "divider"},
    "section with both": {"type": "section", "text": marked("a"), "fields": [plain("b")], "expand": True},
    "section with a picture": {"type": "section", "text": plain("a"), "accessory": image()},
    "context with a picture": {"type": "context", "elements": [image(), plain("a"), marked("b")]},
    "groups": actions(select(option_groups=[group(1, 3), group(2)])),
    "initial option": actions(select(initial_option=option(1))),
    "people": actions({"type": "users_select", "initial_user": "U1"}),
    "days": actions({"type": "datepicker", "initial_date": "2026-01-02"}, {"type": "timepicker"}),
    "marked choice": actions({"type": "radio_buttons", "options": [option(text=marked("*a*"))]}),
    "numbers": entry(number(min_value="1", initial_value="2", max_value="3")),
    "decimal": entry(number(is_decimal_allowed=True, min_value="0.1", max_value="0.2")),
    "typed": entry(typed(multiline=True, min_length=0), optional=True, dispatch_action=True),
    "rich": rich(
        {
            "type": "rich_text_section",
            "elements": [
                WORD,
                DATE,
                {"type": "user", "user_id": "U1"},
                {"type": "emoji", "name": "tada"},
                {"type": "link", "url": "https://a.example", "text": "a"},
            ],
        },
        {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x"}], "border": 0},
        {"type": "rich_text_quote", "elements": [WORD]},
        {
            "type": "rich_text_list",
            "style": "bullet",
            "indent": 1,
            "elements": [{"type": "rich_text_section", "elements": [WORD]}],
        },
    ),
}


@pytest.mark.parametrize("block", LEGAL.values(), ids=LEGAL.keys())
def test_what_slack_takes_is_legal(block: Json) -> None:
    assert limits.check_blocks([block]) == []


ILLEGAL: dict[str, tuple[Json, str, str]] = {
    "unknown block": ({"type": "poster"}, "/blocks/0/type", "unsupported type: poster"),
    "no type": ({}, "/blocks/0/type", "unsupported type: None"),
    "unknown element": (actions({"type": "dial"}), "/blocks/0/elements/0/type", "unsupported type: dial"),
    "unknown field": (
        actions(button(colour="red")),
        "/blocks/0/elements/0",
        "invalid additional property: colour",
    ),
    "markup header": (
        {"type": "header", "text": marked("a")},
        "/blocks/0/text/type",
        "unsupported type: mrkdwn",
    ),
    "markup button": (
        actions(button(text=marked("a"))),
        "/blocks/0/elements/0/text/type",
        "unsupported type: mrkdwn",
    ),
    "markup option": (
        actions(select(options=[option(text=marked("a"))])),
        "/blocks/0/elements/0/options/0/text/type",
        "unsupported type: mrkdwn",
    ),
    "empty text": (
        {"type": "section", "text": plain("")},
        "/blocks/0/text/text",
        "must be more than 0 characters",
    ),
    "bare string": ({"type": "section", "text": "a"}, "/blocks/0/text", "must provide an object"),
    "section of nothing": ({"type": "section"}, "/blocks/0", "missing required field: text"),
    "empty actions": (actions(), "/blocks/0/elements", "no less than 1 items allowed"),
    "text input in actions": (
        actions(typed()),
        "/blocks/0/elements/0/type",
        "unsupported type: plain_text_input",
    ),
    "button in input": (entry(button()), "/blocks/0/element/type", "unsupported type: button"),
    "button in context": (
        {"type": "context", "elements": [button()]},
        "/blocks/0/elements/0/type",
        "unsupported type: button",
    ),
    "text input beside a section": (
        {"type": "section", "text": plain("a"), "accessory": typed()},
        "/blocks/0/accessory/type",
        "unsupported type: plain_text_input",
    ),
    "green button": (
        actions(button(style="green")),
        "/blocks/0/elements/0/style",
        "must be a valid enum value",
    ),
    "one action id twice": (actions(button(), button()), "/blocks/0/elements", "action_id must be unique"),
    "one value twice": (
        actions(select(options=[option(1), option(1)])),
        "/blocks/0/elements/0/options",
        "option values must be unique: 1",
    ),
    "one value in two groups": (
        actions(select(option_groups=[group(1), group(1)])),
        "/blocks/0/elements/0/options",
        "option values must be unique",
    ),
    "no options": (
        actions(select(options=[])),
        "/blocks/0/elements/0/options",
        "no less than 1 items allowed",
    ),
    "options and groups": (
        actions(select(options=options(1), option_groups=[group(1)])),
        "/blocks/0/elements/0",
        "exactly one of options and option_groups",
    ),
    "foreign initial option": (
        actions(select(initial_option=option(9))),
        "/blocks/0/elements/0/initial_option",
        "must be one of the options",
    ),
    "foreign initial options": (
        actions(multi(initial_options=[option(1), option(9)])),
        "/blocks/0/elements/0/initial_options/1",
        "must be one of the options",
    ),
    "no item may be picked": (
        actions(multi(max_selected_items=0)),
        "/blocks/0/elements/0/max_selected_items",
        "must be greater than or equal to 1",
    ),
    "min above max": (
        entry(typed(min_length=5, max_length=4)),
        "/blocks/0/element/min_length",
        "must be less than or equal to max_length (4)",
    ),
    "not a number": (
        entry(number(initial_value="two")),
        "/blocks/0/element/initial_value",
        "must be a number",
    ),
    "not written as a number": (
        entry(number(initial_value="nan", is_decimal_allowed=True)),
        "/blocks/0/element/initial_value",
        "must be a number",
    ),
    "number out of range": (
        entry(number(initial_value="4", max_value="3")),
        "/blocks/0/element/initial_value",
        "must be less than or equal to max_value (3)",
    ),
    "picture of nothing": ({"type": "image", "alt_text": "a"}, "/blocks/0", "exactly one of image_url"),
    "picture without words": (
        {"type": "image", "image_url": "u"},
        "/blocks/0",
        "missing required field: alt_text",
    ),
    "confirm without deny": (
        actions(button(confirm={k: v for k, v in confirm().items() if k != "deny"})),
        "/blocks/0/elements/0/confirm",
        "missing required field: deny",
    ),
    "broadcast": (
        rich({"type": "rich_text_section", "elements": [{"type": "broadcast", "range": "here"}]}),
        "/blocks/0/elements/0/elements/0/type",
        "unsupported type: broadcast",
    ),
    "list of text": (
        rich({"type": "rich_text_list", "style": "bullet", "elements": [WORD]}),
        "/blocks/0/elements/0/elements/0/type",
        "unsupported type: text",
    ),
}


@pytest.mark.parametrize(("block", "pointer", "message"), ILLEGAL.values(), ids=ILLEGAL.keys())
def test_what_slack_refuses_is_named_with_its_place(block: Json, pointer: str, message: str) -> None:
    [problem] = limits.check_blocks([block])
    assert problem.pointer == pointer
    assert message in problem.message
    assert problem.message.endswith(f"[json-pointer:{pointer}]")


def test_a_message_reads_as_slack_writes_it() -> None:
    [problem] = limits.check_blocks([{"type": "section", "text": plain(3001)}])
    assert problem.message == "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"


def test_block_ids_are_unique_on_a_surface() -> None:
    twin = {"type": "divider", "block_id": "d"}
    [problem] = limits.check_blocks([twin, copy.copy(twin)])
    assert "block_id must be unique: d" in problem.message


def test_only_one_element_asks_for_the_focus() -> None:
    [problem] = limits.check_blocks([entry(typed(focus_on_load=True)), entry(typed(focus_on_load=True))])
    assert problem.limit == "focus_on_load"


def test_a_message_holds_fifty_blocks() -> None:
    assert limits.check_message({"blocks": [{"type": "divider"}] * 50}) == []
    [problem] = limits.check_message({"blocks": [{"type": "divider"}] * 51})
    assert (problem.limit, problem.size, problem.allowed) == ("blocks", 51, 50)


def test_a_message_needs_text_or_blocks() -> None:
    [problem] = limits.check_message({"text": "", "blocks": []})
    assert problem.limit == "message"


@pytest.mark.parametrize(("update", "most"), [(False, 40_000), (True, 4000)])
def test_the_text_of_a_message_is_bounded(update: bool, most: int) -> None:
    assert limits.check_message({"text": "x" * most}, update=update) == []
    [problem] = limits.check_message({"text": "x" * (most + 1)}, update=update)
    assert (problem.limit, problem.allowed) == ("message.text", most)


def test_all_text_of_a_message_stays_within_the_budget_of_bytes() -> None:
    blocks = [{"type": "section", "text": marked("é" * 1500)} for _ in range(3)]
    assert limits.text_bytes(blocks) == limits.MESSAGE_BYTES
    assert limits.check_message({"blocks": blocks}) == []
    [problem] = limits.check_message({"blocks": [*blocks, {"type": "header", "text": plain("x")}]})
    assert (problem.limit, problem.size) == ("message.bytes", 9001)


def test_a_modal_with_an_input_needs_a_submit() -> None:
    [problem] = limits.check_view(modal(blocks=[entry(typed())]))
    assert "submit" in problem.message
    assert limits.check_view(modal(blocks=[entry(typed())], submit=plain("Send"))) == []


def test_a_home_takes_blocks_and_no_title() -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    assert limits.check_view(home) == []
    [problem] = limits.check_view({**home, "title": plain("a")})
    assert "invalid additional property: title" in problem.message


def test_a_place_in_a_view_starts_at_the_view() -> None:
    [problem] = limits.check_view(modal(blocks=[{"type": "poster"}]))
    assert problem.pointer == "/view/blocks/0/type"


def test_a_view_of_more_than_250_kilobytes_is_refused() -> None:
    blocks = [{"type": "section", "text": plain(2980)} for _ in range(84)]
    [problem] = limits.check_view(modal(blocks=blocks))
    assert problem.limit == "view.bytes"


def test_half_a_surrogate_pair_counts_and_breaks_nothing() -> None:
    assert limits.text_bytes([{"type": "header", "text": plain("\ud800")}]) == 3
    assert limits.check_view(modal(private_metadata="\ud800")) == []


def test_ensure_raises_with_every_problem() -> None:
    with pytest.raises(limits.IllegalBlocks, match="unsupported type: poster") as caught:
        limits.ensure_message({"blocks": [{"type": "poster"}, {"type": "dial"}]})
    assert len(caught.value.problems) == 2
    limits.ensure_message({"text": "fine"})
    with pytest.raises(limits.IllegalBlocks):
        limits.ensure_view({"type": "window"})
    limits.ensure_view(modal())


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in SIZES
        if row[0] in ("header.text.text", "section.text.text", "button.text.text", "overflow.options")
    ],
    ids=lambda row: row[0],
)
def test_the_slack_sdk_draws_the_line_at_the_same_size(row: tuple[str, int, Callable[[int], Json]]) -> None:
    _, most, make = row
    legal, illegal = Block.parse(make(most)), Block.parse(make(most + 1))
    assert legal is not None
    assert illegal is not None
    assert limits.check_blocks([legal.to_dict()]) == []
    with pytest.raises(SlackObjectFormationError):
        illegal.to_dict()
