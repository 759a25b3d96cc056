"""Conversations in the store: a turn at a time, whoever speaks, and nothing that was said is lost or done twice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from freezegun.api import FrozenDateTimeFactory

from core.agenda import TryAgain
from core.conversations import Conversation, End, Ending, Said, Stage, Where
from core.engine import ResumeEngine
from core.hosts.base import Load, Look, SessionGone, Standing
from core.hosts.turns import AWAY_MS, Turns
from core.policy import Person
from core.talks import Stale, Word
from tests.conftest import ANA, BEN, HOME, now_ms

HERE = Where(HOME, "C1", "1700000000.000100")
HOST = "motus.x"
_numbers = count(1)


def words(text: str, by: Person = ANA) -> Said:
    ts = f"1700000001.{next(_numbers):06d}"
    return Said(by=by, ts=ts, thread_ts=HERE.thread_ts, text=text, at=now_ms())


@dataclass
class Server:
    """A host's server: its sessions, each with its messages and how it stands."""

    sessions: dict[str, list[str]] = field(default_factory=dict)
    standing: dict[str, Look] = field(default_factory=dict)
    lose_reply: bool = False
    names: Any = field(default_factory=lambda: count(1))

    def talks_in(self, channel: str) -> bool | None:
        return channel == "C1"

    async def begin(self) -> str:
        return self._session([])

    async def renew(self, session: str) -> str:
        return self._session(self._messages(session))

    async def messages(self, session: str) -> int:
        return len(self._messages(session))

    async def say(self, session: str, text: str) -> bool:
        self._messages(session)
        if self.standing[session].standing in (Standing.RUNNING, Standing.WAITING):
            return False
        self.standing[session] = Look(Standing.RUNNING, text)
        if self.lose_reply:
            self.lose_reply = False
            raise TryAgain
        return True

    async def look(self, session: str) -> Look:
        self._messages(session)
        return self.standing[session]

    async def load(self) -> Load:
        return Load(0, 1, 1)

    async def end(self, session: str) -> None:
        self.sessions.pop(session, None)

    def turn_ends(self, session: str) -> None:
        """The turn that runs ends well, and repeats what it was told."""
        text = self.standing[session].text or ""
        self.sessions[session] += [text, text]
        self.standing[session] = Look(Standing.ENDED, text)

    def turn_fails(self, session: str) -> None:
        self.standing[session] = Look(Standing.FAILED, "it broke")

    def _session(self, messages: list[str]) -> str:
        name = f"s{next(self.names)}"
        self.sessions[name], self.standing[name] = list(messages), Look(Standing.ENDED)
        return name

    def _messages(self, session: str) -> list[str]:
        if session not in self.sessions:
            raise SessionGone
        return self.sessions[session]


async def stored(engine: ResumeEngine, where: Where = HERE) -> Conversation:
    talk = await engine.talks.read(where.id)
    assert talk
    return talk


async def one_turn(engine: ResumeEngine, server: Server, text: str) -> Conversation:
    """Say something, and see the turn to its end, told."""
    await engine.talks.say(HERE, HOST, words(text))
    talk = await Turns(engine).send(await stored(engine), server)
    server.turn_ends(talk.session)
    talk, _ = await Turns(engine).look(talk, server)
    assert talk.end == End(kind=Ending.REPLY, text=text)
    return await engine.talks.put(talk.over())


async def test_what_twenty_people_say_at_once_is_one_turn(engine: ResumeEngine) -> None:
    found = await asyncio.gather(*(engine.talks.say(HERE, HOST, words(f"{n}")) for n in range(20)))
    taken = [talk for word, talk in found if word is Word.TAKEN]
    assert [word for word, _ in found].count(Word.BUSY) == 19
    assert [(await stored(engine)).said.text] == [talk.said.text for talk in taken]


async def test_a_message_that_is_brought_again_is_known(engine: ResumeEngine) -> None:
    said = words("once")
    assert (await engine.talks.say(HERE, HOST, said))[0] is Word.TAKEN
    assert (await engine.talks.say(HERE, HOST, said))[0] is Word.AGAIN
    assert (await stored(engine)).turn == 1


