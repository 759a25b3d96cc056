"""a13n: what a run's pending batch becomes, what goes back, and which deliveries are the Service's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.hosts.a13n import gates, webhook
from core.hosts.base import NotGenuine, Undescribable

SECRET = "whsec_0123456789abcdef"
NOW = 1_800_000_000


def item(tool: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {
        "tool_call_id": f"id-{tool}",
        "tool_name": tool,
        "arguments": arguments,
        "presentation": None,
        **more,
    }


def test_a_question_of_a_form_that_nobody_knows_is_shown_as_it_is() -> None:
    asked = gates.pending({"approvals": [], "calls": [item("ask_user_question", {"questions": []})]})
    assert asked.calls[0].model_dump()["kind"] == "custom"


def test_risk_reason_and_target_are_shown_and_unknown_words_are_not() -> None:
    shown = {"reason": "It writes.", "target": "path: /etc/hosts", "risk": "high", "tool_id": "x"}
    asked = gates.pending(
        {
            "calls": [],
            "approvals": [
                item("write", {"a": 1}, presentation=shown),
                item("read", {}, presentation={"risk": "who knows", "target": ""}),
            ],
        }
    )
    write, read = asked.approvals
    assert (write.reason, write.risk) == ("It writes. · path: /etc/hosts", "high")
    assert (read.reason, read.risk) == (None, None)


def test_what_cannot_be_put_to_people_says_where_and_why() -> None:
    with pytest.raises(Undescribable, match=r"approvals\.0: .*2\^53"):
        gates.pending({"calls": [], "approvals": [item("pay", {"cents": 2**60})]})


def test_results_go_back_by_category_and_in_the_longest_form_that_is_taken() -> None:
    answered = {"status": "returned", "value": {"answers": {"Q": "ä"}}, "outcome": "answered"}
    failed = {"status": "failed", "message": "x" * 5000, "outcome": "declined"}
    denied = {"action": "deny", "reason": "y" * 5000, "outcome": "denied"}
    changed = {"action": "deny", "reason": "Superseded: other arguments", "outcome": "superseded"}
    approved = {"action": "approve", "outcome": "approved"}
    results = {
        "calls": {"q": answered, "f": failed},
        "approvals": {"yes": approved, "no": denied, "changed": changed},
    }
    said = json.loads(gates.body(results))
    assert said == {
        "calls": {
            "q": {"status": "returned", "value": {"answers": {"Q": "ä"}}},
            "f": {"status": "failed", "message": "x" * 4096},
        },
        "approvals": {
            "yes": {"action": "approve"},
            "no": {"action": "deny", "reason": "y" * 4096},
            "changed": {"action": "deny", "reason": "Superseded: other arguments"},
        },
    }
    again = {"approvals": dict(reversed(results["approvals"].items())), "calls": results["calls"]}
    assert gates.body(again) == gates.body(results)


def test_answers_that_are_too_large_together_are_not_sent() -> None:
    long = {"status": "returned", "value": {"answers": {}, "response": "x" * 65_536}, "outcome": "answered"}
    assert gates.body({"approvals": {}, "calls": {str(n): long for n in range(3)}})
    with pytest.raises(gates.TooLarge, match="262144 bytes"):
        gates.body({"approvals": {}, "calls": {str(n): long for n in range(4)}})


def test_the_size_is_taken_as_a13n_takes_it_with_its_defaults_filled_in() -> None:
    def answers(count: int) -> dict[str, Any]:
        return {"approvals": {}, "calls": {"q": {"status": "returned", "value": "x" * count}}}

    largest = 262_144 - len(b',"input":null')
    room = largest - len(gates.body(answers(0)))
    assert len(gates.body(answers(room))) == largest
    with pytest.raises(gates.TooLarge):
        gates.body(answers(room + 1))


@pytest.mark.parametrize("outcome", ["expired", "superseded", "undeliverable", "denied"])
def test_nothing_but_an_approved_outcome_approves(outcome: str) -> None:
    result = {"action": "approve", "outcome": outcome, "reason": "no"}
    said = json.loads(gates.body({"calls": {}, "approvals": {"a": result}}))
    assert said["approvals"] == {"a": {"action": "deny", "reason": "no"}}


def signed(body: bytes, *, at: int = NOW, secret: str = SECRET, **more: str) -> dict[str, str]:
    stamp = str(at)
    return {
        webhook.DELIVERY: "obx_1",
        webhook.TIMESTAMP: stamp,
        webhook.SIGNATURE: webhook.signature(secret, stamp, "obx_1", body),
        **more,
    }


def test_a_delivery_is_known_by_its_signature_over_time_id_and_body() -> None:
    assert webhook.check(signed(b"{}"), b"{}", SECRET, NOW + 299) == "obx_1"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, "missing"),
        (signed(b"{}") | {webhook.DELIVERY: ""}, "missing"),
        (signed(b"{}") | {webhook.DELIVERY: "x" * 129}, "missing"),
        (signed(b"{}") | {webhook.TIMESTAMP: "-1"}, "missing"),
        (signed(b"{}", at=NOW - 301), "too old"),
        (signed(b"{}", at=NOW + 301), "too old"),
        (signed(b"{}", secret="another secret 12345"), "wrong"),
        (signed(b"{ }"), "wrong"),
        (signed(b"{}") | {webhook.DELIVERY: "obx_2"}, "wrong"),
        (signed(b"{}") | {webhook.SIGNATURE: "v1=é"}, "wrong"),
    ],
)
def test_any_other_is_refused(headers: dict[str, str], said: str) -> None:
    with pytest.raises(NotGenuine, match=said):
        webhook.check(headers, b"{}", SECRET, NOW)


@pytest.mark.parametrize(
    ("body", "run"),
    [
        (b'{"type":"run.waiting","run":{"id":"run_1"}}', "run_1"),
        (b'{"type":"run.completed","run":{"id":"run_1"}}', None),
        (b'{"type":"run.waiting","run":{"id":7}}', None),
        (b'{"type":"run.waiting"}', None),
        (b"[]", None),
        (b"\xff", None),
    ],
)
def test_only_what_comes_to_wait_is_heard(body: bytes, run: str | None) -> None:
    assert webhook.waiting_run(body) == run
