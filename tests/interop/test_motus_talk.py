"""Talking with the real Motus from Slack, over HTTP and Socket Mode: one conversation a thread, one turn at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot import words
from bot.slack import talking
from core.agenda import TryAgain
from core.conversations import Where
from tests.acceptance.world import WAIT_S, Json, World, said, world_in
from tests.interop.between import Between
from tests.interop.conftest import PATIENCE_S, Motus, eventually, free_port

APPROVAL = {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}
WORKING, WAITING, STUCK = (
    words.TALK_SIGNS[word].split(" ", 1)[1] for word in ("working", "waiting", "stuck")
)


class Chat:
    """A workspace with a bot through which people talk with the agent of a real server."""

    def __init__(self, world: World, motus: Motus, folder: Path) -> None:
        self.world = world
        self.motus = motus
        self.folder = folder

    async def serve(self, url: str = "", **more: Any) -> None:
        config = {"url": url or self.motus.url, "talk": True, "approvers": ["channel"], **more}
        file = self.folder / "hosts.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in config.items()]
        file.write_text("\n".join(["[motus.test]", *lines]))
        patterns = self.folder / "patterns"
        patterns.write_text("sk-[a-z0-9]+")
        await self.world.start(ASKGATE_HOSTS=str(file), ASKGATE_REDACT_PATTERNS=str(patterns))

    async def mention(self, name: str, wanted: Any, thread: str | None = None) -> Json:
        """Say something to the agent in #ops (a JSON text is what the agent is to do). Returns the message."""
        text = wanted if isinstance(wanted, str) else json.dumps(wanted)
        return said(await self.world.slack.as_user(name).say(self.world.ops, f"@askgate {text}", thread))

    def shown(self, root: Json) -> list[str]:
        """What the bot has said in a thread, oldest first; in a direct message at its top level."""
        messages, dm = self.world.slack.messages(root["channel"]), root["channel"].startswith("D")
        thread = None if dm else root.get("thread_ts") or root["ts"]
        bot = self.world.slack.app.bot_user
        found = [m for m in messages if m["user"] == bot and m.get("thread_ts") == thread]
        return [self.world.slack.text_of(m) for m in found if m["ts"] != thread]

    async def shows(self, root: Json, *texts: str, in_order: bool = True) -> None:
        """Wait until what the bot has said in a thread is this, each by some of its words."""

        def there() -> bool:
            shown = self.shown(root)
            if not in_order:  # a card and a line of the turn's may come either way round
                shown = sorted(shown, key=lambda s: next((n for n, t in enumerate(texts) if t in s), -1))
            return len(shown) == len(texts) and all(t in s for t, s in zip(texts, shown, strict=True))

        try:
            await self.world.slack.wait_for(there, WAIT_S)
        except TimeoutError:
            raise AssertionError(
                f"the thread does not say {texts}, but {[text[:200] for text in self.shown(root)]}"
            ) from None

    def talk_id(self, root: Json) -> str:
        team = self.world.slack.world.channels[root["channel"]].team
        return Where(team, root["channel"], root["ts"]).id

    async def signed(self, root: Json, word: str) -> None:
        """Wait until everybody knows how the turn stands: Slack shows it a moment before the store has it."""

        async def there() -> bool:
            talk = await self.world.replicas[0].engine.talks.read(self.talk_id(root))
            return bool(talk and talk.sign and talk.sign.word == word)

        await eventually(there)

    async def look(self, root: Json) -> None:
        """Look at a turn that goes on, as a worker does every now and then."""
        with pytest.raises(TryAgain):
            await self.world.replicas[0].worker._handlers["talk"](self.talk_id(root), 1)

    async def session(self) -> str:
        """The one session that the server has."""
        [session] = await self.motus.client.sessions()
        return session.id

    def hold(self) -> Path:
        """A file; a turn that is to wait `until` it is there runs until it is made."""
        return self.folder / "go"


@pytest.fixture(params=["http", "socket"])
async def chat(
    request: pytest.FixtureRequest, motus: Motus, redis_url: str, redis: Redis, tmp_path: Path
) -> AsyncIterator[Chat]:
    async with world_in(request.param, redis_url, tmp_path) as world:
        yield Chat(world, motus, tmp_path)


