"""A card and a modal of every kind, made of texts that say nothing, to show Slack's own validator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bot.cards import approval_modals, modals
from bot.cards import controls as c
from bot.cards.card import pack, render
from bot.cards.drafts import load_draft
from bot.cards.form_modal import form_modal
from bot.cards.inbox import Waiting, headed, list_page
from bot.cards.managing import MODALS
from bot.cards.pages import gate_page, page_modal
from bot.cards.queries import Query, Which
from core.gates import Decision, Gate, Outcome
from core.opening import gate_docs, run_doc
from core.requests import RunRequest
from core.runs import Run

Json = dict[str, Any]

RUN_ID: Final = "run_00_00000000000000000000000000"
NOW_MS: Final = 1_767_225_600_000
TEXT: Final = "Sample text & <more>\n"


def messages() -> Iterator[Json]:
    """Cards, pending and settled, and a list."""
    run = _run()
    settled = [
        gate.model_copy(update={"status": Outcome.EXPIRED, "decision": _EXPIRED}) for gate in run.gates
    ]
    for state in (run, run.model_copy(update={"gates": tuple(settled)})):
        for message in render(state, pack(state)):
            yield {"text": message.text, "blocks": message.blocks}
    waiting = [Waiting(run, gate, "https://example.slack.com/archives/C1/p1") for gate in run.gates]
    query = Query(Which.ALL)
    page = list_page(query, waiting, [], admin=True, further=query.next((NOW_MS, RUN_ID)), filters=[query])
    yield {"text": TEXT, "blocks": headed(page)}


def views() -> Iterator[Json]:
    """Modals: what each kind of gate opens."""
    question, form, _link, custom, approval = gates = _run().gates
    draft = load_draft(question, None)
    yield from (modals.full(gate, 0) for gate in gates)
    yield modals.other(question, 0, draft.entries[0])
    yield modals.form(question, draft)
    yield from (make(question) for make in (modals.response, modals.decline))
    yield modals.answer(custom)
    yield form_modal(form)
    yield approval_modals.reason(approval, c.REJECT_REASON, approval.digest or "")
    yield approval_modals.edit(approval)
    yield approval_modals.always(approval, approval.digest or "")
    run = _run()
    yield from (make(run, approval) for make in MODALS.values())
    yield from (page_modal(gate_page(Waiting(run, gate, None), admin=True, back=None)) for gate in gates)


_EXPIRED: Final = Decision(outcome=Outcome.EXPIRED, at=NOW_MS, via="clock")


def _run() -> Run:
    request = RunRequest.model_validate(_BODY)
    doc = run_doc(RUN_ID, request, "sample", now_ms=NOW_MS, channel="C1")
    gates = [
        Gate(doc=gate, policy=gate.policy, status="pending", rev=1, deadline=NOW_MS + 1000, created_at=NOW_MS)
        for gate in gate_docs(doc, request)
    ]
    return Run(doc=doc, status="waiting", rev=1, gates=tuple(gates))


def _field(name: str, kind: str, **more: Any) -> Json:
    return {"name": name, "kind": kind, "label": name.capitalize(), "description": TEXT, **more}


_OPTIONS: Final = [{"label": f"{TEXT}{number}", "description": TEXT * 9} for number in range(4)]
_CHOICES: Final = [{"value": str(number), "label": f"{TEXT}{number}"} for number in range(20)]
_QUESTIONS: Final = [
    {
        "question": f"{TEXT}{number}",
        "header": f"Sample {number}",
        "options": _OPTIONS,
        "multiSelect": number == 1,
    }
    for number in range(2)
]
_BODY: Final[Json] = {
    "title": TEXT,
    "policy": {"approvers": ["anyone"], "responders": ["anyone"], "quorum": 1, "edits": True},
    "pending": {
        "calls": [
            {"tool_call_id": "q", "tool_name": "ask_user_question", "args": {"questions": _QUESTIONS}},
            {
                "tool_call_id": "f",
                "tool_name": "form",
                "kind": "form",
                "form": {
                    "title": TEXT,
                    "controls": ["accept", "decline", "cancel"],
                    "fields": [
                        _field("text", "text", required=True),
                        _field("number", "integer", minimum=1, maximum=9, default=2),
                        _field("sure", "confirm", default=True),
                        _field("one", "select", options=_CHOICES, default="3"),
                        _field("some", "multi_select", options=_CHOICES, default=["1", "2"]),
                    ],
                },
            },
            {
                "tool_call_id": "l",
                "tool_name": "link",
                "kind": "link",
                "link": {"url": "https://example.com/a?b=c"},
            },
            {"tool_call_id": "c", "tool_name": "custom", "args": {"text": TEXT}},
        ],
        "approvals": [
            {
                "tool_call_id": "a",
                "tool_name": "sample_tool",
                "args": {"text": TEXT * 3, "numbers": [1, 2, 3]},
                "reason": TEXT,
                "risk": "high",
                "always": [TEXT],
            }
        ],
    },
}
