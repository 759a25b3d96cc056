"""Forms and custom calls with a schema: what people fill in, what is said at which field, what the agent gets."""

from __future__ import annotations

from typing import Any

import pytest

from bot import words
from bot.sandbox.acts import Impossible
from tests.acceptance.world import Json, World, front
from tests.runs import body, form_call

FIELDS = [
    {
        "name": "city",
        "label": "City",
        "kind": "text",
        "required": True,
        "description": "Where the team meets",
    },
    {"name": "mail", "label": "Mail", "kind": "text", "format": "email"},
    {"name": "seats", "label": "Seats", "kind": "integer", "minimum": 2, "maximum": 40, "default": 8},
    {"name": "price", "label": "Price", "kind": "number"},
    {"name": "catering", "label": "Catering", "kind": "confirm", "default": True},
    {
        "name": "size",
        "label": "Size",
        "kind": "select",
        "options": [{"value": "s", "label": "Small"}, {"value": "l", "label": "Large"}],
        "default": "s",
    },
    {
        "name": "extras",
        "label": "Extras",
        "kind": "multi_select",
        "options": [{"value": n, "label": n.title()} for n in ("projector", "whiteboard", "coffee")],
        "max_items": 2,
        "default": ["coffee"],
    },
]


def form_run(world: World, *fields: Json, **form: Any) -> Json:
    call = form_call("form", *(fields or FIELDS), **{"title": "Book a room", "body": "For *Friday*", **form})
    return body([call], place={"channel": world.ops}, policy={})


async def result(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["calls"]["form"]


async def test_a_form_shows_its_fields_and_is_filled_in_a_modal_with_its_defaults(world: World) -> None:
    run = await world.api.open(form_run(world))
    text = await world.shows(
        run, "Book a room", "For *Friday*", "City (required) — Where the team meets", "Extras"
    )
    assert "Mail (required)" not in text
    assert world.buttons(run) == ["Answer in a form", "Decline", "Cancel"]
    opened = await world.ana.click("Answer in a form", message=await world.card(run))
    shown = world.ana.text(front(opened))
    assert all(
        word in shown for word in ("Book a room", "City", "Where the team meets", "Small", "Coffee", "8")
    )
    await world.ana.fill(
        {"City": "  Bonn ", "Size": "Large", "Extras": ["Projector", "Coffee"], "Price": "12.5"}
    )
    assert (await world.ana.submit()).modal is None
    found = await result(world, run)
    assert (found["status"], found["action"], found["outcome"]) == ("returned", "accept", "answered")
    assert found["value"] == {
        "city": "Bonn",
        "seats": 8,
        "price": 12.5,
        "catering": True,
        "size": "l",
        "extras": ["projector", "coffee"],
    }
    assert found["by"] == [{"team": "T0LOCAL", "user": world.ids["ana"]}]
    text = await world.shows(run, "Answered by @ana", "City: Bonn", "Catering: Yes", "Size: Large")
    assert "Extras: Projector, Coffee" in text
    assert world.buttons(run) == []


async def test_what_does_not_fit_is_said_at_its_field_and_the_form_stays_open(world: World) -> None:
    fields = [
        {"name": "city", "label": "City", "kind": "text", "required": True},
        {"name": "mail", "label": "Mail", "kind": "text", "format": "email"},
        {"name": "code", "label": "Code", "kind": "text", "min_length": 4},
        {"name": "n", "label": "Number", "kind": "number"},
        {**FIELDS[6], "max_items": None, "min_items": 2, "default": None},
    ]
    run = await world.api.open(form_run(world, *fields))
    await world.ana.click("Answer in a form", message=await world.card(run))
    await world.ana.fill({"City": "   ", "Mail": "nobody", "Code": "abc", "Extras": ["Coffee"]})
    wrong = await world.ana.submit()
    assert wrong.errors == {
        "City": "This is required",
        "Mail": "Wanted an e-mail address",
        "Code": "Wanted at least 4 characters",
        "Extras": "Wanted at least 2",
    }
    await world.ana.fill({"Number": "9999999999999999"})
    assert (await world.ana.submit()).errors == {"Number": words.NO_NUMBER}
    entries = {"City": "Rom", "Mail": "a@b.example", "Code": "abcd", "Number": "-3"}
    await world.ana.fill({**entries, "Extras": ["Coffee", "Projector"]})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["value"] == {
        "city": "Rom",
        "mail": "a@b.example",
        "code": "abcd",
        "n": -3,
        "extras": ["projector", "coffee"],
    }


async def test_dates_and_moments_are_picked(world: World) -> None:
    def of(name: str, format: str, default: str | None = None) -> dict[str, Any]:
        return {"name": name, "label": name, "kind": "text", "format": format, "default": default}

    kept, early = "2026-03-01T09:30:15.25+01:00", "1969-07-20T20:17:40Z"
    fields = [
        of("day", "date"),
        of("other day", "date", "2026-02-28"),
        of("start", "date-time"),
        of("end", "date-time", kept),
        of("moved", "date-time", kept),
        of("landing", "date-time", early),
        of("nothing", "date-time"),
    ]
    run = await world.api.open(form_run(world, *fields))
    opened = await world.ana.click("Answer in a form", message=await world.card(run))
    assert words.DEFAULT_UNFILLED.format(default=early) in world.ana.text(front(opened))
    with pytest.raises(Impossible, match="tomorrow"):
        await world.ana.fill({"day": "tomorrow"})
    # seconds since 1970, as Slack gives them
    await world.ana.fill({"day": "2026-02-01", "start": "1772357400", "moved": "1772353860"})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["value"] == {
        "day": "2026-02-01",
        "other day": "2026-02-28",
        "start": "2026-03-01T09:30:00Z",
        "end": kept,
        "moved": "2026-03-01T08:31:00Z",
    }


async def test_a_form_without_fields_is_accepted_by_its_button(world: World) -> None:
    asked = form_run(world)
    asked["pending"]["calls"][0]["form"] = {
        "title": "Delete the branch?",
        "schema": {"type": "object", "properties": {}},
        "controls": ["accept", "decline", "cancel"],
    }
    run = await world.api.open(asked)
    await world.shows(run, "Answer needed: Delete the branch?")
    assert world.buttons(run) == ["Accept", "Decline", "Cancel"]
    assert (await world.ana.click("Accept", message=await world.card(run))).modal is None
    found = await result(world, run)
    assert (found["status"], found["action"], found["value"]) == ("returned", "accept", {})
    await world.shows(run, "Answered by @ana", "→ Accept")


async def test_a_form_is_declined_with_a_word_or_dismissed_after_a_question_back(world: World) -> None:
    run = await world.api.open(form_run(world))
    await world.ana.click("Decline", message=await world.card(run))
    await world.ana.fill({words.DECLINE_LABEL: "not mine"})
    assert (await world.ana.submit()).ok
    found = await result(world, run)
    assert (found["status"], found["action"], found["outcome"]) == ("failed", "decline", "declined")
    assert found["message"] == "The user declined to answer: not mine"
    await world.shows(run, "Declined by @ana", "not mine")

    run = await world.api.open(form_run(world))
    assert (await world.ben.click("Cancel", message=await world.card(run), confirm=True)).ok
    found = await result(world, run)
    assert (found["status"], found["action"], found["outcome"]) == ("failed", "cancel", "declined")
    assert found["message"] == "The user dismissed the request."
    await world.shows(run, "Declined (dismissed) by @ben")


async def test_a_form_offers_what_its_host_allows_and_no_more(world: World) -> None:
    run = await world.api.open(form_run(world, controls=["accept"]))
    await world.card(run)
    assert world.buttons(run) == ["Answer in a form"]


async def test_a_form_that_somebody_else_settled_meanwhile_says_who(world: World) -> None:
    run = await world.api.open(form_run(world))
    await world.ana.click("Answer in a form", message=await world.card(run))
    await world.ben.click("Cancel", message=await world.card(run), confirm=True)
    await world.ana.fill({"City": "Bonn"})
    late = await world.ana.submit()
    assert "Already declined by @ben" in world.ana.text(front(late))


async def test_a_default_that_no_field_holds_is_told_and_left_out(http_world: World) -> None:
    world = http_world
    fields = [
        {"name": "text", "label": "Text", "kind": "text", "default": "x" * 3500},
        {"name": "huge", "label": "Huge", "kind": "number", "default": 1e300},
        {"name": "long", "label": "Long", "kind": "text", "max_length": 4000},
    ]
    run = await world.api.open(form_run(world, *fields))
    opened = await world.ana.click("Answer in a form", message=await world.card(run))
    shown = world.ana.text(front(opened))
    assert shown.count("The default does not fit here, so this starts empty") == 2
    assert "Slack takes up to 3000 characters here, of 4000 that are allowed" in shown
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["value"] == {}


async def test_the_form_of_an_mcp_elicitation_is_a_form_like_any_other(http_world: World) -> None:
    world = http_world
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name"},
            "level": {"type": "string", "title": "Level", "enum": ["a", "b"], "enumNames": ["Low", "High"]},
            "sure": {"type": "boolean", "title": "Sure?"},
        },
        "required": ["name"],
    }
    call = {"kind": "form", "tool_call_id": "form", "tool_name": "ask", "form": {"schema": schema}}
    run = await world.api.open(body([call], place={"channel": world.ops}, policy={}))
    await world.ana.click("Answer in a form", message=await world.card(run))
    await world.ana.fill({"Name": "Ada", "Level": "High", "Sure?": words.NO})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["value"] == {"name": "Ada", "level": "b", "sure": False}


