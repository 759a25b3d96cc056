"""Who did something in Slack, and what to tell them privately when it was refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot import words
from bot.cards.deciders import deciders
from bot.cards.text import date, inert, mention
from bot.listeners.problems import problem
from core.errors import (
    AlreadySettled,
    ArgumentsChanged,
    AskgateError,
    CannotVerify,
    Expired,
    Invalid,
    NotAllowed,
    NotFound,
    Overtaken,
    SelfApproval,
)
from core.gates import Gate
from core.policy import Person

SAID_BYTES: Final = 600
"""Of what was wrong with an answer, which may quote it."""


def person_of(body: Mapping[str, Any]) -> Person:
    """The person behind a payload: their own team, which is another one than ours for a Slack Connect guest."""
    user = body.get("user")
    if isinstance(user, Mapping):
        team = user.get("team_id") or (body.get("team") or {}).get("id")
        return Person(team=str(team), user=str(user["id"]))
    return Person(team=str(body["team_id"]), user=str(body["user_id"]))


def word_for(error: AskgateError, person: Person) -> str:
    """The private sentence for a refusal, as markup."""
    gate = error.extra.get("gate")
    match error:
        case Expired() if isinstance(gate, Gate):
            return words.EXPIRED.format(when=date(gate.deadline))
        case AlreadySettled() if isinstance(gate, Gate) and gate.decision:
            return _already(gate, person)
        case Overtaken():
            return words.CHANGED_MEANWHILE
        case ArgumentsChanged():
            return words.ARGUMENTS_CHANGED
        case SelfApproval():
            who = deciders(gate.policy.deciders, but=person) if isinstance(gate, Gate) else ""
            return words.SELF_APPROVAL_BUT.format(who=who) if who else words.SELF_APPROVAL
        case CannotVerify():
            return words.CANNOT_VERIFY
        case NotAllowed():
            who = deciders(gate.policy.deciders) if isinstance(gate, Gate) else ""
            return words.NOT_ALLOWED_BUT.format(who=who) if who else words.NOT_ALLOWED
        case NotFound() if isinstance(gate, Gate):
            return words.NO_SUCH_CONTROL
        case NotFound():
            return words.GONE
        case Invalid():
            said = error.errors[0]["msg"] if error.errors else error.detail
            return words.INVALID.format(what=inert(problem(said), SAID_BYTES))
    return inert(problem(error.detail), SAID_BYTES)


def _already(gate: Gate, person: Person) -> str:
    decision = gate.decision
    assert decision is not None  # noqa: S101  # the caller has looked
    what, when = words.SETTLED[decision.outcome].lower(), date(decision.at)
    if person in decision.by:
        return words.ALREADY_YOU.format(what=what, when=when)
    if not decision.by:
        return words.ALREADY_NOBODY.format(what=what, when=when)
    who = ", ".join(mention(actor) for actor in decision.by)
    return words.ALREADY.format(what=what, who=who, when=when)
