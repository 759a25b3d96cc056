"""An agent's Markdown as Slack's rich text: it looks as it was meant, and nothing of it becomes a link or a mention.

Slack's own `markdown` block would make links whose label says another address than they lead to, and notify people.
In rich text only what we make an element of its own is more than text, and that is none of these: the address of a
link stands behind its label, to be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.cards.blocks import Block, code, divider, line, piece, rich
from bot.cards.limits import MESSAGE_BYTES
from bot.cards.text import chunks, size, visible

ROOM_BYTES: Final = MESSAGE_BYTES - 1000
"""What one message holds of an agent's text."""
PIECE_BYTES: Final = 2800
"""What one block holds of it at most."""
BLOCKS: Final = 40
"""Blocks of a message."""
ELEMENTS: Final = 600
"""Pieces of text of a message."""
DEEPEST: Final = 8
"""Slack: rich_text_list, indent."""

_STYLES: Final = {"strong": "bold", "em": "italic", "s": "strike"}
_reader = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class Atom:
    """What is not split: an element of rich text, or a block of its own. Those of one ``group`` share a block."""

    group: int
    element: Block
    bytes: int
    pieces: int = 1


def reply_parts(markdown: str) -> list[list[Block]]:
    """The blocks of one or more messages that show a text in Markdown, each within Slack's limits."""
    return _packed(list(_Reading(_reader.parse(visible(markdown))).atoms()))


def texts(blocks: Sequence[Block]) -> str:
    """All the text of such blocks, for where they cannot be drawn."""
    found = []
    for block in blocks:
        if block.get("type") == "text":
            found.append(str(block["text"]))
        found += [texts(block["elements"])] if block.get("elements") else []
        if block.get("type", "").startswith("rich_text_"):
            found.append("\n")
    return "".join(found)


