"""An agent's Markdown in Slack: it looks as meant, keeps to the limits, and makes no link and no mention."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bot.cards.limits import check_message
from bot.cards.markdown import reply_parts, texts
from bot.cards.talk import MOST_PARTS, end_messages
from core.conversations import MOST_CHARS, Conversation, End, Ending, Said
from core.policy import Person

Json = dict[str, Any]
ANA = Person(team="T1", user="U1")

BITS = [
    "<!channel>", "<@U0123>", "<#C1>", "<https://evil.example|https://good.example>", "@here", "&lt;!here&gt;",
    "[bank](https://evil.example)", "[x]: https://evil.example", "![i](http://e.example/i.png)", "[a][x]",
    "<https://e.example>", "<b>", "&amp;", "*", "**", "~~", "`", "```\n", "\n", "\n\n", "- ", "1. ", "> ", "    ",
    "# ", "| a | b |\n|---|---|\n| c | d |\n", "---\n", "\u202e", "\u200d", "é", "\U0001f600", "\\", "word ", "x" * 900,
]  # fmt: skip
markdown = st.lists(st.one_of(st.sampled_from(BITS), st.text(max_size=20)), max_size=60).map("".join)


def elements(thing: Any) -> Iterator[Json]:
    """Everything that has a type."""
    if isinstance(thing, dict):
        yield thing
        for value in thing.values():
            yield from elements(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from elements(value)


def ended(text: str, kind: Ending = Ending.REPLY) -> list[Any]:
    said = Said(by=ANA, ts="1.000001", text="hi", at=1)
    talk = Conversation(id="C1", host="motus.x", team="T1", channel="C1", by=ANA, title="hi", said=said)
    talk = talk.model_copy(update={"anew": True}).ending(End(kind=kind, text=text))
    assert talk.end
    return end_messages(talk, talk.end)


@given(markdown)
@example("- a\n  - b\n    > c\n\n      ```\n      d\n      ```\n1) x\n")
@example("> - a\n>   1. b\n> # c\n")
@example("|a|\n|-|\n")
def test_no_text_of_an_agent_is_more_than_text(text: str) -> None:
    allowed = {
        "rich_text",
        "rich_text_section",
        "rich_text_list",
        "rich_text_quote",
        "rich_text_preformatted",
    }
    for part in reply_parts(text):
        assert {e["type"] for e in elements(part) if "type" in e} <= allowed | {"text", "divider"}
    for kind in (Ending.REPLY, Ending.ERROR):
        for message in ended(text, kind):
            assert check_message({"text": message.text, "blocks": message.blocks}) == []
            for notified in (message.text, message.plain):
                assert not {"<!channel>", "<@U0123>", "<https://evil.example|", "<#C1>"} & {
                    notified[at : notified.index(">", at) + 1] for at in range(len(notified))
                    if notified[at] == "<" and ">" in notified[at:]
                }  # fmt: skip


@given(st.text(alphabet="abc \n", min_size=1, max_size=400), st.integers(1, 200))
def test_all_of_a_plain_text_is_there_however_long(text: str, times: int) -> None:
    long = text * times
    shown = "".join(texts(part) for part in reply_parts(long))
    assert shown.replace("\n", "").replace(" ", "") == long.replace("\n", "").replace(" ", "")


def test_it_looks_as_it_was_meant() -> None:
    [blocks] = reply_parts(
        "# Plan\n**Do** it\n\n- one\n  1. two\n- three\n\n```py\nx = 1\n```\n> so *he* said"
    )
    heading, text, points, code, quote = (block["elements"] for block in blocks)
    assert heading[0]["elements"] == [{"type": "text", "text": "Plan", "style": {"bold": True}}]
    assert text[0]["elements"][0] == {"type": "text", "text": "Do", "style": {"bold": True}}
    assert [(p["style"], p["indent"]) for p in points] == [("bullet", 0), ("ordered", 1), ("bullet", 0)]
    assert (code[0]["type"], code[0]["elements"][0]["text"]) == ("rich_text_preformatted", "x = 1")
    assert [e["text"] for e in quote[0]["elements"]] == ["so ", "he", " said"]


def test_a_link_stands_there_with_the_address_that_it_leads_to() -> None:
    [blocks] = reply_parts("[your bank](https://evil.example/a) and <https://plain.example>")
    assert texts(blocks).strip() == "your bank (https://evil.example/a) and https://plain.example"


def test_what_is_longer_than_many_messages_says_how_much_is_missing() -> None:
    missing = []
    for count in (MOST_CHARS, MOST_CHARS + 100_000):
        messages = ended("words " * (count // 6))
        assert len(messages) == MOST_PARTS
        found = re.search(r"([\d,]+) characters more are not shown", str(messages[-1].blocks[-1]))
        assert found
        missing.append(int(found[1].replace(",", "")))
    assert abs(missing[1] - missing[0] - 100_000) < 20
