"""Text of the local Slack as a person reads it."""

from __future__ import annotations

from typing import Any

import pytest

from bot.sandbox import LocalSlack
from bot.sandbox.words import bare

NOON = 1_700_049_600  # 2023-11-15 12:00:00 UTC, a Wednesday


@pytest.fixture
def slack() -> LocalSlack:
    slack = LocalSlack(clock=lambda: NOON + 60.0)
    slack.add_user("ana")
    slack.add_channel("general", ["ana"])
    slack.add_group("oncall", ["ana"])
    return slack


@pytest.mark.parametrize(
    ("markup", "read"),
    [
        ("*bold* _slanted_ ~gone~ and `code`", "bold slanted gone and code"),
        ("delete_file and a*b*c stay, so does 2 * 3 * 4", "delete_file and a*b*c stay, so does 2 * 3 * 4"),
        ("`*not bold* _here_`", "*not bold* _here_"),
        ('```\n{"a": *1*}\n```', '{"a": *1*}'),
        ("&gt; quoted\n&gt;too", "quoted\ntoo"),
        ("a &lt;b&gt; &amp;amp;", "a <b> &amp;"),
        ("<https://a.example|the page> <https://b.example>", "the page https://b.example"),
        ("<@{ana}> <#{general}> <!subteam^{oncall}> <!here>", "@ana #general @oncall @here"),
        ("<@U9|old name> <#C9|gone>", "@old name #gone"),
        (f"<!date^{NOON}^{{{{date_short_pretty}}}} at {{{{time}}}}|soon>", "Today at 12:00 PM"),
        (f"<!date^{NOON + 86400}^{{{{date_pretty}}}}|soon>", "Tomorrow"),
        (f"<!date^{NOON - 86400}^{{{{date_long_pretty}}}}|soon>", "Yesterday"),
        (f"<!date^{NOON + 3 * 86400}^{{{{date_short_pretty}}}}|soon>", "Nov 18, 2023"),
        (f"<!date^{NOON}^{{{{date_num}}}} {{{{time_secs}}}}|soon>", "2023-11-15 12:00:00 PM"),
        (f"<!date^{NOON}^{{{{date_long}}}}|soon>", "Wednesday, November 15th, 2023"),
        (f"<!date^{NOON - 13 * 86400}^{{{{date}}}}|soon>", "November 2nd, 2023"),
        (f"<!date^{NOON}^{{{{unknown}}}}|soon>", "{unknown}"),
    ],
)
def test_markup_is_read_without_its_marks(slack: LocalSlack, markup: str, read: str) -> None:
    ids = {
        "ana": slack.as_user("ana").id,
        "general": slack.add_channel("general"),
        "oncall": slack.add_group("oncall", ["ana"]),
    }
    text = markup.format(**ids) if "{" in markup and "```" not in markup else markup
    assert slack.text_of({"text": text}) == read


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def test_a_message_is_read_in_order_with_its_controls(slack: LocalSlack) -> None:
    options = [
        {"text": plain("A"), "value": "0", "description": plain("first")},
        {"text": plain("B"), "value": "1"},
    ]
    menu = {"type": "static_select", "placeholder": plain("Pick one"), "options": options}
    rich = [
        {
            "type": "rich_text_section",
            "elements": [
                {"type": "text", "text": "see "},
                {"type": "link", "url": "https://a.example", "text": "this"},
                {"type": "emoji", "name": "tada"},
                {"type": "user", "user_id": slack.as_user("ana").id},
            ],
        },
        {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "{}"}]},
        {
            "type": "rich_text_list",
            "style": "bullet",
            "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": t}]} for t in "xy"
            ],
        },
        {"type": "rich_text_quote", "elements": [{"type": "date", "timestamp": NOON, "format": "{time}"}]},
    ]
    image = {"type": "image", "image_url": "u", "alt_text": "a chart"}
    blocks = [
        {"type": "header", "text": plain("Head")},
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": "*Body*"},
            "fields": [plain("F")],
            "accessory": menu,
        },
        {"type": "context", "elements": [image, plain("note")]},
        {"type": "divider"},
        {"type": "rich_text", "elements": rich},
        {"type": "actions", "elements": [{"type": "button", "text": plain("Go")}]},
        {**image, "title": plain("Chart")},
        {"type": "actions", "elements": [{"type": "checkboxes", "options": options}]},
    ]
    lines = [
        "Head",
        "Body",
        "F",
        "Pick one",
        "a chart",
        "note",
        "see this:tada:@ana",
        "{}",
        "x",
        "y",
        "12:00 PM",
    ]
    assert slack.text_of({"blocks": blocks, "text": "fallback"}).split("\n") == [
        *lines,
        "Go",
        "Chart",
        "A first",
        "B",
    ]


def test_a_view_is_read_from_its_title_to_its_buttons(slack: LocalSlack) -> None:
    ask = {
        "type": "input",
        "label": plain("Why"),
        "hint": plain("in short"),
        "element": {"type": "plain_text_input", "initial_value": "because"},
    }
    view = {
        "type": "modal",
        "title": plain("T"),
        "submit": plain("Send"),
        "close": plain("Back"),
        "blocks": [ask],
    }
    assert slack.text_of(view) == "T\nWhy\nbecause\nin short\nSend\nBack"


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("Approve", "Approve"),
        ("✅ Approve", "Approve"),
        ("✔️ Approve", "Approve"),
        (":white_check_mark: Reject with reason…", "Reject with reason"),
        ("Other...", "Other"),
        ("+ Add", "+ Add"),
        ("3 days", "3 days"),
    ],
)
def test_a_label_is_known_without_emoji_and_ellipsis(label: str, words: str) -> None:
    assert bare(label) == words
