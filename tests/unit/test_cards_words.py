"""What a card says: who asks, what is picked and by whom, who settled it, how and when."""

from __future__ import annotations

import pytest

from bot import words
from bot.cards import approval_modals, modals
from bot.cards.card import pack, render
from bot.cards.drafts import Draft, Entry
from bot.cards.settled import settled_line
from core.gates import Action, Gate, Kind, Outcome
from core.policy import Key, Person
from core.runs import Run
from tests.runs import approval, ask, body, option, question_call
from tests.unit.cards import (
    NOW,
    buttons,
    card,
    code_of,
    objects,
    outcomes,
    read_back,
    said,
    settled,
    stored,
    typed,
    vote,
    with_gates,
)

ANA, BEN, CHO = (Person(team="T1", user=f"U{number}") for number in (1, 2, 3))
SETTLED = {
    Outcome.ANSWERED: "*Answered* by <@U1>",
    Outcome.APPROVED: "*Approved* by <@U1>",
    Outcome.DENIED: "*Rejected* by <@U1>",
    Outcome.DECLINED: "*Declined* by <@U1>",
    Outcome.EXPIRED: "*Expired*: nobody decided in time",
    Outcome.CANCELLED: "*Cancelled*: nobody decided",
    Outcome.UNDELIVERABLE: "*Undeliverable*: nobody could be asked",
    Outcome.SUPERSEDED: "*Superseded*: it was settled elsewhere",
}


def three() -> Run:
    """Three questions in one call: single, multi, single."""
    folders = ask("Which folders?", "build", "cache", "logs", multi=True, header="Folders")
    return stored(body([question_call("q", ask(), folders, ask("Report?", "Yes", "No", header="Report"))]))


def drafted(run: Run, **drafts: list[Entry]) -> Run:
    kept = {f"T1:{user}": Draft(tuple(entries)).dump() for user, entries in drafts.items()}
    return with_gates(run, [run.gates[0].model_copy(update={"drafts": kept})])


def only(run: Run) -> list[dict]:
    """The blocks of a card of one message."""
    (message,) = card(run)
    return message.blocks


def ended(run: Run, outcome: Outcome, text: str = "", *voters: Person | Key) -> Run:
    return with_gates(run, [settled(run.gates[0], outcome, text, list(voters))])


# who asks


