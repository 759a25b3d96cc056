"""No text of an agent's, on any surface, is a link, a mention, a broadcast or markup, or makes our own words lie."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bot import words
from bot.cards import approval_modals, modals
from bot.cards import controls as c
from bot.cards.blocks import markup
from bot.cards.card import pack, render
from bot.cards.edits import change_text
from bot.cards.files import file_data, file_name, file_title, short_digest
from bot.cards.inbox import LINK, Page, Waiting, headed, list_page
from bot.cards.limits import check_blocks, check_message, check_view
from bot.cards.managing import MODALS
from bot.cards.offer import offer_blocks, open_questions
from bot.cards.pages import gate_page, page_modal
from bot.cards.queries import Query, Which
from bot.cards.text import isolated, visible
from bot.cards.together import open_approvals, refused_together
from bot.listeners.people import word_for
from bot.slack.delivery import _payload
from bot.slack.reminders import reminder
from core.errors import AlreadySettled, ArgumentsChanged, Expired, InvalidDecision, NotAllowed, Overtaken
from core.gates import Kind
from core.policy import Person
from core.runs import Run
from tests.runs import approval, body, form_call, link_call, question_call
from tests.unit.cards import card, few, objects, runs, states, stored, texts, typed, with_gates
from tests.unit.test_cards_legal import views

ANA: Final = Person(team="T1", user="U1")
OURS: Final = re.compile(
    r"<@[UW][A-Z0-9]+>|<!subteam\^S[A-Z0-9]+>|<#C[A-Z0-9]+>|<!date\^\d+\^[^<>|]+\|[^<>|]+>|<https://card\.example\|[^<>|]+>"
)
"""The markup that is ours: mentions, places, dates, and the way to a card."""
OUR_BUTTONS: Final = {
    c.APPROVE: words.APPROVE,
    c.REJECT: words.REJECT,
    c.ALWAYS: words.ALWAYS,
    c.DONE: words.DONE,
}
ISOLATED: Final = re.compile("[^\u2068\u2069]*(\u2068[^\u2068\u2069]*\u2069[^\u2068\u2069]*)*")
SHOWN: Final = "\n\t\u200c\u200d\u2068\u2069"
"""What may stand in a text although nobody sees it: line breaks, joiners, and our own isolates."""
HIDDEN: Final = re.compile(
    "["
    + "".join(
        re.escape(char)
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in SHOWN
    )
    + "]"
)
Surface = tuple[str, Any]


def surfaces(run: Run, said: str) -> Iterator[Surface]:
    """All that Slack is sent about a run in one state: its kind, and what is sent."""
    parts = pack(run)
    for number, message in enumerate(render(run, parts)):
        yield "message", {"text": message.text, "blocks": message.blocks}
        yield "metadata", _payload(run, 0, number)
    if run.open:
        note = reminder(run, "https://card.example", [ANA])
        yield "message", {"text": note.text, "blocks": note.blocks}
    waiting = [Waiting(run, gate, "https://card.example") for gate in run.gates[:20]]
    query = Query(Which.ALL)
    yield from pages(list_page(query, waiting[:3], ["Note"], admin=True, further=None, filters=[query]))
    for gate in run.gates[:1] if len(run.gates) < 3 else run.gates:
        for view in views(gate):
            yield "view", view
        for word in ephemerals(run, said):
            yield "message", {"text": word, "blocks": [markup(word)]}
            yield "view", modals.refusal(word)
        item = Waiting(run, gate, "https://card.example")
        yield from pages(gate_page(item, admin=True, back=query, words_above=words.extended(gate.id, "then")))
        yield from (("view", managing(run, gate)) for managing in MODALS.values())
        if gate.pending and (found := open_questions(gate)):
            yield (
                "message",
                {"text": words.OFFER_FALLBACK, "blocks": offer_blocks(said, found, "value", "Note")},
            )
        if gate.doc.kind is Kind.APPROVAL:
            yield "file", [file_name(gate), file_title(gate), words.file_comment(short_digest(gate))]
            yield "file data", file_data(gate).decode()
    if gates := open_approvals(run):
        yield "view", approval_modals.approve_all(run, gates)
        yield "view", refused_together(run, dict.fromkeys(ephemerals(run, said), gates[:1]))


def pages(page: Page) -> Iterator[Surface]:
    """A page as a private message, as a modal, and as the Home tab."""
    yield "message", {"text": page.text, "blocks": headed(page)}
    yield "view", page_modal(page)
    yield "view", {"type": "home", "blocks": headed(page)}


def ephemerals(run: Run, said: str) -> Iterator[str]:
    """What is said privately to somebody who was refused."""
    for gate in run.gates[:1]:
        known = {"gate": gate}
        for kind in (Expired, AlreadySettled, NotAllowed, ArgumentsChanged, Overtaken):
            yield word_for(kind(extra=known), ANA)
        yield word_for(InvalidDecision(said, errors=[{"loc": [said], "msg": said}], extra=known), ANA)


@settings(few, max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(runs(), texts(3000), st.integers(0, 3))
def test_nothing_that_slack_is_sent_has_markup_but_ours_and_all_of_it_is_legal(
    run: Run, said: str, which: int
) -> None:
    for state in islice(states(with_gates(run, list(run.gates[:2])), said), which, which + 1):
        for kind, sent in surfaces(state, said):
            if kind == "message":
                assert check_message(sent, update=True) == []
                check_marks(OURS.sub("", sent["text"]))
            elif kind == "view":
                assert check_view(sent) == []
            elif kind == "file":
                assert all(text.isascii() and not set("<>&\n") & set(text) for text in sent)
            check_objects(sent)
            check_seen(sent)


def check_marks(text: str) -> None:
    assert not set("<>") & set(text), text


def check_objects(sent: Any) -> None:
    """Markup is ours, rich text is text and people, and nothing leads anywhere but where we say."""
    for found in objects(sent):
        match found.get("type"):
            case "mrkdwn":
                assert found["verbatim"] is True
                check_marks(OURS.sub("", found["text"]))
            case "plain_text":
                assert found["emoji"] is False
            case "rich_text_section" | "rich_text_quote" | "rich_text_preformatted":
                assert {piece["type"] for piece in found["elements"]} <= {"text", "user"}
            case "image" | "link" | "broadcast" | "usergroup" | "channel" | "emoji" | "date" | "color":
                raise AssertionError(f"an element that is none of ours: {found}")
            case "button":
                verb = found["action_id"].partition(":")[0]
                if wanted := OUR_BUTTONS.get(verb):
                    assert found["text"]["text"].removesuffix("…") == wanted
                assert "url" not in found or verb in (c.OPEN, LINK)


def check_seen(sent: Any) -> None:
    """Nothing hides, nothing turns the reading round, and what we isolate is closed again in the same text."""
    for text in set(strings(sent)):
        assert not HIDDEN.search(text), text[:500]
        assert ISOLATED.fullmatch(text), text[:500]


def strings(sent: Any) -> Iterator[str]:
    """Every text of what is sent but what stands in somebody's own text field, to come back as it was."""
    match sent:
        case str():
            yield sent
        case dict():
            for name, value in sent.items():
                if name != "initial_value":
                    yield from strings(value)
        case list() | tuple():
            for value in sent:
                yield from strings(value)