class _Reading:
    """Walks through the tokens of a text."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._group = 0

    def atoms(self) -> Iterator[Atom]:
        while self._at < len(self._tokens):
            yield from self._block(0)
            self._group += 1

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _block(self, depth: int) -> Iterator[Atom]:
        token = self._take()
        match token.type:
            case "heading_open":
                yield from self._sections(_bold(_inline(self._take())))
            case "inline":
                yield from self._sections(_inline(token))
            case "fence" | "code_block":
                for text in chunks(token.content.rstrip("\n") or " ", PIECE_BYTES):
                    yield Atom(self._group, code(text), size(text))
            case "bullet_list_open" | "ordered_list_open":
                yield from self._list(token, depth)
            case "blockquote_open":
                yield from self._quote()
            case "table_open":
                for text in chunks(self._table() or " ", PIECE_BYTES):
                    yield Atom(self._group, code(text), size(text))
            case "hr":
                yield Atom(self._group, divider(), 0)

    def _sections(self, pieces: Sequence[Block]) -> Iterator[Atom]:
        for some in _split(pieces):
            yield Atom(self._group, line(*some), _bytes(some), len(some))

    def _list(self, opened: Token, depth: int) -> Iterator[Atom]:
        """The items, each with what stands below it: Slack has no list in a list, but deeper ones behind it."""
        ordered = opened.type == "ordered_list_open"
        number = max(int(opened.attrGet("start") or 1), 1) - 1 if ordered else 0
        end = opened.type.replace("open", "close")
        while (token := self._take()).type != end or token.level != opened.level:
            if token.type == "list_item_open":
                yield from self._item(ordered, number, depth, token.level)
                number += 1

    def _item(self, ordered: bool, number: int, depth: int, level: int) -> Iterator[Atom]:
        shown = False
        while not ((token := self._tokens[self._at]).type == "list_item_close" and token.level == level):
            if token.type == "inline" and not shown:
                self._at += 1
                for some in _split(_inline(token)):
                    yield self._point(some, ordered, number, depth)
                shown = True
            else:
                if not shown and token.type not in ("paragraph_open", "paragraph_close"):
                    yield self._point([piece(" ")], ordered, number, depth)
                    shown = True
                yield from self._block(depth + 1)
        self._at += 1
        if not shown:
            yield self._point([piece(" ")], ordered, number, depth)

    def _point(self, pieces: Sequence[Block], ordered: bool, number: int, depth: int) -> Atom:
        element: Block = {
            "type": "rich_text_list",
            "style": "ordered" if ordered else "bullet",
            "indent": min(depth, DEEPEST),
            "elements": [line(*pieces)],
        }
        if ordered and number:
            element["offset"] = number
        return Atom(self._group, element, _bytes(pieces), len(pieces))

    def _quote(self) -> Iterator[Atom]:
        """A quotation, of whatever: as lines of text."""
        pieces: list[Block] = []
        deep = 1
        while deep:
            token = self._take()
            deep += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
            found = _inline(token) if token.type == "inline" else []
            if token.type in ("fence", "code_block"):
                found = [piece(token.content.rstrip("\n"))] if token.content.strip() else []
            if found:
                pieces += [piece("\n"), *found] if pieces else found
        for some in _split(pieces):
            element = {"type": "rich_text_quote", "elements": list(some)}
            yield Atom(self._group, element, _bytes(some), len(some))

    def _table(self) -> str:
        """A table with its columns one below the other."""
        rows: list[list[str]] = []
        while (token := self._take()).type != "table_close":
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append("".join(str(part["text"]) for part in _inline(token)))
        widths = [max(len(row[n]) for row in rows if n < len(row)) for n in range(max(map(len, rows)))]
        rows.insert(1, ["─" * width for width in widths])
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)) for row in rows]
        return "\n".join(text.rstrip() for text in lines)


def _inline(token: Token) -> list[Block]:
    """The pieces of one run of text, with their styles."""
    found: list[tuple[str, frozenset[str]]] = []
    on: list[str] = []
    labels: list[int] = []
    for child in token.children or ():
        name, _, edge = child.type.rpartition("_")
        style = frozenset(on)
        if edge == "open" and name in _STYLES:
            on.append(_STYLES[name])
        elif edge == "close" and name in _STYLES:
            on.remove(_STYLES[name])
        elif child.type == "link_open":
            labels.append(len(found))
            on.append(str(child.attrGet("href") or ""))
        elif child.type == "link_close":
            begun, address = labels.pop(), on.pop()
            if address and address != "".join(text for text, _ in found[begun:]):
                found.append((f" ({address})", frozenset()))
        elif child.type in ("softbreak", "hardbreak"):
            found.append(("\n", frozenset()))
        elif child.type == "image":
            found.append((f"{child.content} ({child.attrGet('src')})", style))
        elif child.type == "code_inline":
            found.append((child.content, style | {"code"}))
        else:
            found.append((child.content, style))
    names = {*_STYLES.values(), "code"}
    return [_styled(text, style & names) for text, style in found if text]


def _styled(text: str, style: frozenset[str]) -> Block:
    found = piece(text)
    return found | {"style": dict.fromkeys(sorted(style), True)} if style else found


def _bold(pieces: Sequence[Block]) -> list[Block]:
    return [part | {"style": {**part.get("style", {}), "bold": True}} for part in pieces]


def _bytes(pieces: Sequence[Block]) -> int:
    return sum(size(str(part["text"])) for part in pieces)


def _split(pieces: Sequence[Block]) -> Iterator[list[Block]]:
    """Pieces of text in runs of at most `PIECE_BYTES`."""
    run: list[Block] = []
    left = PIECE_BYTES
    for part in pieces:
        for text in chunks(str(part["text"]), PIECE_BYTES):
            if run and (size(text) > left or len(run) >= ELEMENTS // 2):
                yield run
                run, left = [], PIECE_BYTES
            run.append(part | {"text": text})
            left -= size(text)
    if run:
        yield run


def _packed(atoms: Sequence[Atom]) -> list[list[Block]]:
    """The atoms in as many messages as it takes."""
    messages: list[list[Block]] = []
    left, pieces, group = 0, 0, -1
    for atom in atoms:
        full = atom.bytes > left or pieces + atom.pieces > ELEMENTS
        if not messages or full or (len(messages[-1]) >= BLOCKS and atom.group != group):
            messages.append([])
            left, pieces, group = ROOM_BYTES, 0, -1
        _add(messages[-1], atom, joined=atom.group == group)
        left, pieces, group = left - atom.bytes, pieces + atom.pieces, atom.group
    return messages


def _add(blocks: list[Block], atom: Atom, *, joined: bool) -> None:
    if atom.element["type"] == "divider":
        blocks.append(atom.element)
        return
    if not joined or blocks[-1]["type"] != "rich_text":
        blocks.append(rich(atom.element))
        return
    last, element = blocks[-1]["elements"][-1], atom.element
    same = last["type"] == element["type"] == "rich_text_list" and all(
        last.get(name) == element.get(name) for name in ("style", "indent")
    )
    if same:
        last["elements"] += element["elements"]
    else:
        blocks[-1]["elements"].append(element)
