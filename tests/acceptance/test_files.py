"""Arguments too long for Slack's windows: a file in the thread has all of them, and nothing is approved without it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bot import words
from bot.sandbox.acts import Impossible
from core.approvals import digest
from tests.acceptance.world import Json, World, front
from tests.runs import approval, body

ARGS = {
    "rows": [{"path": f"/srv/{n:05}/<b>&'\u202e", "note": "größer 漢字 " * 8} for n in range(1500)],
    "end": "END",
}


def huge(world: World, args: Json | None = None, **more: Any) -> Json:
    approvers = [world.ids[name] for name in ("ana", "ben", "cho")]
    item = approval("call", args=args or ARGS)
    return body([], [item], place={"channel": world.ops}, policy={"approvers": approvers}, **more)


def shared(world: World, channel: str | None = None) -> list[Json]:
    """The messages of a channel that share a file."""
    return [m for m in world.slack.messages(channel or world.ops) if m.get("files")]


async def last_page(world: World, run: Json) -> Json:
    """The end of what Ana can read in the modal."""
    await world.ana.click("View in full", message=await world.card(run))
    return front(await world.ana.click("Last page"))


async def test_a_file_in_the_thread_has_all_the_arguments_and_then_they_can_be_approved(world: World) -> None:
    run = await world.api.open(huge(world))
    card = await world.card(run)
    [message] = await world.slack.wait_for(lambda: shared(world))
    [file] = message["files"]
    short = digest(ARGS)[:8]
    assert (message["thread_ts"], file["name"]) == (card["ts"], f"arguments-{short}.json")
    text = world.slack.file(file["id"]).decode()
    assert json.loads(text) == ARGS
    assert "\u202e" not in text
    assert "in a file in its thread" in world.text(run)
    assert world.buttons(run) == ["View in full", "Reject", "Reject with reason"]
    await world.slack.wait_for(lambda: world.slack.called("files.completeUploadExternal"))
    end = await last_page(world, run)
    assert file["name"] in world.ana.text(end)
    assert '"END"' not in world.ana.text(end)
    await world.ana.click("Approve")
    assert (await world.api.settled(run))["approvals"]["call"]["args_digest"] == digest(ARGS)
    assert len(shared(world)) == 1


async def test_without_the_file_nothing_can_be_approved_and_the_card_says_why(world: World) -> None:
    world.slack.fail("files.getUploadURLExternal", error="missing_scope")
    run = await world.api.open(huge(world))
    await world.shows(run, "did not take the file", "missing_scope", "decided over the API")
    end = await last_page(world, run)
    assert words.NO_FILE_YET in world.ana.text(end)
    with pytest.raises(Impossible):
        await world.ana.click("Approve")
    failed = [e["reason"] for e in await world.api.audit(run) if e["event"] == "card.failed"]
    assert failed == ["file.missing_scope"]
    await world.ana.click("Reject")
    assert (await world.api.settled(run))["approvals"]["call"]["outcome"] == "denied"
    assert shared(world) == []


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_a_file_whose_upload_ends_unheard_is_there_once(world: World, method: str) -> None:
    world.slack.fail(method, reset_after_accept=True)
    run = await world.api.open(huge(world))
    await world.card(run)

    async def can_approve() -> bool:
        end = await last_page(world, run)
        await world.ana.close_modal()
        return "Approve" in world.ana.text(end).split("\n")

    await world.slack.wait_for(lambda: len(world.slack.called(method)) > 1 or shared(world), 20)
    for _ in range(200):
        if await can_approve():
            break
        await asyncio.sleep(0.05)
    assert await can_approve()
    assert len(shared(world)) == 1


async def test_a_file_has_masks_for_what_nobody_should_read(empty_world: World) -> None:
    world = empty_world
    await world.start(ASKGATE_REDACT_FIELDS="token")
    run = await world.api.open(huge(world, {**ARGS, "token": "s3cret-value"}))
    await world.card(run)
    [message] = await world.slack.wait_for(lambda: shared(world))
    text = world.slack.file(message["files"][0]["id"]).decode()
    assert "s3cret-value" not in text
    assert "•••" in text


async def test_each_copy_of_a_card_has_the_file_in_its_own_thread(http_world: World) -> None:
    world = http_world
    escalate = {"after_s": 1, "place": {"channel": world.lobby}}
    run = await world.api.open(huge(world, escalate=escalate))
    await world.card(run, copy=1)
    [message] = await world.slack.wait_for(lambda: shared(world, world.lobby))
    assert message["thread_ts"] == (await world.card(run, copy=1))["ts"]
    assert len(shared(world)) == 1
