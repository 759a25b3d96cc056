"""Silence is a failure: deadlines, cancellations, and what the card says afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.acceptance.world import Json, World
from tests.runs import approval, ask, body, question_call


def batch(world: World, **more: Any) -> Json:
    return body(
        [question_call("q", ask())],
        [approval("call")],
        place={"channel": world.ops},
        **{"policy": {"approvers": [world.ids["ana"], world.ids["ben"]]}, **more},
    )


async def test_with_every_deadline_passed_nothing_looks_like_an_answer(world: World) -> None:
    run = await world.api.open(batch(world, timeout_s=1))
    results = await world.api.settled(run)
    call, allowed = results["calls"]["q"], results["approvals"]["call"]
    assert (call["status"], call["outcome"], call["by"]) == ("failed", "expired", [])
    assert call["message"] == "No answer within 1 s."
    assert (allowed["action"], allowed["outcome"], allowed["by"]) == ("deny", "expired", [])
    assert allowed["reason"] == "No decision within 1 s."
    text = await world.shows(run, "Expired: nobody decided in time")
    assert text.count("Expired") == 2
    assert world.buttons(run) == []
    assert "@" not in text


async def test_on_expiry_a_batch_keeps_the_answers_that_it_has(world: World) -> None:
    run = await world.api.open(batch(world, timeout_s=3))
    await world.ana.click("Focused", message=await world.card(run))
    results = await world.api.settled(run)
    assert results["calls"]["q"]["outcome"] == "answered"
    assert results["approvals"]["call"]["outcome"] == "expired"
    await world.shows(run, "Answered by @ana", "Expired: nobody decided in time")


async def test_a_cancelled_run_says_so_on_the_card_and_names_nobody(world: World) -> None:
    run = await world.api.open(batch(world))
    stale = await world.card(run)
    await world.api.cancel(run, "The job was stopped")
    results = (await world.api.run(run))["results"]
    call, allowed = results["calls"]["q"], results["approvals"]["call"]
    assert (call["status"], call["outcome"], call["by"]) == ("failed", "cancelled", [])
    assert call["message"] == "Cancelled: The job was stopped"
    assert (allowed["action"], allowed["outcome"]) == ("deny", "cancelled")
    text = await world.shows(run, "Cancelled", "Reason: The job was stopped")
    assert "@" not in text
    assert world.buttons(run) == []
    await world.ana.click("Focused", message=stale)
    await world.told("ana", "Already cancelled", "not counted")
    assert await world.api.refusals(run) == [(world.ids["ana"], "already-settled")]


async def test_a_run_that_is_answered_over_the_api_shows_so_in_slack(world: World) -> None:
    run = await world.api.open(batch(world, policy={"approvers": ["key:agent"], "responders": ["key:agent"]}))
    await world.card(run)
    answers = {
        "calls": {
            "q": {"status": "returned", "value": {"answers": {"Which scope should be used?": "Broad"}}}
        },
        "approvals": {"call": {"action": "deny", "reason": "not needed"}},
    }
    await world.api.ok("POST", f"/runs/{run['id']}/resume", answers)
    await world.shows(run, "Answered by API key agent", "Rejected by API key agent", "over the API", "Broad")
    assert world.buttons(run) == []


async def test_a_card_says_until_when_it_is_open_and_when_it_was_settled(world: World) -> None:
    run = await world.api.open(batch(world, timeout_s=3600))
    card = await world.card(run)
    assert f"<!date^{int(seconds(run['gates'][0]['deadline']))}^" in str(card["blocks"])
    await world.ana.click("Focused", message=card)
    await world.shows(run, "Answered by @ana")
    gate = await world.api.ok("GET", f"/gates/{run['gates'][0]['id']}")
    assert f"<!date^{int(seconds(gate['decision']['decided_at']))}^" in str(world.parts(run)[0]["blocks"])


def seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
