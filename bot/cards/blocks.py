"""Block Kit as plain dicts: one small function a block or element. What they build is checked by `limits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot import words
from core.policy import Actor, Person

Block = dict[str, Any]


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def header(text: str) -> Block:
    return {"type": "header", "text": plain(text)}


def markup(text: str, block_id: str | None = None) -> Block:
    """A section of our own words as markup. Never give it an agent's text."""
    return _named({"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}, block_id)


def row(text: str, accessory: Block | None = None) -> Block:
    """A text that is no markup, safe for an agent's, with an element beside it."""
    return {"type": "section", "text": plain(text)} | _given(accessory=accessory)


def context(*texts: str) -> Block:
    """A line of our own words in small print, as markup."""
    return {
        "type": "context",
        "elements": [{"type": "mrkdwn", "text": text, "verbatim": True} for text in texts],
    }


def note(text: str) -> Block:
    """A line in small print that is no markup: safe for an agent's text."""
    return {"type": "context", "elements": [plain(text)]}


def divider() -> Block:
    return {"type": "divider"}


def actions(block_id: str, elements: Sequence[Block]) -> Block:
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


# rich text: what an agent wrote, as it wrote it


def rich(*elements: Block) -> Block:
    return {"type": "rich_text", "elements": list(elements)}


def piece(text: str, *, bold: bool = False, italic: bool = False, code: bool = False) -> Block:
    style = {name: True for name, on in (("bold", bold), ("italic", italic), ("code", code)) if on}
    return {"type": "text", "text": text} | ({"style": style} if style else {})


def person(actor: Actor) -> Block:
    """Somebody's name in rich text: a person as a mention, an API key by its name."""
    if isinstance(actor, Person):
        return {"type": "user", "user_id": actor.user}
    return piece(words.api_key_plain(actor.key))


def line(*pieces: Block) -> Block:
    return {"type": "rich_text_section", "elements": [p for p in pieces if p.get("text") != ""]}


def listing(lines: Sequence[Block], *, ordered: bool = False) -> Block:
    return {"type": "rich_text_list", "style": "ordered" if ordered else "bullet", "elements": list(lines)}


def quote(text: str) -> Block:
    return {"type": "rich_text_quote", "elements": [piece(text)]}


def code(text: str) -> Block:
    return {"type": "rich_text_preformatted", "elements": [piece(text)]}


# elements


def button(
    text: str,
    action_id: str,
    value: str = "",
    *,
    style: str | None = None,
    confirm: Block | None = None,
    url: str | None = None,
    label: str | None = None,
) -> Block:
    """A button. With a ``url`` it opens that page, and the click is told all the same; ``label`` is its name aloud."""
    element: Block = {"type": "button", "text": plain(text), "action_id": action_id}
    return element | _given(
        value=value or None, style=style, confirm=confirm, url=url, accessibility_label=label
    )


def confirm(title: str, text: str, yes: str, no: str) -> Block:
    """What a button asks back before it does what cannot be undone."""
    asked = {"title": plain(title), "text": plain(text), "confirm": plain(yes), "deny": plain(no)}
    return {**asked, "style": "danger"}


def option(text: str, value: str, description: str | None = None) -> Block:
    return {"text": plain(text), "value": value} | (
        {"description": plain(description)} if description else {}
    )


def select(action_id: str, placeholder: str, options: Sequence[Block], initial: Block | None = None) -> Block:
    element: Block = {
        "type": "static_select",
        "action_id": action_id,
        "placeholder": plain(placeholder),
        "options": list(options),
    }
    return element | _given(initial_option=initial)


def multi_select(
    action_id: str,
    placeholder: str,
    options: Sequence[Block],
    initial: Sequence[Block] = (),
    most: int | None = None,
) -> Block:
    element: Block = {
        "type": "multi_static_select",
        "action_id": action_id,
        "placeholder": plain(placeholder),
        "options": list(options),
    }
    return element | _given(initial_options=list(initial) or None, max_selected_items=most)


def radio(action_id: str, options: Sequence[Block], initial: Block | None = None) -> Block:
    element: Block = {"type": "radio_buttons", "action_id": action_id, "options": list(options)}
    return element | _given(initial_option=initial)


def checkboxes(action_id: str, options: Sequence[Block], initial: Sequence[Block] = ()) -> Block:
    element: Block = {"type": "checkboxes", "action_id": action_id, "options": list(options)}
    return element | _given(initial_options=list(initial) or None)


def overflow(action_id: str, options: Sequence[tuple[str, str]]) -> Block:
    """A menu behind three dots, of texts and their values."""
    offered = [option(text, value) for text, value in options]
    return {"type": "overflow", "action_id": action_id, "options": offered}


def users(action_id: str, placeholder: str, most: int) -> Block:
    """A menu of the workspace's people."""
    return {
        "type": "multi_users_select",
        "action_id": action_id,
        "placeholder": plain(placeholder),
        "max_selected_items": most,
    }


def text_input(
    action_id: str,
    *,
    multiline: bool = True,
    most: int = 3000,
    initial: str | None = None,
    focus: bool = False,
) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": action_id,
        "multiline": multiline,
        "max_length": most,
    }
    return element | _given(initial_value=initial, focus_on_load=True if focus else None)


def number_input(
    action_id: str,
    *,
    decimal: bool,
    least: str | None = None,
    most: str | None = None,
    initial: str | None = None,
) -> Block:
    element: Block = {"type": "number_input", "action_id": action_id, "is_decimal_allowed": decimal}
    return element | _given(min_value=least, max_value=most, initial_value=initial)


def date_input(action_id: str, initial: str | None = None) -> Block:
    """A calendar. ``initial`` is such as 2026-01-31."""
    return {"type": "datepicker", "action_id": action_id} | _given(initial_date=initial)


def moment_input(action_id: str, initial: int | None = None) -> Block:
    """A calendar and a clock, in the time zone of whoever sees it. ``initial`` is in seconds since 1970."""
    return {"type": "datetimepicker", "action_id": action_id} | _given(initial_date_time=initial)


def field(
    block_id: str, label: str, element: Block, *, optional: bool = False, hint: str | None = None
) -> Block:
    """An input block of a modal."""
    block: Block = {"type": "input", "block_id": block_id, "label": plain(label), "element": element}
    return block | {"optional": optional} | _given(hint=plain(hint) if hint else None)


def modal(
    title: str,
    blocks: Sequence[Block],
    *,
    callback_id: str,
    metadata: str,
    submit: str | None,
    close: str | None = None,
) -> Block:
    view: Block = {
        "type": "modal",
        "title": plain(title),
        "close": plain(close or words.CLOSE),
        "callback_id": callback_id,
        "private_metadata": metadata,
        "blocks": list(blocks),
    }
    return view | _given(submit=plain(submit) if submit else None)


def _given(**members: Any) -> Block:
    return {name: value for name, value in members.items() if value is not None}


def _named(block: Block, block_id: str | None) -> Block:
    return block | ({"block_id": block_id} if block_id else {})
