"""Runs with the nastiest texts that the models take, in every state that a card can meet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bot.cards.card import Message, pack, render
from core.gates import OFFERED, Action, Decision, Gate, Kind, Outcome, Vote
from core.opening import gate_docs, run_doc
from core.policy import Actor, Key, Person
from core.questions import MAX_DESCRIPTION, MAX_HEADER, MAX_LABEL, MAX_QUESTION
from core.runs import Run, RunRequest
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


def calls() -> st.SearchStrategy[Json]:
    asked = question_args().map(lambda args: {"tool_name": "ask_user_question", "args": args})
    custom = st.fixed_dictionaries({"tool_name": texts(256), "args": arguments(700)})
    return st.one_of(asked, custom)


def approvals() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"tool_name": texts(256), "args": arguments(9000)},
        optional={"reason": texts(4096), "risk": st.sampled_from(["low", "medium", "high", "extra_high"])},
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
    return stored(
        {
            "pending": pending,
            "title": draw(st.none() | texts(150)),
            "requester": {"team": "T1", "user": "U" * 32},
            "policy": {
                "approvers": ["anyone"],
                "quorum": draw(st.sampled_from([1, 2, 32])),
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
        Gate(doc=gate, status="pending", rev=1, deadline=NOW + 3_600_000, created_at=NOW)
        for gate in gate_docs(doc, request)
    ]
    return Run(doc=doc, status="waiting", rev=1, gates=tuple(gates))


# what becomes of a gate


def people(count: int) -> list[Person]:
    """People with the longest ids there are."""
    return [Person(team="T1", user=f"U{number:031d}") for number in range(count)]


def touched(gate: Gate, text: str) -> Gate:
    """Pending, with drafts by 20 people and one vote less than would settle it either way."""
    policy, drafts = gate.doc.policy, {}
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


def settled(gate: Gate, outcome: Outcome, text: str, voters: list[Actor] | None = None) -> Gate:
    """Settled with this outcome, ``text`` being all that anybody said."""
    action = next((a for a in OFFERED[gate.doc.kind] if a.outcome is outcome), None)
    if action is None:
        decision = Decision(outcome=outcome, at=NOW, via="clock", detail=text)
    else:
        values = _answer(gate, text) if action is Action.ANSWER else None
        votes = tuple(vote(action, who, text) for who in voters or [*people(1), Key(key="k" * 64)])
        decision = Decision(outcome=outcome, at=NOW, via="api", votes=votes, values=values)
    return gate.model_copy(update={"status": outcome, "decision": decision})


def _answer(gate: Gate, text: str) -> Any:
    if gate.doc.kind is not Kind.QUESTION:
        return {"said": text}
    return {"answers": {q.question: [text] * 4 for q in gate.asks.questions}, "response": text}


def outcomes(kind: Kind) -> list[Outcome]:
    """All the ways in which a gate of this kind may end."""
    nobody = [Outcome.EXPIRED, Outcome.CANCELLED, Outcome.UNDELIVERABLE, Outcome.SUPERSEDED]
    return [*(action.outcome for action in OFFERED[kind]), *nobody]


def states(run: Run, text: str) -> Iterator[Run]:
    """The run untouched, touched by many people, settled in every way, and with every other gate settled."""
    yield run
    busy = [touched(gate, text) for gate in run.gates]
    yield with_gates(run, busy)
    for number in range(len(outcomes(Kind.QUESTION))):
        done = [
            settled(gate, outcomes(gate.doc.kind)[number], text, _voters(gate, number)) for gate in run.gates
        ]
        yield with_gates(run, done)
        yield with_gates(run, [pair[n % 2] for n, pair in enumerate(zip(busy, done, strict=True))])


def _voters(gate: Gate, number: int) -> list[Actor]:
    policy = gate.doc.policy
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
