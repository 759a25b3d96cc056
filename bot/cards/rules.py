"""The walker behind the table of Block Kit limits: small rules that look at one value and name its faults.

A rule takes a value of the rendered JSON and the place where it stands, and yields a `Problem` for
each thing wrong. Rules build on rules; what a block, element or view may hold is said in `limits`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

WHOLE = re.compile(r"-?\d{1,16}", re.ASCII)
DECIMAL = re.compile(r"-?\d{1,16}(\.\d{1,16})?", re.ASCII)
"""How a number_input writes numbers, without and with decimals."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule: where (a JSON pointer), which (`limit`, such as `section.text`), by how much."""

    pointer: str
    limit: str
    size: int | None
    allowed: int | None
    message: str


class Place(NamedTuple):
    """Where the walker stands: the JSON pointer, and the name that a limit has there."""

    pointer: str
    name: str

    def at(self, key: str | int) -> Place:
        return Place(f"{self.pointer}/{key}", self.name if isinstance(key, int) else f"{self.name}.{key}")

    def problem(self, what: str, size: int | None = None, allowed: int | None = None) -> Problem:
        return Problem(self.pointer, self.name, size, allowed, f"{what} [json-pointer:{self.pointer}]")


Json = Mapping[str, Any]
Found = Iterator[Problem]
Rule = Callable[[Any, Place], Found]


def text(most: int, *, markup: bool = False) -> Rule:
    """A text object of 1..`most` characters; plain_text only, unless `markup`."""

    def check(value: Any, place: Place) -> Found:
        if not isinstance(value, Mapping):
            yield place.problem("must provide an object")
            return
        kind = value.get("type")
        if kind not in (("plain_text", "mrkdwn") if markup else ("plain_text",)):
            yield place.at("type").problem(f"unsupported type: {kind}")
        yield from unknown(value, {"type", "text", "emoji" if kind == "plain_text" else "verbatim"}, place)
        yield from string(most)(value.get("text"), place.at("text"))

    return check


def string(most: int | None = None, least: int = 1) -> Rule:
    def check(value: Any, place: Place) -> Found:
        if not isinstance(value, str):
            yield place.problem("must provide a string")
        elif len(value) < least:
            yield place.problem(f"must be more than {least - 1} characters", len(value), least)
        elif most is not None and len(value) > most:
            yield place.problem(f"must be less than {most + 1} characters", len(value), most)

    return check


def whole(low: int, high: int | None = None) -> Rule:
    def check(value: Any, place: Place) -> Found:
        if not isinstance(value, int) or isinstance(value, bool):
            yield place.problem("must provide an integer")
        elif value < low:
            yield place.problem(f"must be greater than or equal to {low}", value, low)
        elif high is not None and value > high:
            yield place.problem(f"must be less than or equal to {high}", value, high)

    return check


def flag(value: Any, place: Place) -> Found:
    if not isinstance(value, bool):
        yield place.problem("must provide a boolean")


def enum(*words: str) -> Rule:
    def check(value: Any, place: Place) -> Found:
        if value not in words:
            yield place.problem(f"must be a valid enum value ({', '.join(words)})")

    return check


def many(rule: Rule, most: int | None = None, least: int = 1) -> Rule:
    def check(value: Any, place: Place) -> Found:
        if not isinstance(value, list | tuple):
            yield place.problem("must provide an array")
            return
        if len(value) < least:
            yield place.problem(f"no less than {least} items allowed", len(value), least)
        if most is not None and len(value) > most:
            yield place.problem(f"no more than {most} items allowed", len(value), most)
        for index, item in enumerate(value):
            yield from rule(item, place.at(index))

    return check


def one_of(shapes: Mapping[str, Rule], types: Sequence[str] = ()) -> Rule:
    """An object whose `type` names one of `shapes`, or only of `types` among them."""
    legal = types or tuple(shapes)

    def check(value: Any, place: Place) -> Found:
        if not isinstance(value, Mapping):
            yield place.problem("must provide an object")
        elif (kind := value.get("type")) not in legal:
            yield place.at("type").problem(f"unsupported type: {kind}")
        else:
            yield from shapes[str(kind)](value, Place(place.pointer, str(kind)))

    return check


