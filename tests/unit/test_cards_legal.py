"""Slack takes every card and every modal, whatever agents write and people do."""

from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import given

from bot import words
from bot.cards import approval_modals, modals
from bot.cards import controls as c
from bot.cards.approval import saves_too_much
from bot.cards.card import pack, render
from bot.cards.drafts import load_draft
from bot.cards.edits import editor_text
from bot.cards.form_modal import form_modal
from bot.cards.inbox import Waiting, digest_blocks
from bot.cards.limits import MESSAGE_BYTES, check_message, check_view
from bot.cards.offer import offer_blocks, open_questions
from bot.cards.text import look
from bot.cards.weight import weight
from core.gates import Gate, Kind, Outcome
from core.runs import Run
from tests.runs import approval, body, question_call
from tests.unit.cards import (
    buttons,
    card,
    few,
    objects,
    runs,
    settled,
    states,
    stored,
    texts,
    touched,
    typed,
    with_gates,
)

WORDS = {
    *("Approve", "Reject", "Reject with reason", "View in full", "Other", "Submit", "Answer in a form"),
    *("General response", "Decline", "Next", "Previous", "Last page", "Answer", "Done", "Cancel"),
    *("Edit arguments", "Approve always"),
}
OURS = re.compile(r"<@[UW][A-Z0-9]+>|<!subteam\^S[A-Z0-9]+>|<#C[A-Z0-9]+>|<!date\^\d+\^[^<>|]+\|[^<>|]+>")
"""The only markup that a card has: mentions of people who did something, of a place, and dates."""

URL = "https://a-work-of-ours.slack.com/archives/C0123456789/p1700000000000100?thread_ts=1700000000.000100&cid=C0123456789"


def views(gate: Gate) -> list[dict]:
    """Every modal that may be opened on a gate."""
    found = [modals.full(gate, page) for page in (0, 1, 10_000)]
    if gate.decision:
        return [*found, modals.settled(gate)]
    if gate.doc.kind is Kind.QUESTION:
        drafts = [load_draft(gate, stored) for stored in [None, *list(gate.drafts.values())[:2]]]
        found += [modals.form(gate, draft) for draft in drafts]
        found += [modals.other(gate, number, entry) for number, entry in enumerate(drafts[-1].entries)]
        return [*found, modals.response(gate), modals.decline(gate)]
    found.append(modals.decline(gate))
    match gate.doc.kind:
        case Kind.CUSTOM:
            return [*found, modals.answer(gate)]
        case Kind.FORM:
            return [*found, form_modal(gate)]
        case Kind.LINK:
            return found
    found += [approval_modals.reason(gate, verb, "d" * 64) for verb in (c.APPROVE, c.REJECT_REASON)]
    if editor_text(gate) is not None:
        found.append(approval_modals.edit(gate))
    return found if saves_too_much(gate) else [*found, approval_modals.always(gate, "d" * 64)]


def check_card(run: Run, parts: list[tuple[int, ...]]) -> None:
    for message in render(run, parts):
        assert check_message({"text": message.text, "blocks": message.blocks}, update=True) == []
        assert weight(message.blocks) <= MESSAGE_BYTES
        assert "<" not in message.text
        check_markup(message.blocks)


def check_markup(surface: object) -> None:
    """No markup but ours."""
    for text in typed(surface, "mrkdwn"):
        assert not set("<>") & set(OURS.sub("", text["text"])), text["text"]


@few
@given(runs(), texts(4096))
def test_a_card_is_legal_in_every_state_of_its_run(run: Run, text: str) -> None:
    parts = pack(run)
    for state in states(run, text):
        check_card(state, parts)


@few
@given(runs(), texts(3000))
def test_every_modal_is_legal_in_every_state_of_its_gate(run: Run, text: str) -> None:
    for state in islice(states(with_gates(run, list(run.gates[:1])), text), 3):
        for gate in state.gates:
            for view in views(gate):
                assert check_view(view) == []
                check_markup(view)


