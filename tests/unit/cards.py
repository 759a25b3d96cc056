"""Runs with the nastiest texts that the models take, in every state that a card can meet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bot.cards.card import Message, pack, render
from core import approvals as args
from core.diffs import diff
from core.escalations import Escalation
from core.forms import check_form
from core.gates import Action, Decision, Edit, Gate, Kind, Outcome, Vote
from core.opening import gate_docs, run_doc
from core.policy import Actor, Key, Person
from core.questions import MAX_DESCRIPTION, MAX_HEADER, MAX_LABEL, MAX_QUESTION
from core.requests import RunRequest
from core.runs import Run
from tests.runs import Json

NOW = 1_700_000_000_000
RUN_ID = "run_07_01ARZ3NDEKTSV4RRFFQ69G5FAV"
NASTY = [
    *(
        "<!channel>",
        "<@U1>",
        "<https://evil.example|click>",
        "&lt;",
        "&amp;amp;",
        "`",
        "```",
        "*b*",
        "_i_",
        "~s~",
    ),
    *(
        "\u200b",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\x00",
        "\x1b[31m",
        "\r\n",
        "\n",
        "\t",
        "\u2028",
        "\u3164",
        "\u00ad",
    ),
    *(
        "😀",
        "👩‍👩‍👧",
        "❤️‍🔥",
        "1️⃣",
        "🏳️‍🌈",
        "é",
        "e\u0301",
        "ก็็็็็็",
        "漢字",
        "한국어",
        "العربية",
        "\U000e0041",
        "\ufffe",
        "\u0336",
        "\u20e0",
        "\u0301" * 9,
        "שלום 123",
    ),
    *(
        "\\n",
        "\\u202e",
        '"',
        '",\n  "path": "/safe',
        "'",
        "{",
        "}",
        "   ",
        "\u00a0",
        ":tada:",
        "https://auto.example",
    ),
]
"""What makes markup, what hides, what reverses, what grows, and what looks like JSON."""

few = settings(
    max_examples=15,
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
"""Few examples, each of them nasty."""


@st.composite
def texts(draw: st.DrawFn, most: int, least: int = 1) -> str:
    """A text of up to ``most`` characters: a handful of anything, or that repeated up to the bound."""
    piece = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
    text = "".join(draw(st.lists(piece, min_size=1, max_size=6)))
    if draw(st.booleans()):
        text = text * (most // max(len(text), 1) + 1)
    text = text[:most]
    return text if len(text.strip()) >= least else "x"


@st.composite
def questions(draw: st.DrawFn) -> Json:
    """A question whose labels may differ at their very end alone."""
    label = draw(texts(MAX_LABEL - 1))
    different = draw(st.booleans())
    options = []
    for number in range(draw(st.integers(2, 4))):
        own = draw(texts(MAX_LABEL - 1)) if different else label
        options.append({"label": f"{own}{number}", "description": draw(texts(MAX_DESCRIPTION))})
        if draw(st.booleans()):
            options[-1]["markdown"] = draw(texts(9000))
    return {
        "question": draw(texts(MAX_QUESTION - 1)),
        "header": draw(texts(MAX_HEADER)),
        "options": options,
        "multiSelect": draw(st.booleans()),
    }


@st.composite
def question_args(draw: st.DrawFn) -> Json:
    found = draw(st.lists(questions(), min_size=1, max_size=4))
    for number, question in enumerate(found):
        question["question"] = f"{question['question']}{number}"
    return {"questions": found}


def arguments(most: int) -> st.SearchStrategy[Json]:
    """Arguments of a tool call with texts of up to ``most`` characters."""
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), texts(most))
    values = st.recursive(
        leaves, lambda v: st.lists(v, max_size=4) | st.dictionaries(texts(40), v, max_size=4), max_leaves=6
    )
    return st.dictionaries(texts(60), values, max_size=4)


OFFERS = [["accept"], ["accept", "decline"], ["accept", "decline", "cancel"]]


@st.composite
def form_fields(draw: st.DrawFn, number: int) -> Json:
    """A field of any kind, with a default or without."""
    kind = draw(st.sampled_from(["text", "number", "integer", "confirm", "select", "multi_select"]))
    field: Json = {"name": f"{draw(texts(20))}{number}", "kind": kind, "required": draw(st.booleans())}
    if draw(st.booleans()):
        field["label"] = draw(texts(8192))
    if draw(st.booleans()):
        field["description"] = draw(texts(8192))
    if kind in ("select", "multi_select"):
        label = draw(texts(1000))
        count = draw(st.sampled_from([1, 2, 5, 12]))
        field["options"] = [{"value": f"v{n}", "label": f"{label}{n}"} for n in range(count)]
    if draw(st.booleans()):
        field["default"] = draw(_defaults(field))
    return field


def _defaults(field: Json) -> st.SearchStrategy[Any]:
    values = [option["value"] for option in field.get("options", ())]
    return {
        "text": texts(1000),
        "number": st.floats(-1e15, 1e15) | st.sampled_from([0, 1e300, 1e-300]),
        "integer": st.integers(-(2**53) + 1, 2**53 - 1),
        "confirm": st.booleans(),
        "select": st.sampled_from(values or ["-"]),
        "multi_select": st.sampled_from([values[:1], values]),
    }[field["kind"]]


@st.composite
def form_calls(draw: st.DrawFn) -> Json:
    """A form of 1 to 32 fields. A few templates make many."""
    templates = draw(st.lists(form_fields(0), min_size=1, max_size=3))
    fields = []
    for number in range(draw(st.sampled_from([1, 2, 5, 32]))):
        template = templates[number % len(templates)]
        fields.append({**template, "name": f"{template['name']}{number}"})
    form: Json = {"fields": fields, "controls": draw(st.sampled_from(OFFERS))}
    form |= draw(st.fixed_dictionaries({}, optional={"title": texts(8192), "body": texts(8192)}))
    return {"kind": "form", "tool_name": draw(texts(256)), "form": form}


@st.composite
def link_calls(draw: st.DrawFn) -> Json:
    """A link with an address up to the longest there is."""
    host = draw(st.sampled_from(["example.com", "bücher.example", f"{'a' * 60}.{'b' * 60}.example"]))
    path = draw(st.sampled_from(["", "/a?b=c&d=e", "/" + "&" * 1800, "/%E2%80%AE/漢字"]))
    link: Json = {"controls": draw(st.sampled_from(OFFERS))}
    link |= draw(st.sampled_from([{"origin": f"https://{host}"}, {"url": f"https://{host}{path}"}]))
    link |= draw(st.fixed_dictionaries({}, optional={"title": texts(8192), "body": texts(8192)}))
    return {"kind": "link", "tool_name": draw(texts(256)), "link": link}


def calls() -> st.SearchStrategy[Json]:
    asked = question_args().map(lambda args: {"tool_name": "ask_user_question", "args": args})
    custom = st.fixed_dictionaries(
        {"tool_name": texts(256), "args": arguments(700)},
        optional={"schema": texts(4000).map(lambda text: {"title": text})},
    )
    return st.one_of(asked, custom, form_calls(), link_calls())


def approvals() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"tool_name": texts(256), "args": arguments(9000)},
        optional={
            "reason": texts(4096),
            "risk": st.sampled_from(["low", "medium", "high", "extra_high"]),
            "always": st.lists(texts(1024), max_size=3) | st.just(["漢" * 1024] * 32),
        },
    )


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of 1 to 20 gates. A few templates make many gates, so that drawing stays cheap."""
    templates = draw(
        st.lists(
            st.one_of(calls(), approvals().map(lambda a: {**a, "approval": True})), min_size=1, max_size=3
        )
    )
    gates = [
        dict(templates[n % len(templates)]) for n in range(draw(st.sampled_from([1, 1, 1, 2, 3, 5, 20])))
    ]
    pending: dict[str, list[Json]] = {"calls": [], "approvals": []}
    for number, gate in enumerate(gates):
        category = "approvals" if gate.pop("approval", False) else "calls"
        pending[category].append({"tool_call_id": f"id-{number}", **gate})
    lone = any("always" in item for item in pending["approvals"])
    return stored(
        {
            "pending": pending,
            "title": draw(st.none() | texts(150)),
            "requester": {"team": "T1", "user": "U" * 32},
            "policy": {
                "approvers": ["anyone"],
                "edits": draw(st.booleans()),
                "quorum": 1 if lone else draw(st.sampled_from([1, 2, 32])),
                "reject_quorum": draw(st.sampled_from([1, 2, 32])),
                "reason": draw(st.sampled_from(["never", "on_reject", "always"])),
            },
        }
    )