@pytest.fixture
async def http_chat(motus: Motus, redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[Chat]:
    async with world_in("http", redis_url, tmp_path) as world:
        yield Chat(world, motus, tmp_path)


async def test_a_mention_begins_a_conversation_and_the_replies_stand_in_its_thread(chat: Chat) -> None:
    await chat.serve()
    root = await chat.mention("ana", {"say": "# Hello\n- <!channel> [here](https://evil.example)"})
    await chat.shows(root, "Hello\n")
    assert "<!channel> here (https://evil.example)" in chat.shown(root)[0]
    await chat.mention("ben", {"count": 1}, root["ts"])
    await chat.shows(root, "Hello", "2 before")
    await chat.world.ana.say(chat.world.ops, "not for the agent", root["ts"])
    await chat.world.slack.quiet()
    other = await chat.mention("ana", {"count": 1})
    await chat.shows(other, "0 before")
    await chat.shows(root, "Hello", "2 before")


async def test_what_the_agent_asks_is_a_card_in_the_thread_and_a_message_has_to_wait(chat: Chat) -> None:
    await chat.serve()
    root = await chat.mention("ana", {"in_turn": [APPROVAL]})
    await chat.world.slack.wait_for(lambda: len(chat.shown(root)) == 2, WAIT_S)
    [card] = [text for text in chat.shown(root) if WAITING not in text]
    title, asked = card.splitlines()[:2]
    assert title.startswith('{"in_turn": [')  # what was said
    assert asked.startswith("Asked by agent motus.test · for @ana")
    assert {WAITING in text for text in chat.shown(root)} == {True, False}
    await chat.signed(root, "waiting")
    await chat.mention("ben", "are you there?", root["ts"])
    await chat.world.told("ben", words.TALK_BUSY["waiting"])
    await chat.world.ana.click("Approve")
    await chat.world.told("ana", "You asked for this")
    await chat.world.ben.click("Approve")
    await chat.shows(root, "Approved", '[{"approved": true}]')


async def test_what_nobody_may_give_is_said_in_the_thread_and_a_card_comes_when_somebody_may(
    http_chat: Chat,
) -> None:
    chat = http_chat
    ana = chat.world.ids["ana"]
    await chat.serve(approvers=[ana])
    root = await chat.mention("ana", {"in_turn": [{"type": 7}]})
    await chat.world.slack.wait_for(lambda: len(chat.shown(root)) == 2, WAIT_S)
    await chat.world.ana.click("Approve")  # her own turn she may cancel
    cancelled = ["Approved by @ana", words.TALK_ENDS["cancelled"]]
    await chat.shows(root, *cancelled)
    chat.world.slack.fail("chat.postMessage", reset_after_accept=True, times=2)
    both = [APPROVAL, {**APPROVAL, "tool_args": {"path": "/tmp/new.log"}}]
    why = {"type": "user_input", "questions": ["Why?"]}
    await chat.mention("ana", {"at_once": [*both, why]}, root["ts"])
    nobody = "approval of delete_file, and nobody may give it: no approver is named besides @ana, who asked"
    await chat.shows(root, *cancelled, WAITING, nobody, "Why?", in_order=False)
    await chat.look(root)
    await chat.shows(root, *cancelled, WAITING, nobody, "Why?", in_order=False)
    await chat.world.ana.click("Answer in a form")
    await chat.world.ana.fill({"Why?": "so"})
    await chat.world.ana.submit()
    await chat.shows(root, *cancelled, STUCK, nobody, "Why?", in_order=False)
    mend = "name more approvers in the block motus.test, or set self_approval = true there"
    assert [mend in text for text in chat.shown(root)].count(True) == 1
    await chat.signed(root, "stuck")
    await chat.mention("ben", "are you there?", root["ts"])
    await chat.world.told("ben", "Not sent: the agent waits for what nobody here can give it")
    await chat.world.stop()
    await chat.serve(approvers=[ana], self_approval=True)
    paths = ('\n  "path": "/tmp/old.log"', '\n  "path": "/tmp/new.log"')
    await chat.shows(root, *cancelled, WAITING, nobody, "Why?", *paths, in_order=False)


async def test_a_message_while_a_turn_runs_is_refused_and_stop_ends_it(chat: Chat) -> None:
    await chat.serve()
    root = await chat.mention("ana", {"until": str(chat.hold()), "say": "never"})
    await chat.shows(root, WORKING)
    await chat.mention("ben", "hurry up", root["ts"])
    await chat.world.told("ben", "Not sent: the agent is still busy")
    await chat.mention("ben", "stop", root["ts"])
    await chat.world.told("ben", "Only @ana, who began this conversation")
    await chat.mention("ana", "stop", root["ts"])
    await chat.shows(root, "@ana ended this conversation")
    async with asyncio.timeout(PATIENCE_S):
        while await chat.motus.client.sessions():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await chat.mention("ben", {"count": 1}, root["ts"])
    await chat.shows(root, "ended this conversation", "0 before")


async def test_in_a_direct_message_every_message_is_for_the_agent(chat: Chat) -> None:
    await chat.serve()
    eve, dm = chat.world.eve, chat.world.eve.dm
    first = said(await eve.say(dm, json.dumps({"say": "good day"})))
    await chat.shows(first, "good day")
    await eve.say(dm, json.dumps({"in_turn": [{"type": "user_input", "questions": ["What is its name?"]}]}))
    await chat.world.slack.wait_for(lambda: len(chat.shown(first)) == 3, WAIT_S)
    await eve.click("Answer in a form")
    await eve.fill({"What is its name?": "Otto"})
    await eve.submit()
    answered = ["good day", "Otto", '"answers": {"What is its name?": "Otto"}']
    await chat.shows(first, *answered)
    await eve.say(dm, "new")
    await chat.shows(first, *answered, "@eve ended this conversation")
    await eve.say(dm, json.dumps({"count": 1}))
    await chat.shows(first, *answered, "@eve ended this conversation", "0 before")


async def test_the_command_begins_a_conversation_and_ends_one_of_one_s_own_or_for_admins_any(
    chat: Chat,
) -> None:
    await chat.serve()
    world = chat.world
    roots = []
    for what in ("one", "two", "three"):
        await world.ana.command("/gates", f"new {json.dumps({'say': what})}", channel=world.ops)
        await world.told("ana", words.TALK_BEGUN)
        opened = [m for m in world.slack.messages(world.ops) if f'"say": "{what}"' in world.slack.text_of(m)]
        roots.append(opened[-1])
        await chat.shows(roots[-1], what)
    await world.ben.command("/gates", "stop", channel=world.ops)
    await world.told("ben", words.TALK_NOTHING)
    await world.ana.command("/gates", "stop", channel=world.ops)
    choice = await world.told("ana", words.TALK_WHICH)
    await world.ana.click(words.TALK_STOP, message=choice, near='"say": "one"')
    await chat.shows(roots[0], "one", "@ana ended this conversation")
    await world.dan.command("/gates", "stop", channel=world.ops)
    choice = await world.told("dan", words.TALK_WHICH)
    await world.dan.click(words.TALK_STOP, message=choice, near='"say": "three"')
    await chat.shows(roots[2], "three", "@dan ended this conversation")
    await chat.shows(roots[1], "two")
    await world.ana.command("/gates", "stop", channel=world.ops)
    await world.told("ana", words.TALK_ENDED)
    await chat.shows(roots[1], "two", "@ana ended this conversation")


async def test_a_turn_that_fails_says_why_and_the_conversation_goes_on_from_before_it(
    http_chat: Chat,
) -> None:
    chat = http_chat
    await chat.serve()
    root = await chat.mention("ana", {"say": "well"})
    await chat.shows(root, "well")
    await chat.mention("ana", {"raise": "no <disk> left for sk-123"}, root["ts"])
    await chat.shows(root, "well", "RuntimeError: no <disk> left for •••")
    await chat.mention("ana", {"count": 1}, root["ts"])
    await chat.shows(root, "well", "RuntimeError: no <disk> left for •••", "2 before")
    await chat.session()


async def test_a_session_that_is_gone_is_said_and_the_next_message_begins_anew(http_chat: Chat) -> None:
    chat = http_chat
    await chat.serve()
    root = await chat.mention("ana", {"say": "well"})
    await chat.shows(root, "well")
    await chat.motus.client.delete(await chat.session())
    await chat.mention("ana", {"count": 1}, root["ts"])
    anew = "knows nothing of what was said before.\n0 before"
    await chat.shows(root, "well", anew)
    await chat.mention("ana", {"until": str(chat.hold())}, root["ts"])
    await chat.shows(root, "well", anew, WORKING)
    await chat.motus.client.delete(await chat.session())
    await chat.shows(root, "well", anew, "no longer knows this conversation")


async def test_a_turn_that_people_cancel_ends_and_its_conversation_goes_on(http_chat: Chat) -> None:
    chat = http_chat
    await chat.serve()
    root = await chat.mention("ana", {"say": "well"})
    await chat.shows(root, "well")
    await chat.mention("ana", {"in_turn": [{"type": "color_picker"}]}, root["ts"])
    await chat.world.slack.wait_for(lambda: len(chat.shown(root)) == 3, WAIT_S)
    await chat.world.ben.click("Decline")
    await chat.world.ben.submit()
    cancelled = ["well", "Declined by @ben", words.TALK_ENDS["cancelled"]]
    await chat.shows(root, *cancelled)
    await chat.mention("ana", {"count": 1}, root["ts"])
    await chat.shows(root, *cancelled, "2 before")


async def test_where_nobody_talks_and_where_nothing_is_said_a_mention_lists_what_is_open(
    http_chat: Chat,
) -> None:
    chat = http_chat
    await chat.serve(talk=[chat.world.lobby])
    root = await chat.mention("ana", "hello")
    await chat.world.told("ana", "Nothing")
    await chat.world.ana.command("/gates", "new hello", channel=chat.world.ops)
    await chat.world.told("ana", words.TALK_NO_AGENT)
    await chat.world.ana.say(chat.world.lobby, "@askgate")
    await chat.world.told("ana", "Nothing", channel=chat.world.lobby)
    assert chat.shown(root) == []
    assert await chat.motus.client.sessions() == []


async def test_somebody_of_another_workspace_is_told_that_they_cannot(http_chat: Chat) -> None:
    chat = http_chat
    await chat.serve()
    root = await chat.mention("gus", "hello")
    await chat.world.told("gus", words.TALK_OUTSIDER)
    assert chat.shown(root) == []


async def test_a_message_whose_taking_was_not_heard_of_is_not_sent_twice(http_chat: Chat) -> None:
    chat = http_chat
    async with Between(chat.motus.url).serving() as between:
        await chat.serve(between.url)
        root = await chat.mention("ana", {"say": "first"})
        await chat.shows(root, "first")
        lost = between.fail("POST .*/messages$", "reply")
        await chat.mention("ana", {"say": "second"}, root["ts"])
        await chat.shows(root, "first", "second")
        assert lost.met == 1
        lost = between.fail("POST .*/messages$", "reply")
        await chat.mention("ana", {"raise": "third"}, root["ts"])
        await chat.shows(root, "first", "second", "RuntimeError: third")
        assert lost.met == 1
        messages = await chat.motus.client.messages(await chat.session())
        assert [m["content"] for m in messages if m["role"] == "assistant"] == ["first", "second"]
        await chat.world.stop()


async def test_a_reply_of_which_slack_did_not_say_that_it_was_posted_is_posted_once(http_chat: Chat) -> None:
    chat = http_chat
    await chat.serve()
    chat.world.slack.fail("chat.postMessage", reset_after_accept=True)
    root = await chat.mention("ana", {"say": "word " * 4000})
    await chat.world.slack.wait_for(lambda: len(chat.shown(root)) >= 3, WAIT_S)
    await chat.mention("ana", {"count": 1}, root["ts"])
    await chat.shows(root, "word", "word", "word", "2 before")
    assert not chat.world.slack.api.faults.waiting


async def test_a_server_that_is_away_is_said_and_gets_the_message_when_it_is_back(http_chat: Chat) -> None:
    chat = http_chat
    port = free_port()
    await chat.serve(f"http://127.0.0.1:{port}")
    root = await chat.mention("ana", {"say": "here I am"})
    await chat.shows(root, "cannot be reached")
    async with Between(chat.motus.url).serving(port):
        await chat.shows(root, "here I am")
        await chat.world.stop()


async def test_another_process_goes_on_with_a_turn_that_one_died_in(http_chat: Chat) -> None:
    chat = http_chat
    await chat.serve()
    root = await chat.mention("ana", {"until": str(chat.hold()), "say": "done"})
    await chat.shows(root, WORKING)
    await chat.world.stop()
    chat.hold().touch()
    await chat.serve()
    await chat.shows(root, "done")


async def test_a_message_behind_somebody_else_s_turn_is_shown_as_not_sent_yet(
    http_chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "QUIET_MS", 0)
    chat, go = http_chat, http_chat.hold()
    await chat.serve()
    root = await chat.mention("ana", {"say": "well"})
    await chat.shows(root, "well")
    elsewhere = json.dumps({"until": str(go), "say": "elsewhere"})
    await chat.motus.client.send(await chat.session(), elsewhere)
    await chat.mention("ana", {"count": 1}, root["ts"])
    await chat.shows(root, "well", "Your message is sent when it has ended that")
    go.touch()
    await chat.shows(root, "well", "4 before")


async def test_a_turn_is_shown_as_queued_when_the_server_has_more_than_it_can_do_and_one_that_works_is_not(
    http_chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "QUIET_MS", 200)
    chat, go = http_chat, http_chat.hold()
    await chat.serve()
    works = await chat.mention("ana", {"until": str(go), "say": "worked"})
    await chat.shows(works, WORKING)
    for _ in range(4):
        await chat.motus.turn(until=str(go), say="")
    sixth = await chat.mention("ben", {"until": str(go), "say": "sixth"})
    await chat.shows(sixth, "has the message. It has much to do")
    seventh = await chat.mention("cho", {"until": str(go), "say": "seventh"})
    await chat.shows(seventh, "7 turns for 6 workers")
    [sign] = [m for m in chat.world.slack.messages(works["channel"]) if m.get("thread_ts") == works["ts"]][1:]
    assert WORKING in chat.world.slack.text_of(sign)
    go.touch()
    for root, reply in ((works, "worked"), (sixth, "sixth"), (seventh, "seventh")):
        await chat.shows(root, reply)
    assert sign["ts"] not in [call.args["ts"] for call in chat.world.slack.called("chat.update")]