@few
@given(runs(), texts(9000))
def test_offers_and_messages_about_all_that_waits_are_legal(run: Run, text: str) -> None:
    open_ones = [item for gate in run.gates for item in open_questions(gate)]
    waiting = [Waiting(run, gate, URL if gate.doc.index % 2 else None) for gate in run.gates[:10]]
    for blocks in (
        offer_blocks(text, open_ones, "1700000000.000100 1700000001.000200 0123456789abcdef", "Ours"),
        digest_blocks("6 gates wait for you", waiting, ["And 3 more"]),
    ):
        assert check_message({"text": "ours", "blocks": blocks}) == []
        assert weight(blocks) <= MESSAGE_BYTES
        check_markup(blocks)


@few
@given(runs())
def test_a_copy_that_leads_back_is_legal(run: Run) -> None:
    for message in render(run, pack(run), link=URL):
        assert check_message({"text": message.text, "blocks": message.blocks}) == []
        assert weight(message.blocks) <= MESSAGE_BYTES


@few
@given(runs(), texts(300))
def test_the_parts_cover_each_gate_once_in_order_and_stay_the_same_whatever_people_do(
    run: Run, text: str
) -> None:
    parts = pack(run)
    assert [index for part in parts for index in part] == list(range(len(run.gates)))
    assert [message.gates for message in render(run, parts)] == parts
    assert all(pack(state) == parts for state in states(run, text))


def test_the_largest_run_is_legal_before_and_after() -> None:
    ask = question_call("q")["args"]
    calls = [{"tool_call_id": f"q{n}", "tool_name": "ask_user_question", "args": ask} for n in range(64)]
    run = stored(body(calls, [approval(f"a{n}", reason="<" * 4096) for n in range(64)]))
    parts = pack(run)
    assert sum(map(len, parts)) == 128
    for state in islice(states(run, "&" * 4096), 5):
        check_card(state, parts)


def full_question(char: str, number: int) -> dict:
    options = [
        {"label": f"{char * 255}{n}", "description": char * 4096, "markdown": char * 2000} for n in range(4)
    ]
    return {
        "question": f"{char * 8191}{number}",
        "header": char * 12,
        "options": options,
        "multiSelect": number % 2 == 0,
    }


@pytest.mark.parametrize(
    ("char", "count"),
    [*((char, 1) for char in ("a", "&", "漢", "😀", "\u202e", "\U000e0041", '"')), ("😀", 3), ("\u202e", 3)],
)
def test_every_text_at_its_bound_is_legal_in_every_state(char: str, count: int) -> None:
    calls = [question_call(f"q{n}", *(full_question(char, n) for n in range(4))) for n in range(count)]
    call = {"tool_name": char * 256, "reason": char * 4096, "args": {char * 300: char * 9000}}
    policy = {"approvers": ["anyone"], "quorum": 32, "reject_quorum": 32, "reason": "always", "edits": True}
    for pending in ((calls, []), ([], [approval(f"a{n}") | call for n in range(count)])):
        run = stored(body(*pending, title=char * 150, policy=policy))
        parts = pack(run)
        for state in states(run, char * 4096):
            check_card(state, parts)
        for gate in (touched(run.gates[0], char * 3000), settled(run.gates[0], Outcome.EXPIRED, char * 4096)):
            for view in views(gate):
                assert check_view(view) == []


def largest_form(char: str) -> dict:
    """32 menus of 64 options each, with every option of it chosen at first."""
    options = [{"value": f"{n}", "label": f"{char * 30}{n}"} for n in range(64)]
    every = [option["value"] for option in options]
    texts = {"label": char * 8192, "description": char * 8192}
    field = {"kind": "multi_select", "options": options, "default": every, **texts}
    fields = [{"name": f"f{number}", **field} for number in range(32)]
    return {"title": char * 8192, "body": char * 8192, "fields": fields}


@pytest.mark.parametrize("char", ["a", '"', "漢", "\u202e"])
def test_the_largest_form_is_one_legal_modal_and_a_legal_card(char: str) -> None:
    call = {"tool_call_id": "f", "kind": "form", "tool_name": char * 256, "form": largest_form(char)}
    run = stored(body([call]))
    view = form_modal(run.gates[0])
    assert check_view(view) == []
    assert len(typed(view, "multi_static_select")) == 32
    assert all(len(menu["options"]) == 64 for menu in typed(view, "multi_static_select"))
    for state in (run, with_gates(run, [settled(run.gates[0], Outcome.ANSWERED, char)])):
        check_card(state, pack(run))


