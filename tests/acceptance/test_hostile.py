"""Agent text is hostile, and there may be much of it: cards stay legal, and nothing in them comes alive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.cards.limits import check_blocks
from bot.sandbox.person import Result
from tests.acceptance.world import Json, World, front
from tests.runs import approval, ask, body, option, question_call

NASTY = "<!channel> <@U1> <https://x.example|y> *bold* _it_ `code` @here &lt;!here&gt; 🙂 \u202e"


def stuffed(length: int, start: str = "") -> str:
    """Text of exactly so many characters, full of what Slack would like to read as markup."""
    text = start + NASTY * (length // len(NASTY) + 1)
    return text[: length - 1] + "x"


def largest(world: World) -> Json:
    """One call of four questions with all texts as long as they may be, and one approval."""
    questions = [
        {
            "question": stuffed(8192, f"{number}"),
            "header": f"<@U{number}>*🙂*",
            "options": [option(stuffed(256, f"{number}{n}"), stuffed(4096)) for n in range(4)],
            "multiSelect": bool(number % 2),
        }
        for number in range(4)
    ]
    allowed = approval(
        "call",
        tool_name=stuffed(256),
        args={NASTY: [NASTY] * 300},
        reason=stuffed(4096),
        risk="extra_high",
    )
    return body(
        [question_call("q", *questions)],
        [allowed],
        place={"channel": world.ops},
        policy={"approvers": [world.ids["ana"]]},
        title=stuffed(150),
    )


async def test_the_largest_texts_make_legal_cards_in_which_nothing_comes_alive(world: World) -> None:
    run = await world.api.open(largest(world))
    await world.card(run)
    await world.slack.wait_for(
        lambda: sum(len(p["blocks"]) for p in world.parts(run)) and complete(world, run)
    )
    for part in world.parts(run):
        assert check_blocks(part["blocks"]) == []
        assert_lifeless(world, part)
    opened = await world.ana.click("View in full", near="Approval needed")
    approved = await turn_to_the_end(world, opened)
    assert "Approve" in approved
    await world.ana.close_modal()
    results = await answer_in_a_form(world, run)
    assert results["outcome"] == "answered"
    for message in world.slack.messages(world.ops):
        assert_lifeless(world, message)


def complete(world: World, run: Json) -> bool:
    return "Approval needed" in world.text(run) and "General response" in world.text(run)


async def turn_to_the_end(world: World, opened: Result) -> str:
    view = front(opened)
    while "Next" in str(view["blocks"]):
        assert_lifeless(world, view)
        view = front(await world.ana.click("Next"))
    return str(view["blocks"])


async def answer_in_a_form(world: World, run: Json) -> Any:
    opened = await world.ana.click("Answer in a form", message=world.parts(run)[0])
    assert_lifeless(world, front(opened))
    picks = {}
    for block in front(opened)["blocks"]:
        if block["type"] == "input" and block["element"]["type"] in ("radio_buttons", "checkboxes"):
            picks[block["label"]["text"]] = block["element"]["options"][0]["text"]["text"]
    assert len(picks) == 4
    await world.ana.fill(picks)
    sent = await world.ana.submit()
    assert (sent.ok, sent.modal) == (True, None), sent
    await world.shows(run, "Answered by @ana")
    gate = await world.api.ok("GET", f"/gates/{run['gates'][0]['id']}")
    return gate["decision"]


def assert_lifeless(world: World, thing: Any) -> None:
    """Where Slack reads markup there is nothing of the agent's; of the entities there are only our own."""
    for element in walk(thing.get("blocks", [])):
        if element.get("type") == "mrkdwn":
            assert "bold" not in element["text"]
            assert all(ours(world, entity) for entity in entities(element["text"])), element["text"]
        assert element.get("type") not in ("link", "usergroup", "broadcast", "channel", "emoji")
        assert element.get("type") != "user" or element["user_id"] in world.ids.values()
    if "ts" in thing:
        assert entities(thing["text"]) == []


