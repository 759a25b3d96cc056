"""The modal of a form: an input a field, defaults that come back as they were given, and blank words made visible."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from bot import words
from bot.cards import approval_modals
from bot.cards import controls as c
from bot.cards.edits import edited, editor_text
from bot.cards.form import form_of
from bot.cards.form_modal import entered, field_block, form_modal
from bot.cards.limits import check_view
from bot.sandbox import blocks
from core.forms import check_form
from core.gates import Gate
from core.runs import Run
from tests.runs import Json, approval, body, form_call
from tests.unit.cards import buttons, card, few, runs, said, stored, typed
from tests.unit.cards import edited as edit


def form(*fields: Json, **more: Any) -> Gate:
    return stored(body([form_call("f", *fields, **more)])).gates[0]


def untouched(view: Json) -> dict[str, Any]:
    """What a modal's fields hold before anybody touches them, as Slack would send it."""
    return c.values_of({"values": blocks.values(view["blocks"], {})})


@few
@given(runs())
def test_a_form_that_nobody_touches_comes_back_with_its_defaults(run: Run) -> None:
    for gate in run.gates[:2]:
        if gate.doc.form is None:
            continue
        view = form_modal(gate)
        values, wrong = entered(gate, untouched(view))
        assert wrong == {}
        defaults = {f.name: f.default for f in form_of(gate).all_fields if f.default not in (None, [])}
        left_out = {name for name in defaults if name not in values}
        assert values == {name: value for name, value in defaults.items() if name in values}
        assert len(left_out) == said(view).count("starts empty")
        loose = tuple(f.model_copy(update={"required": False}) for f in form_of(gate).all_fields)
        assert check_form(loose, values) == values


def test_each_kind_has_its_element_and_only_what_is_required_must_be_given() -> None:
    options = [{"value": "a"}, {"value": "b", "label": "Bee"}]
    kinds = ["text", "number", "integer", "confirm", "select", "multi_select"]
    fields = [
        {"name": kind, "kind": kind, "required": kind == "text"}
        | ({"options": options} if "select" in kind else {})
        for kind in kinds
    ]
    inputs = typed(form_modal(form(*fields)), "input")
    assert [block["element"]["type"] for block in inputs] == [
        *("plain_text_input", "number_input", "number_input"),
        *("radio_buttons", "static_select", "multi_static_select"),
    ]
    assert [block["optional"] for block in inputs] == [False] + [True] * 5
    assert [block["label"]["text"] for block in inputs] == kinds
    assert [option["text"]["text"] for option in inputs[4]["element"]["options"]] == ["a", "Bee"]


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        ({"kind": "integer", "minimum": 0.5, "maximum": 3.5}, ("1", "3")),
        ({"kind": "integer", "minimum": 1.2, "maximum": 1.8}, (None, None)),
        ({"kind": "number", "minimum": 0.25, "maximum": 1e300}, ("0.25", None)),
        ({"kind": "number", "minimum": -1e-20, "maximum": 5}, (None, "5")),
    ],
)
def test_bounds_of_numbers_are_told_to_slack_as_far_as_it_takes_them(bounds: Json, shown: Any) -> None:
    view = form_modal(form({"name": "n", **bounds}))
    (element,) = typed(view, "number_input")
    assert (element.get("min_value"), element.get("max_value")) == shown
    assert check_view(view) == []


@pytest.mark.parametrize(
    ("typed_in", "value"),
    [("7", 7), (" -7 ", -7), ("7.0", 7.0), ("0.1", 0.1), ("1e3", 1000)],
)
def test_a_number_comes_back_as_one(typed_in: str, value: float) -> None:
    gate = form({"name": "n", "kind": "number"})
    found, wrong = entered(gate, {field_block(0): typed_in})
    assert (found, wrong) == ({"n": value}, {})
    assert type(found["n"]) is type(value)


@pytest.mark.parametrize("typed_in", ["x", "NaN", "Infinity", "1e999", "99999999999999999", "--1"])
def test_what_is_no_number_is_said_at_its_field(typed_in: str) -> None:
    gate = form({"name": "n", "kind": "number"})
    assert entered(gate, {field_block(0): typed_in}) == ({}, {field_block(0): words.NO_NUMBER})


def test_labels_of_nothing_but_blanks_stand_in_quotes() -> None:
    options = [{"value": " "}, {"value": "\u2003", "label": "  "}]
    gate = form({"name": " ", "kind": "select", "options": options}, title="  ")
    view = form_modal(gate)
    assert check_view(view) == []
    assert typed(view, "input")[0]["label"]["text"] == '" "'
    texts = [option["text"]["text"] for option in typed(view, "static_select")[0]["options"]]
    assert len(set(texts)) == 2
    assert all(text.strip() for text in texts)


# edited arguments


def test_the_editor_has_the_present_arguments_and_what_cannot_be_seen_written_out() -> None:
    run = stored(
        body(
            [], [approval("a", args={"a": "\u202e", "n": 1.50})], policy={"edits": True, "approvers": ["U1"]}
        )
    )
    gate = run.gates[0]
    assert editor_text(gate) == '{\n  "a": "\\u202e",\n  "n": 1.5\n}'
    changed = edit(gate, {"b": [1]})
    assert '"b"' in typed(approval_modals.edit(changed), "plain_text_input")[0]["initial_value"]
    assert changed.digest in approval_modals.edit(changed)["private_metadata"]
    long = edit(gate, {"b": "x" * 3000})
    assert editor_text(long) is None
    with pytest.raises(ValueError, match="do not fit"):
        approval_modals.edit(long)


def test_arguments_that_were_edited_back_say_so() -> None:
    run = stored(body([], [approval("a")], policy={"edits": True, "approvers": ["U1"]}))
    back = edit(edit(run.gates[0], {"x": 1}), {"path": "/tmp/old.log"})
    assert "as it was at first" in said(edited(back))


def test_every_approving_button_carries_the_digest_of_what_is_shown() -> None:
    run = stored(body([], [approval("a", always=["x"])], policy={"edits": True, "approvers": ["U1"]}))
    changed = edit(run.gates[0], {"path": "/tmp/new.log"})
    (message,) = card(run.model_copy(update={"gates": (changed,)}))
    row = buttons(message.blocks)
    digests = {row[name]["value"] for name in ("Approve", "Approve always…", "Reject", "Reject with reason…")}
    assert digests == {changed.digest}
    assert changed.digest != run.gates[0].digest
