"""What Motus' interrupts ask and what goes back: no name that an agent chose decides it, and no answer is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.forms import check_form
from core.hosts.motus import asking
from core.hosts.motus.gates import CancelTurn, LeaveIt, Shown, facts_of, pending, value
from core.questions import check_answers
from core.requests import FormCall, Pending, QuestionCall

Json = dict[str, Any]

APPROVED = {"outcome": "approved", "action": "approve"}
DENIED = {"outcome": "denied", "action": "deny", "reason": "no"}
OPTIONS = [
    {"label": "One file ", "description": "Only that", "markdown": None},
    {"label": "All", "description": "Each of them", "markdown": "a\nb"},
    {"label": "None", "description": "", "markdown": None},
]
QUESTION = {"question": "Which files?", "header": "Files", "options": OPTIONS, "multiSelect": False}
MANY = [{**QUESTION, "question": f"{number}?"} for number in range(5)]


def facts(kind: str, payload: Any) -> Json:
    return {"session_id": "s", "interrupt_id": "i", "type": kind, "payload": payload}


def asked(known: Json) -> tuple[Pending, Json]:
    """What people are asked, and the facts as they are stored with that."""
    shown, gate = pending(known)
    return gate, facts_of(json.dumps({**known, "shown": shown}))


def answer(known: Json, result: Json) -> Any:
    return value(asked(known)[1], result, {})


def answered(*questions: Any, given: Json) -> Json:
    """What the agent gets of an answer that the gate takes."""
    gate, stored = asked(facts("user_input", {"questions": list(questions)}))
    [call] = gate.calls
    if isinstance(call, FormCall):
        given = check_form(call.form.all_fields, given)
    else:
        assert isinstance(call, QuestionCall)
        given = check_answers(call.args, given)
    return dict(value(stored, {"status": "returned", "outcome": "answered", "value": given}, {}))


@pytest.mark.parametrize("name", ["cancel_turn", "unreadable", "ask_user_question"])
def test_a_tool_of_any_name_gets_what_people_decided(name: str) -> None:
    tool = facts("tool_approval", {"tool_name": name, "tool_args": {}})
    assert answer(tool, APPROVED) == {"approved": True}
    assert answer(tool, DENIED) == {"approved": False, "reason": "no"}


@pytest.mark.parametrize("name", ["cancel_turn", "unreadable", "hidden"])
def test_a_type_of_any_name_gets_what_people_answered(name: str) -> None:
    custom = facts(name, {"a": 1})
    assert pending(custom)[0] is Shown.CUSTOM
    assert answer(custom, {"status": "returned", "outcome": "answered", "value": {"x": 1}}) == {"x": 1}


@pytest.mark.parametrize(
    "unshown",
    [
        {"session_id": "s", "interrupt_id": "i", "hidden": "nobody can read it"},
        facts("tool_approval", {"tool_name": "look", "tool_args": {"n": 2**60}}),
        facts("tool_approval", {"tool_args": {}}),
        facts("picture", "x" * 17_000),
    ],
)
def test_what_cannot_be_shown_is_a_notice_by_which_the_turn_is_cancelled_or_left(unshown: Json) -> None:
    gate, stored = asked(unshown)
    assert "Approve to cancel the turn" in (gate.approvals[0].reason or "")
    with pytest.raises(CancelTurn):
        value(stored, APPROVED, {})
    with pytest.raises(LeaveIt):
        value(stored, DENIED, {})


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("Files", "Files"),
        ("Implementation", "Implementat…"),
        ("A very long header", "A very long…"),
        ("", "Question"),
        (7, "Question"),
    ],
)
def test_a_header_of_any_length_leaves_a_question_a_question(header: Any, shown: str) -> None:
    gate, _ = asked(facts("user_input", {"questions": [{**QUESTION, "header": header}]}))
    assert isinstance(gate.calls[0], QuestionCall)
    assert gate.calls[0].args.questions[0].header == shown
    said = answered({**QUESTION, "header": header}, given={"answers": {"Which files?": "those of today"}})
    assert said["answers"] == {"Which files?": "those of today"}
    said = answered({**QUESTION, "header": header}, given={"answers": {}, "response": "as you like"})
    assert said == {"answers": {}, "selections": {}, "response": "as you like"}


def test_what_is_no_question_of_ours_is_a_form_that_takes_another_text_for_each_choice() -> None:
    [call] = asked(facts("user_input", {"questions": [*MANY, "Why?"]}))[0].calls
    assert isinstance(call, FormCall)
    fields = {field.name: field for field in call.form.all_fields}
    assert list(fields) == [n for k in range(5) for n in (f"q{k}", f"q{k}_other")] + ["q5"]
    assert (fields["q1"].kind, fields["q1"].required) == ("select", False)
    assert (fields["q1_other"].kind, fields["q1_other"].required) == ("text", False)
    assert (fields["q1_other"].label, fields["q5"].required) == ("Other: 1?", True)
    assert fields["q1"].description == "One file: Only that\nAll: Each of them\na\nb"
    said = answered(*MANY, "Why?", given={"q0": "All", "q1_other": "those of today", "q5": "so"})
    assert said["answers"] == {"0?": "All", "1?": "those of today", "Why?": "so"}


def test_a_pick_and_another_text_both_reach_the_agent_in_the_order_of_the_options() -> None:
    many = {"question": "Which?", "options": list("abcde"), "multiSelect": True}
    said = answered(many, given={"q0": ["d", "b"], "q0_other": "and f, g"})
    assert said == {"answers": {"Which?": "b, d, and f, g"}, "selections": {"Which?": ["b", "d", "and f, g"]}}
    picked = {"answers": {"Which files?": ["None", "All", "None"]}}
    said = answered({**QUESTION, "multiSelect": True}, given=picked)
    assert said["selections"] == {"Which files?": ["All", "None"]}


def test_questions_for_which_a_form_has_no_room_for_other_texts_are_asked_without_them() -> None:
    twenty = [{"question": f"{number}?", "options": ["a", "b"]} for number in range(20)]
    form = asking.form({"questions": twenty})
    assert form
    assert [field["name"] for field in form["fields"]] == [f"q{number}" for number in range(20)]
    assert all(field["required"] for field in form["fields"])


def test_texts_that_blanks_alone_tell_apart_are_asked_once_and_answered_each_by_its_own() -> None:
    twins = [QUESTION, {**QUESTION, "question": " Which files? "}]
    said = answered(*twins, given={"answers": {"Which files?": "One file"}})
    assert said["answers"] == {"Which files?": "One file ", " Which files? ": "One file "}
    said = answered("Why?", "Why? ", given={"q0": "so"})
    assert said["selections"] == {"Why?": ["so"], "Why? ": ["so"]}


def test_a_label_that_is_there_twice_is_offered_once() -> None:
    twice = {**QUESTION, "options": ["a", "b", "a "]}
    [call] = asked(facts("user_input", {"questions": [twice]}))[0].calls
    assert isinstance(call, QuestionCall)
    assert [option.label for option in call.args.questions[0].options] == ["a", "b"]
