"""Approving several at once: offered only for what has been read, and legal however much that is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from bot.cards import approval_modals
from bot.cards.card import pack, render
from bot.cards.limits import check_view
from bot.cards.together import open_approvals, refused_together, seen
from core.gates import Outcome
from core.runs import Run
from tests.runs import approval, body
from tests.unit.cards import buttons, card, code_of, edited, few, objects, runs, settled, stored, with_gates


def all_button(run: Run) -> dict | None:
    labels = {label: b for m in card(run) for label, b in buttons(m.blocks).items()}
    return next((b for label, b in labels.items() if b["action_id"] == "approve_all"), None)


@few
@given(runs())
def test_approve_all_stands_only_below_every_argument_that_it_is_about(run: Run) -> None:
    button, gates = all_button(run), open_approvals(run)
    messages = card(run)
    approving = sum(
        b["action_id"] == "approve" for m in messages for b in objects(m.blocks) if "action_id" in b
    )
    assert (button is not None) == (len(gates) > 1 and approving == len(gates))
    if button:
        assert button["value"] == seen(gates)
        assert button in list(objects(messages[-1].blocks))


def three() -> Run:
    return stored(
        body(
            [],
            [approval(f"a{n}", args={"n": n}) for n in range(3)],
            policy={"approvers": ["U1"], "edits": True},
        )
    )


def test_what_is_seen_changes_with_every_edit_and_decision() -> None:
    run = three()
    first, *others = run.gates
    changed = with_gates(run, [edited(first, {"n": 7}), *others])
    fewer = with_gates(run, [settled(first, Outcome.DENIED, "no"), *others])
    digests = [seen(open_approvals(state)) for state in (run, changed, fewer)]
    assert len(set(digests)) == 3
    assert all(
        (button := all_button(state)) and button["value"] == digest
        for state, digest in zip((run, changed, fewer), digests, strict=True)
    )


def test_there_is_none_until_all_of_the_card_is_there() -> None:
    run = stored(body([], [approval(f"a{n}", args={"text": "x" * 1500}) for n in range(12)]))
    parts = pack(run)
    assert len(parts) > 1
    some = render(run, parts[:-1])
    assert not any("approve_all" in json.dumps(message.blocks) for message in some)
    *earlier, last = render(run, parts)
    assert "approve_all" in json.dumps(last.blocks)
    assert not any("approve_all" in json.dumps(message.blocks) for message in earlier)
    assert code_of(last.blocks)


@pytest.mark.parametrize("char", ["a", "&", "漢", '"', "\u202e"])
def test_the_lists_of_the_largest_run_are_legal(char: str) -> None:
    items = [
        approval(f"a{n}", args={"x": char * 60}, risk="extra_high") | {"tool_name": char * 256}
        for n in range(128)
    ]
    policy = {"approvers": ["anyone"], "quorum": 32, "reason": "always"}
    run = stored(body([], items, policy=policy))
    assert check_view(approval_modals.approve_all(run, run.gates)) == []
    refused = {f"Reason {n}": [gate] for n, gate in enumerate(run.gates)}
    view = refused_together(run, refused)
    assert check_view(view) == []
    assert sum(found.get("type") == "rich_text_list" for found in objects(view)) == 41
    assert sum(found.get("type") == "rich_text_section" for found in objects(view)) == 128
