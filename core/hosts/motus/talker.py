"""Talking with the agent of a Motus server: a session a conversation, a message a turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from core.hosts.base import Load, Look, NotTaken, SessionGone, Standing
from core.hosts.motus.client import Gone, MotusClient, Moved, Refused, Unreadable
from core.hosts.motus.turnclock import TurnClock

_STANDINGS: Final = {
    "running": Standing.RUNNING,
    "interrupted": Standing.WAITING,
    "idle": Standing.ENDED,
    "error": Standing.FAILED,
}

FEWEST_THREADS: Final = 5
"""Each turn takes a thread of the server's as well, of which it has 4 more than processors: nobody is told how many."""


class MotusTalker:
    """See `core.hosts.base.Talker`. ``where``: True for everywhere, or the channels."""

    def __init__(self, client: MotusClient, where: bool | Sequence[str], turns: TurnClock) -> None:
        self._client = client
        self._turns = turns
        self._where = where

    def talks_in(self, channel: str) -> bool | None:
        return None if isinstance(self._where, bool) else channel in self._where

    async def begin(self) -> str:
        with _meant():
            return await self._client.create()

    async def renew(self, session: str) -> str:
        with _meant():
            return await self._client.create(await self._client.messages(session))

    async def messages(self, session: str) -> int:
        with _meant():
            return len(await self._client.messages(session))

    async def say(self, session: str, text: str) -> bool:
        does_not_begin = await self._turns.begins(session)
        try:
            with _meant():
                await self._client.send(session, text)
        except _UnderWay:
            await does_not_begin()
            return False
        return True

    async def look(self, session: str) -> Look:
        try:
            with _meant():
                reading = await self._client.read(session)
        except _Hidden:
            # it waits for something that the server cannot show: the desk offers to cancel it
            return Look(Standing.WAITING)
        standing = _STANDINGS[reading.status]
        return Look(standing, reading.error if standing is Standing.FAILED else reading.response)

    async def load(self) -> Load:
        with _meant():
            workers, sessions = await self._client.workers(), await self._client.sessions()
        turns = sum(session.status in ("running", "interrupted") for session in sessions)
        return Load(turns, min(workers, FEWEST_THREADS), workers)

    async def end(self, session: str) -> None:
        with contextlib.suppress(SessionGone), _meant():
            await self._client.delete(session)


class _UnderWay(Exception):
    """A turn runs in the session."""


class _Hidden(Exception):
    """The server cannot show the session."""


@contextlib.contextmanager
def _meant() -> Iterator[None]:
    """The wire's errors as those of every host; all others are HostAway as they are."""
    try:
        yield
    except Gone as error:
        raise SessionGone from error
    except Moved as error:
        raise _UnderWay from error
    except Unreadable as error:
        raise _Hidden from error
    except Refused as error:
        raise NotTaken(str(error)) from error
