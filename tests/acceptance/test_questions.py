"""Questions: what people click, and what the agent gets."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from bot.sandbox.blocks import REQUIRED
from tests.acceptance.world import Json, World, front
from tests.runs import ask, body, option, question_call

SCOPE, FOLDERS, REGION = "Which scope should be used?", "Which folders may go?", "Which region?"
OTHER_SCOPE = words.form_other("Scope")


def lone(world: World, *labels: str, multi: bool = False, **more: Any) -> Json:
    """A run with one question call of one question."""
    return body([question_call("q", ask(SCOPE, *labels, multi=multi))], **{**at_ops(world), **more})


def three(world: World, **more: Any) -> Json:
    """A run with one call of three questions: single, multi, single."""
    call = question_call(
        "q",
        ask(SCOPE, header="Scope"),
        ask(FOLDERS, "build", "cache", "logs", multi=True, header="Folders"),
        ask(REGION, "North", "South", header="Region"),
    )
    return body([call], **{**at_ops(world), **more})


def at_ops(world: World) -> Json:
    return {"place": {"channel": world.ops}, "policy": {}}


async def answered(world: World, run: Json) -> Any:
    result = (await world.api.settled(run))["calls"]["q"]
    assert (result["status"], result["outcome"]) == ("returned", "answered")
    return result["value"]


async def test_one_click_on_an_option_settles_a_lone_question(world: World) -> None:
    run = await world.api.open(lone(world))
    assert (await world.ana.click("Focused", message=await world.card(run))).ok
    result = (await world.api.settled(run))["calls"]["q"]
    assert result["value"] == {"answers": {SCOPE: "Focused"}}
    assert result["by"] == [{"team": "T0LOCAL", "user": world.ids["ana"]}]
    await world.shows(run, "Answered by @ana", "→ Focused", "Not taken: Broad")
    assert world.buttons(run) == []


async def test_labels_too_long_for_buttons_make_a_menu_and_one_choice_settles(world: World) -> None:
    first, second = "a" * 60, "b" * 256
    run = await world.api.open(lone(world, first, second))
    card = await world.card(run)
    menu = next(e for b in card["blocks"] for e in b.get("elements", ()) if e["type"] == "static_select")
    shown = menu["options"][1]["text"]["text"]
    assert (await world.ana.select(shown, message=card)).ok
    assert await answered(world, run) == {"answers": {SCOPE: second}}


async def test_long_texts_are_read_in_full_before_a_choice_that_cannot_be_mistaken(world: World) -> None:
    labels = [f"{'Rotate the keys of every service ' * 7}{end}" for end in ("at once", "in turn")]
    question = {
        **ask("Why? " * 1600 + "END OF QUESTION", *labels),
        "options": [
            {"label": label, "description": "Because. " * 440 + f"END OF {number}"}
            for number, label in enumerate(labels)
        ],
    }
    run = await world.api.open(body([question_call("q", question)], **at_ops(world)))
    card = await world.card(run)
    assert words.TEXT_CUT.replace("*", "") in world.text(run)
    opened = await world.ana.click("View in full", message=card)
    read = world.ana.text(front(opened))
    while words.NEXT in world.ana.text(front(opened)):
        opened = await world.ana.click(words.NEXT)
        read += world.ana.text(front(opened))
    assert all(text in read for text in ("END OF QUESTION", "END OF 0", "END OF 1", *labels))
    await world.ana.close_modal()
    menu = next(e for b in card["blocks"] for e in b.get("elements", ()) if e["type"] == "static_select")
    first, second = (option["text"]["text"] for option in menu["options"])
    assert (first[:3], second[:3], first[3:]) == ("1. ", "2. ", second[3:])
    assert (await world.ana.select(second, message=card)).ok
    assert await answered(world, run) == {"answers": {question["question"]: labels[1]}}


async def test_a_preview_opens_in_a_modal_in_monospace(world: World) -> None:
    sketch = "+--------+\n| <b>ok  |\n+--------+"
    question = {**ask(), "options": [option("Focused", markdown=sketch), option("Broad")]}
    run = await world.api.open(body([question_call("q", question)], **at_ops(world)))
    await world.shows(run, words.PREVIEWS.replace("*", ""))
    opened = front(await world.ana.click("View in full", message=await world.card(run)))
    code = [
        part["elements"][0]["text"]
        for block in opened["blocks"]
        for part in block.get("elements", ())
        if part["type"] == "rich_text_preformatted"
    ]
    assert code == [sketch]


async def test_a_multi_select_says_how_many_are_picked_and_by_whom(world: World) -> None:
    run = await world.api.open(lone(world, "build", "cache", "logs", multi=True))
    card = await world.card(run)
    await world.ana.select(["build", "logs"], message=card)
    await world.shows(run, "@ana 2 picked: build, logs")
    await world.ben.select(["cache"], message=card)
    await world.shows(run, "@ana 2 picked: build, logs", "@ben 1 picked: cache")
    await world.ana.select([], message=card)
    await world.shows(run, "Picked so far: @ben 1 picked: cache")


async def test_a_multi_select_waits_for_submit(world: World) -> None:
    run = await world.api.open(lone(world, "build", "cache", "logs", multi=True))
    card = await world.card(run)
    assert (await world.ana.select(["build", "logs"], message=card)).ok
    assert (await world.api.run(run))["status"] == "waiting"
    assert (await world.ana.click("Submit", message=card)).ok
    assert await answered(world, run) == {"answers": {SCOPE: ["build", "logs"]}}


async def test_submit_with_nothing_picked_is_told_privately(world: World) -> None:
    run = await world.api.open(lone(world, "build", "cache", multi=True))
    assert (await world.ana.click("Submit", message=await world.card(run))).ok
    await world.told("ana", "Choose at least one")
    world.nobody_else_told("ana")
    assert (await world.api.run(run))["status"] == "waiting"


async def test_other_takes_a_text_of_ones_own(world: World) -> None:
    run = await world.api.open(lone(world))
    opened = await world.ana.click("Other", message=await world.card(run))
    assert SCOPE in world.ana.text(front(opened))
    await world.ana.fill({words.OTHER_LABEL: "  Only *logs* <@U1>  "})
    assert (await world.ana.submit()).modal is None
    assert await answered(world, run) == {"answers": {SCOPE: "Only *logs* <@U1>"}}
    await world.shows(run, "Only *logs* <@U1>")


async def test_a_general_response_answers_without_a_pick(world: World) -> None:
    run = await world.api.open(three(world))
    await world.ana.click("General response", message=await world.card(run))
    await world.ana.fill({words.RESPONSE_LABEL: "Do what you did last week"})
    assert (await world.ana.submit()).ok
    assert await answered(world, run) == {"answers": {}, "response": "Do what you did last week"}
    await world.shows(run, "Answered by @ana", "Do what you did last week")


@pytest.mark.parametrize("why", ["", "Ask Ben instead"])
async def test_decline_gives_the_agent_no_answer_and_the_word_if_there_is_one(world: World, why: str) -> None:
    run = await world.api.open(three(world))
    await world.ana.click("Decline", message=await world.card(run))
    if why:
        await world.ana.fill({words.DECLINE_LABEL: why})
    assert (await world.ana.submit()).ok
    result = (await world.api.settled(run))["calls"]["q"]
    assert (result["status"], result["outcome"], result["by"][0]["user"]) == (
        "failed",
        "declined",
        world.ids["ana"],
    )
    assert result["message"] == "The user declined to answer" + (f": {why}" if why else ".")
    await world.shows(run, "Declined by @ana", why)


async def test_several_questions_keep_drafts_show_progress_and_settle_by_one_submit(world: World) -> None:
    run = await world.api.open(three(world))
    card = await world.card(run)
    assert (await world.ana.click("Broad", message=card)).ok
    await world.shows(run, "@ana: 1 of 3")
    await world.ana.select(["cache", "logs"], message=await world.card(run))
    await world.shows(run, "@ana: 2 of 3")
    await world.ana.click("Submit", message=await world.card(run))
    await world.told("ana", "2 of 3")
    await world.ana.click("South", message=await world.card(run))
    await world.shows(run, "@ana: 3 of 3")
    assert (await world.ana.click("Submit", message=await world.card(run))).ok
    expected = {"answers": {SCOPE: "Broad", FOLDERS: ["cache", "logs"], REGION: "South"}}
    assert await answered(world, run) == expected


async def test_another_pick_shows_on_the_card_and_the_same_one_again_is_told_privately(world: World) -> None:
    run = await world.api.open(three(world))
    await world.ana.click("Broad", message=await world.card(run))
    await world.shows(run, "@ana Broad", "@ana: 1 of 3")
    await world.ana.click("Focused", message=await world.card(run))
    await world.shows(run, "@ana Focused", "@ana: 1 of 3")
    assert world.private("ana") == []
    await world.ana.click("Focused", message=await world.card(run))
    await world.told("ana", "pick is kept", "not submitted yet")


async def test_drafts_are_per_person_and_survive_a_restart_of_the_bot(world: World) -> None:
    run = await world.api.open(three(world))
    card = await world.card(run)
    await world.ana.click("Broad", message=card)
    await world.ben.click("Focused", message=card)
    await world.ben.select(["build"], message=card)
    await world.shows(run, "@ana: 1 of 3", "@ben: 2 of 3")
    await world.stop()
    await world.start()
    await world.ben.click("North", message=await world.card(run))
    await world.shows(run, "@ana: 1 of 3", "@ben: 3 of 3")
    await world.ana.click("Submit", message=await world.card(run))
    await world.told("ana", "1 of 3")
    assert (await world.ben.click("Submit", message=await world.card(run))).ok
    assert await answered(world, run) == {"answers": {SCOPE: "Focused", FOLDERS: ["build"], REGION: "North"}}


async def test_a_text_written_after_picks_in_a_menu_is_what_counts(world: World) -> None:
    run = await world.api.open(three(world))
    card = await world.card(run)
    await world.ana.click("Focused", message=card)
    await world.ana.select(["build"], message=card)
    await world.ana.click("Other", message=card, near=FOLDERS)
    await world.ana.fill({words.OTHER_LABEL: "Only old ones"})
    await world.ana.submit()
    await world.ana.click("North", message=card)
    await world.ana.click("Submit", message=card)
    assert await answered(world, run) == {
        "answers": {SCOPE: "Focused", FOLDERS: "Only old ones", REGION: "North"}
    }


async def test_the_form_says_at_each_field_what_is_wrong_and_then_takes_the_answers(world: World) -> None:
    run = await world.api.open(three(world))
    opened = await world.ana.click("Answer in a form", message=await world.card(run))
    assert all(text in world.ana.text(front(opened)) for text in (SCOPE, FOLDERS, REGION))
    wrong = await world.ana.submit()
    assert set(wrong.errors.values()) == {REQUIRED}
    assert [label.partition(":")[0] for label in wrong.errors] == ["Scope", "Folders", "Region"]

    scope, folders, region = wrong.errors
    await world.ana.fill({scope: words.FORM_WRITTEN, folders: ["build", "cache"], region: "South"})
    assert (await world.ana.submit()).errors == {OTHER_SCOPE: words.WRITE_SOMETHING}
    await world.ana.fill({scope: "Focused", OTHER_SCOPE: "Something wider"})
    assert (await world.ana.submit()).errors == {OTHER_SCOPE: words.NOT_BOTH}
    await world.ana.fill({OTHER_SCOPE: ""})
    assert (await world.ana.submit()).modal is None
    assert await answered(world, run) == {
        "answers": {SCOPE: "Focused", FOLDERS: ["build", "cache"], REGION: "South"}
    }


async def test_the_form_opens_with_what_was_picked_on_the_card(world: World) -> None:
    run = await world.api.open(three(world))
    card = await world.card(run)
    await world.ana.click("Broad", message=card)
    await world.ana.select(["logs"], message=card)
    await world.shows(run, "2 of 3")
    opened = await world.ana.click("Answer in a form", message=card)
    await world.ana.fill({next(b for b in labels(front(opened)) if b.startswith("Region")): "North"})
    assert (await world.ana.submit()).modal is None
    assert await answered(world, run) == {"answers": {SCOPE: "Broad", FOLDERS: ["logs"], REGION: "North"}}


async def test_no_question_of_the_form_is_called_optional_and_each_takes_a_text_of_ones_own(
    world: World,
) -> None:
    run = await world.api.open(three(world))
    opened = front(await world.ana.click("Answer in a form", message=await world.card(run)))
    asked = [block for block in opened["blocks"] if block["type"] == "input" and not block["optional"]]
    assert [block["label"]["text"].partition(":")[2].strip() for block in asked] == [SCOPE, FOLDERS, REGION]
    scope, folders, region = (block["label"]["text"] for block in asked)
    await world.ana.fill({scope: "Broad", folders: "Something else", region: "South"})
    await world.ana.fill({words.RESPONSE_LABEL: "Quickly, please", scope: "Something else"})
    await world.ana.fill({OTHER_SCOPE: "Just this once", folders: ["logs"]})
    assert (await world.ana.submit()).modal is None
    assert await answered(world, run) == {
        "answers": {SCOPE: "Just this once", FOLDERS: ["logs"], REGION: "South"},
        "response": "Quickly, please",
    }


async def test_a_general_response_goes_beside_the_picks_and_may_leave_questions_open(world: World) -> None:
    run = await world.api.open(three(world))
    await world.ana.click("Broad", message=await world.card(run))
    await world.ana.click("General response", message=await world.card(run))
    await world.ana.fill({words.RESPONSE_LABEL: "The rest is yours"})
    assert (await world.ana.submit()).ok
    assert await answered(world, run) == {"answers": {SCOPE: "Broad"}, "response": "The rest is yours"}


def labels(view: Json) -> list[str]:
    return [block["label"]["text"] for block in view["blocks"] if block["type"] == "input"]


async def test_a_custom_call_takes_text_or_json_and_says_what_is_no_json(world: World) -> None:
    call = {"tool_call_id": "q", "tool_name": "pick_port", "args": {"service": "db"}}
    run = await world.api.open(body([call], **at_ops(world)))
    await world.shows(run, "pick_port", '"service": "db"')
    await world.ana.click("Answer", message=await world.card(run))
    await world.ana.fill({words.ANSWER_LABEL: '{"port": 54'})
    assert list((await world.ana.submit()).errors) == [words.ANSWER_LABEL]
    await world.ana.fill({words.ANSWER_LABEL: '{"port": 5432}'})
    assert (await world.ana.submit()).modal is None
    assert await answered(world, run) == {"port": 5432}