MARK: Final = "ΩΩ<!here> <@U1> <https://evil.example|x> *b* `c` https://evil.example @here :tada: \u202e"


def marked() -> Run:
    """A run of every kind of gate, with the mark wherever an agent may write."""
    options = [{"label": f"{MARK}{n}", "description": MARK, "markdown": MARK} for n in range(2)]
    ask = {"question": MARK, "header": "ΩΩ", "options": options}
    custom = {"tool_call_id": MARK, "tool_name": MARK, "args": {MARK: MARK}, "schema": {"title": MARK}}
    field = {"name": MARK, "label": MARK, "kind": "text", "description": MARK, "default": MARK}
    menu = {"name": f"{MARK}2", "kind": "select", "options": [{"value": MARK, "label": MARK}]}
    asked = [
        approval(f"{MARK}{n}", reason=MARK, risk="high", always=[MARK])
        | {"tool_name": MARK, "args": {MARK: [MARK]}, "args_schema": {"title": MARK}}
        for n in range(2)
    ]
    calls = [
        question_call(f"q{MARK}", ask),
        custom,
        form_call(f"f{MARK}", field, menu, title=MARK, body=MARK),
        link_call(f"l{MARK}", title=MARK, body=MARK),
    ]
    policy = {"approvers": ["U1", "U2"], "edits": True}
    return stored(body(calls, asked, title=MARK, external_id=MARK, policy=policy))


def test_an_agents_text_is_in_no_markup_no_title_of_a_modal_no_id_and_no_metadata() -> None:
    seen = 0
    for state in states(marked(), MARK):
        for kind, sent in surfaces(state, "plain"):
            seen += "ΩΩ" in str(sent)
            if kind in ("metadata", "file"):
                assert "ΩΩ" not in str(sent)
                continue
            for found in objects(sent):
                if found.get("type") == "mrkdwn":
                    assert "ΩΩ" not in found["text"]
                for name in (
                    "block_id",
                    "action_id",
                    "value",
                    "callback_id",
                    "private_metadata",
                    "external_id",
                ):
                    assert "ΩΩ" not in str(found.get(name, ""))
                for name in ("confirm", "submit", "close", "title"):
                    assert "ΩΩ" not in str(found.get(name, ""))
    assert seen > 200


def test_what_was_typed_or_asked_is_quoted_to_somebody_as_code_that_ends_where_it_should() -> None:
    word = word_for(InvalidDecision(MARK, errors=[{"loc": [], "msg": f"got `{MARK}`"}]), ANA)
    assert word.count("`") == 2
    inside = word.partition("`")[2].rpartition("`")[0]
    assert "https://evil.example" in inside
    assert not set("<>\u202e") & set(word)
    assert check_blocks([markup(word)]) == []


@few
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.sampled_from(["א", "ع", "١", "a", ""])
)
def test_an_edit_reads_from_old_to_new_in_whatever_script(text: str, script: str) -> None:
    change = {"path": f"/{script}", "old": f"{script}1", "new": f"2{script}{text}"}
    shown = change_text(change)
    if script in ("א", "ع"):
        old, new = (isolated(f'"{visible(part)}"') for part in (f"{script}1", f"2{script}"))
        assert shown.startswith(f"{isolated('/' + script)}: {old} → {new[:4]}")
    assert shown.count("→") >= 1


@pytest.mark.parametrize("title", ["مهمة", "משימה 7", "Plain", ""])
def test_a_title_from_the_right_leaves_our_count_beside_it_in_order(title: str) -> None:
    run = stored(body([question_call(f"q{n}") for n in range(3)], title=title))
    [message] = card(run)
    asked = "Scope: Which scope should be used?"
    assert message.text == f"{isolated(title) or words.DEFAULT_TITLE}: 3 of 3 open. {asked}"
    assert typed(message.blocks, "header")[0]["text"]["text"] == (title or words.DEFAULT_TITLE)
