"""The main job: an agent asks, three people click on two replicas, the run resumes once."""

from __future__ import annotations

import asyncio
import json

from tests.acceptance.test_questions import FOLDERS, REGION, SCOPE
from tests.acceptance.world import World
from tests.runs import approval, ask, body, question_call


async def test_a_batch_clicked_by_three_people_on_two_replicas_resumes_once(empty_world: World) -> None:
    world = empty_world
    first, second = await world.start(2)
    call = question_call(
        "q-1",
        ask(SCOPE, header="Scope"),
        ask(FOLDERS, "build", "cache", multi=True, header="Folders"),
        ask(REGION, "North", "South", header="Region"),
    )
    approvers = [world.ids["ben"], world.ids["cho"]]
    run = await world.api.open(
        body(
            [call],
            [approval("call-1"), approval("call-2", args={"path": "/tmp/keep"})],
            place={"channel": world.ops},
            policy={"approvers": approvers},
            title="Nightly clean-up",
            state=json.dumps({"step": 7}),
        )
    )
    card = await world.card(run)
    assert "Nightly clean-up" in world.text(run)

    await world.ana.click("Focused", message=card, near=SCOPE)
    world.reach(second)
    await world.ana.select(["build", "cache"], message=card)
    await world.ana.click("Other", message=card, near=REGION)
    await world.ana.fill({"Your answer": "East"})
    await world.ana.submit()
    await world.shows(run, "@ana: 3 of 3")
    await world.ben.click("Approve", message=await world.card(run), near="/tmp/old.log")
    await world.shows(run, "Approved by @ben")
    world.reach(first)
    assert await world.api.claim() == []
    await world.ana.click("Submit", message=await world.card(run))
    await world.shows(run, "Answered by @ana")
    world.reach(second)
    assert (await world.api.run(run))["results"] is None
    await world.cho.click("Reject", message=await world.card(run), near="/tmp/keep")

    (resume,) = await world.api.claim(wait_s=10)
    world.reach(first)
    assert await world.api.claim() == []
    results = resume["run"]["results"]
    assert json.loads(resume["state"]) == {"step": 7}
    assert list(results["calls"]) == ["q-1"]
    assert results["calls"]["q-1"]["value"] == {
        "answers": {SCOPE: "Focused", FOLDERS: ["build", "cache"], REGION: "East"}
    }
    actions = {call_id: result["action"] for call_id, result in results["approvals"].items()}
    assert actions == {"call-1": "approve", "call-2": "deny"}
    who = [results["calls"]["q-1"], results["approvals"]["call-1"], results["approvals"]["call-2"]]
    assert [result["by"][0]["user"] for result in who] == [world.ids[name] for name in ("ana", "ben", "cho")]

    await world.api.ok("POST", f"/resumes/{run['id']}/ack", {"lease": resume["lease"]})
    assert (await world.api.run(run))["status"] == "resumed"
    assert await world.api.claim() == []
    events = [event["event"] for event in await world.api.audit(run)]
    assert events.count("gate.settled") == 3
    assert events.count("run.settled") == events.count("run.resumed") == 1
    assert "gate.refused" not in events
    await world.shows(run, "Answered by @ana", "Approved by @ben", "Rejected by @cho")
    assert len(world.parts(run)) == 1
    assert world.buttons(run) == []
    world.nobody_else_told()


async def test_the_first_click_wins_when_two_replicas_get_one_each_at_once(empty_world: World) -> None:
    world = empty_world
    await world.start(2)
    run = await world.api.open(body([question_call("q", ask())], place={"channel": world.ops}, policy={}))
    card = await world.card(run)
    people = ["ana", "ben", "cho", "dan"]
    clicks = [
        world.slack.as_user(name).click("Focused" if n % 2 else "Broad", message=card)
        for n, name in enumerate(people)
    ]
    assert all(result.ok for result in await asyncio.gather(*clicks))
    result = (await world.api.settled(run))["calls"]["q"]
    (winner,) = [name for name in people if world.ids[name] == result["by"][0]["user"]]
    for name in set(people) - {winner}:
        await world.told(name, f"Already answered by @{winner}")
    assert world.private(winner) == []
    assert len(await world.api.refusals(run)) == 3