def stored(body: Json) -> Run:
    """The run that a body of `POST /api/v1/runs` makes, as it is stored at first."""
    request = RunRequest.model_validate(body)
    doc = run_doc(RUN_ID, request, "k" * 64, now_ms=NOW, channel="C1")
    gates = [
        Gate(doc=gate, policy=gate.policy, status="pending", rev=1, deadline=NOW + 3_600_000, created_at=NOW)
        for gate in gate_docs(doc, request)
    ]
    return Run(doc=doc, status="waiting", rev=1, gates=tuple(gates))


# what becomes of a gate


def people(count: int) -> list[Person]:
    """People with the longest ids there are."""
    return [Person(team="T1", user=f"U{number:031d}") for number in range(count)]


def edited(gate: Gate, args_now: Json, editors: list[Actor] | None = None) -> Gate:
    """An approval whose arguments somebody changed to these."""
    if gate.doc.kind is not Kind.APPROVAL or not gate.policy.edits:
        return gate
    edits = []
    for editor in editors or people(1):
        before, after = args.digest(gate.arguments), args.digest(args_now)
        changes = diff(gate.arguments, args_now)
        edits.append(Edit(by=editor, at=NOW, from_digest=before, to_digest=after, diff=changes))
    return gate.model_copy(update={"edited": args_now, "edits": tuple(edits)})


