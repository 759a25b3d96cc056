"""Who may decide a gate, how many of them it takes, and with what duties. Deny by default.

A principal is one of: ``U1`` (a person of the home workspace), ``T2:U9`` (a person of another one), ``S1`` (a user
group), ``channel`` (members of the card's channel), ``anyone`` (of the home workspace), ``admins``, ``key:<name>`` (an
API key). A person is (team, user id), never a name. Somebody of another workspace decides only if named as ``T2:U9``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Protocol

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
)

from core.errors import CannotVerify, NotAllowed, SelfApproval

USER = r"[UW][A-Z0-9]{1,31}"
TEAM = r"[TE][A-Z0-9]{1,31}"
CHANNEL = r"[CGD][A-Z0-9]{1,31}"
GROUP = r"S[A-Z0-9]{1,31}"
KEY = r"[A-Za-z0-9._-]{1,64}"

UserId = Annotated[str, StringConstraints(pattern=rf"^{USER}$")]
TeamId = Annotated[str, StringConstraints(pattern=rf"^{TEAM}$")]
ChannelId = Annotated[str, StringConstraints(pattern=rf"^{CHANNEL}$")]

_PRINCIPAL = re.compile(rf"(?:{TEAM}:)?{USER}|{GROUP}|channel|anyone|key:{KEY}")
_NAMED = re.compile(rf"(?:({TEAM}):)?({USER})")


def _principal(value: str) -> str:
    if not _PRINCIPAL.fullmatch(value):
        raise ValueError(
            'wanted a user ("U1" or "T2:U9"), a user group ("S1"), "channel", "anyone" or "key:<name>"'
        )
    return value


Principal = Annotated[str, AfterValidator(_principal)]


class Person(BaseModel):
    """A person in Slack."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    team: TeamId
    user: UserId


class Key(BaseModel):
    """A caller of the HTTP API, by the name of its key."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    key: Annotated[str, StringConstraints(pattern=rf"^{KEY}$")]


Actor = Person | Key


def named(principals: Iterable[str], *, home: str | None) -> list[Person]:
    """The people who are named by their ids, once each. ``home`` is the team id of the workspace served."""
    found = (_NAMED.fullmatch(principal) for principal in principals)
    teams = ((match[1] or home, match[2]) for match in found if match)
    return list(dict.fromkeys(Person(team=team, user=user) for team, user in teams if team))


def names_people(principals: Iterable[str]) -> bool:
    """Whether somebody is named by an id."""
    return any(_NAMED.fullmatch(principal) for principal in principals)


class PolicyRequest(BaseModel):
    """The policy as a run's caller states it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    responders: list[Principal] | None = Field(None, max_length=256)
    approvers: list[Principal] | None = Field(None, max_length=256)
    quorum: StrictInt = Field(1, ge=1, le=32)
    reject_quorum: StrictInt = Field(1, ge=1, le=32)
    self_approval: StrictBool = False
    reason: Literal["never", "on_reject", "always"] = "never"
    edits: StrictBool = False


class Policy(BaseModel):
    """The policy of one gate, with the defaults filled in."""

    model_config = ConfigDict(frozen=True)
    deciders: tuple[str, ...]
    quorum: int = 1
    reject_quorum: int = 1
    self_approval: bool = False
    reason: Literal["never", "on_reject", "always"] = "never"
    edits: bool = False

    def need(self, approving: bool) -> int:
        """How many votes settle an approval, for it or against it."""
        return self.quorum if approving else self.reject_quorum


class Directory(Protocol):
    """What only the chat system knows. Raise CannotVerify when it cannot be told now."""

    async def in_channel(self, channel: str, person: Person) -> bool: ...
    async def in_group(self, group: str, person: Person) -> bool: ...
    async def is_active(self, person: Person) -> bool: ...


class NoDirectory:
    """Without Slack nobody can be looked up: groups and channels refuse."""

    async def in_channel(self, channel: str, person: Person) -> bool:
        raise CannotVerify

    async def in_group(self, group: str, person: Person) -> bool:
        raise CannotVerify

    async def is_active(self, person: Person) -> bool:
        raise CannotVerify


