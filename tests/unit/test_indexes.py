"""In which indexes a run stands, and in which ones a person's runs are looked for."""

from __future__ import annotations

import pytest

from core.opening import gate_docs, run_doc
from core.store.indexes import index_names, names_for
from tests.runs import approval, question_call, run_request


def names(**more: object) -> set[str]:
    request = run_request([question_call()], [approval()], **more)
    doc = run_doc("run_00_01JZ0000000000000000000000", request, "ci", now_ms=0, channel=None)
    return set(index_names(doc, [gate.policy for gate in gate_docs(doc, request)]))


def test_a_run_stands_by_host_channel_and_everybody_it_names() -> None:
    policy = {"approvers": ["U1", "T2:U9", "S1", "key:ci"], "responders": ["channel", "U5"]}
    found = names(policy=policy, requester={"team": "T1", "user": "U7"}, host="demo")
    assert found == {"host:demo", "channel:C1", "by:U1", "by:T2:U9", "by:U5", "for:T1:U7"}


def test_admins_and_the_place_of_an_escalation_count() -> None:
    escalate = {"after_s": 5, "place": {"channel": "C2"}}
    assert names(policy={}, escalate=escalate) == {"host:api", "channel:C1", "channel:C2", "by:admins"}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("U1", {"by:U1", "by:T1:U1"}),
        ("T1:U1", {"by:U1", "by:T1:U1"}),
        ("T2:U1", {"by:T2:U1"}),
        ("U9", {"by:U9", "by:T1:U9", "by:admins"}),
        ("T1:U9", {"by:U9", "by:T1:U9", "by:admins"}),
        ("T2:U9", {"by:T2:U9"}),
        ("T2:U8", {"by:T2:U8", "by:admins"}),
    ],
)
def test_a_person_is_looked_for_under_each_name(user: str, expected: set[str]) -> None:
    assert set(names_for(user, home="T1", admins=["U9", "T2:U8"])) == expected
