"""What people see of a run: nothing that is hidden, all else as it is, and a gate that is still one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.gates import Action, Decision, Gate, Outcome, Vote
from core.opening import gate_docs, run_doc
from core.policy import Person
from core.questions import AskUserQuestion
from core.redaction import DEFAULT_FIELDS, MASK, NOTHING, Patterns, Redaction
from core.requests import RunRequest
from core.runs import Run
from core.shown import shown_gate, shown_run
from tests.runs import approval, ask, body, option, question_call

ANA = Person(team="T1", user="U1")
NOW = 1_767_225_600_000
RUN = "run_07_01JZ0000000000000000000000"
PATTERN = Redaction.of((), Patterns([r"sk-\w+"]))
BOTH = Redaction.of(DEFAULT_FIELDS, Patterns([r"sk-\w+"]))


def run_of(*args: Any, **more: Any) -> Run:
    request = RunRequest.model_validate(body(*args, **more))
    doc = run_doc(RUN, request, "ci", now_ms=NOW, channel=None)
    gates = tuple(
        Gate(doc=gate, policy=gate.policy, status="pending", rev=1, deadline=NOW + 1, created_at=NOW)
        for gate in gate_docs(doc, request)
    )
    return Run(doc=doc, status="waiting", rev=1, gates=gates)


def decided(
    gate: Gate, outcome: Outcome, action: Action, values: Any = None, comment: str | None = None
) -> Gate:
    vote = Vote(action=action, by=ANA, at=NOW, via="slack", token="t", comment=comment)
    decision = Decision(outcome=outcome, at=NOW, via="slack", votes=(vote,), values=values, detail=comment)
    return gate.model_copy(update={"status": outcome, "votes": (vote,), "decision": decision})


def test_with_nothing_to_hide_it_is_the_run_itself() -> None:
    run = run_of([question_call()], [approval()])
    assert shown_run(run, NOTHING) is run


def test_what_has_nothing_to_hide_looks_as_it_is() -> None:
    run = run_of([question_call()], [approval()], title="Clean-up")
    assert shown_run(run, BOTH) == run


def test_arguments_are_masked_and_counted_and_keep_their_digest() -> None:
    args = {
        "user": "ana",
        "password": "hunter2",
        "deep": {"tokens": ["a"], "token": ["b", 7]},
        "cmd": "login sk-hunter2",
    }
    run = run_of([], [approval(args=args, reason="with sk-hunter2")], title="Key sk-hunter2")
    shown = shown_run(run, BOTH)
    [gate] = shown.gates
    assert "hunter2" not in shown.model_dump_json()
    assert gate.arguments == {
        "user": "ana",
        "password": MASK,
        "deep": {"tokens": ["a"], "token": [MASK, MASK]},
        "cmd": f"login {MASK}",
    }
    assert (gate.hidden, gate.digest) == (4, run.gates[0].digest)
    assert (shown.doc.title, gate.doc.reason) == (f"Key {MASK}", f"with {MASK}")
    # the run itself is as it was
    assert run.gates[0].arguments == args


def test_a_custom_call_hides_what_was_answered_too() -> None:
    call = {"tool_call_id": "c", "tool_name": "sk-tool", "args": {"api_key": "x"}}
    [gate] = run_of([call]).gates
    shown = shown_gate(
        decided(gate, Outcome.ANSWERED, Action.ANSWER, {"token": "x", "n": "sk-x"}, "sk-y"), BOTH
    )
    assert shown.doc.tool_name == MASK
    assert shown.doc.args == {"api_key": MASK}
    assert shown.decision is not None
    assert shown.decision.values == {"token": MASK, "n": MASK}
    assert (shown.decision.comment, shown.decision.detail, shown.hidden) == (MASK, MASK, 1)


def test_a_question_hides_by_patterns_alone_and_its_answer_still_finds_it() -> None:
    asked = ask("Use sk-aaaa?", "sk-bbbb", "sk-cccc", header="sk-1")
    other = ask("Use sk-zzzz?", "password", "token", header="secret")
    run = run_of([question_call("q", asked, other)])
    answers = {"answers": {"Use sk-aaaa?": "sk-cccc", "Use sk-zzzz?": ["token"]}, "response": "not sk-dddd"}
    gate = shown_gate(decided(run.gates[0], Outcome.ANSWERED, Action.ANSWER, answers), BOTH)
    first, second = gate.asks.questions
    assert (first.question, second.question) == (f"Use {MASK}?", f"Use {MASK}? (2)")
    assert [choice.label for choice in first.options] == [MASK, f"{MASK} (2)"]
    assert (first.header, second.header) == (MASK, "secret")
    assert [choice.label for choice in second.options] == ["password", "token"]
    assert gate.decision is not None
    assert gate.decision.values == {
        "answers": {f"Use {MASK}?": f"{MASK} (2)", f"Use {MASK}? (2)": ["token"]},
        "response": f"not {MASK}",
    }
    assert gate.hidden == 5


def test_drafts_keep_their_picks_and_hide_what_was_written() -> None:
    run = run_of([question_call("q", ask(), ask("And?"))])
    drafts = {"T1:U1": [{"picked": [1]}, {"picked": [], "other": "sk-aaaa!"}]}
    gate = shown_gate(run.gates[0].model_copy(update={"drafts": drafts}), BOTH)
    assert gate.drafts == {"T1:U1": [{"picked": [1]}, {"picked": [], "other": f"{MASK}!"}]}


@settings(deadline=None)
@given(
    texts=st.lists(
        st.text("sk-ab c", min_size=1, max_size=12).filter(str.strip),
        min_size=2,
        max_size=4,
        unique_by=str.strip,
    ),
    header=st.text("sk-ab", min_size=1, max_size=12),
)
def test_whatever_a_pattern_finds_the_questions_stay_questions(texts: list[str], header: str) -> None:
    options = [option(text, text, markdown=text) for text in texts]
    questions = [{"question": text, "header": header, "options": options} for text in texts]
    found = Redaction.of((), Patterns(["[a-c]+", "s"]))
    gate = run_of([question_call("q", *questions)]).gates[0]
    shown = shown_gate(gate, found)
    asks = shown.asks
    assert len(asks.questions) == len(texts)
    for text in (
        part for q in asks.questions for part in (q.question, q.header, *(o.label for o in q.options))
    ):
        assert not set(text) & set("abcs")
    assert AskUserQuestion.model_validate(shown.doc.args) == asks
    for one, other in zip(gate.asks.questions, asks.questions, strict=True):
        for place, label in enumerate(one.options):
            answered = decided(
                gate, Outcome.ANSWERED, Action.ANSWER, {"answers": {one.question: label.label}}
            )
            decision = shown_gate(answered, found).decision
            assert decision is not None
            assert decision.values == {"answers": {other.question: other.options[place].label}}


def test_a_question_of_the_largest_size_stays_within_its_bounds() -> None:
    longest = ask("a" * 8192, "a" * 256, "b" * 256, header="a" * 12)
    gate = run_of([question_call("q", longest)]).gates[0]
    shown = shown_gate(gate, Redaction.of((), Patterns(["a"]))).asks.questions[0]
    assert (len(shown.question), len(shown.header), len(shown.options[0].label)) == (8192, 12, 256)


FORM = {
    "kind": "form",
    "tool_call_id": "f",
    "tool_name": "ask_form",
    "args": {},
    "form": {
        "title": "For sk-a",
        "fields": [
            {"name": "password", "kind": "text", "default": "hunter2", "label": "Password"},
            {"name": "pin", "kind": "integer", "default": 7},
            {
                "name": "key_to_use",
                "kind": "select",
                "options": [{"value": "sk-a"}, {"value": "b", "label": "B"}],
            },
        ],
    },
}


@pytest.mark.parametrize("redaction", [BOTH, Redaction.of(["password", "PIN"], Patterns([r"sk-\w+"]))])
def test_a_form_hides_defaults_and_what_was_filled_in(redaction: Redaction) -> None:
    [gate] = run_of([FORM]).gates
    content = {"password": "hunter3", "pin": 8, "key_to_use": "sk-a"}
    shown = shown_gate(decided(gate, Outcome.ANSWERED, Action.ACCEPT, content), redaction)
    assert shown.doc.form is not None
    assert shown.decision is not None
    password, pin, choice = shown.doc.form.all_fields
    hides_pin = redaction.lists("pin")
    assert (shown.doc.form.title, password.default, pin.default) == (
        f"For {MASK}",
        None,
        None if hides_pin else 7,
    )
    assert [(o.value, o.shown) for o in choice.options] == [("sk-a", MASK), ("b", "B")]
    assert shown.decision.values == {"password": MASK, "pin": MASK if hides_pin else 8, "key_to_use": MASK}
    assert shown.hidden == 2 + hides_pin


def test_a_form_given_as_a_schema_is_the_same_form() -> None:
    schema = {
        "type": "object",
        "properties": {"token": {"type": "string", "default": "x"}, "n": {"type": "number"}},
    }
    call = {
        "kind": "form",
        "tool_call_id": "f",
        "tool_name": "ask_form",
        "args": {},
        "form": {"schema": schema},
    }
    shown = shown_gate(run_of([call]).gates[0], BOTH)
    assert shown.doc.form is not None
    assert [(field.name, field.default) for field in shown.doc.form.all_fields] == [
        ("token", None),
        ("n", None),
    ]


def test_an_address_with_something_to_hide_is_shown_as_its_origin() -> None:
    for url, seen in (("https://a.example/x?k=sk-1", None), ("https://a.example/x", "https://a.example/x")):
        link = {"title": "sk-1", "url": url}
        call = {"kind": "link", "tool_call_id": "l", "tool_name": "open", "args": {}, "link": link}
        shown = shown_gate(run_of([call]).gates[0], BOTH)
        assert shown.doc.link is not None
        assert (shown.doc.link.url, shown.doc.link.shown_origin) == (seen, "https://a.example")
        assert shown.doc.link.title == MASK


def test_edited_arguments_and_what_was_changed_are_masked() -> None:
    [gate] = run_of([], [approval(args={"password": "old", "n": 1})]).gates
    edit = {
        "by": {"team": "T1", "user": "U1"},
        "at": NOW,
        "from_digest": "a",
        "to_digest": "b",
        "diff": [
            {"path": "/password", "old": "old", "new": "new"},
            {"path": "/n", "old": 1, "new": "sk-x"},
            {"path": "/deep/token/0", "new": 5},
        ],
    }
    gate = Gate.model_validate(
        gate.model_dump() | {"edited": {"password": "new", "n": "sk-x", "secret": "s"}, "edits": [edit]}
    )
    shown = shown_gate(gate, BOTH)
    # a hidden value that was changed looks changed
    assert shown.arguments == {"password": f"{MASK} (changed)", "n": MASK, "secret": MASK}
    assert shown.hidden == 3
    assert shown.edits[0].diff == [
        {"path": "/password", "old": MASK, "new": MASK},
        {"path": "/n", "old": 1, "new": MASK},
        {"path": "/deep/token/0", "new": MASK},
    ]
    assert json.dumps(shown.model_dump(mode="json")).count("sk-x") == 0


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ({"token": 1, "n": 2}, {"token": 1, "n": 3}, {"token": MASK, "n": 3}),
        ({"token": 1}, {"token": True}, {"token": f"{MASK} (changed)"}),
        ({"a": ["sk-a", "sk-b"]}, {"a": ["sk-a", "sk-c"]}, {"a": [MASK, f"{MASK} (changed)"]}),
        ({"a": ["sk-a"]}, {"a": ["sk-a", "sk-a"]}, {"a": [MASK, MASK]}),
        ({"a": "x sk-a"}, {"a": "x sk-b"}, {"a": f"x {MASK} (changed)"}),
        ({"sk-a": 1}, {"sk-b": 1}, {MASK: 1}),
        ({"a": "1"}, {"a": "2"}, {"a": "2"}),
    ],
)
def test_a_change_of_what_is_hidden_is_seen_and_nothing_else_looks_changed(
    old: Any, new: Any, shown: Any
) -> None:
    [gate] = run_of([], [approval(args=old)]).gates
    assert shown_gate(gate.model_copy(update={"edited": new}), BOTH).arguments == shown


def test_what_an_approval_for_always_would_save_is_masked() -> None:
    [gate] = run_of([], [approval(always=["login sk-aaaa", "rm *"])]).gates
    assert shown_gate(gate, BOTH).doc.saves == (f"login {MASK}", "rm *")
