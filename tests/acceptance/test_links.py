"""Links: what people read before they follow one, and how they say that it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot import words
from tests.acceptance.world import Json, World, front
from tests.runs import body, link_call

URL = "https://login.example.com/start?for=agent&state=a%20b"


def link_run(world: World, **link: Any) -> Json:
    call = link_call(
        "link", **{"title": "Sign in to the billing system", "body": "Use <!here> your own account", **link}
    )
    return body([call], place={"channel": world.ops}, policy={})


async def result(world: World, run: Json) -> Any:
    return (await world.api.settled(run))["calls"]["link"]


def buttons(thing: Json) -> Iterator[Json]:
    for block in thing["blocks"]:
        yield from (e for e in block.get("elements", ()) if e.get("type") == "button")


async def test_a_link_shows_its_whole_address_opens_it_by_a_button_and_is_accepted_by_done(
    world: World,
) -> None:
    run = await world.api.open(link_run(world, url=URL))
    await world.shows(run, "Sign in to the billing system", "Use <!here> your own account", f"\n{URL}\n")
    card = await world.card(run)
    assert world.buttons(run) == ["Open login.example.com", "Done", "Decline", "Cancel"]
    assert [b["url"] for b in buttons(card) if "url" in b] == [URL]
    assert "<http" not in str(card["blocks"])
    assert '"link"' not in str(card["blocks"])
    opened = await world.ana.click("Open login.example.com", message=card)
    assert (opened.ok, opened.modal) == (True, None)
    assert (await world.api.run(run))["status"] == "waiting"
    world.nobody_else_told()
    assert (await world.ana.click("Done", message=card)).ok
    found = await result(world, run)
    assert (found["status"], found["action"], found["value"]) == ("returned", "accept", {"action": "accept"})
    await world.shows(run, "https://login.example.com", "Done", "Answered by @ana")
    assert world.buttons(run) == []


async def test_without_a_url_only_the_origin_is_shown_and_nothing_opens(world: World) -> None:
    run = await world.api.open(link_run(world, origin="https://bücher.example"))
    text = await world.shows(run, "https://xn--bcher-kva.example")
    assert "bücher" not in text
    assert world.buttons(run) == ["Done", "Decline", "Cancel"]
    assert [b for b in buttons(await world.card(run)) if "url" in b] == []


async def test_a_link_is_declined_with_a_word_or_dismissed(world: World) -> None:
    run = await world.api.open(link_run(world))
    await world.ana.click("Decline", message=await world.card(run))
    await world.ana.fill({words.DECLINE_LABEL: "no account"})
    await world.ana.submit()
    found = await result(world, run)
    assert (found["action"], found["outcome"]) == ("decline", "declined")
    await world.shows(run, "Declined by @ana", "no account")

    run = await world.api.open(link_run(world))
    await world.ana.click("Cancel", message=await world.card(run), confirm=True)
    assert (await result(world, run))["action"] == "cancel"


async def test_an_address_that_does_not_fit_is_opened_where_all_of_it_was_read(world: World) -> None:
    url = "https://example.com/" + "&" * 1800
    run = await world.api.open(link_run(world, url=url, controls=["accept"]))
    card = await world.card(run)
    assert world.buttons(run) == ["View in full", "Done"]
    opened = front(await world.ana.click("View in full", message=card))
    assert url in world.ana.text(opened).replace("\n", "")
    assert [b["url"] for b in buttons(opened) if "url" in b] == [url]
    assert (await world.ana.click("Open example.com")).ok
    done = await world.ana.click("Done")
    assert "Answered by @ana" in world.ana.text(front(done))
    assert (await result(world, run))["outcome"] == "answered"


async def test_a_host_too_long_for_a_button_is_not_cut_into_another_one(http_world: World) -> None:
    world = http_world
    host = f"example.com.{'a' * 60}.{'b' * 60}.test"
    run = await world.api.open(link_run(world, url=f"https://{host}/"))
    await world.shows(run, f"https://{host}/")
    assert world.buttons(run)[0] == words.OPEN_LINK
