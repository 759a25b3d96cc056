"""What the texts of settings mean: one function a kind of text, which raises ValueError with what is wrong.

What is wrong is said without showing a secret.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, SecretStr

from core.address import parse_address
from core.policy import GROUP, KEY, TEAM, USER
from core.redaction import PatternError, Patterns, plain
from core.sealing import key_of
from core.strictjson import quoted

MIN_SECRET = 16
WAIT_MS = 500
MIN_WAIT_MS, MAX_WAIT_MS = 10, 600
"""The longest wait for replicas that is answered before the store's client gives a reply up."""

_ADMIN = re.compile(rf"(?:{TEAM}:)?{USER}|{GROUP}")
# The last label has a letter first, so that an address with a slip in it is not taken for a name.
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


class Bind(NamedTuple):
    """Where the HTTP port listens; port 0 takes any free one."""

    host: str
    port: int


class Wait(NamedTuple):
    """How many replicas have to have a write, and for how many ms they are waited for."""

    replicas: int
    timeout_ms: int


def from_text(parse: Callable[[str], Any]) -> BeforeValidator:
    """Parse a setting's text. `parse` raises ValueError with what is wrong, showing no secret."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def matching(pattern: str, problem: str) -> BeforeValidator:
    """A text of which all has to match; else it is wrong with `problem`."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(problem)
        return text

    return from_text(parse)


def _got(text: str) -> ValueError:
    return ValueError(f"got {quoted(text)}")


def _parts(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(",") if part.strip())


def bind(text: str) -> Bind:
    """An address and a port."""
    # An IPv6 address stands in brackets, as in a URL.
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:\[\]]+)):([0-9]{1,5})", text)
    if match is None or int(match[3]) > 65_535:
        raise _got(text)
    return Bind(match[1] or match[2], int(match[3]))


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:  # whose text may show a password
        raise ValueError("is no URL") from None


def http_url(text: str) -> str:
    """An http or https URL; it comes back with one slash at its end."""
    url = _split(text)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("is no http or https URL")
    return text.rstrip("/") + "/"


def redis_url(text: str) -> str:
    """A store's address, as `core.address` takes it."""
    parse_address(text)
    return text


def wait(text: str) -> Wait:
    """A number of replicas, with or without the ms to wait for them: "1", "2:300"."""
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,4}))?", text)
    wait = Wait(int(match[1]), int(match[2] or WAIT_MS)) if match else None
    if wait is None or wait.replicas < 1 or not MIN_WAIT_MS <= wait.timeout_ms <= MAX_WAIT_MS:
        raise _got(text)
    return wait


def api_keys(text: str) -> dict[str, SecretStr]:
    """`name=secret` pairs. Messages count entries and show none: a slip may have put the secret anywhere."""
    keys: dict[str, SecretStr] = {}
    secrets: set[str] = set()
    for where, entry in _key_entries(text):
        name, equals, secret = (part.strip() for part in entry.partition("="))
        if not equals:
            raise ValueError(f'{where} has no "="')
        if not re.fullmatch(KEY, name):
            raise ValueError(f"{where} has a name that is not 1 to 64 of A-Z a-z 0-9 . _ -")
        if len(secret) < MIN_SECRET:
            raise ValueError(f"{where} has a secret of {len(secret)} characters")
        if not re.fullmatch(r"[!-~]+", secret):
            raise ValueError(f"{where} has a secret with blanks or other than ASCII characters")
        if name in keys or secret in secrets:
            raise ValueError(f"{where} repeats an earlier {'name' if name in keys else 'secret'}")
        keys[name] = SecretStr(secret)
        secrets.add(secret)
    if not keys:
        raise ValueError("names no key")
    return keys


def _key_entries(text: str) -> Iterator[tuple[str, str]]:
    if not text.startswith("@"):
        for number, entry in enumerate(_parts(text), 1):
            yield f"entry {number}", entry
        return
    for number, line in enumerate(_lines_of(text[1:]), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"line {number} of the file", line


def encryption_keys(text: str) -> tuple[SecretStr, ...]:
    """Keys, the first of which encrypts. Messages count them and show none."""
    keys: list[SecretStr] = []
    for where, entry in _key_entries(text):
        try:
            keys.append(SecretStr(key_of(entry.strip()).decode()))
        except ValueError:
            raise ValueError(f"{where} is no key") from None
    if not keys:
        raise ValueError("has no key")
    return tuple(keys)


def admins(text: str) -> tuple[str, ...]:
    """Ids of users (with or without their team) and of user groups, with commas between."""
    admins = tuple(_parts(text))
    for admin in admins:
        if not _ADMIN.fullmatch(admin):
            raise _got(admin)
    return admins


def reachable(text: str) -> tuple[IPv4Network | IPv6Network | str, ...]:
    """Networks, addresses and host names (in small letters), with commas between."""

    def one(part: str) -> IPv4Network | IPv6Network | str:
        try:
            return ipaddress.ip_network(part, strict=False)
        except ValueError:
            if not _HOST.fullmatch(part):
                raise _got(part) from None
            return part.lower()

    return tuple(one(part) for part in _parts(text))


def switch(text: str) -> bool:
    """On or off, also as true, false, 1 and 0."""
    words = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
    if text.lower() not in words:
        raise _got(text)
    return words[text.lower()]


def redact_fields(text: str) -> tuple[str, ...]:
    """Names with commas between; the one name "none" is no name."""
    names = tuple(_parts(text))
    if [name.lower() for name in names] == ["none"]:
        return ()
    for name in names:
        if not plain(name):
            raise ValueError(f"{quoted(name)} has no letter and no digit")
    return names


def redact_patterns(text: str) -> Patterns | None:
    """The expressions of a file, one a line; empty lines, and lines that begin with #, are none."""
    lines = [
        (number, line)
        for number, line in enumerate(_lines_of(text), 1)
        if line.strip() and not line.startswith("#")
    ]
    try:
        return Patterns([line for _, line in lines]) if lines else None
    except PatternError as error:
        raise ValueError(f"line {lines[error.number][0]} of the file: {error}") from None


def _lines_of(path: str) -> list[str]:
    return _text_of(path).splitlines()


def _text_of(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"cannot read the file {quoted(path)} ({reason})") from None


def toml_file(text: str) -> Path:
    """The path of a file that is there and is TOML."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise ValueError(f"there is no file {quoted(text)}")
    try:
        tomllib.loads(_text_of(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"the file {quoted(text)} is no TOML ({error})") from None
    return path
