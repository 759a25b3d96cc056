"""All that a person decides on can be read in full, and Approve waits until it has been."""

from __future__ import annotations

from hypothesis import given

from bot.cards import controls as c
from bot.cards import modals
from bot.cards.arguments import arguments
from bot.cards.controls import Where
from bot.cards.drafts import load_draft
from bot.cards.limits import check_view
from bot.cards.link import address, link_of
from bot.cards.text import one_line, visible
from core.gates import Gate, Kind, Outcome
from core.runs import Run
from tests.runs import Json, approval, ask, body, form_call, option, question_call
from tests.unit.cards import (
    buttons,
    card,
    code_of,
    edited,
    few,
    objects,
    read_back,
    runs,
    said,
    settled,
    stored,
    typed,
    written,
)


def all_pages(gate: Gate) -> list[Json]:
    """What a person sees who opens "View in full" and presses Next until there is none."""
    found = [modals.full(gate, 0)]
    while following := buttons(found[-1]).get("Next"):
        found.append(modals.full(gate, int(following["action_id"].partition(":")[2])))
    return found


def lone(**more: object) -> Gate:
    return stored(body([], [approval("a", **more)])).gates[0]


def alone(run: Run, gate: Gate) -> Run:
    """A run of this gate only."""
    first = gate.model_copy(update={"doc": gate.doc.model_copy(update={"index": 0})})
    return run.model_copy(update={"gates": (first,)})


@few
@given(runs())
def test_the_pages_of_a_call_join_to_exactly_its_arguments_or_its_address(run: Run) -> None:
    for gate in run.gates[:3]:
        for seen in (gate, edited(gate, {"to": "<@U1>\n" * 900})):
            if gate.doc.kind in (Kind.APPROVAL, Kind.CUSTOM):
                shown = "".join(code_of(page) for page in all_pages(seen))
                assert shown == arguments(seen)
                assert read_back(shown) == seen.arguments
            elif gate.doc.kind is Kind.LINK:
                assert "".join(code_of(page) for page in all_pages(gate)) == address(link_of(gate))


@few
@given(runs())
def test_the_pages_of_a_question_hold_every_text_of_it_in_order(run: Run) -> None:
    for gate in run.gates[:2]:
        if gate.doc.kind is Kind.QUESTION:
            everything, at = "".join(written(page, "text") for page in all_pages(gate)), 0
            for question in gate.asks.questions:
                given = [question.header, question.question]
                for choice in question.options:
                    given += [choice.label, choice.description, choice.markdown or ""]
                for text in given:
                    at = everything.index(visible(text), at) + len(visible(text))


def test_a_short_question_is_a_heading_and_a_long_one_a_text() -> None:
    for asked, heading in (("Why?", "Scope: Why?"), ("Why? " * 100, "Scope:")):
        gate = stored(body([question_call("q", ask(asked.strip()))])).gates[0]
        bold = [
            found["text"] for found in objects(modals.full(gate, 0)) if found.get("style") == {"bold": True}
        ]
        assert bold == [heading, "1. Focused", "2. Broad"]


@few
@given(runs())
def test_the_pages_of_a_form_hold_every_text_of_it_in_order(run: Run) -> None:
    for gate in run.gates[:2]:
        if form := gate.doc.form:
            everything, at = "".join(written(page, "text") for page in all_pages(gate)), 0
            given = [form.title.strip() or gate.doc.tool_name, form.body.strip()]
            for field in form.all_fields:
                given += [field.shown, field.description.strip(), *(o.shown for o in field.options)]
            for text in given:
                at = everything.index(visible(text), at) + len(visible(text))


@few
@given(runs())
def test_the_reason_of_an_approval_is_there_in_full(run: Run) -> None:
    for gate in run.gates[:3]:
        if gate.doc.reason:
            quoted = "".join(written(typed(page, "rich_text_quote"), "text") for page in all_pages(gate))
            assert quoted == visible(gate.doc.reason)


@few
@given(runs())
def test_approve_stands_only_where_the_full_arguments_do(run: Run) -> None:
    for gate in run.gates[:3]:
        blocks, pages = card(alone(run, gate))[0].blocks, all_pages(gate)
        approves = (c.APPROVE, c.ALWAYS)
        approving = [any(b["action_id"] in approves for b in typed(page, "button")) for page in pages]
        if gate.doc.kind is not Kind.APPROVAL:
            assert not any(approving)
            continue
        assert approving == [False] * (len(pages) - 1) + [True]
        tool = visible(gate.doc.tool_name)
        assert all(tool in said(page) for page in pages)
        on_card = {b["value"] for b in typed(blocks, "button") if b["action_id"] in approves}
        named = [found["text"] for found in objects(blocks) if found.get("style") == {"code": True}]
        whole = code_of(blocks) == arguments(gate) and named == [tool]
        assert on_card == ({gate.digest} if whole else set())
        assert whole or "View in full…" in buttons(blocks)


@few
@given(runs())
def test_a_card_that_cuts_anything_offers_the_whole(run: Run) -> None:
    for gate in run.gates[:3]:
        blocks = card(alone(run, gate))[0].blocks
        given = [gate.doc.reason or ""]
        if gate.doc.kind is Kind.QUESTION:
            for question in gate.asks.questions:
                given += [question.question, *(choice.label for choice in question.options)]
                given += [choice.description for choice in question.options]
        else:
            given += texts_of(gate)
        if any(visible(text).strip() not in said(blocks) for text in given):
            assert "View in full…" in buttons(blocks)