async def test_what_slack_brings_again_minutes_later_is_neither_said_again_nor_ends_what_began_since(
    engine: ResumeEngine,
) -> None:
    server, first, stop = Server(), words("first"), words("stop")
    await engine.talks.say(HERE, HOST, first)
    server.turn_ends((await Turns(engine).send(await stored(engine), server)).session)
    talk, _ = await Turns(engine).look(await stored(engine), server)
    await engine.talks.put(talk.over())
    assert await engine.talks.stop(HERE.id, End(kind=Ending.STOPPED, by=ANA), ts=stop.ts)
    await engine.talks.put((await stored(engine)).over())
    await one_turn(engine, server, "second")
    assert (await engine.talks.say(HERE, HOST, first))[0] is Word.AGAIN
    assert not await engine.talks.stop(HERE.id, End(kind=Ending.STOPPED, by=ANA), ts=stop.ts)
    assert (await stored(engine)).stage is Stage.IDLE


async def test_what_is_said_while_the_end_is_told_is_the_next_turn(engine: ResumeEngine) -> None:
    server, turns = Server(), Turns(engine)
    await engine.talks.say(HERE, HOST, words("first"))
    talk = await turns.send(await stored(engine), server)
    server.turn_ends(talk.session)
    await turns.look(talk, server)
    assert (await engine.talks.say(HERE, HOST, words("second", BEN)))[0] is Word.TAKEN
    assert (await engine.talks.say(HERE, HOST, words("third")))[0] is Word.BUSY
    talk = await stored(engine)
    assert (talk.stage, talk.said.text, talk.end and talk.end.text) == (Stage.TELLING, "first", "first")
    talk = await engine.talks.put(talk.over())
    assert (talk.stage, talk.said.text, talk.turn, talk.next) == (Stage.SAID, "second", 2, None)


async def test_whoever_was_overtaken_changes_nothing(engine: ResumeEngine) -> None:
    await engine.talks.say(HERE, HOST, words("first"))
    talk = await stored(engine)
    assert await engine.talks.stop(HERE.id, End(kind=Ending.STOPPED, by=ANA))
    with pytest.raises(Stale):
        await Turns(engine).send(talk, Server())
    assert (await stored(engine)).end == End(kind=Ending.STOPPED, by=ANA)


async def test_a_message_whose_taking_was_not_heard_of_is_sent_once(engine: ResumeEngine) -> None:
    server, turns = Server(), Turns(engine)
    await one_turn(engine, server, "first")
    for ends in (None, server.turn_ends, server.turn_fails):
        server.lose_reply = True
        await engine.talks.say(HERE, HOST, words("again"))
        with pytest.raises(TryAgain):
            await turns.send(await stored(engine), server)
        talk = await stored(engine)
        had = list(server.sessions[talk.session])
        if ends:
            ends(talk.session)
            had = list(server.sessions[talk.session])
        talk = await turns.send(talk, server)
        assert (talk.stage, server.sessions[talk.session]) == (Stage.SENT, had)
        if ends is None:
            server.turn_ends(talk.session)
        talk, _ = await turns.look(talk, server)
        await engine.talks.put(talk.over())


async def test_after_a_failure_it_goes_on_in_a_session_of_the_same_messages(engine: ResumeEngine) -> None:
    server, turns = Server(), Turns(engine)
    before = (await one_turn(engine, server, "well")).session
    await engine.talks.say(HERE, HOST, words("fail"))
    talk = await turns.send(await stored(engine), server)
    server.turn_fails(talk.session)
    talk, _ = await turns.look(talk, server)
    assert talk.end == End(kind=Ending.ERROR, text="it broke")
    await engine.talks.put(talk.over())
    after = (await one_turn(engine, server, "on")).session
    assert after != before
    assert server.sessions == {after: ["well", "well", "on", "on"]}
    assert await engine.talks.of(HOST, before) is None
    assert await engine.talks.of(HOST, after) == await stored(engine)


