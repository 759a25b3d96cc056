"""Edited arguments and approvals for always: what approvers change, what they see of it, what the agent gets."""

from __future__ import annotations

import json
from typing import Any

from bot import words
from core.approvals import digest
from tests.acceptance.world import Json, World, front
from tests.runs import approval, body

ARGS = {"path": "/tmp/old.log", "force": False, "note": "<b> & *c*"}
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "pattern": "^/tmp/"}, "force": {"type": "boolean"}},
    "required": ["path"],
}


def editable(world: World, *, args: Json | None = None, schema: Json | None = None, **policy: Any) -> Json:
    item = approval("call", args=args or ARGS) | ({"args_schema": schema} if schema else {})
    approvers = [world.ids[name] for name in ("ana", "ben", "cho")]
    policy = {"approvers": approvers, "edits": True, **policy}
    return body([], [item], place={"channel": world.ops}, policy=policy)


async def result(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["approvals"]["call"]


def editor(view: Json) -> str:
    """What the editor starts with."""
    return next(str(b["element"]["initial_value"]) for b in view["blocks"] if b["type"] == "input")


async def test_edited_arguments_are_approved_and_the_card_says_who_changed_what(world: World) -> None:
    run = await world.api.open(editable(world))
    await world.card(run)
    assert world.buttons(run) == ["Approve", "Edit arguments", "Reject", "Reject with reason"]
    opened = front(await world.ana.click("Edit arguments", message=await world.card(run)))
    assert json.loads(editor(opened)) == ARGS
    await world.ana.fill({words.EDIT_LABEL: '{"path": "/tmp/older.log", "note": "<b> & *c*", "days": 30}'})
    assert (await world.ana.submit()).modal is None
    found = await result(world, run)
    edited = {"path": "/tmp/older.log", "note": "<b> & *c*", "days": 30}
    assert (found["action"], found["override_args"]) == ("approve", edited)
    assert found["args_digest"] == digest(edited) != digest(ARGS)
    text = await world.shows(run, "Edited by @ana", "Approved by @ana", '"path": "/tmp/older.log"')
    assert '/path: "/tmp/old.log" → "/tmp/older.log"' in text
    assert "/force: false → nothing" in text
    assert "/days: nothing → 30" in text
    assert [e["event"] for e in await world.api.audit(run)].count("gate.edited") == 1


async def test_what_is_no_json_and_what_breaks_the_schema_is_said_at_the_editor(world: World) -> None:
    run = await world.api.open(editable(world, schema=SCHEMA))
    await world.ana.click("Edit arguments", message=await world.card(run))
    for typed, said in (
        ('{\n  "path": "/tmp/x"\n  "force": true\n}', "This is not JSON: line 3, column 3"),
        ('{"path": "/tmp/x", "path": "/tmp/y"}', "twice"),
        ('["/tmp/x"]', words.NO_OBJECT),
        ('{"path": "/etc/passwd", "force": 1}', "path: '/etc/passwd' does not match"),
        ('{"path": "/etc/passwd", "force": 1}', "force: 1 is not of type 'boolean'"),
        ('{"path": "/tmp/x", "n": 99999999999999999999}', "lose digits"),
    ):
        await world.ana.fill({words.EDIT_LABEL: typed})
        assert said in (await world.ana.submit()).errors[words.EDIT_LABEL]
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ana.fill({words.EDIT_LABEL: '{"path": "/tmp/x"}'})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["override_args"] == {"path": "/tmp/x"}


async def test_an_edit_makes_earlier_votes_void_and_the_others_approve_what_is_shown(world: World) -> None:
    run = await world.api.open(editable(world, quorum=2))
    stale = await world.card(run)
    await world.ben.click("Approve", message=stale)
    await world.shows(run, "1 of 2 approvals: @ben")
    await world.ana.click("Edit arguments", message=await world.card(run))
    await world.ana.fill({words.EDIT_LABEL: '{"path": "/tmp/b"}'})
    assert (await world.ana.submit()).modal is None
    text = await world.shows(run, "1 of 2 approvals: @ana", "Edited by @ana", digest({"path": "/tmp/b"})[:8])
    assert '"path": "/tmp/b"' in text
    assert (await world.ben.click("Approve", message=stale)).ok
    await world.told("ben", "arguments changed since you read them")
    assert (await world.api.run(run))["status"] == "waiting"
    await world.ben.click("Approve", message=await world.card(run))
    found = await result(world, run)
    assert found["override_args"] == {"path": "/tmp/b"}
    assert [by["user"] for by in found["by"]] == [world.ids["ana"], world.ids["ben"]]


async def test_two_who_edit_at_once_are_told_and_keep_what_they_typed(world: World) -> None:
    run = await world.api.open(editable(world, quorum=2))
    await world.ana.click("Edit arguments", message=await world.card(run))
    await world.ben.click("Edit arguments", message=await world.card(run))
    await world.ben.fill({words.EDIT_LABEL: '{"path": "/tmp/b"}'})
    assert (await world.ben.submit()).modal is None
    await world.ana.fill({words.EDIT_LABEL: '{"path": "/tmp/a"}'})
    late = await world.ana.submit()
    assert late.errors == {words.EDIT_LABEL: words.EDITED_MEANWHILE}
    assert '{"path": "/tmp/a"}' in world.ana.text(front(late))
    await world.ana.close_modal()
    await world.shows(run, "Edited by @ben")
    again = front(await world.ana.click("Edit arguments", message=await world.card(run)))
    assert json.loads(editor(again)) == {"path": "/tmp/b"}


async def test_approving_unchanged_arguments_in_the_editor_is_a_plain_approval(world: World) -> None:
    run = await world.api.open(editable(world, args={"text": "a\u202eb\n<@U1>", "n": 1.5}))
    opened = front(await world.ana.click("Edit arguments", message=await world.card(run)))
    assert "\\u202e" in editor(opened)
    assert (await world.ana.submit()).modal is None
    found = await result(world, run)
    assert (found["action"], "override_args" in found) == ("approve", False)
    assert "Edited" not in await world.shows(run, "Approved by @ana")


async def test_the_editor_asks_for_the_reason_that_the_policy_wants(world: World) -> None:
    run = await world.api.open(editable(world, reason="always"))
    await world.ana.click("Edit arguments", message=await world.card(run))
    await world.ana.fill({words.EDIT_LABEL: '{"path": "/tmp/b"}', words.REASON_LABEL: "  "})
    assert (await world.ana.submit()).errors == {words.REASON_LABEL: "The policy wants a reason"}
    await world.ana.fill({words.REASON_LABEL: "the other one is in use"})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["comment"] == "the other one is in use"


async def test_arguments_too_long_for_a_text_field_are_not_edited_in_slack_and_that_is_said(
    world: World,
) -> None:
    run = await world.api.open(editable(world, args={"text": "x" * 3000}))
    await world.shows(run, words.TOO_LONG_TO_EDIT)
    assert "Edit arguments" not in world.buttons(run)


async def test_arguments_not_whole_on_the_card_can_be_edited_there_and_behind_it(world: World) -> None:
    run = await world.api.open(editable(world, args={f"key-{n}": "漢" * 25 for n in range(68)}, quorum=2))
    card = await world.card(run)
    assert world.buttons(run) == ["View in full", "Edit arguments", "Reject", "Reject with reason"]
    await world.ana.click("View in full", message=card)
    await world.ana.click("Edit arguments")
    await world.ana.fill({words.EDIT_LABEL: '{"key": "short"}'})
    assert (await world.ana.submit()).modal is None
    await world.shows(run, "Edited by @ana", '"key": "short"', "and 65 more")
    await world.ben.click("Approve", message=await world.card(run))
    assert (await result(world, run))["override_args"] == {"key": "short"}


async def test_without_leave_to_edit_there_is_no_button(http_world: World) -> None:
    run = await http_world.api.open(editable(http_world, edits=False))
    await http_world.card(run)
    assert "Edit arguments" not in http_world.buttons(run)


# approvals for always


def for_always(world: World, saves: list[str], **policy: Any) -> Json:
    policy = {"approvers": [world.ids["ana"], world.ids["ben"]], **policy}
    return body([], [approval("call", always=saves)], place={"channel": world.ops}, policy=policy)


async def test_approve_always_says_what_is_saved_before_it_counts(world: World) -> None:
    saves = ["delete_file in /tmp", "move <!here> files"]
    run = await world.api.open(for_always(world, saves))
    card = await world.card(run)
    assert world.buttons(run) == ["Approve", "Approve always", "Reject", "Reject with reason"]
    opened = front(await world.ana.click("Approve always", message=card))
    assert all(text in world.ana.text(opened) for text in (*saves, "delete_file"))
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.submit()).modal is None
    found = await result(world, run)
    assert (found["action"], found["always"], found["outcome"]) == ("approve", True, "approved")
    await world.shows(run, "Approved always by @ana", "Saved: delete_file in /tmp; move <!here> files")


async def test_approve_always_tells_a_late_one_who_was_first_and_asks_for_a_wanted_reason(
    world: World,
) -> None:
    run = await world.api.open(for_always(world, ["all"], reason="always"))
    card = await world.card(run)
    await world.ana.click("Approve always", message=card)
    await world.ben.click("Approve always", message=card)
    await world.ben.fill({words.REASON_LABEL: "harmless"})
    assert (await world.ben.submit()).modal is None
    assert (await result(world, run))["comment"] == "harmless"
    await world.ana.fill({words.REASON_LABEL: "me too"})
    assert "Already approved by @ben" in world.ana.text(front(await world.ana.submit()))


async def test_more_than_a_modal_can_show_is_not_saved_from_slack(http_world: World) -> None:
    world = http_world
    run = await world.api.open(for_always(world, ["漢" * 1024] * 32))
    await world.shows(run, "too long to show in Slack")
    assert "Approve always" not in world.buttons(run)