def texts_of(gate: Gate) -> list[str]:
    """What the card of a gate that is no question has to show, or else to offer in full."""
    if form := gate.doc.form:
        labels = [one_line(visible(field.shown)) for field in form.all_fields]
        descriptions = [field.description.strip() for field in form.all_fields]
        return [form.title.strip(), form.body.strip(), *labels, *descriptions]
    if link := gate.doc.link:
        return [link.title.strip(), link.body.strip(), address(link)]
    return [arguments(gate), gate.doc.tool_name]


def test_a_script_is_read_line_by_line_and_no_line_passes_for_an_argument() -> None:
    gate = lone(args={"path": "/etc", "script": 'set -e\n",\n  "path": "/tmp"\nrm x\n', "dry_run": False})
    assert arguments(gate).split("\n") == [
        "{",
        '  "path": "/etc",',
        '  "script":',
        '    "set -e\\n"',
        '    "\\",\\n"',
        '    "  \\"path\\": \\"/tmp\\"\\n"',
        '    "rm x\\n",',
        '  "dry_run": false',
        "}",
    ]
    assert read_back(arguments(gate)) == gate.doc.arguments


def test_a_short_list_stands_in_one_line_and_a_long_one_does_not() -> None:
    gate = lone(
        args={"few": ["a", 1, None], "none": [], "many": ["word"] * 20, "deep": [[1]], "text": ["a\nb"]}
    )
    shown = arguments(gate)
    assert '"few": ["a", 1, null]' in shown
    assert '"none": []' in shown
    assert shown.count('"word"') == shown.count('\n    "word"') == 20
    assert read_back(shown) == gate.doc.arguments


def test_the_beginning_of_arguments_is_the_beginning_of_all_of_them() -> None:
    gate = lone(args={"rows": [{"id": n, "text": "x\ny"} for n in range(50)]})
    for most in (0, 1, 17, 300):
        assert arguments(gate).startswith(arguments(gate, most))
        assert len(arguments(gate, most)) == most + 1
    assert arguments(gate, 10**6) == arguments(gate)


def test_a_long_approval_is_approved_on_its_last_page() -> None:
    gate = lone(args={"text": "line\n" * 9000}, risk="high")
    blocks = card(stored(body([], [approval("a", args={"text": "line\n" * 9000})])))[0].blocks
    assert list(buttons(blocks)) == ["View in full…", "Reject", "Reject with reason…"]
    pages = all_pages(gate)
    assert len(pages) > 2
    last = str(len(pages) - 1)
    assert list(buttons(pages[0])) == ["Next", "Last page"]
    assert buttons(pages[0])["Last page"]["action_id"].endswith(f":{last}")
    assert list(buttons(pages[1])) == ["Previous", "Next", *(["Last page"] if len(pages) > 3 else [])]
    assert list(buttons(pages[-2])) == ["Previous", "Next"]
    assert list(buttons(pages[-1])) == ["Previous", "Approve", "Reject", "Reject with reason…"]
    assert [f"Page {n} of {len(pages)}" in said(page) for n, page in enumerate(pages, start=1)] == [
        True
    ] * len(pages)
    assert Where.load(pages[1]["private_metadata"]).page == 1


def test_a_settled_gate_can_still_be_read_and_no_longer_approved() -> None:
    gate = settled(lone(), Outcome.EXPIRED, "")
    assert list(buttons(modals.full(gate, 0))) == []
    assert "*Expired*: nobody decided in time" in said(modals.full(gate, 0))


def test_a_form_tells_a_long_question_before_its_field_and_a_short_one_in_it() -> None:
    long = ask("Why? " * 400) | {"options": [option("L" * 256), option("M", "d" * 4096)]}
    gate = stored(body([question_call("q", long, ask())])).gates[0]
    form = modals.form(gate, load_draft(gate, None))
    assert "d" * 2000 in said(form)
    assert "L" * 256 in said(form)
    assert "Why? " * 399 + "Why?" in said(form)
    short = modals.form(stored(body()).gates[0], load_draft(stored(body()).gates[0], None))
    assert typed(short, "rich_text") == []


def test_many_short_texts_take_as_many_pages_as_slacks_blocks_want() -> None:
    options = [{"value": f"{n}", "label": f"option {n}"} for n in range(12)]
    fields = [
        {"name": f"f{n}", "kind": "select", "label": f"Field {n}", "options": options} for n in range(32)
    ]
    form = stored(body([form_call("f", *fields)])).gates[0]
    before, after = ({f"key-{n}": when for n in range(300)} for when in ("old", "new"))
    call = stored(body([], [approval("a", args=before)], policy={"approvers": ["U1"], "edits": True})).gates[
        0
    ]
    for gate in (form, edited(call, after)):
        pages = all_pages(gate)
        assert len(pages) >= 3
        assert all(check_view(page) == [] for page in pages)


def test_a_preview_is_monospaced_and_announced_on_the_card() -> None:
    table = "a | b\n--+--\n1 | 2"
    run = stored(body([question_call("q", ask() | {"options": [option("A", markdown=table), option("B")]})]))
    assert code_of(modals.full(run.gates[0], 0)) == table
    blocks = card(run)[0].blocks
    assert "View in full…" in buttons(blocks)
    assert "previews" in said(blocks)
    assert "cut here" not in said(blocks)


def test_labels_longer_than_a_menu_shows_stand_in_full_above_it() -> None:
    labels = ["same " * 50 + "one", "same " * 50 + "two"]
    blocks = card(stored(body([question_call("q", ask("Which?", *labels))])))[0].blocks
    assert all(label in said(blocks) for label in labels)
    menu = typed(blocks, "static_select")[0]
    assert [option["text"]["text"][:3] for option in menu["options"]] == ["1. ", "2. "]
    assert typed(blocks, "rich_text_list")[0]["style"] == "ordered"
