"""Secrets in what an agent asks: nobody reads them in Slack, approvers know that, and the agent gets what is real."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot import words
from bot.cards.card import pack
from core.approvals import digest
from core.redaction import MASK
from core.shown import shown_run
from tests.acceptance.world import Json, World, front, world_in
from tests.runs import approval, ask, body, question_call

SECRET = "hunter2"
ARGS = {
    "host": "db.example",
    "password": SECRET,
    "command": f"psql --key sk-{SECRET}",
    "env": [{"Token": [SECRET, 7]}],
}
PATTERNS = "# keys of ours\nsk-\\w+\n"


@pytest.fixture
async def hiding(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    """A process that hides the usual names, and what looks like a key."""
    file = tmp_path / "patterns"
    file.write_text(PATTERNS)
    async with world_in("http", redis_url, tmp_path) as world:
        await world.start(ASKGATE_REDACT_PATTERNS=str(file), ASKGATE_AUDIT_VALUES="on")
        yield world


def wanting(world: World, **more: Any) -> Json:
    item = approval("call", args=ARGS, reason=f"because sk-{SECRET}")
    policy = {"approvers": [world.ids["ana"]], "responders": ["channel"]}
    return body([], [item], place={"channel": world.ops}, policy=policy, **more)


def everything(world: World) -> str:
    """All that Slack was ever sent."""
    return json.dumps([[call.method, call.args] for call in world.slack.calls], default=str)


async def test_an_approver_reads_masks_is_told_so_and_approves_what_is_real(hiding: World) -> None:
    world = hiding
    run = await world.api.open(wanting(world, title=f"Rotate sk-{SECRET}"))
    text = await world.shows(
        run, words.hidden(4), f'"password": "{MASK}"', f"psql --key {MASK}", f"Rotate {MASK}"
    )
    assert "db.example" in text
    assert digest(ARGS)[:8] in text
    card = await world.card(run)
    assert (await world.ana.click("Approve", message=card)).ok
    result = (await world.api.settled(run))["approvals"]["call"]
    assert (result["action"], result["args_digest"]) == ("approve", digest(ARGS))
    await world.shows(run, "Approved by @ana", f'"password": "{MASK}"')
    assert SECRET not in everything(world)
    assert SECRET not in json.dumps(await world.api.audit(run))


async def test_what_is_read_in_full_is_masked_too(hiding: World) -> None:
    world = hiding
    big = {"rows": [{"n": n, "password": f"{SECRET}-{n}", "note": "x" * 60} for n in range(120)]}
    item = approval("call", args=big)
    request = body([], [item], place={"channel": world.ops}, policy={"approvers": [world.ids["ana"]]})
    run = await world.api.open(request)
    await world.shows(run, words.hidden(120))
    view = front(await world.ana.click("View in full", message=await world.card(run)))
    text = world.slack.text_of(view)
    assert words.hidden(120) in text
    assert f'"password": "{MASK}"' in text
    while "Next" in text:
        view = front(await world.ana.click("Next"))
        text = world.slack.text_of(view)
    assert (await world.ana.click("Approve")).ok
    assert (await world.api.settled(run))["approvals"]["call"]["args_digest"] == digest(big)
    assert SECRET not in everything(world)


async def test_a_question_about_secrets_is_answered_with_the_real_label(hiding: World) -> None:
    world = hiding
    asked = ask(f"Which key? sk-{SECRET}0", f"sk-{SECRET}1", f"sk-{SECRET}2", header="Key")
    policy = {"responders": ["channel"]}
    run = await world.api.open(body([question_call("q", asked)], place={"channel": world.ops}, policy=policy))
    await world.shows(run, f"Which key? {MASK}", words.hidden(3))
    # the second button; what leads its words would pass for an emoji
    assert (await world.ben.click("(2)", message=await world.card(run))).ok
    result = (await world.api.settled(run))["calls"]["q"]
    assert result["value"] == {"answers": {f"Which key? sk-{SECRET}0": f"sk-{SECRET}2"}}
    await world.shows(run, "Answered by @ben", f"{MASK} (2)")
    assert SECRET not in everything(world)


async def test_forms_and_lists_show_masks_and_take_the_real_thing(hiding: World) -> None:
    world = hiding
    first, second = ask(f"Use sk-{SECRET}?", "Yes", f"No, sk-{SECRET}9", header="A"), ask("And?", header="B")
    policy = {"responders": ["channel"]}
    request = body(
        [question_call("q", first, second)], place={"channel": world.ops}, policy=policy, title=f"sk-{SECRET}"
    )
    run = await world.api.open(request)
    card = await world.card(run)
    assert (await world.ana.command("/gates", "", channel=world.lobby)).ok
    (listed,) = world.private("ana", world.lobby)
    assert f"Use {MASK}?" in world.slack.text_of(listed)
    assert f"Use {MASK}?" in world.slack.text_of(
        front(await world.ana.click("Answer in a form", message=card))
    )
    await world.ana.fill({f"A: Use {MASK}?": f"No, {MASK}", "B: And?": "Focused"})
    assert (await world.ana.submit()).modal is None
    result = (await world.api.settled(run))["calls"]["q"]
    assert result["value"]["answers"] == {f"Use sk-{SECRET}?": f"No, sk-{SECRET}9", "And?": "Focused"}
    await world.shows(run, "Answered by @ana")
    assert SECRET not in everything(world)


async def test_an_answer_with_a_secret_in_it_goes_to_the_host_and_not_onto_the_card(hiding: World) -> None:
    world = hiding
    call = {"tool_call_id": "c", "tool_name": "ask_login", "args": {"for": "db"}}
    policy = {"responders": ["channel"]}
    run = await world.api.open(body([call], place={"channel": world.ops}, policy=policy))
    await world.ana.click("Answer", message=await world.card(run))
    answer = {"user": "ana", "password": SECRET}
    await world.ana.fill({words.ANSWER_LABEL: json.dumps(answer)})
    assert (await world.ana.submit()).modal is None
    assert (await world.api.settled(run))["calls"]["c"]["value"] == answer
    text = await world.shows(run, "Answered by @ana", MASK)
    assert SECRET not in text
    assert SECRET not in everything(world)


async def test_a_card_in_several_messages_stays_one_when_the_settings_change(hiding: World) -> None:
    world = hiding
    args = {"password": "x" * 3000}
    items = [approval(f"call-{n}", args=args) for n in range(6)]
    policy = {"approvers": [world.ids["ana"]]}
    run = await world.api.open(body([], items, place={"channel": world.ops}, policy=policy))
    await world.shows(run, words.hidden(1))
    engine = world.replicas[0].engine
    stored = await engine.run(run["id"])
    shown = shown_run(stored, engine.redaction)
    assert pack(shown) != pack(stored)
    before = len(world.parts(run))
    await world.stop()
    await world.start(ASKGATE_REDACT_FIELDS="none")
    await world.api.cancel(run, "No need")
    await world.shows(run, "Cancelled")
    await world.slack.quiet()
    assert len(world.parts(run)) == before
    assert [card.gates for card in (await world.replicas[0].engine.run(run["id"])).cards] == pack(shown)


async def test_hidden_values_are_edited_elsewhere_and_a_change_of_them_is_seen(hiding: World) -> None:
    world = hiding
    policy = {"approvers": [world.ids["ana"], world.ids["ben"], "key:agent"], "quorum": 2, "edits": True}
    run = await world.api.open(wanting(world) | {"policy": policy})
    await world.shows(run, words.HIDDEN_TO_EDIT)
    assert words.EDIT.removesuffix("…") not in world.buttons(run)
    gate, real = run["gates"][0]["id"], ARGS | {"password": "hunter3"}
    values = {"override_args": real}
    await world.api.ok("POST", f"/gates/{gate}/decide", {"action": "approve", "values": values})
    await world.shows(run, "1 of 2 approvals", f'"password": "{MASK} (changed)"', digest(real)[:8])
    assert (await world.ben.click("Approve", message=await world.card(run))).ok
    result = (await world.api.settled(run))["approvals"]["call"]
    assert (result["override_args"], result["args_digest"]) == (real, digest(real))
    await world.shows(run, "Approved by", "@ben")
    assert "hunter" not in everything(world)
    assert "hunter" not in json.dumps(await world.api.audit(run))