@dataclass(frozen=True, slots=True)
class Shape:
    """An object's fields. A name ending in `!` is required. `also` checks what spans several fields."""

    fields: Mapping[str, Rule]
    also: tuple[Rule, ...] = ()

    def __call__(self, value: Any, place: Place) -> Found:
        if not isinstance(value, Mapping):
            yield place.problem("must provide an object")
            return
        yield from unknown(value, {"type", *(name.rstrip("!") for name in self.fields)}, place)
        broken = False
        for marked, rule in self.fields.items():
            name = marked.rstrip("!")
            if name in value:
                for found in rule(value[name], place.at(name)):
                    broken = True
                    yield found
            elif marked != name:
                broken = True
                yield place.problem(f"missing required field: {name}")
        # A rule over several fields may only look at fields that are sound in themselves.
        if not broken:
            for extra in self.also:
                yield from extra(value, place)


def unknown(value: Json, known: set[str], place: Place) -> Found:
    for name in value:
        if name not in known:
            yield place.problem(f"invalid additional property: {name}")


def exactly_one(first: str, second: str) -> Rule:
    def check(value: Json, place: Place) -> Found:
        if (first in value) == (second in value):
            yield place.problem(f"must have exactly one of {first} and {second}")

    return check


def some_text(value: Json, place: Place) -> Found:
    if "text" not in value and "fields" not in value:
        yield place.problem("missing required field: text")


def _options(value: Json) -> list[Json]:
    return [
        *value.get("options", ()),
        *(option for group in value.get("option_groups", ()) for option in group["options"]),
    ]


def _same(option: Json) -> tuple[object, ...]:
    """What makes two options one: Slack compares text and value, and fills `emoji` in by itself."""
    return (option.get("value"), option["text"]["text"], (option.get("description") or {}).get("text"))


def choices(value: Json, place: Place) -> Found:
    """Option values are unique, and what is picked at first is among the options."""
    options = _options(value)
    for name, count in Counter(option.get("value") for option in options).items():
        if count > 1 and name is not None:
            yield place.at("options").problem(f"option values must be unique: {name}", count, 1)
    legal = {_same(option) for option in options}
    if "initial_option" in value and _same(value["initial_option"]) not in legal:
        yield place.at("initial_option").problem("must be one of the options")
    for index, option in enumerate(value.get("initial_options", ())):
        if _same(option) not in legal:
            yield place.at("initial_options").at(index).problem("must be one of the options")


def picked(name: str) -> Rule:
    def check(value: Json, place: Place) -> Found:
        most, size = value.get("max_selected_items"), len(value.get(name, ()))
        if most is not None and size > most:
            yield place.at(name).problem(f"no more than {most} items allowed", size, most)

    return check


def text_range(most: int) -> Rule:
    def check(value: Json, place: Place) -> Found:
        low, high = value.get("min_length", 0), value.get("max_length", most)
        if low > high:
            yield place.at("min_length").problem(
                f"must be less than or equal to max_length ({high})", low, high
            )
        size = len(value.get("initial_value", ""))
        if size > high:
            yield place.at("initial_value").problem(f"must be less than {high + 1} characters", size, high)

    return check


def number_range(value: Json, place: Place) -> Found:
    form = DECIMAL if value["is_decimal_allowed"] else WHOLE
    numbers: dict[str, float] = {}
    for name in ("min_value", "initial_value", "max_value"):
        if name in value and not form.fullmatch(value[name]):
            yield place.at(name).problem("must be a number")
        elif name in value:
            numbers[name] = float(value[name])
    ordered = list(numbers.items())
    for (low, least), (high, most) in pairwise(ordered):
        if least > most:
            yield place.at(low).problem(f"must be less than or equal to {high} ({value[high]})")


def own_action_ids(value: Json, place: Place) -> Found:
    counts = Counter(e.get("action_id") for e in value["elements"] if e.get("action_id") is not None)
    for name, count in counts.items():
        if count > 1:
            yield place.at("elements").problem(f"action_id must be unique in its block: {name}", count, 1)
