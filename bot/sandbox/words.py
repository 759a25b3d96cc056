"""Text as a person reads it: markup taken away, mentions and dates written out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from bot.sandbox import blocks
from bot.sandbox.messages import Values
from bot.sandbox.world import World

Json = dict[str, Any]

_LINK = re.compile(r"<([^<>]+)>")
_CODE = re.compile(r"```(?:\n)?(.+?)(?:\n)?```|`([^`\n]+)`", re.DOTALL)
_MARKS = [re.compile(rf"(?<![\w{m}]){m}(?=\S)([^{m}\n]+?)(?<=\S){m}(?![\w{m}])") for m in (r"\*", "_", "~")]
_TOKEN = re.compile(r"\{(\w+)\}")
_LEAD = re.compile(r"^(?::[\w+-]+:|[^\w\s(\[\"'#@/<$€£+-]+️?)\s+")


class Words:
    """Reads messages, views and blocks aloud, with names from `world`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def of(self, thing: Json) -> str:
        """All visible text of a message or view in reading order, one line a piece, buttons included.

        A `state` beside the blocks tells what has been picked and typed, as it does in a view.
        """
        parts: list[str] = []
        held = thing.get("state", {}).get("values", {})
        if thing.get("type") in ("modal", "home"):
            if thing.get("title"):
                parts.append(self.text(thing["title"]))
            parts += self.lines(thing["blocks"], held)
            parts += [self.text(thing[name]) for name in ("submit", "close") if thing.get(name)]
        elif thing.get("blocks"):
            parts += self.lines(thing["blocks"], held)
        else:
            read = self.markup if thing.get("mrkdwn", True) else self._entities
            parts.append(read(thing.get("text", "")))
        parts += [file["title"] for file in thing.get("files", ())]
        return "\n".join(part for part in parts if part)

    def lines(self, shown: list[Json], held: Values) -> list[str]:
        return [line for block in shown for line in self.block(block, held)]

    def block(self, block: Json, held: Values) -> Iterator[str]:
        """The lines that one block shows, with what `held` says is in its elements."""
        kind = block["type"]
        if kind == "rich_text":
            yield from (self._rich(part) for part in block["elements"])
            return
        if kind == "image":
            yield self.text(block["title"]) if block.get("title") else block["alt_text"]
            return
        for name in ("label", "text"):
            if block.get(name):
                yield self.text(block[name])
        yield from (self.text(field) for field in block.get("fields", ()))
        for element in (block.get("accessory"), block.get("element"), *block.get("elements", ())):
            if element:
                picked = held.get(block.get("block_id", ""), {}).get(element.get("action_id", ""))
                yield from self.element(element, picked)
        if block.get("hint"):
            yield self.text(block["hint"])

    def element(self, element: Json, picked: Json | None = None) -> Iterator[str]:
        kind = element["type"]
        if kind in ("plain_text", "mrkdwn"):
            yield self.text(element)
        elif kind == "button":
            yield self.text(element["text"])
        elif kind == "image":
            yield element["alt_text"]
        elif kind in ("radio_buttons", "checkboxes"):
            yield from (self._option(option) for option in element["options"])
        else:
            shown = self._held(picked or blocks.start_value(element)) if kind in blocks.HOLDS else []
            if not shown and element.get("placeholder"):
                shown = [self.text(element["placeholder"])]
            yield from shown

    def _held(self, value: Json) -> list[str]:
        """What a menu, a picker or a text field shows."""
        name = blocks.HOLDS[value["type"]]
        held = value.get(name)
        items = held if isinstance(held, list) else [held]
        if name in ("selected_user", "selected_users"):
            return [self._link(f"@{user}") for user in items if user]
        if name == "selected_date_time":
            return [self.date(held, "{date_short} at {time}")] if held else []
        return [self._option(item) if isinstance(item, dict) else str(item) for item in items if item]

    def text(self, text: Json) -> str:
        """A text object's visible text."""
        return str(text["text"]) if text["type"] == "plain_text" else self.markup(text["text"])

    def markup(self, text: str) -> str:
        """mrkdwn without its marks: code stays as it is, links show their label, dates their time."""
        pieces, end = [], 0
        for found in _CODE.finditer(text):
            pieces += [self._plain(text[end : found.start()]), self._entities(found[1] or found[2])]
            end = found.end()
        return "".join([*pieces, self._plain(text[end:])])

    def date(self, seconds: int, pattern: str) -> str:
        """A date pattern such as `{date_short_pretty} at {time}`, in UTC."""
        when = datetime.fromtimestamp(seconds, UTC)
        today = datetime.fromtimestamp(self.world.clock(), UTC).date()
        return _TOKEN.sub(lambda token: _date_part(token[1], when, (when.date() - today).days), pattern)

    def _option(self, option: Json) -> str:
        label = self.text(option["text"])
        return f"{label} {self.text(option['description'])}" if option.get("description") else label

    def _plain(self, text: str) -> str:
        text = re.sub(r"^&gt;\s?", "", text, flags=re.MULTILINE)
        text = self._entities(text)
        for mark in _MARKS:
            text = mark.sub(r"\1", text)
        return text

    def _entities(self, text: str) -> str:
        text = _LINK.sub(lambda found: self._link(found[1]), text)
        return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

    def _link(self, inner: str) -> str:
        target, _, label = inner.partition("|")
        if target.startswith("!date^"):
            _, seconds, pattern, *_ = target.split("^")
            return self.date(int(seconds), pattern)
        if target.startswith("@"):
            user = self.world.users.get(target[1:])
            return f"@{user.name if user else label or target[1:]}"
        if target.startswith("#"):
            channel = self.world.channels.get(target[1:])
            return f"#{channel.name if channel else label or target[1:]}"
        if target.startswith("!subteam^"):
            group = self.world.groups.get(target.split("^")[1])
            return f"@{group.handle}" if group else label or target
        if target.startswith("!"):
            return f"@{target[1:]}"
        return label or target

    def _rich(self, part: Json) -> str:
        if part["type"] == "rich_text_list":
            return "\n".join(self._rich(item) for item in part["elements"])
        return "".join(self._rich_piece(piece) for piece in part["elements"])

    def _rich_piece(self, piece: Json) -> str:
        kind = piece["type"]
        if kind == "text":
            return str(piece["text"])
        if kind == "link":
            return str(piece.get("text") or piece["url"])
        if kind == "emoji":
            return f":{piece['name']}:"
        if kind == "date":
            return self.date(piece["timestamp"], piece["format"])
        return self._link(f"@{piece['user_id']}" if kind == "user" else f"#{piece['channel_id']}")


def bare(label: str) -> str:
    """A control's words without a leading emoji and a trailing ellipsis."""
    return _LEAD.sub("", label.strip()).removesuffix("…").removesuffix("...").strip()


def _date_part(token: str, when: datetime, days: int) -> str:
    near = {0: "Today", -1: "Yesterday", 1: "Tomorrow"}.get(days)
    kind = token.removesuffix("_pretty")
    if kind != token and near:
        return near
    suffix = "th" if 11 <= when.day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(when.day % 10, "th")
    day = f"{when:%B} {when.day}{suffix}, {when.year}"
    hour = when.hour % 12 or 12
    known = {
        "date_num": f"{when:%Y-%m-%d}",
        "date": day,
        "date_short": f"{when:%b} {when.day}, {when.year}",
        "date_long": f"{when:%A}, {day}",
        "time": f"{hour}:{when:%M %p}",
        "time_secs": f"{hour}:{when:%M:%S %p}",
    }
    return known.get(kind, f"{{{token}}}")
