"""What a host has to be: something that can be watched for what waits, described for people, and resumed.

An adapter speaks its host's own contract and knows neither Slack nor the store. `desk.py` stands between it and the
engine, so that every host gets the same care: opened once, closed when somebody else settled it, resumed once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from core.requests import RunRequest
from core.resumes import Resume


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that a host waits for. ``external_id`` names it for ever; ``facts`` are the host's own words on it.

    ``session``: the host's id of the conversation that it belongs to, if it is of one.
    """

    external_id: str
    facts: dict[str, Any]
    session: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A host no longer waits for something, and why: somebody else settled it, or what waited has ended."""

    external_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Present:
    """All that the host waited for at one moment.

    ``asked_ms`` is when it was asked (the store's clock): what was opened later may be missing here and yet wait.
    ``why_gone`` says, of an external id that is missing, why that is; None: it waits all the same, though not among
    these. With a ``prefix`` it is all of those whose external ids begin so.
    """

    external_ids: frozenset[str]
    asked_ms: int
    why_gone: Callable[[str], Awaitable[str | None]]
    prefix: str = ""


Seen = Wait | Gone | Present


class Word(StrEnum):
    """What became of a resume.

    ``APPLIED``: the host took it. ``LOST``: it had moved on before. ``REFUSED``: it will never take these results, so
    that people have to decide again. ``RETRYABLE``: it did not get there, or the host cannot take it now. ``UNKNOWN``:
    the host has moved on, and whether by this resume, whose reply was lost, nobody can tell.
    """

    APPLIED = "applied"
    LOST = "lost"
    REFUSED = "refused"
    RETRYABLE = "retryable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reply:
    """A host's word on a resume, and the reason for people.

    ``follow``: what comes of it can be seen later, so the host is to be asked (see `Follows`).
    """

    word: Word
    reason: str | None = None
    follow: bool = False


APPLIED = Reply(Word.APPLIED)


class HostAway(Exception):
    """A host cannot be asked now. The message is ours: it shows no URL."""


class Undescribable(ValueError):
    """What a host waits for cannot be put to people. The message says what is wrong with it."""


class Host(Protocol):
    """One host. ``name`` is that of its queue: the runs' ``host``."""

    name: str

    def watch(self) -> AsyncIterator[Seen]:
        """What waits and what no longer does, as it is found, and at first all that does. Ends only with an error."""
        ...

    def describe(self, wait: Wait) -> RunRequest:
        """What people are asked. Raises Undescribable."""
        ...

    async def resume(self, resume: Resume) -> Reply:
        """Hand over what was decided. Called again after a crash or a `RETRYABLE`, so it begins by looking."""
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...


@dataclass(frozen=True, slots=True)
class AsksAgain:
    """The host went on with what was decided, that failed, and it waits for the same once more."""

    reason: str


class Course(StrEnum):
    """How it stands with what a host went on with."""

    GOES_ON = "goes_on"
    OVER = "over"


Sequel = Course | AsksAgain | Wait


@runtime_checkable
class Follows(Protocol):
    """A host that tells what came of a resume."""

    async def follow(self, external_id: str) -> Sequel:
        """What the host does about something that it was told, or that somebody else told it. Raises HostAway."""
        ...


class NotGenuine(ValueError):
    """A delivery is not the host's own. The message says what is wrong with it."""


@runtime_checkable
class Calls(Protocol):
    """A host that calls when something waits, so that nobody has to find it."""

    def delivery(self, headers: Mapping[str, str], body: bytes) -> str:
        """The id under which a delivery comes, however often. Raises NotGenuine."""
        ...

    async def heard(self, body: bytes) -> list[Wait]:
        """What a genuine delivery says that waits. Raises HostAway."""
        ...


class Sessions(Protocol):
    """What is remembered of the sessions of hosts, by the host's name and its id of the session, for all processes."""

    async def moved(self, host: str, old: str, new: str) -> None:
        """A conversation goes on in another session."""
        ...

    async def moved_to(self, host: str, old: str) -> str | None:
        """The session in which the conversation of this one goes on; None if it never `moved`."""
        ...

    async def began(self, host: str, session: str, at_ms: int, *, kept_ms: int) -> None:
        """A turn began, not before ``at_ms``; this is remembered for ``kept_ms``."""
        ...

    async def begun(self, host: str, session: str) -> int | None:
        """When the last turn began that is remembered."""
        ...

    async def met(self, host: str, sessions: Sequence[str]) -> list[str]:
        """Something waits in these, or did. Returns all such sessions that are remembered, the latest first."""
        ...


class Standing(StrEnum):
    """How it stands with a session: its turn runs (or is queued), waits for people, has ended, or has failed."""

    RUNNING = "running"
    WAITING = "waiting"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Look:
    """A session as it is. ``text``: the reply of the turn that ended, or why it failed; None if there is none."""

    standing: Standing
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """How many turns a host has, running or queued; how many it surely runs at a time, and how many at most."""

    turns: int
    surely: int
    at_most: int


class SessionGone(Exception):
    """The host does not know the session (any more)."""


class NotTaken(Exception):
    """The host will never take this message. The text is for people."""


class Talker(Protocol):
    """An agent that people can talk with, turn by turn. Every call raises HostAway."""

    def talks_in(self, channel: str) -> bool | None:
        """Whether it talks in a channel: True if that is named, None if it does everywhere."""
        ...

    async def begin(self) -> str:
        """Begin a conversation. Returns the session's id."""
        ...

    async def renew(self, session: str) -> str:
        """A session that goes on where this one stands, which is left as it is. Returns its id. Raises SessionGone."""
        ...

    async def messages(self, session: str) -> int:
        """How many messages the session has, of the turns that have ended well. Raises SessionGone."""
        ...

    async def say(self, session: str, text: str) -> bool:
        """Begin a turn. False: another one is under way. Raises SessionGone or NotTaken."""
        ...

    async def look(self, session: str) -> Look:
        """Read a session. Raises SessionGone."""
        ...

    async def load(self) -> Load:
        """How much the host has to do."""
        ...

    async def end(self, session: str) -> None:
        """End a session and whatever runs in it. One that is gone already will do."""
        ...


@runtime_checkable
class Talks(Protocol):
    """A host that people can talk with, if its settings say so."""

    talker: Talker | None
