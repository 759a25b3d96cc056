"""looprig: what a gate becomes for people, and the words that go back."""

from __future__ import annotations

from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory

from core.clock import WallClock
from core.hosts.base import Undescribable, Wait
from core.hosts.config import LooprigConfig
from core.hosts.looprig import gates
from core.hosts.looprig.fold import Fold
from core.hosts.looprig.gates import As
from core.hosts.looprig.host import LooprigHost
from core.requests import ApprovalRequest, FormCall, LinkCall
from tests.interop.looprig_gates import ask_user, form, open_url, permission

Json = dict[str, Any]


def facts(gate: Json, request: Json | None = None) -> Json:
    return {"gate": {"id": "g1", **gate}, "request": request}


def asked(gate: Json, request: Json | None = None) -> tuple[As, Any]:
    found = gates.asked(facts(gate, request))
    [call] = [*found.pending.calls, *found.pending.approvals]
    return found.shape, call


def answered(gate: Json, result: Json, request: Json | None = None) -> tuple[str, Json, str | None]:
    given = facts(gate, request)
    return gates.answer({**given, "as": gates.asked(given).shape}, result)


def returned(**value: Any) -> Json:
    return {"status": "returned", "outcome": "answered", "value": value}


# permissions


@pytest.mark.parametrize("name", ["dismiss_request", "bash"])
def test_what_a_tool_is_called_changes_nothing_of_what_is_sent(name: str) -> None:
    request = {"tool_name": name, "command": "ls"}
    shape, call = asked(permission(), request)
    assert (shape, call.tool_name) == (As.APPROVAL, name)
    assert answered(permission(), {"outcome": "approved"}, request)[0] == "Approve"
    assert answered(permission(), {"outcome": "denied"}, request)[0] == "Deny"


@pytest.mark.parametrize("saved", [["x" * 1100], [f"x{number}" for number in range(33)]])
def test_always_is_offered_where_all_that_it_saves_can_be_shown(saved: list[str]) -> None:
    request = {"tool_name": "bash", "command": "ls", "requirements": [{"candidates": []}]}
    request["requirements"][0]["candidates"] = [{"description": item} for item in saved]
    _, call = asked(permission(), request)
    assert (call.tool_name, call.always) == ("bash", None)
    request["requirements"][0]["candidates"] = [{"description": "ls in /tmp"}]
    assert asked(permission(), request)[1].always == ["ls in /tmp"]


def test_a_request_that_cannot_be_shown_leaves_the_prompt_s_text_to_decide_on() -> None:
    shape, call = asked(permission(body="Pay it"), {"tool_name": "pay", "cents": 2**60})
    assert (shape, call.tool_name, call.args) == (As.APPROVAL, "tool call", {"request": "Pay it"})


def test_a_summary_too_long_for_a_reason_is_shown_among_the_arguments() -> None:
    summary = "x" * 5000
    _, call = asked(permission(), {"tool_name": "bash", "command": "ls", "summary": summary})
    assert isinstance(call, ApprovalRequest)
    assert (call.reason, call.args["summary"]) == (None, summary)


# questions


def test_of_choices_that_come_twice_the_first_is_offered() -> None:
    _, call = asked(ask_user("Which?", "A", "B", "A"))
    assert [option.value for option in call.form.fields[0].options] == ["A", "B", "other"]


@pytest.mark.parametrize(
    "choices",
    [[str(number) for number in range(64)], ["x" * 5000, "b"], ["", "b"]],
    ids=["too many", "too long", "empty"],
)
def test_choices_that_no_menu_shows_are_read_and_answered_in_writing(choices: list[str]) -> None:
    gate = ask_user("Which?", *choices)
    shape, call = asked(gate)
    assert (shape, [field.kind for field in call.form.fields]) == (As.WRITTEN, ["text"])
    told = call.form.body + call.form.fields[0].description
    assert all(choice in told for choice in choices)
    for number in (1, 2):
        assert answered(gate, returned(answer=f"#{number}")) == (
            "answer",
            {"answer": choices[number - 1]},
            None,
        )
    assert answered(gate, returned(answer=choices[1])) == ("answer", {"answer": choices[1]}, None)
    for other in ("#0", "#999", "#x", "Neither"):
        assert answered(gate, returned(answer=other)) == ("answer", {"answer": "other"}, other)


@pytest.mark.parametrize("size", [8193, 16_000])
def test_a_question_too_long_for_a_label_is_read_in_full_and_answered(size: int) -> None:
    gate = ask_user("q" * size)
    shape, call = asked(gate)
    assert (shape, call.form.body + call.form.fields[0].description) == (As.WRITTEN, "q" * size)
    assert answered(gate, returned(answer="#1")) == ("answer", {"answer": "#1"}, None)


def test_a_question_that_nobody_can_be_shown_is_no_notice_for_nothing_dismisses_it() -> None:
    with pytest.raises(Undescribable, match="takes nothing but an answer"):
        gates.asked(facts(ask_user("q" * 20_000)))


