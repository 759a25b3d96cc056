"""The sentences that askgate says in Slack."""

from __future__ import annotations

import ast
import re
import unicodedata
from pathlib import Path

import bot
from bot.listeners.commands import COMMAND
from bot.manifest import manifest
from bot.sandbox import LocalSlack
from bot.words import english

BOT = Path(bot.__file__).parent
PAGE = BOT / "sandbox" / "page"


def test_every_sentence_is_said_somewhere() -> None:
    read = {
        node.attr
        for path in BOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "words"
    }
    names = [n for n in ast.walk(ast.parse(Path(english.__file__).read_text())) if isinstance(n, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    defined = {name for name in vars(english) if name.isupper() and not name.startswith("_")}
    assert defined - read - own == set()


def test_every_sign_in_the_sentences_is_drawn_by_the_local_slacks_page() -> None:
    source = Path(english.__file__).read_text()
    signs = {char for char in source if unicodedata.category(char) == "So"}
    assert len(signs) > 8
    codes = re.findall(r'^  "?([\w+-]+)"?: "(.)\ufe0f?",$', (PAGE / "emoji.js").read_text(), re.MULTILINE)
    drawn = set(re.findall(r'^\.emoji\[data-emoji="(\w+)"\]', (PAGE / "emoji.css").read_text(), re.MULTILINE))
    assert signs - {sign for name, sign in codes if name in drawn} == set()


def test_the_local_slack_hints_at_the_command_as_the_manifest_does() -> None:
    [hinted] = LocalSlack().app.commands
    [told] = manifest(None)["features"]["slash_commands"]
    assert (hinted.command, hinted.description, hinted.usage) == (
        COMMAND,
        told["description"],
        told["usage_hint"],
    )