def test_a_card_says_who_asks_for_whom_and_until_when() -> None:
    run = stored(body(title="Nightly clean-up", requester={"team": "T1", "user": "U7"}, host="looprig"))
    assert only(run)[0]["text"]["text"] == "Nightly clean-up"
    assert f"Asked by agent `{'k' * 64}` (looprig) · for <@U7> · Open until <!date^" in said(only(run))
    assert str((NOW + 3_600_000) // 1000) in said(only(run))


@pytest.mark.parametrize("title", [None, "   ", ""])
def test_a_run_without_a_title_gets_one(title: str | None) -> None:
    assert only(stored(body(title=title)))[0]["text"]["text"] == words.DEFAULT_TITLE


def test_a_title_in_any_script_stands_in_full_and_on_one_line() -> None:
    title = "夜間の掃除\n" * 25
    assert only(stored(body(title=title)))[0]["text"]["text"] == " ".join(title.split())


def test_later_messages_of_a_card_say_what_they_go_on_with() -> None:
    gates = [approval(f"a{number}", args={"text": "x" * 2000}) for number in range(8)]
    first, second, *more = card(stored(body([], gates, title="Batch")))
    count = 2 + len(more)
    assert said(second.blocks).startswith(f"Batch (continued, 2 of {count})")
    assert "continued" not in said(first.blocks)


def test_the_notification_names_the_run_what_is_open_and_what_is_asked() -> None:
    run = stored(body([], [approval("a"), approval("b")], title="Tom & <Jerry>"))
    asked = "Approval needed: delete_file"
    assert card(run)[0].text == f"Tom &amp; &lt;Jerry&gt;: 2 of 2 open. {asked}"
    half = with_gates(run, [settled(run.gates[0], Outcome.EXPIRED, ""), run.gates[1]])
    assert card(half)[0].text == f"Tom &amp; &lt;Jerry&gt;: 1 of 2 open. {asked}"
    assert card(stored(body()))[0].text.endswith("waiting for you. Scope: Which scope should be used?")


# questions


def test_a_lone_question_offers_its_options_as_buttons_and_no_submit() -> None:
    blocks = only(stored(body()))
    assert list(buttons(blocks)) == ["Focused", "Broad", "Other…", "General response…", "Decline…"]
    assert [button["action_id"] for button in typed(blocks, "button")][:2] == ["pick:0", "pick:1"]


def test_a_lone_multi_select_has_a_menu_and_submit_beside_it() -> None:
    blocks = only(stored(body([question_call("q", ask(multi=True))])))
    row = typed(blocks, "actions")[0]
    assert [e["type"] for e in row["elements"]] == ["multi_static_select", "button", "button"]
    assert list(buttons(row)) == ["Submit", "Other…"]


def test_several_questions_have_one_submit_and_a_form_and_each_its_controls_below_its_text() -> None:
    blocks = only(three())
    kinds = [block["type"] for block in blocks]
    assert kinds == ["header", "context", "divider", *["rich_text", "actions"] * 3, "actions"]
    assert list(buttons(blocks[-1])) == ["Submit", "Answer in a form…", "General response…", "Decline…"]
    assert list(buttons(blocks)).count("Submit") == 1


def test_what_is_picked_so_far_stands_at_each_question_with_names_and_progress_below() -> None:
    run = drafted(
        three(),
        U2=[Entry((1,)), Entry((0, 2)), Entry()],
        U1=[Entry(other="Neither <!here>"), Entry(), Entry()],
    )
    blocks = only(run)
    scope, folders, report = typed(blocks, "rich_text")
    assert said(scope["elements"][-1]) == "Picked so far: \n Neither <!here>\n · \n Broad"
    assert [found["user_id"] for found in typed(scope, "user")] == ["U1", "U2"]
    assert "build, logs" in said(folders)
    assert "Picked" not in said(report)
    assert "<@U1>: 1 of 3 · <@U2>: 2 of 3 answered, not submitted yet" in said(blocks)


def test_a_crowd_of_drafts_is_counted() -> None:
    crowd = {f"U{number:02d}": [Entry((0,)), Entry(), Entry()] for number in range(20)}
    blocks = only(drafted(three(), **crowd))
    assert said(blocks).count(" and 17 more") == 2
    assert len(typed(blocks, "user")) == 3


def test_the_same_drafts_give_the_same_card_in_whatever_order_they_are_stored() -> None:
    one = drafted(three(), U1=[Entry((0,))] * 3, U2=[Entry((1,))] * 3)
    other = drafted(three(), U2=[Entry((1,))] * 3, U1=[Entry((0,))] * 3)
    assert only(one) == only(other)


def test_labels_that_differ_by_what_nobody_sees_are_numbered_in_the_list_and_on_the_buttons() -> None:
    blocks = only(stored(body([question_call("q", ask("Which?", "a b", "a\u00a0b"))])))
    assert list(buttons(blocks))[:2] == ["1. a b", "2. a b"]
    assert typed(blocks, "rich_text_list")[0]["style"] == "ordered"


def test_labels_that_a_crowded_list_cuts_alike_are_numbered_there_and_in_the_menu() -> None:
    labels = [f"{'L' * 40}{number}" for number in range(4)]
    crowd = [ask(f"{'Why? ' * 200}{number}", *labels) for number in range(4)]
    run = stored(body([question_call(f"q{number}", *crowd) for number in range(3)]))
    blocks = card(run)[0].blocks
    shown = typed(blocks, "rich_text_list")[0]
    assert labels[0] not in said(shown)
    assert shown["style"] == "ordered"
    menu = typed(blocks, "static_select")[0]
    assert [choice["text"]["text"] for choice in menu["options"]] == [
        f"{n}. {text}" for n, text in enumerate(labels, 1)
    ]


def test_labels_that_differ_are_not_numbered() -> None:
    long = ["The first of two rather long labels", "The second of two rather long labels"]
    menu = typed(only(stored(body([question_call("q", ask("Which?", *long))]))), "static_select")[0]
    assert [choice["text"]["text"] for choice in menu["options"]] == long


def test_a_short_description_leaves_its_room_to_a_long_one() -> None:
    call = question_call("q", ask() | {"options": [option("A", "short"), option("B", "long " * 800)]})
    assert "long " * 500 in said(only(stored(body([call]))))


# approvals


def test_an_approval_shows_the_tool_the_reason_the_risk_and_the_digest() -> None:
    run = stored(body([], [approval("a", reason="Disk is 97% full", risk="high")]))
    text = said(only(run))
    digest = str(run.gates[0].doc.args_digest)[:8]
    for part in ("delete_file", "Disk is 97% full", '"path": "/tmp/old.log"', "Risk: *high*", f"`{digest}`"):
        assert part in text
    assert list(buttons(only(run))) == ["Approve", "Reject", "Reject with reason…"]


@pytest.mark.parametrize(
    ("wanted", "row", "fact"),
    [
        ("never", ["Approve", "Reject", "Reject with reason…"], ""),
        ("on_reject", ["Approve", "Reject with reason…"], "Rejecting needs a reason"),
        ("always", ["Approve…", "Reject with reason…"], "A reason is required"),
    ],
)
def test_a_wanted_reason_is_announced_and_its_buttons_have_dots(
    wanted: str, row: list[str], fact: str
) -> None:
    blocks = only(stored(body([], [approval("a")], policy={"approvers": ["U1"], "reason": wanted})))
    assert list(buttons(blocks)) == row
    assert fact in said(blocks)


def test_a_quorum_shows_how_many_and_who_for_and_against() -> None:
    policy = {"approvers": ["anyone"], "quorum": 2, "reject_quorum": 2}
    run = stored(body([], [approval("a")], policy=policy))
    assert "0 of 2 approvals" in said(only(run))
    assert "rejections" not in said(only(run))
    votes = (vote(Action.APPROVE, ANA), vote(Action.DENY, BEN))
    voted = with_gates(run, [run.gates[0].model_copy(update={"votes": votes})])
    assert "1 of 2 approvals: <@U1> · 1 of 2 rejections: <@U2>" in said(only(voted))


APPROVERS = ["U1", "T2:U9", "S1", "channel", "anyone", "key:ci"]


def test_an_approval_names_its_approvers() -> None:
    run = stored(body([], [approval("a")], policy={"approvers": APPROVERS}))
    named = (
        "<@U1>, <@U9>, <!subteam^S1>, members of the channel it was asked in, "
        "anyone in this workspace, API key `ci`"
    )
    assert f"Approvers: {named} · " in said(only(run))
    assert "Approvers" not in said(only(ended(run, Outcome.APPROVED, "", ANA)))


def test_a_crowd_of_approvers_is_counted() -> None:
    crowd = [f"U{number:031d}" for number in range(200)]
    text = said(only(stored(body([], [approval("a")], policy={"approvers": crowd}))))
    shown = text.count("<@U")
    assert 5 < shown < 20
    assert f" and {200 - shown} more" in text


def test_long_arguments_take_about_fifteen_lines_of_the_channel_and_short_ones_stand_whole() -> None:
    long = only(stored(body([], [approval("a", args={f"row_{n}": n for n in range(60)})])))
    assert code_of(long).count("\n") == 14
    assert '"row_13": 13' in code_of(long)
    assert "Approve" not in buttons(long)
    assert "View in full…" in buttons(long)
    wide = only(stored(body([], [approval("a", args={"text": "x" * 5000})])))
    assert 1300 < len(code_of(wide)) < 1600
    short = only(stored(body([], [approval("a", args={f"row_{n}": n for n in range(30)})])))
    assert read_back(code_of(short)) == {f"row_{n}": n for n in range(30)}
    assert "Approve" in buttons(short)


# settled


def runs_of_each_kind() -> list[Run]:
    custom = {"tool_call_id": "c", "tool_name": "fill_in", "args": {"form": 7}}
    return [three(), stored(body([], [approval("a")])), stored(body([custom]))]


@pytest.mark.parametrize("run", runs_of_each_kind(), ids=["question", "approval", "custom"])
def test_a_settled_card_has_no_controls_and_says_how_by_whom_and_when(run: Run) -> None:
    for outcome in outcomes(run.gates[0]):
        done = ended(run, outcome, "a word", ANA)
        for surface in (only(done), modals.settled(done.gates[0])):
            assert typed(surface, "actions", "button", "input", "static_select", "multi_static_select") == []
            foot = typed(surface, "context")[-1]
            assert SETTLED[outcome] in said(foot)
            assert f"<!date^{NOW // 1000}^" in said(foot)
        assert card(done)[0].text.endswith(": settled")
        assert "Open until" not in said(only(done))


def test_nobody_is_named_for_what_nobody_did() -> None:
    for run in runs_of_each_kind():
        for outcome in (Outcome.EXPIRED, Outcome.CANCELLED, Outcome.UNDELIVERABLE, Outcome.SUPERSEDED):
            blocks = only(ended(run, outcome, "why"))
            assert "<@" not in said(blocks)
            assert "why" in said(blocks)


def test_a_quorums_result_names_everybody_and_an_api_key_by_its_name() -> None:
    policy = {"approvers": ["anyone"], "quorum": 3}
    run = stored(body([], [approval("a")], policy=policy))
    text = said(only(ended(run, Outcome.APPROVED, "", ANA, BEN, CHO)))
    assert "*Approved* by <@U1>, <@U2>, <@U3> · " in text
    assert "*Approved* by API key `ci` · " in said(only(ended(run, Outcome.APPROVED, "", Key(key="ci"))))


def test_what_was_approved_and_why_it_was_rejected_stay_readable() -> None:
    run = stored(body([], [approval("a")]))
    text = said(only(ended(run, Outcome.DENIED, "wrong file <!here>", ANA)))
    assert '"path": "/tmp/old.log"' in text
    assert "Reason: \nwrong file <!here>" in text


def test_each_rejecters_reason_stands_behind_their_name() -> None:
    policy = {"approvers": ["anyone"], "reject_quorum": 2}
    blocks = only(ended(stored(body([], [approval("a")], policy=policy)), Outcome.DENIED, "no", ANA, BEN))
    assert [found["user_id"] for found in typed(blocks, "user")] == ["U1", "U2"]
    assert said(typed(blocks, "rich_text")).count(": \nno") == 2


def test_an_answered_card_shows_the_answer_of_each_question_and_the_general_response() -> None:
    run = three()
    values = {
        "answers": {"Which scope should be used?": "Broad", "Which folders?": ["build", "logs"]},
        "response": "Go",
    }
    gate = settled(run.gates[0], Outcome.ANSWERED, "x", [ANA])
    decision = gate.decision.model_copy(update={"values": values})
    lines = said(only(with_gates(run, [gate.model_copy(update={"decision": decision})])))
    for line in (
        "Scope: \nWhich scope should be used?\n→ \nBroad\nNot taken: \nFocused",
        "Folders: \nWhich folders?\n→ \nbuild, logs\nNot taken: \ncache",
        "Report: \nReport?\nNot taken: \nYes, No",
        "General response: \nGo",
    ):
        assert line in lines


def test_a_question_that_nobody_answered_keeps_its_header_and_its_options() -> None:
    text = said(only(ended(stored(body()), Outcome.EXPIRED)))
    assert "Scope: \nWhich scope should be used?\nOptions: \nFocused, Broad" in text
    assert "Not taken" not in text


def test_a_lone_settled_gate_gives_a_long_answer_more_room_than_one_of_many() -> None:
    custom = [{"tool_call_id": f"c{n}", "tool_name": "fill_in", "args": {}} for n in range(8)]
    one, many = stored(body(custom[:1])), stored(body(custom))
    alone = render(ended(one, Outcome.DECLINED, "w" * 4000, ANA), pack(one))[0]
    crowd = with_gates(many, [settled(gate, Outcome.DECLINED, "w" * 4000, [ANA]) for gate in many.gates])
    assert said(alone.blocks).count("w") > 2 * said(render(crowd, pack(many))[0].blocks).count("w") / 8


def test_a_pending_gate_keeps_its_controls_beside_a_settled_one() -> None:
    run = stored(body([question_call()], [approval("a")]))
    blocks = only(with_gates(run, [settled(run.gates[0], Outcome.EXPIRED, ""), run.gates[1]]))
    assert list(buttons(blocks)) == ["Approve", "Reject", "Reject with reason…"]
    assert "*Expired*" in said(blocks)


# modals


def test_a_form_starts_with_the_draft_whole_and_line_by_line() -> None:
    run = three()
    text = "漢" * 2999 + "\n"
    form = modals.form(run.gates[0], Draft((Entry((1,)), Entry((0, 2)), Entry(other=text))))
    radio, boxes = typed(form, "radio_buttons")[0], typed(form, "checkboxes")[0]
    assert radio["initial_option"]["text"]["text"] == "Broad"
    assert [choice["value"] for choice in boxes["initial_options"]] == ["0", "2"]
    inputs = [found for found in typed(form, "plain_text_input") if "initial_value" in found]
    assert [(found["initial_value"], found["multiline"]) for found in inputs] == [(text, True)]


def test_each_modal_names_what_it_is_for_and_what_its_button_does() -> None:
    question, approving, custom = (run.gates[0] for run in runs_of_each_kind())
    found = {
        "Another answer": (modals.other(question, 0, Entry()), "Submit"),
        "General response": (modals.response(question), "Submit"),
        "Decline to answer": (modals.decline(question), "Decline"),
        "Answer in a form": (modals.form(question, Draft((Entry(),) * 3)), "Submit"),
        "Reject with reason": (approval_modals.reason(approving, "reject_reason", "d"), "Reject"),
        "Approve with reason": (approval_modals.reason(approving, "approve", "d"), "Approve"),
        "Answer": (modals.answer(custom), "Submit"),
    }
    for title, (view, submit) in found.items():
        assert (view["title"]["text"], view["submit"]["text"]) == (title, submit)
        assert view["private_metadata"].count("gate_07") == 1


def test_a_gate_that_is_pending_has_no_settled_line() -> None:
    gate: Gate = stored(body()).gates[0]
    assert gate.doc.kind is Kind.QUESTION
    with pytest.raises(ValueError, match="is pending"):
        settled_line(gate)


def test_every_outcome_has_a_sign_and_a_word() -> None:
    assert set(words.SIGNS) == set(words.SETTLED) == set(Outcome)
    assert all(
        found.get("emoji") is False for found in objects(only(three())) if found.get("type") == "plain_text"
    )
