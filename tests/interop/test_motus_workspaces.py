"""Talking with one Motus agent from several workspaces: each conversation is its own workspace's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot.sandbox.world import TEAM
from bot.slack import talking
from core.conversations import Stage
from tests.acceptance.test_workspaces import EAST, ORG, TWO, install, several
from tests.acceptance.world import WAIT_S, Json, World, said
from tests.interop.conftest import Motus, eventually

APPROVAL = {"type": "tool_approval", "tool_name": "delete_file", "tool_args": {"path": "/tmp/old.log"}}
NAMES = {TEAM: "askgate", TWO: "askgate-two", ORG: "askgate-org"}


@pytest.fixture
async def many(motus: Motus, redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    """Workspaces that may install askgate, before which an agent is to be talked with."""
    file = tmp_path / "hosts.toml"
    file.write_text(f'[motus.test]\nurl = "{motus.url}"\ntalk = true\napprovers = ["channel"]\n')
    async with several("http", redis_url, tmp_path, ASKGATE_HOSTS=str(file)) as world:
        yield world


async def installed(world: World, place: str) -> str:
    """The bot of a workspace that has installed askgate; it is mentioned by its name of NAMES."""
    assert (await install(world, place))[0] == 200
    bot = world.slack.installation(place).bot_user
    world.slack.world.users[bot].name = NAMES[place]
    return bot


async def mention(world: World, name: str, place: str, channel: str, wanted: Any, thread: str = "") -> Json:
    text = f"@{NAMES[place]} {json.dumps(wanted)}"
    return said(await world.slack.as_user(name).say(channel, text, thread or None))


async def replies(world: World, root: Json, *texts: str) -> list[Json]:
    """The replies in a thread, without what people wrote, when they are those with these words."""
    bots = {app.bot_user for app in world.slack.world.apps.values()}

    def there() -> list[Json]:
        found = [m for m in world.slack.messages(root["channel"]) if m.get("thread_ts") == root["ts"]]
        found = [m for m in found if m["user"] in bots and m["ts"] != root["ts"]]
        shown = [world.slack.text_of(m) for m in found]
        fits = len(shown) == len(texts) and all(any(text in one for one in shown) for text in texts)
        return found if fits else []

    return await world.slack.wait_for(there, WAIT_S)


async def test_a_thread_is_answered_with_its_own_workspace_s_token(many: World, motus: Motus) -> None:
    bots = {place: await installed(many, place) for place in (TEAM, TWO)}
    ops, lab = many.slack.add_channel("ops"), many.slack.add_channel("lab", ["lea", "mia"], team=TWO)
    here = await mention(many, "ana", TEAM, ops, {"say": "for ana"})
    there = await mention(many, "lea", TWO, lab, {"in_turn": [APPROVAL]})
    [reply] = await replies(many, here, "for ana")
    assert reply["user"] == bots[TEAM]
    found = await replies(many, there, "waits for an answer", "delete_file")
    assert {message["user"] for message in found} == {bots[TWO]}
    await many.mia.click("Approve")
    found = await replies(many, there, "Approved by", '[{"approved": true}]')
    assert {message["user"] for message in found} == {bots[TWO]}
    posted = {(call.app, call.args["channel"]) for call in many.slack.called("chat.postMessage")}
    assert posted == {(many.slack.installation().id, ops), (many.slack.installation(TWO).id, lab)}


async def test_one_thread_of_a_shared_channel_is_a_conversation_for_each_workspace(
    many: World, motus: Motus
) -> None:
    bots = {place: await installed(many, place) for place in (TEAM, TWO)}
    shared = many.slack.add_channel("shared", ["ana", "lea", bots[TWO]])
    root = await mention(many, "ana", TEAM, shared, {"say": "for ana"})
    await replies(many, root, "for ana")
    await mention(many, "lea", TWO, shared, {"count": 1}, root["ts"])
    first, second = await replies(many, root, "0 before", "for ana")
    assert (first["user"], second["user"]) == (bots[TEAM], bots[TWO])
    await mention(many, "ana", TEAM, shared, {"count": 2}, root["ts"])
    await replies(many, root, "0 before", "2 before", "for ana")
    assert len(await motus.client.sessions()) == 2
    await many.lea.say(shared, f"@{NAMES[TWO]} stop", root["ts"])
    await replies(many, root, "0 before", "2 before", "for ana", "@lea ended this conversation")
    await mention(many, "ana", TEAM, shared, {"count": 3}, root["ts"])
    await replies(many, root, "0 before", "2 before", "4 before", "for ana", "@lea ended this conversation")


async def test_in_an_organisation_a_thread_is_one_conversation_for_people_of_all_its_workspaces(
    many: World, motus: Motus
) -> None:
    await installed(many, ORG)
    channel = many.slack.add_channel("east", ["eli", "wes"], team=EAST)
    root = await mention(many, "eli", ORG, channel, {"say": "for eli"})
    await replies(many, root, "for eli")
    await mention(many, "wes", ORG, channel, {"count": 1}, root["ts"])
    await replies(many, root, "for eli", "2 before")
    assert len(await motus.client.sessions()) == 1


async def test_a_turn_that_ran_when_askgate_was_taken_away_holds_nobody_up_when_it_is_back(
    many: World, motus: Motus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "QUIET_MS", 200)
    await installed(many, TEAM)
    await installed(many, TWO)
    lab, go = many.slack.add_channel("lab", ["lea"], team=TWO), tmp_path / "go"
    root = await mention(many, "lea", TWO, lab, {"until": str(go), "say": "unheard"})
    await replies(many, root, "working on it")
    many.slack.uninstall(TWO)
    await many.slack.quiet()
    talks = many.replicas[0].engine.talks

    async def left() -> bool:
        [talk] = await talks.here(TWO, lab)
        return talk.stage is Stage.IDLE

    await eventually(left)
    go.touch()
    await installed(many, TWO)
    await mention(many, "lea", TWO, lab, {"count": 1}, root["ts"])
    await many.slack.wait_for(
        lambda: any("2 before" in many.slack.text_of(m) for m in many.slack.messages(lab)), WAIT_S
    )