async def test_somebody_else_s_turn_in_the_session_is_waited_for(engine: ResumeEngine) -> None:
    server, turns = Server(), Turns(engine)
    session = (await one_turn(engine, server, "well")).session
    await server.say(session, "of another client")
    await engine.talks.say(HERE, HOST, words("mine"))
    with pytest.raises(TryAgain):
        await turns.send(await stored(engine), server)
    server.turn_ends(session)
    talk = await turns.send(await stored(engine), server)
    assert (talk.stage, server.standing[session].text) == (Stage.SENT, "mine")


async def test_a_cancelled_turn_ends_and_its_conversation_is_the_other_session_s(
    engine: ResumeEngine,
) -> None:
    server = Server()
    await engine.talks.say(HERE, HOST, words("ask"))
    old = (await Turns(engine).send(await stored(engine), server)).session
    await engine.talks.moved(HOST, old, "kept")
    talk = await stored(engine)
    assert (talk.session, talk.end) == ("kept", End(kind=Ending.CANCELLED))
    assert await engine.talks.of(HOST, "kept") == talk
    assert await engine.talks.of(HOST, old) is None


async def test_a_host_that_is_away_too_long_ends_the_turn_with_what_is_known(
    engine: ResumeEngine, clock: FrozenDateTimeFactory
) -> None:
    server, turns = Server(), Turns(engine)
    for ending in (Ending.NOT_SENT, Ending.UNKNOWN):
        await engine.talks.say(HERE, HOST, words("hello"))
        talk = await stored(engine)
        if ending is Ending.UNKNOWN:
            talk = await turns.send(talk, server)
        talk = await turns.away(talk)
        clock.tick(AWAY_MS / 1000 - 1)
        talk = await turns.away(talk)
        assert talk.end is None
        clock.tick(1)
        talk = await turns.away(talk)
        assert talk.end == End(kind=ending)
        await engine.talks.put(talk.over())


async def test_the_conversations_of_a_channel_are_those_that_can_be_ended(engine: ResumeEngine) -> None:
    there = Where(HOME, "C1", "1700000000.000200")
    await engine.talks.say(HERE, HOST, words("one"))
    await engine.talks.say(there, HOST, words("two\nthree", BEN))
    assert {(t.title, t.by) for t in await engine.talks.here(HOME, "C1")} == {
        ("one", ANA),
        ("two three", BEN),
    }
    assert await engine.talks.stop(HERE.id, End(kind=Ending.STOPPED, by=ANA))
    assert not await engine.talks.stop(HERE.id, End(kind=Ending.STOPPED, by=ANA))
    assert [talk.id for talk in await engine.talks.here(HOME, "C1")] == [there.id]
    assert await engine.talks.here(HOME, "C2") == []


async def test_the_same_channel_and_thread_of_another_workspace_is_another_conversation(
    engine: ResumeEngine,
) -> None:
    server, there = Server(), Where("T2", HERE.channel, HERE.thread_ts)
    eve = Person(team="T2", user=ANA.user)
    await engine.talks.say(HERE, HOST, words("here"))
    assert (await engine.talks.say(there, HOST, words("there", eve)))[0] is Word.TAKEN
    for where in (HERE, there):
        await Turns(engine).send(await stored(engine, where), server)
    here, other = await stored(engine), await stored(engine, there)
    assert (here.said.text, other.said.text) == ("here", "there")
    assert here.session != other.session
    assert (here.place.team, other.place.team) == (HOME, "T2")
    assert [talk.id for talk in await engine.talks.here("T2", "C1")] == [there.id]
    assert await engine.talks.stop(there.id, End(kind=Ending.STOPPED, by=eve))
    assert (await stored(engine)).stage is Stage.SENT


async def test_where_nobody_can_be_told_a_turn_is_left_and_the_next_one_goes_on_from_it(
    engine: ResumeEngine,
) -> None:
    server, turns = Server(), Turns(engine)
    await engine.talks.say(HERE, HOST, words("first"))
    talk = await turns.send(await stored(engine), server)
    await engine.talks.leave(HERE.id)
    assert (await stored(engine)).stage is Stage.IDLE
    server.turn_ends(talk.session)
    assert (await engine.talks.say(HERE, HOST, words("second")))[0] is Word.TAKEN
    talk = await turns.send(await stored(engine), server)
    assert server.sessions[talk.session] == ["first", "first"]