def ours(world: World, entity: str) -> bool:
    return entity.startswith(("!date^", f"#{world.ops}")) or entity.removeprefix("@") in world.ids.values()


def entities(text: str) -> list[str]:
    return [piece.partition(">")[0] for piece in text.split("<")[1:]]


def walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)


async def test_the_text_for_notifications_is_never_read_as_markup(world: World) -> None:
    run = await world.api.open(
        body([question_call("q", ask())], place={"channel": world.ops}, policy={}, title=NASTY)
    )
    assert "&lt;!channel&gt;" in (await world.card(run))["text"]
    (posted,) = world.slack.called("chat.postMessage")
    assert posted.args["mrkdwn"] in (False, "false", "0", 0)


async def test_an_agents_text_in_lists_stays_text(world: World) -> None:
    asks = ask(NASTY, "<!here>", "*b*", header="<@U1>*_*")
    await world.api.open(
        body([question_call("q", asks)], place={"channel": world.ops}, policy={}, title=NASTY)
    )
    await world.ana.command("/gates", channel=world.ops)
    (listed,) = world.private("ana")
    await world.ana.open_home()
    home = await world.slack.wait_for(lambda: world.ana.home or {})
    for thing in (listed, home):
        assert "<!channel>" in world.ana.text(thing)
        assert_lifeless(world, thing)


async def test_a_persons_answer_on_the_card_stays_text(world: World) -> None:
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    await world.ana.click("Other", message=await world.card(run))
    await world.ana.fill({"Your answer": NASTY})
    await world.ana.submit()
    await world.shows(run, "<!channel>")
    assert_lifeless(world, world.parts(run)[0])


async def test_a_run_of_128_gates_is_shown_and_settled_as_a_whole(world: World) -> None:
    calls = [question_call(f"q{n}", ask(f"Question {n}?", header=f"No {n}")) for n in range(64)]
    approvals = [approval(f"a{n}", args={"n": n}) for n in range(64)]
    run = await world.api.open(
        body(
            calls,
            approvals,
            place={"channel": world.ops},
            policy={"approvers": [world.ids["ana"], "key:agent"]},
        )
    )
    assert len(run["gates"]) == 128
    await world.slack.wait_for(lambda: world.text(run).count("Approve\n") == 64, 30)
    parts = world.parts(run)
    assert [check_blocks(part["blocks"]) for part in parts] == [[]] * len(parts)
    assert {part.get("thread_ts") for part in parts[1:]} == {parts[0]["ts"]}
    gates = (await world.api.run(run))["gates"]
    assert all(gate["card"] for gate in gates)

    last = next(p for p in parts if "Question 63?" in world.slack.text_of(p))
    await world.ben.click("Broad", message=last, near="Question 63?")
    await world.shows(run, "Answered by @ben")
    await world.ana.click("Reject", message=parts[-1], near='"n": 63')
    await world.shows(run, "Rejected by @ana")
    await world.api.cancel(run, "enough")
    results = (await world.api.run(run))["results"]
    outcomes = [r["outcome"] for kind in results.values() for r in kind.values()]
    assert sorted(set(outcomes)) == ["answered", "cancelled", "denied"]
    assert outcomes.count("cancelled") == 126
    assert results["calls"]["q63"]["value"]["answers"] == {"Question 63?": "Broad"}
    await world.slack.wait_for(lambda: world.buttons(run) == [], 30)


async def test_what_was_typed_as_json_is_not_shown_as_markup(world: World) -> None:
    call = {"tool_call_id": "q", "tool_name": "<!here>", "args": {"<@U1>": NASTY}}
    run = await world.api.open(body([call], place={"channel": world.ops}, policy={}))
    await world.ana.click("Answer", message=await world.card(run))
    await world.ana.fill({"Your answer: text, or JSON": json.dumps({"x": "<!channel>"})})
    await world.ana.submit()
    await world.shows(run, "<!channel>", "Answered by @ana")
    assert_lifeless(world, world.parts(run)[0])
