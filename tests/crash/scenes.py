"""What happens in the crash matrix: what is asked, what people do about it, and what must come of it.

A scene is small, so that one kill is cheap, and all of it is under way at once, so that a kill hits what overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.crash.host import KEY_NAME
from tests.integration.receiver import SECRET
from tests.runs import approval, ask, body, question_call

Json = dict[str, Any]
Places = Literal["channel", "two", "dm", "archived", "nowhere"]


@dataclass(frozen=True)
class Click:
    """A person clicks a button of the run's card, or of its copy `there`.

    Not before a reminder came (``reminded``), nor before the card says ``sees``.
    """

    person: str
    words: str
    near: str | None = None
    reminded: bool = False
    there: bool = False
    sees: str = ""


@dataclass(frozen=True)
class Fill:
    """A person opens a modal by a button of the run's card, fills it in and submits it."""

    person: str
    words: str
    fields: Mapping[str, str]
    near: str | None = None
    reminded: bool = False
    there: bool = False
    sees: str = ""


@dataclass(frozen=True)
class Ends:
    """How a gate must end. ``late``: if what a person did was not heard before the deadline, it expired."""

    outcome: str
    value: object = None
    by: tuple[str, ...] = ()
    late: bool = False
    more: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """One run. ``make`` gets the ids of people by name, and that of a second channel as `there`.

    ``acts`` are the host's own calls, as (path, body); ``reminders`` how many are given. ``pushed``: it goes to
    a callback (its address is `hook`), and no host claims it.
    """

    name: str
    make: Callable[[Mapping[str, str]], Json]
    ends: Mapping[str, Ends]
    steps: tuple[Click | Fill, ...] = ()
    acts: tuple[tuple[str, Json], ...] = ()
    place: Places = "channel"
    nack: bool = False
    reminders: int = 0
    pushed: bool = False


def _approvers(ids: Mapping[str, str], **more: Any) -> Json:
    return {"approvers": [ids["ana"], ids["ben"]], **more}


_SCOPE = "Which scope should be used?"
_BY_KEY: Json = {"approvers": [f"key:{KEY_NAME}"], "responders": [f"key:{KEY_NAME}"]}
_TWO = (
    ask("Which colour?", "Red", "Green", header="Colour"),
    ask("Which shape?", "Round", "Square", header="Shape"),
)
_COLOUR = {
    "kind": "form",
    "tool_call_id": "f",
    "tool_name": "fill",
    "form": {"fields": [{"name": "n", "kind": "text"}]},
}
_LINK = {
    "kind": "link",
    "tool_call_id": "l",
    "tool_name": "sign_in",
    "link": {"url": "https://example.com/in"},
}

ANSWERS = (
    Ask(
        "lone",
        lambda _: body([question_call("q")], state="lone's state"),
        {"q": Ends("answered", {"answers": {_SCOPE: "Focused"}}, ("ana",))},
        (Click("ana", "Focused"),),
    ),
    Ask(
        "drafts",
        lambda _: body([question_call("q", *_TWO)]),
        {"q": Ends("answered", {"answers": {"Which colour?": "Red", "Which shape?": "oval"}}, ("ben",))},
        (
            Click("ben", "Red"),
            Fill("ben", "Other", {"Your answer": "oval"}, near="Which shape?"),
            Click("ben", "Submit"),
        ),
    ),
    Ask(
        "decline",
        lambda _: body([question_call("q")]),
        {"q": Ends("declined", by=("ana",), more={"message": "The user declined to answer: no time"})},
        (Fill("ana", "Decline", {"Why": "no time"}),),
    ),
    Ask(
        "custom",
        lambda _: body([{"tool_call_id": "c", "tool_name": "any", "args": {"a": [1, {}]}}]),
        {"c": Ends("answered", {"b": [2.0, []]}, ("ben",))},
        (Fill("ben", "Answer", {"Your answer: text, or JSON": '{"b": [2.0, []]}'}),),
    ),
    Ask(
        "dm",
        lambda ids: body([question_call("q")], place={"user": ids["ana"]}),
        {"q": Ends("answered", {"answers": {_SCOPE: "Broad"}}, ("ana",))},
        (Click("ana", "Broad"),),
        place="dm",
    ),
)

