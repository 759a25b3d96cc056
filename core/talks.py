"""Talks: what people and hosts do with conversations. The engine's part that opens, says and stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from core.conversations import (
    MOST_UNOPENED,
    Conversation,
    End,
    Ending,
    Said,
    Stage,
    Unopened,
    Where,
    title_of,
)
from core.store.met import Met
from core.store.store import Store

TRIES: Final = 20
LOOKED_AT: Final = 200
"""How many conversations of a channel are looked through, the latest."""


class Word(StrEnum):
    """What became of what somebody said: it is the turn or the next one, it is so already, a turn is under way."""

    TAKEN = "taken"
    AGAIN = "again"
    BUSY = "busy"


class Stale(Exception):
    """Somebody has changed the conversation since it was read."""


class Talks:
    """Conversations. Every method raises StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._met = Met(store)

    async def read(self, talk_id: str) -> Conversation | None:
        return await self._store.conversations.read(talk_id)

    async def say(
        self, where: Where, host: str, said: Said, *, anew: bool = False
    ) -> tuple[Word, Conversation]:
        """Begin a turn with what somebody said. ``anew``: with a session of its own, whatever there was before."""
        for _ in range(TRIES):
            found = await self.read(where.id)
            if found and said.ts in found.heard:
                return Word.AGAIN, found
            talk = found or Conversation(
                id=where.id,
                host=host,
                team=where.team,
                channel=where.channel,
                by=said.by,
                title=title_of(said),
                said=said,
            )
            if anew:
                talk = talk.without_session().saying(said)
            elif talk.stage is Stage.IDLE:
                # the sessions of a host that no longer talks here are its own affair
                same = talk.host == host
                talk = (talk if same else talk.model_copy(update={"session": "", "drop": ()})).saying(said)
            elif talk.stage is Stage.TELLING and talk.next is None:
                talk = talk.model_copy(update={"next": said})
            else:
                return Word.BUSY, talk
            talk = talk if talk.stage is Stage.TELLING else talk.model_copy(update={"host": host})
            try:
                return Word.TAKEN, await self.put(talk.having_heard(said.ts), due=True)
            except Stale:
                continue
        raise Stale

    async def stop(self, talk_id: str, end: End, *, ts: str = "") -> bool:
        """End a conversation, and the turn that runs. Returns whether there was anything to end.

        ``ts``: the message that says so. Brought again, it does not end what was begun since.
        """

        def stopped(talk: Conversation) -> Conversation | None:
            if not talk.alive or ts in talk.heard:
                return None
            return (talk.having_heard(ts) if ts else talk).without_session().ending(end)

        return await self._change(talk_id, stopped)

    async def leave(self, talk_id: str) -> None:
        """Its workspace is gone, so nobody can be told how the turn ends; who comes back may say something again."""

        def left(talk: Conversation) -> Conversation | None:
            return None if talk.stage is Stage.IDLE else talk.model_copy(update={"next": None}).over()

        await self._change(talk_id, left, due=False)

    async def here(self, team: str, channel: str) -> list[Conversation]:
        """The conversations of a channel that can be stopped, that in which something happened last first."""
        ids = (await self._store.conversations.ids(team, channel))[:LOOKED_AT]
        found = [await self.read(talk_id) for talk_id in ids]
        return [talk for talk in found if talk and talk.alive]

    async def of(self, host: str, session: str) -> Conversation | None:
        """The conversation that a host's session belongs to."""
        talk_id = await self._store.conversations.of(host, session)
        talk = await self.read(talk_id) if talk_id else None
        return talk if talk and talk.session == session else None

    async def moved(self, host: str, old: str, new: str) -> None:
        """A host cancelled the turn of a session; its conversation goes on as another one."""

        def follow(talk: Conversation) -> Conversation | None:
            if talk.session != old:
                return None
            talk = talk.model_copy(update={"session": new, "came_from": old})
            return talk.ending(End(kind=Ending.CANCELLED)) if talk.stage is Stage.SENT else talk

        if talk := await self.of(host, old):
            await self._change(talk.id, follow, indexed=True)

    async def moved_to(self, host: str, old: str) -> str | None:
        """The session in which the conversation of this one goes on, if it `moved` there."""
        talk_id = await self._store.conversations.of(host, old)
        talk = await self.read(talk_id) if talk_id else None
        return talk.session or None if talk and talk.came_from == old else None

    async def unopened(self, talk: Conversation, item: Unopened) -> None:
        """The turn waits for something that cannot be put to people: it is said in the thread, once."""

        def noted(fresh: Conversation) -> Conversation | None:
            known = any(other.what == item.what for other in fresh.unopened)
            if fresh.session != talk.session or known or len(fresh.unopened) >= MOST_UNOPENED:
                return None
            return fresh.model_copy(update={"unopened": (*fresh.unopened, item)})

        await self._change(talk.id, noted)

    async def opened(self, talk: Conversation, what: str) -> None:
        """Something that the turn waits for was put to people, whatever was said of it before."""

        def without(fresh: Conversation) -> Conversation | None:
            left = tuple(item for item in fresh.unopened if item.what != what)
            return None if left == fresh.unopened else fresh.model_copy(update={"unopened": left})

        if any(item.what == what for item in talk.unopened):
            await self._change(talk.id, without)

    async def began(self, host: str, session: str, at_ms: int, *, kept_ms: int) -> None:
        """A turn of a host's session began, not before ``at_ms``; this is remembered for ``kept_ms``."""
        await self._store.conversations.note_begun(host, session, at_ms, kept_ms)

    async def begun(self, host: str, session: str) -> int | None:
        """When the last turn of a host's session began that is remembered."""
        return await self._store.conversations.begun(host, session)

    async def met(self, host: str, sessions: Sequence[str]) -> list[str]:
        """Sessions in which something waits or waited were met. Returns all that are remembered, the latest first."""
        return await self._met.meet(host, sessions)

    async def put(self, talk: Conversation, *, due: bool = False, indexed: bool = False) -> Conversation:
        """Store a changed conversation and return it. ``due``, ``indexed``: as of the store. Raises Stale."""
        if not await self._store.conversations.write(talk, due=due, indexed=indexed):
            raise Stale
        return talk.model_copy(update={"rev": talk.rev + 1})

    async def _change(
        self,
        talk_id: str,
        change: Callable[[Conversation], Conversation | None],
        *,
        due: bool = True,
        indexed: bool = False,
    ) -> bool:
        """Change a conversation as it is at this moment. ``change`` returns None to leave it alone."""
        for _ in range(TRIES):
            talk = await self.read(talk_id)
            changed = change(talk) if talk else None
            if changed is None:
                return False
            try:
                await self.put(changed, due=due, indexed=indexed)
            except Stale:
                continue
            return True
        raise Stale
