"""What a screen reader says: each button by a name of its own, and no sign without a word beside it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest
from hypothesis import given

from bot import words
from bot.cards import controls as c
from bot.cards import modals
from bot.cards.aloud import name, told_apart
from bot.cards.blocks import button, row
from bot.cards.inbox import Waiting, list_page
from bot.cards.limits import ACCESSIBILITY_LABEL, check_message
from bot.cards.queries import Query, Which
from bot.cards.settled import settled_line
from bot.words import LANGUAGES
from core.gates import Outcome
from core.runs import Run
from tests.runs import approval, ask, body, form_call, question_call
from tests.unit.cards import card, few, runs, settled, stored, typed


def heard(surface: object) -> list[str]:
    """The names of all buttons, in reading order."""
    return [found.get("accessibility_label", "") for found in typed(surface, "button")]


def only(run: Run) -> list[dict]:
    (message,) = card(run)
    return message.blocks


@few
@given(runs())
def test_every_button_has_a_name_of_its_own_that_begins_with_what_it_says(run: Run) -> None:
    surfaces = [message.blocks for message in card(run)]
    surfaces += [modals.full(gate, page)["blocks"] for gate in run.gates for page in (0, 10_000)]
    for surface in surfaces:
        names = heard(surface)
        assert len(set(names)) == len(names)
        for found in typed(surface, "button"):
            said, label = found["text"]["text"].removesuffix("…"), found.get("accessibility_label", "")
            assert label.startswith(f"{said}: ") or found["action_id"] == c.APPROVE_ALL
            assert len(label) <= ACCESSIBILITY_LABEL


def test_a_name_says_which_tool_which_question_or_which_form() -> None:
    folders = ask("Which folders?", "build", "cache", multi=True, header="Folders")
    questions = question_call("q", ask(), folders)
    run = stored(body([questions, form_call("f", title="Book a room")], [approval("a")]))
    names = heard(only(run))
    for wanted in (
        *(
            "Focused: Scope",
            "Other: Scope",
            "Other: Folders",
            "Submit: Scope, Folders",
            "Decline: Scope, Folders",
        ),
        *(
            "Answer in a form: Book a room",
            "Cancel: Book a room",
            "Approve: delete_file",
            "Reject: delete_file",
        ),
    ):
        assert wanted in names


def test_calls_of_one_tool_are_told_apart_by_a_number() -> None:
    run = stored(body([], [approval("a"), approval("b"), approval("c") | {"tool_name": "send_mail"}]))
    approving = [found for found in heard(only(run)) if found.startswith("Approve")]
    assert approving == ["Approve: delete_file (1)", "Approve: delete_file (2)", "Approve: send_mail"]


def test_menus_of_several_questions_say_for_which_they_are() -> None:
    folders = ask("Which folders?", "build", "cache", multi=True, header="Folders")
    long = ask("Which one?", "a" * 40, "b" * 40, header="Place")
    blocks = only(stored(body([question_call("q", folders, long)])))
    menus = typed(blocks, "static_select", "multi_static_select")
    assert [menu["placeholder"]["text"] for menu in menus] == [
        "Choose one or more: Folders",
        "Choose one: Place",
    ]
    alone = only(stored(body([question_call("q", folders)])))
    assert typed(alone, "multi_static_select")[0]["placeholder"]["text"] == words.CHOOSE_SOME


def test_a_list_says_what_each_of_its_buttons_is_about() -> None:
    run = stored(body([], [approval("a"), approval("b")], title="Nightly"))
    waiting = [Waiting(run, gate, "https://slack.test/p1") for gate in run.gates]
    page = list_page(Query(Which.ALL), waiting, [], admin=False, further=None)
    names = heard(page.blocks)
    assert len(set(names)) == len(names) == 4
    about = "Nightly · Approval needed: delete_file"
    assert names[:2] == [f"{words.DECIDE[:-1]}: {about} (1)", f"{words.OPEN_CARD}: {about} (1)"]
    assert check_message({"text": "x", "blocks": page.blocks}) == []


def test_a_name_of_whatever_length_is_legal_and_shows_what_cannot_be_seen() -> None:
    assert len(name("Approve", "x" * 5000)) < ACCESSIBILITY_LABEL
    assert "\u202e" not in name("Approve", "a\u202eb")
    many = [row("x", button("Go", "a", label=name("Go", "&" * 300))) for _ in range(128)]
    names = heard(told_apart(many))
    assert len(set(names)) == 128
    assert max(map(len, names)) <= ACCESSIBILITY_LABEL


def texts_of(language: ModuleType) -> Iterator[tuple[str, str]]:
    for key, value in vars(language).items():
        if key.isupper() and key not in ("SIGNS", "PROBLEMS"):
            for text in value.values() if isinstance(value, Mapping) else [value]:
                yield key, str(text)


def without_signs(text: str) -> str:
    return "".join(char for char in text if unicodedata.category(char) not in ("So", "Mn", "Sm"))


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_sentence_is_a_sign_alone(code: str) -> None:
    for key, text in texts_of(LANGUAGES[code]):
        assert any(char.isalpha() for char in without_signs(text)) or key == "ARROW", key


def test_what_became_of_a_gate_is_said_in_words_beside_its_sign() -> None:
    run = stored(body())
    lines = {settled_line(settled(run.gates[0], outcome, "")) for outcome in Outcome}
    said = {without_signs(line).partition("*")[2] for line in lines}
    assert len(said) == len(Outcome)
    for line in lines:
        sign, _, rest = line.partition(" ")
        assert not any(char.isalpha() for char in sign)
        assert rest.startswith("*")