async def test_a_custom_call_with_a_schema_wants_json_and_says_where_it_breaks_the_schema(
    world: World,
) -> None:
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]}
    call = {"tool_call_id": "form", "tool_name": "pick_port", "args": {"service": "db"}, "schema": schema}
    run = await world.api.open(body([call], place={"channel": world.ops}, policy={}))
    opened = await world.ana.click("Answer", message=await world.card(run))
    shown = world.ana.text(front(opened))
    assert words.JSON_SCHEMA in shown
    assert '"required": [\n    "port"' in shown
    for typed, said in (
        ("5432", "5432 is not of type 'object'"),
        ('{"port":\n 1,}', "line 2, column 4"),
        ('{"port": "db"}', "port: 'db' is not of type 'integer'"),
    ):
        await world.ana.fill({words.JSON_LABEL: typed})
        assert said in (await world.ana.submit()).errors[words.JSON_LABEL]
    await world.ana.fill({words.JSON_LABEL: '{"port": 5432}'})
    assert (await world.ana.submit()).modal is None
    assert (await result(world, run))["value"] == {"port": 5432}


@pytest.mark.parametrize(("typed", "value"), [("5432", 5432), ('"text"', "text"), ("null", None)])
async def test_with_a_schema_any_json_is_an_answer(http_world: World, typed: str, value: Any) -> None:
    world = http_world
    call = {"tool_call_id": "form", "tool_name": "pick", "args": {}, "schema": {"title": "Anything"}}
    run = await world.api.open(body([call], place={"channel": world.ops}, policy={}))
    await world.ana.click("Answer", message=await world.card(run))
    await world.ana.fill({words.JSON_LABEL: typed})
    sent = await world.ana.submit()
    if value is None:
        assert list(sent.errors) == [words.JSON_LABEL]
    else:
        assert (await result(world, run))["value"] == value
