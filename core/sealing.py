"""Secrets at rest: sealed with a key that the store does not have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from core.errors import AskgateError


class Unsealable(AskgateError):
    """None of ASKGATE_ENCRYPTION_KEYS opens what is stored; keep the key that sealed it among them."""

    slug = "unsealable"


class Seals:
    """Seals with the first key and opens with any (Fernet: AES-128-CBC and HMAC-SHA-256). Shows no key."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])
        self._first = Fernet(keys[0])

    def seal(self, name: str, value: dict[str, Any]) -> str:
        """``value`` as text that says nothing. It opens under the same ``name`` only."""
        return self._first.encrypt(json.dumps({"name": name, "value": value}).encode()).decode()

    def open(self, name: str, text: str) -> dict[str, Any]:
        """What was sealed under this name. Raises Unsealable, also for what was put in from another name's place."""
        try:
            found = json.loads(self._fernet.decrypt(text.encode()))
        except InvalidToken:
            raise Unsealable(f"{name}: {Unsealable.__doc__}") from None
        if found["name"] != name:
            raise Unsealable(f"{name}: what is stored there is not its own; remove it and install again.")
        value: dict[str, Any] = found["value"]
        return value

    def is_first(self, text: str) -> bool:
        """Whether a text is sealed with the first key."""
        try:
            self._first.decrypt(text.encode())
        except InvalidToken:
            return False
        return True


def key_of(text: str) -> bytes:
    """A key as it is set: 32 bytes in URL-safe base64. Raises ValueError."""
    Fernet(text.encode())
    return text.encode()
