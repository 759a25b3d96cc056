"""What is amiss with a host or with what it waits for, in words for operators: no URL in them, and no value."""

from __future__ import annotations

import traceback
from pathlib import Path

from pydantic import ValidationError

from core.conversations import Unopened
from core.errors import AskgateError, NobodyMayDecide
from core.gates import GateDoc, Kind
from core.hosts.base import HostAway, Undescribable
from core.strictjson import at


def why_away(error: Exception) -> str:
    """Why a host could not be read."""
    # the texts of foreign errors may show a URL with a secret in it
    return str(error) if isinstance(error, HostAway) else f"the adapter failed ({type(error).__name__})"


def why_unopened(error: Exception) -> str:
    """Why something cannot be put to people."""
    match error:
        case ValidationError():
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            return f"{at(first['loc'])}: {first['msg']}"
        case AskgateError() | Undescribable():
            return str(error)
    return f"the adapter failed ({type(error).__name__}: {where(error)})"


def unopened(what: str, error: Exception) -> Unopened:
    """The same for a conversation. ``what`` is the host's id of it."""
    match error:
        case NobodyMayDecide(extra={"asked": GateDoc(kind=Kind.APPROVAL) as gate, **rest}):
            return Unopened(what=what, tool=gate.tool_name, need=rest["need"], besides=rest["besides"])
    return Unopened(what=what, why=why_unopened(error))


def where(error: BaseException) -> str:
    """Where an error came from. Its text may show what people or agents wrote, or a URL with a secret in it."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    return " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