async def check_admin(admins: Sequence[str], by: Actor, *, home: str | None, directory: Directory) -> None:
    """Refuse who is no admin. A key may do what admins may: whoever has one runs askgate.

    Raises NotAllowed or CannotVerify.
    """
    if isinstance(by, Person) and not await is_among(
        admins, by, home=home, channel=None, directory=directory
    ):
        raise NotAllowed("Only an admin (ASKGATE_ADMINS) may do this.")


async def is_among(
    principals: Sequence[str], person: Person, *, home: str | None, channel: str | None, directory: Directory
) -> bool:
    """Whether a person is one of the principals, and neither deactivated nor a bot.

    ``home`` is the team id of the workspace that askgate serves, ``channel`` where the card is.
    Raises CannotVerify if only a look-up could have said yes and it failed.
    """
    if not await _is_named(principals, person, home=home, channel=channel, directory=directory):
        return False
    try:
        return await directory.is_active(person)
    except CannotVerify:
        # the chat system lets nobody act who is not: that is knowledge to refuse by, not to let in by
        return True


async def _is_named(
    principals: Sequence[str], person: Person, *, home: str | None, channel: str | None, directory: Directory
) -> bool:
    if f"{person.team}:{person.user}" in principals:
        return True
    if person.team != home:
        return False
    if person.user in principals or "anyone" in principals:
        return True
    unsure: CannotVerify | None = None
    for principal in principals:
        try:
            if principal == "channel" and channel and await directory.in_channel(channel, person):
                return True
            if re.fullmatch(GROUP, principal) and await directory.in_group(principal, person):
                return True
        except CannotVerify as error:
            unsure = error
    if unsure:
        raise unsure
    return False


async def check_allowed(
    policy: Policy,
    actor: Actor,
    *,
    approval: bool,
    approving: bool,
    requester: Person | None,
    home: str | None,
    channel: str | None,
    admins: Sequence[str],
    directory: Directory,
    speaks_for: Person | None = None,
) -> None:
    """Refuse an actor who may not decide.

    An API key decides only where the policy names it (a question's ``anyone`` includes keys, an approval's does not);
    ``speaks_for`` is the person a trusted key acts for. Raises NotAllowed, SelfApproval or CannotVerify.
    """
    person = speaks_for if isinstance(actor, Key) else actor
    if approving and not policy.self_approval and _is_same(person, requester):
        raise SelfApproval
    if isinstance(actor, Key):
        if f"key:{actor.key}" in policy.deciders or (not approval and "anyone" in policy.deciders):
            return
        raise NotAllowed(f"The API key {actor.key!r} is not among those who may decide this.")
    principals = [p for p in policy.deciders if p != "admins"]
    if "admins" in policy.deciders:
        principals += admins
    if not await is_among(principals, actor, home=home, channel=channel, directory=directory):
        raise NotAllowed


def _is_same(person: Person | None, other: Person | None) -> bool:
    """Whether these may be one person. In an organisation ids are the same in each of its workspaces, and which are its
    workspaces changes: so one who is known by the organisation (E…) is taken for whoever has that id."""
    if person is None or other is None or person.user != other.user:
        return False
    return person.team == other.team or "E" in (person.team[0], other.team[0])


def can_be_decided(
    policy: Policy,
    *,
    requester: Person | None,
    admins: Sequence[str],
    quorum: int,
    home: str | None = None,
    channel: bool = True,
) -> bool:
    """Whether enough could ever decide this to reach the quorum: people and keys (groups and the like count as enough).

    ``home`` is the team id of the workspace that askgate serves, if known; ``channel``: the card is in a channel.
    """
    principals = {p for p in policy.deciders if p != "admins"}
    if "admins" in policy.deciders:
        principals.update(admins)
    if not channel:
        principals.discard("channel")
    if any(p in ("anyone", "channel") or p.startswith("S") for p in principals):
        return True
    # one person may be named in both ways; a key has one vote, whomever it speaks for
    voices = {p if ":" in p or home is None else f"{home}:{p}" for p in principals}
    if requester is not None and not policy.self_approval:
        voices.discard(f"{requester.team}:{requester.user}")
        if home is None:
            voices.discard(requester.user)
    return len(voices) >= quorum