def touched(gate: Gate, text: str) -> Gate:
    """Pending, with drafts by 20 people and one vote less than would settle it either way."""
    policy, drafts = gate.policy, {}
    if gate.doc.kind is Kind.QUESTION:
        for number, person in enumerate(people(20)):
            entries = [
                {"picked": [], "other": text}
                if number % 2
                else {"picked": list(range(len(q.options) if q.multi_select else 1))}
                for q in gate.asks.questions
            ]
            drafts[f"{person.team}:{person.user}"] = entries
    approving = [vote(Action.APPROVE, who, text) for who in people(policy.quorum - 1)]
    denying = [vote(Action.DENY, who, text) for who in people(policy.reject_quorum - 1)]
    votes = (*approving, *denying) if gate.doc.kind is Kind.APPROVAL else ()
    return gate.model_copy(update={"drafts": drafts, "votes": votes})


def vote(action: Action, by: Actor, comment: str | None = None) -> Vote:
    return Vote(action=action, by=by, at=NOW, via="slack", token="t", comment=comment)


def settled(
    gate: Gate,
    outcome: Outcome,
    text: str,
    voters: list[Actor] | None = None,
    action: Action | None = None,
) -> Gate:
    """Settled with this outcome (by this action, if several lead to it), ``text`` being all that anybody said."""
    action = action or next((a for a in gate.doc.offered if a.outcome is outcome), None)
    if action is None:
        decision = Decision(outcome=outcome, at=NOW, via="clock", detail=text)
    else:
        values = _answer(gate, text) if action in (Action.ANSWER, Action.ACCEPT) else None
        votes = tuple(vote(action, who, text) for who in voters or [*people(1), Key(key="k" * 64)])
        decision = Decision(outcome=outcome, at=NOW, via="api", votes=votes, values=values)
    return gate.model_copy(update={"status": outcome, "decision": decision})


def _answer(gate: Gate, text: str) -> Any:
    match gate.doc.kind:
        case Kind.QUESTION:
            return {"answers": {q.question: [text] * 4 for q in gate.asks.questions}, "response": text}
        case Kind.FORM:
            return form_values(gate, text)
        case Kind.LINK:
            return None
    return {"said": text}


