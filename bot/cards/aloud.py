"""Names of buttons for who hears them: a screen reader may say a button's name alone, far from what stands above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from bot import words
from bot.cards.blocks import Block
from bot.cards.heading import title_of
from bot.cards.limits import ACCESSIBILITY_LABEL
from bot.cards.text import cut, glance, length
from core.gates import Gate, Kind

NUMBER: Final = len(" (128)")
"""Characters that tell buttons apart which would have one name."""
NAME: Final = ACCESSIBILITY_LABEL - NUMBER
SUBJECT_BYTES: Final = 4 * NAME


def aloud(blocks: Sequence[Block], gates: Iterable[Gate]) -> list[Block]:
    """The blocks of these gates, each button with a name of its own: what it says, and what that is about."""
    known = {gate.id: gate for gate in gates}
    return told_apart([_named(block, known) for block in blocks])


def name(text: str, about: str) -> str:
    """What a button says and what that is about, as one name: it begins with what can be seen, for who speaks it."""
    return cut(words.about(text.removesuffix("…"), glance(about, SUBJECT_BYTES)), NAME, length)


def subject(gate: Gate, question: int | None = None) -> str:
    """What a gate is about, in a word or two: the header of one question or of all, the title, or the tool."""
    match gate.doc.kind:
        case Kind.QUESTION:
            asked = gate.asks.questions
            return ", ".join(
                q.header for q in (asked if question is None else asked[question : question + 1])
            )
        case Kind.FORM | Kind.LINK:
            return title_of(gate)
        case Kind.APPROVAL | Kind.CUSTOM:
            return gate.doc.tool_name


def told_apart(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with a number behind each name that several buttons have, in reading order."""
    names = Counter(label for block in blocks for label in _names(block))
    seen: Counter[str] = Counter()

    def numbered(element: Block) -> Block:
        label = element.get("accessibility_label")
        if label is None or names[label] < 2:
            return element
        seen[label] += 1
        return {**element, "accessibility_label": f"{label} ({seen[label]})"}

    return [_mapped(block, numbered) for block in blocks]


def _named(block: Block, gates: Mapping[str, Gate]) -> Block:
    gate, _, rest = str(block.get("block_id", "")).partition("/")
    question, _, row = rest.partition("/")
    # a row about the whole run says so itself
    if block["type"] != "actions" or gate not in gates or row not in ("options", "gate", "full"):
        return block
    about = subject(gates[gate], int(question) if row == "options" else None)
    return _mapped(
        block, lambda element: {**element, "accessibility_label": name(element["text"]["text"], about)}
    )


def _mapped(block: Block, change: Callable[[Block], Block]) -> Block:
    """The block with its buttons changed."""
    changed: Block = {}
    if block["type"] == "actions":
        changed["elements"] = [change(e) if e["type"] == "button" else e for e in block["elements"]]
    if block.get("accessory", {}).get("type") == "button":
        changed["accessory"] = change(block["accessory"])
    return block | changed


def _names(block: Block) -> list[str]:
    found = [*block.get("elements", ()), *([block["accessory"]] if "accessory" in block else [])]
    return [element["accessibility_label"] for element in found if "accessibility_label" in element]