# forms and links


@pytest.mark.parametrize("kind", ["multi_select", "number", "integer", "slider"])
def test_a_field_that_looprig_takes_no_answer_for_makes_a_notice(kind: str) -> None:
    options = {"options": [{"value": "x", "label": "X"}]} if kind == "multi_select" else {}
    shape, call = asked(form({"name": "a", "kind": kind, **options}))
    assert shape is As.NOTICE
    assert f"its field 'a' is of the kind '{kind}'" in call.reason


@pytest.mark.parametrize(
    ("field", "default"),
    [
        ({"kind": "confirm", "default": "true"}, True),
        ({"kind": "confirm", "default": False}, False),
        ({"kind": "confirm", "default": "maybe"}, None),
        ({"kind": "text", "default": 7}, None),
        ({"kind": "select", "options": [{"value": "x"}], "default": "x"}, "x"),
        ({"kind": "select", "options": [{"value": "x"}], "default": "y"}, None),
    ],
)
def test_a_default_that_does_not_fit_is_left_out(field: Json, default: Any) -> None:
    shape, call = asked(form({"name": "a", **field}))
    assert isinstance(call, FormCall)
    assert (shape, call.form.fields[0].default) == (As.FORM, default)


def test_options_of_one_value_are_one() -> None:
    twice = [{"value": "x", "label": "X"}, {"value": "x", "label": "Y"}]
    _, call = asked(form({"name": "a", "kind": "select", "options": twice}))
    assert [(option.value, option.label) for option in call.form.fields[0].options] == [("x", "X")]


def test_an_origin_is_shown_without_the_slash_behind_it() -> None:
    _, call = asked(open_url("https://example.com/"))
    assert isinstance(call, LinkCall)
    assert call.link.origin == "https://example.com"


# notices


@pytest.mark.parametrize(("controls", "word"), [(("decline",), "decline"), (("decline", "cancel"), "cancel")])
def test_a_notice_says_what_its_controls_allow(controls: tuple[str, ...], word: str) -> None:
    gate = {**form(controls=controls), "kind": "harness.plan"}
    shape, call = asked(gate)
    assert (shape, call.tool_name) == (As.NOTICE, "dismiss_request")
    assert f"Approve to dismiss it, which tells looprig “{word}”" in call.reason
    for outcome in ("approved", "expired", "cancelled", "undeliverable"):
        assert answered(gate, {"outcome": outcome}) == (word, {}, None)
    with pytest.raises(gates.NoWord, match="left open"):
        answered(gate, {"outcome": "denied"})


# deadlines


@pytest.mark.parametrize(
    ("policy", "deadline"),
    [
        ({"on_timeout": "respond", "timeout": 300_000_000_000}, 301_000),
        ({"on_timeout": "wait", "timeout": 300_000_000_000}, None),
        ({"timeout": 300_000_000_000}, None),
        ({"on_timeout": "respond", "timeout": 0}, None),
        ({"on_timeout": "respond", "timeout": float("inf")}, None),
        ([], None),
    ],
)
def test_a_policy_s_time_is_a_deadline_if_looprig_answers_then(policy: Any, deadline: int | None) -> None:
    assert gates.policy_deadline({"response_policy": policy}, 1000) == deadline


@pytest.mark.parametrize(("ago_s", "timeout_s"), [(600, 86_400), (100, 200)])
async def test_a_policy_that_is_over_leaves_the_block_s_own_time(
    clock: FrozenDateTimeFactory, ago_s: int, timeout_s: int
) -> None:
    block = {"name": "looprig.test", "url": "http://127.0.0.1:9", "timeout_s": 86_400}
    host = LooprigHost(LooprigConfig.model_validate(block), WallClock())
    await host.close()
    opened_ms = WallClock().now_ms() - 1000 * ago_s
    deadline_ms = gates.policy_deadline(permission(timeout_s=300), opened_ms)
    request = host.describe(Wait("s/g1", {**facts(permission()), "deadline_ms": deadline_ms}))
    assert request.timeout_s == timeout_s


# the journal


def test_of_the_requests_in_a_journal_those_of_open_gates_are_kept() -> None:
    fold = Fold()
    gate = {"id": "g1", **permission()}
    request = {"tool_execution_id": gate["subject"]["tool_execution_id"], "request": {"tool_name": "bash"}}
    nobody_s = {"tool_execution_id": "another", "request": {"tool_name": "ls"}}
    kept = []
    for seq, (kind, body) in enumerate(
        [
            ("PermissionRequested", nobody_s),
            ("GateOpened", {"gate": gate}),
            ("PermissionRequested", request),
            ("GateResolved", {"gate_id": "g1", "action": "Deny"}),
            ("PermissionRequested", request),
        ],
        1,
    ):
        fold.add(seq, {"type": kind, **body})
        kept.append([asked["tool_name"] for asked in fold.requests.values()])
    assert kept == [[], [], ["bash"], [], []]