def form_values(gate: Gate, text: str) -> Json:
    """Values for every field of a form, as much as it takes."""
    assert gate.doc.form
    found: Json = {}
    for field in gate.doc.form.all_fields:
        values = [option.value for option in field.options]
        given = {"text": text[:900], "confirm": True, "select": (values or [""])[-1], "multi_select": values}
        found[field.name] = given.get(field.kind, field.default or 0)
    return check_form(gate.doc.form.all_fields, {name: value for name, value in found.items() if value != ""})


def outcomes(gate: Gate) -> list[Outcome]:
    """All the ways in which a gate may end."""
    nobody = [Outcome.EXPIRED, Outcome.CANCELLED, Outcome.UNDELIVERABLE, Outcome.SUPERSEDED]
    return [*dict.fromkeys(action.outcome for action in gate.doc.offered), *nobody]


def states(run: Run, text: str) -> Iterator[Run]:
    """The run untouched, touched by many people, edited and escalated, settled in every way, and half of it so."""
    yield run
    busy = [touched(gate, text) for gate in run.gates]
    yield with_gates(run, busy)
    some = [edited(gate, {text[:50] or "x": text}, people(3)) for gate in busy]
    yield escalated(with_gates(run, some))
    for number in range(6):
        done = [_settled(gate, number, text) for gate in (some if number % 2 else run.gates)]
        yield with_gates(run, done)
        yield escalated(with_gates(run, [pair[n % 2] for n, pair in enumerate(zip(some, done, strict=True))]))


def _settled(gate: Gate, number: int, text: str) -> Gate:
    """Settled in the way of this number."""
    ways = outcomes(gate)
    outcome = ways[number % len(ways)]
    actions = [action for action in gate.doc.offered if action.outcome is outcome]
    return settled(gate, outcome, text, _voters(gate, number), actions[-1] if actions else None)


def escalated(run: Run) -> Run:
    """A run that was escalated to a channel with the longest id there is."""
    escalation = Escalation.model_validate({"after_s": 1, "place": {"channel": "C" * 32}})
    doc = run.doc.model_copy(update={"escalate": escalation})
    return run.model_copy(update={"doc": doc, "escalated": True})


def _voters(gate: Gate, number: int) -> list[Actor]:
    policy = gate.policy
    return list(people((policy.quorum, policy.reject_quorum)[number])) if number < 2 else []


def with_gates(run: Run, gates: list[Gate]) -> Run:
    return run.model_copy(update={"gates": tuple(gates)})


# what is on a surface


def card(run: Run) -> list[Message]:
    return render(run, pack(run))


def objects(blocks: object) -> Iterator[Json]:
    """Every object in rendered blocks, in reading order."""
    if isinstance(blocks, dict):
        yield blocks
        for value in blocks.values():
            yield from objects(value)
    elif isinstance(blocks, list):
        for value in blocks:
            yield from objects(value)


def typed(blocks: object, *types: str) -> list[Json]:
    return [found for found in objects(blocks) if found.get("type") in types]


def buttons(blocks: object) -> dict[str, Json]:
    """Buttons by their words."""
    return {button["text"]["text"]: button for button in typed(blocks, "button")}


def written(blocks: object, *types: str) -> str:
    """The texts of all objects of these types, joined."""
    return "".join(found["text"] for found in typed(blocks, *types) if isinstance(found.get("text"), str))


def said(blocks: object) -> str:
    """All that is to read on a surface, a text a line."""
    return "\n".join(found["text"] for found in objects(blocks) if isinstance(found.get("text"), str))


def code_of(blocks: object) -> str:
    """What stands in code blocks, joined."""
    return written(typed(blocks, "rich_text_preformatted"), "text")


def read_back(shown: str) -> Any:
    """The arguments that a reader takes from a card: lines of one text, each in its quotes, are one text."""
    lines = shown.split("\n")
    joined = lines[0]
    for line in lines[1:]:
        goes_on = joined.endswith('\\n"') and line.lstrip(" ").startswith('"')
        joined = joined[:-1] + line.lstrip(" ")[1:] if goes_on else f"{joined}\n{line}"
    return json.loads(joined)