APPROVALS = (
    Ask(
        "quorum",
        lambda ids: body(None, [approval("a")], policy=_approvers(ids, quorum=2)),
        {"a": Ends("approved", by=("ana", "ben"))},
        (Click("ana", "Approve"), Click("ben", "Approve")),
    ),
    Ask(
        "deny",
        lambda ids: body(None, [approval("a")], policy=_approvers(ids)),
        {"a": Ends("denied", by=("ben",), more={"reason": "wrong file"})},
        (Fill("ben", "Reject with reason", {"Reason": "wrong file"}),),
    ),
    Ask(
        "mixed",
        lambda ids: body([question_call("q")], [approval("a")], policy=_approvers(ids)),
        {
            "q": Ends("answered", {"answers": {_SCOPE: "Broad"}}, ("ana",)),
            "a": Ends("denied", by=("ben",)),
        },
        (Click("ana", "Broad"), Click("ben", "Reject")),
        nack=True,
    ),
    Ask(
        "edit",
        lambda _: body(None, [approval("a")], policy={**_BY_KEY, "edits": True}, state="edit's state"),
        {"a": Ends("approved", by=(KEY_NAME,), more={"override_args": {"path": "/tmp/new.log"}})},
        acts=(
            (
                "/gates/{gate}/decide",
                {"action": "approve", "values": {"override_args": {"path": "/tmp/new.log"}}},
            ),
        ),
    ),
)

ENDS = (
    Ask(
        "expiry",
        lambda ids: body([question_call("q")], [approval("a")], policy=_approvers(ids), timeout_s=1),
        {"q": Ends("expired"), "a": Ends("expired")},
    ),
    Ask(
        "partial",
        lambda ids: body([question_call("q")], [approval("a")], policy=_approvers(ids), timeout_s=1),
        {"q": Ends("answered", {"answers": {_SCOPE: "Focused"}}, ("ana",), late=True), "a": Ends("expired")},
        (Click("ana", "Focused"),),
    ),
    Ask(
        "cancel",
        lambda _: body([question_call("q")]),
        {"q": Ends("cancelled", more={"message": "Cancelled: not needed"})},
        acts=(("/runs/{run}/cancel", {"reason": "not needed"}),),
        nack=True,
    ),
    Ask(
        "undeliverable",
        lambda ids: body([question_call("q")], [approval("a")], policy=_approvers(ids)),
        {"q": Ends("undeliverable"), "a": Ends("undeliverable")},
        place="archived",
    ),
    Ask(
        "batch",
        lambda _: body([_COLOUR, _LINK], [approval("a")], policy=_BY_KEY),
        {
            "f": Ends("answered", {"n": "x"}, (KEY_NAME,)),
            "l": Ends("answered", {"action": "accept"}, (KEY_NAME,)),
            "a": Ends("approved", by=(KEY_NAME,)),
        },
        acts=(
            (
                "/runs/{run}/resume",
                {
                    "calls": {
                        "f": {"status": "returned", "value": {"n": "x"}},
                        "l": {"status": "returned", "value": {"action": "accept"}},
                    },
                    "approvals": {"a": {"action": "approve"}},
                },
            ),
        ),
        place="nowhere",
    ),
)

LATER = (
    Ask(
        "reminded",
        lambda _: body([question_call("q")], remind_after_s=[1]),
        {"q": Ends("answered", {"answers": {_SCOPE: "Focused"}}, ("ana",))},
        (Click("ana", "Focused", reminded=True),),
        reminders=1,
    ),
    Ask(
        "escalated",
        lambda ids: body(
            None,
            [approval("a")],
            policy={"approvers": [ids["ana"]]},
            escalate={"after_s": 1, "place": {"channel": ids["there"]}, "approvers": [ids["ben"]]},
        ),
        {"a": Ends("approved", by=("ben",))},
        (Click("ben", "Approve", there=True),),
        place="two",
    ),
    Ask(
        "form",
        lambda _: body([_COLOUR]),
        {"f": Ends("answered", {"n": "blue"}, ("ana",), more={"action": "accept"})},
        (Fill("ana", "Answer in a form", {"n": "blue"}),),
    ),
    Ask(
        "link",
        lambda _: body([_LINK]),
        {"l": Ends("answered", {"action": "accept"}, ("ben",), more={"action": "accept"})},
        (Click("ben", "Done"),),
    ),
    Ask(
        "revised",
        lambda ids: body(None, [approval("a")], policy=_approvers(ids, edits=True, quorum=2)),
        {"a": Ends("approved", by=("ana", "ben"), more={"override_args": {"path": "/tmp/b"}})},
        (
            Click("ben", "Approve"),
            Fill("ana", "Edit arguments", {"Arguments as JSON": '{"path": "/tmp/b"}'}),
            Click("ben", "Approve", sees="/tmp/b"),
        ),
    ),
    Ask(
        "pushed",
        lambda ids: body(
            [question_call("q")], callback={"url": ids["hook"], "secret": SECRET}, state="its state"
        ),
        {"q": Ends("answered", {"answers": {_SCOPE: "Broad"}}, ("ana",))},
        (Click("ana", "Broad"),),
        pushed=True,
    ),
)

SCENES: Mapping[str, tuple[Ask, ...]] = {
    "answers": ANSWERS,
    "approvals": APPROVALS,
    "ends": ENDS,
    "later": LATER,
}
