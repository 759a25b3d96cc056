"""The server's own clock of a turn, `--timeout`: it runs while people think, and nobody is told what it shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from core.clock import Clock
from core.hosts.base import Sessions
from core.hosts.motus.client import Session

MARGIN_S: Final = 5
"""A deadline is that much before the server's own, so that the explicit failure gets there in time."""


async def _nothing() -> None:
    """Nothing is counted."""


class TurnClock:
    """Counts each turn from a moment at which it had not begun, in ms: the server's clock cannot be ahead of that.

    That moment is the sending, if askgate began the turn, or the last look at which it did not run. It is remembered
    for all processes, for who was just started has not looked before: a turn that nobody remembers counts from the
    first look then.
    """

    def __init__(self, host: str, turn_timeout_s: int | None, sessions: Sessions, clock: Clock) -> None:
        """``turn_timeout_s``: the server's setting; None: it has none, and nothing is counted."""
        self._host = host
        self._turn_s = turn_timeout_s
        self._sessions = sessions
        self._clock = clock
        self._turns: dict[tuple[str, int], int] = {}
        self._looked_ms: int | None = None

    async def begins(self, session_id: str) -> Callable[[], Awaitable[None]]:
        """A message is about to be sent. Returns what is to be called if it is not taken, for another turn runs there.

        Both raise StoreUnavailable.
        """
        if self._turn_s is None:
            return _nothing
        noted, known = await self._sessions.begun(self._host, session_id), self._turns
        self._turns = {turn: since for turn, since in known.items() if turn[0] != session_id}
        await self._note(session_id, self._clock.now_ms())

        async def does_not() -> None:
            self._turns |= {turn: since for turn, since in known.items() if turn[0] == session_id}
            await self._note(session_id, noted or 0)

        return does_not

    async def look(self, sessions: Iterable[Session], asked_ms: int) -> None:
        """What the server said when it was asked at ``asked_ms``. Raises StoreUnavailable."""
        if self._turn_s is None:
            return
        # by the number of its messages too, for one turn may follow another between two looks
        busy = {(s.id, s.turns) for s in sessions if s.status in ("running", "interrupted")}
        self._turns = {turn: since for turn, since in self._turns.items() if turn in busy}
        for turn in busy - self._turns.keys():
            self._turns[turn] = await self._since(turn[0], asked_ms)
        self._looked_ms = asked_ms

    def left_s(self, session_id: str) -> int | None:
        """How long people may take with what a turn asks; None: as long as they like."""
        if self._turn_s is None:
            return None
        now_ms = self._clock.now_ms()
        since_ms = min(
            (since for turn, since in self._turns.items() if turn[0] == session_id), default=now_ms
        )
        gone_s = -(-(now_ms - since_ms) // 1000)
        return max(1, self._turn_s - MARGIN_S - gone_s)

    async def _since(self, session_id: str, asked_ms: int) -> int:
        noted = await self._sessions.begun(self._host, session_id)
        if self._looked_ms is not None:
            since = max(self._looked_ms, noted or 0)
        elif noted is None or asked_ms - noted >= self._turn_ms:
            # the turn that is remembered must be over, so this is one that began since
            since = asked_ms
        else:
            since = noted
        if since != noted:
            await self._note(session_id, since)
        return since

    async def _note(self, session_id: str, at_ms: int) -> None:
        await self._sessions.began(self._host, session_id, at_ms, kept_ms=self._turn_ms)

    @property
    def _turn_ms(self) -> int:
        return 1000 * (self._turn_s or 0)
