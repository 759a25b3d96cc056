"""What an edit changed: the difference of two JSON values, place by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

MAX_ITEMS = 200
Change = dict[str, JsonValue]


def diff(old: JsonValue, new: JsonValue) -> list[Change]:
    """`{"path", "old"?, "new"?}` for each place that differs (path: JSON Pointer, RFC 6901), at most MAX_ITEMS."""
    found: list[Change] = []
    for change in _changes("", old, new):
        if len(found) == MAX_ITEMS:
            break
        found.append(change)
    return found


def _changes(path: str, old: JsonValue, new: JsonValue) -> Iterator[Change]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            place = f"{path}/{_escaped(key)}"
            if key not in new:
                yield {"path": place, "old": old[key]}
            elif key not in old:
                yield {"path": place, "new": new[key]}
            else:
                yield from _changes(place, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changes(f"{path}/{index}", one, other)
    elif old != new or type(old) is not type(new):
        yield {"path": path, "old": old, "new": new}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
