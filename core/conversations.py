"""A conversation: a thread, or a direct message, in which people talk with an agent of a host, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from core.places import Place
from core.policy import CHANNEL, TEAM, ChannelId, Person, TeamId

MOST_CHARS: Final = 200_000
"""How much of an agent's reply is kept until it is posted."""

TITLE_CHARS: Final = 120
MOST_HEARD: Final = 50
MOST_UNOPENED: Final = 50

ID: Final = rf"{TEAM}:{CHANNEL}(?:-\d{{1,12}}\.\d{{6}})?"
"""A conversation's id: its workspace and channel, and the ts of its thread unless it is a direct message."""


class Stage(StrEnum):
    """How far the turn is: nobody has said anything, it is to be sent, the host has it, its end is to be told."""

    IDLE = "idle"
    SAID = "said"
    SENT = "sent"
    TELLING = "telling"


class Ending(StrEnum):
    """How a turn, or the whole conversation (``STOPPED``), ended.

    ``GONE``: the host has forgotten the session. ``CANCELLED``: the turn, not the conversation. ``REFUSED``: the host
    takes no such message. ``NOT_SENT``: the host was away too long. ``UNKNOWN``: it was away when it had the message.
    """

    REPLY = "reply"
    SILENT = "silent"
    ERROR = "error"
    GONE = "gone"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Said(_Part):
    """What somebody said: a message by its ``ts``, and the thread to answer in (empty: none). ``at`` in ms."""

    by: Person
    ts: str
    thread_ts: str = ""
    text: str
    at: int


class End(_Part):
    """What is to be told of a turn. ``text`` is the agent's or the host's, of which ``cut`` characters are not kept;
    ``by``: who stopped it."""

    kind: Ending
    text: str = ""
    cut: int = 0
    by: Person | None = None


class Unopened(_Part):
    """Something that the turn waits for and that cannot be put to people. ``what`` is the host's id of it.

    With a ``tool`` it is the approval of its call, which nobody may give: that takes ``need`` people, and if there is
    a ``besides``, others than the one who asked. Else ``why`` says what is wrong with it. ``told``: it is said in the
    thread.
    """

    what: str
    why: str = ""
    tool: str = ""
    need: int = 1
    besides: Person | None = None
    told: bool = False

    def says_the_same(self, other: Unopened) -> bool:
        """Whether there is nothing more to be told of this one than of the other."""
        return self.model_copy(update={"what": other.what, "told": other.told}) == other


class Sign(_Part):
    """The message that shows how a turn stands: where it is, and which word it shows."""

    ts: str
    word: str


def title_of(said: Said) -> str:
    """A conversation by the first that was said in it."""
    return " ".join(said.text.split())[:TITLE_CHARS]


@dataclass(frozen=True, slots=True)
class Where:
    """Where a conversation is held: in a thread of a channel, or with an empty ``thread_ts`` in a direct message."""

    team: str
    channel: str
    thread_ts: str

    @property
    def id(self) -> str:
        channel = f"{self.team}:{self.channel}"
        return f"{channel}-{self.thread_ts}" if self.thread_ts else channel


class Conversation(_Part):
    """A conversation as it is stored. ``rev`` grows with each change; times are ms.

    ``next`` was said while the end of a turn was being told, and is the next one. ``heard`` are the ts of the last
    messages that were taken, for Slack may bring one again minutes later. ``session`` is the host's id of the
    conversation; ``drop`` are sessions that are to be ended there. ``came_from`` is the session before this one, if
    its turn was cancelled. ``before``: how many messages the session had before the turn's own was sent, so that a
    reading tells whether it got there. ``anew``: the session before this one was lost. ``away_at``: since when the
    host cannot be reached, or 0. ``told``: how many messages of the turn's end are posted. ``unopened``: what the
    turn waits for, of which nobody can be asked.
    """

    id: str
    host: str
    team: TeamId
    channel: ChannelId
    by: Person
    title: Annotated[str, Field(max_length=TITLE_CHARS)]
    turn: int = 0
    stage: Stage = Stage.IDLE
    said: Said
    next: Said | None = None
    heard: tuple[str, ...] = ()
    session: str = ""
    came_from: str = ""
    drop: tuple[str, ...] = ()
    anew: bool = False
    before: int | None = None
    sent_at: int = 0
    away_at: int = 0
    sign: Sign | None = None
    unopened: tuple[Unopened, ...] = ()
    end: End | None = None
    told: int = 0
    rev: int = Field(0, exclude=True)

    @property
    def place(self) -> Place:
        """Where the turn's messages and cards go."""
        return Place(channel=self.channel, thread_ts=self.said.thread_ts or None, team=self.team)

    @property
    def direct(self) -> bool:
        """Whether it is held in a direct message, where nobody else is."""
        return self.id == f"{self.team}:{self.channel}"

    @property
    def alive(self) -> bool:
        """Whether there is something to stop."""
        return bool(self.session) or self.stage in (Stage.SAID, Stage.SENT)

    def having_heard(self, ts: str) -> Self:
        return self.model_copy(update={"heard": (*self.heard, ts)[-MOST_HEARD:]})

    def saying(self, said: Said) -> Self:
        """The conversation with a turn that is to be sent; without a session it begins there."""
        change: dict[str, object] = {"said": said, "next": None, "turn": self.turn + 1, "stage": Stage.SAID}
        change |= {"before": None, "sent_at": 0, "away_at": 0, "end": None, "told": 0, "anew": False}
        change |= {"unopened": ()}
        if not self.session:
            change |= {"by": said.by, "title": title_of(said)}
        return self.model_copy(update=change)

    def over(self) -> Self:
        """The conversation with its turn told to the end: idle, or with the next turn."""
        change = {"stage": Stage.IDLE, "end": None, "before": None, "sign": None, "unopened": ()}
        idle = self.model_copy(update=change)
        return idle.saying(idle.next) if idle.next else idle

    def without_session(self) -> Self:
        """The conversation with its session to be ended at the host."""
        drop = (*self.drop, self.session) if self.session else self.drop
        return self.model_copy(update={"session": "", "drop": drop, "before": None})

    def ending(self, end: End) -> Self:
        """The conversation with the end of its turn to be told."""
        cut = max(len(end.text) - MOST_CHARS, 0)
        end = end.model_copy(update={"text": end.text[:MOST_CHARS], "cut": cut})
        change = {"stage": Stage.TELLING, "end": end, "told": 0, "away_at": 0, "unopened": ()}
        return self.model_copy(update=change)