def test_small_gates_share_a_message() -> None:
    run = stored(body([question_call()], [approval("a1"), approval("a2")]))
    assert pack(run) == [(0, 1, 2)]


def test_a_megabyte_of_arguments_is_legal_and_paged() -> None:
    run = stored(body([], [approval(args={"text": "<script>\n" * 110_000})]))
    check_card(run, pack(run))
    gate = run.gates[0]
    for page in (0, 1, 200):
        assert check_view(modals.full(gate, page)) == []


@few
@given(runs(), texts(200))
def test_controls_carry_ids_that_read_back_and_indexes_for_values(run: Run, text: str) -> None:
    for state in states(run, text):
        for message in card(state):
            for block in typed(message.blocks, "actions"):
                for element in block["elements"]:
                    control = c.control({**element, "block_id": block["block_id"]})
                    assert control.gate in {gate.id for gate in state.gates}
                    assert c.ANY.fullmatch(element["action_id"])
                    values = [option["value"] for option in element.get("options", ())]
                    assert values == [str(index) for index in range(len(values))]


@few
@given(runs(), texts(200))
def test_the_ids_of_a_pending_gates_blocks_outlast_what_people_pick(run: Run, text: str) -> None:
    untouched, busy, *_ = states(run, text)
    ids = [
        [b["block_id"] for m in card(state) for b in typed(m.blocks, "actions")]
        for state in (untouched, busy)
    ]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0])


@few
@given(runs())
def test_buttons_carry_the_agreed_words_or_an_options_label(run: Run) -> None:
    for surface in [
        *(message.blocks for message in card(run)),
        *(modals.full(gate, 0) for gate in run.gates),
    ]:
        for button in typed(surface, "button"):
            if not button["action_id"].startswith((f"{c.PICK}:", c.OPEN, c.APPROVE_ALL)):
                assert button["text"]["text"].removesuffix("…") in WORDS


@few
@given(runs())
def test_options_that_would_look_alike_are_told_apart(run: Run) -> None:
    for surface in [*(message.blocks for message in card(run)), *map(views, run.gates)]:
        for choices in objects(surface):
            if options := choices.get("options"):
                assert len({look(option["text"]["text"]) for option in options}) == len(options)
        for row in typed(surface, "actions"):
            labels = [b["text"]["text"] for b in row["elements"] if b["action_id"].startswith(f"{c.PICK}:")]
            assert len(set(map(look, labels))) == len(labels)


def test_an_agents_text_stands_in_plain_and_rich_text_only() -> None:
    mark = "<!here>MARK*_~`"
    ask = {
        "question": mark,
        "header": "MARK",
        "options": [{"label": f"{mark}{n}", "description": mark, "markdown": mark} for n in range(2)],
    }
    custom = {"tool_call_id": "c", "tool_name": mark, "args": {mark: mark}}
    asked = approval("a", reason=mark, risk="high") | {"tool_name": mark, "args": {mark: [mark]}}
    run = stored(body([question_call(f"MARK{mark}", ask), custom], [asked], title=mark, external_id=mark))
    seen = 0
    for state in states(run, mark):
        for message in card(state):
            assert "MARK" not in "".join(text["text"] for text in typed(message.blocks, "mrkdwn"))
            assert "<" not in message.text
            seen += "MARK" in str(message.blocks)
        for view in [view for gate in state.gates for view in views(gate)]:
            assert "MARK" not in "".join(text["text"] for text in typed(view, "mrkdwn"))
            assert "MARK" not in view["title"]["text"] + view["private_metadata"]
            assert not any("MARK" in (found.get("block_id") or "") for found in objects(view))
            seen += "MARK" in str(view)
    assert seen > 50


def test_a_refusals_words_make_a_legal_modal() -> None:
    assert check_view(modals.refusal(words.NOT_ALLOWED)) == []
    assert buttons(modals.refusal(words.NOT_ALLOWED)) == {}
