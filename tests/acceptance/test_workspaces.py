"""Several workspaces install askgate, and leave it: each has its own token, people and cards."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis
from yarl import URL

from bot.sandbox.world import TEAM
from tests.acceptance.world import Json, World, world_in

TWO = "T0TWO"
ORG, EAST, WEST = "E0ORG", "T0EAST", "T0WEST"
KEYS = [Fernet.generate_key().decode() for _ in range(2)]
QUESTION = {
    "tool_call_id": "q1",
    "tool_name": "ask_user_question",
    "args": {
        "questions": [
            {
                "question": "Which way?",
                "header": "Way",
                "options": [{"label": "Left", "description": "l"}, {"label": "Right", "description": "r"}],
                "multiSelect": False,
            }
        ]
    },
}
APPROVAL = {"tool_call_id": "a1", "tool_name": "delete_file", "args": {"path": "/tmp/x"}}


@pytest.fixture(params=("http", "socket"))
async def many(
    request: pytest.FixtureRequest, redis_url: str, redis: Redis, tmp_path: Path
) -> AsyncIterator[World]:
    """A world of two workspaces and an organisation of two more; askgate is installed nowhere yet."""
    async with world_in(request.param, redis_url, tmp_path) as world:
        slack = world.slack
        for name, team in (("lea", TWO), ("mia", TWO), ("eli", EAST), ("wes", WEST)):
            world.ids[name] = slack.add_user(name, team=team)
        slack.add_org(ORG, "Org", [EAST, WEST])
        await world.start(**oauth(world))
        slack.offer(f"{world.url}/slack/oauth_redirect")
        yield world


def oauth(world: World) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": "",
        "SLACK_CLIENT_ID": "1.2",
        "SLACK_CLIENT_SECRET": "local-client-secret",
        "ASKGATE_ENCRYPTION_KEYS": ",".join(KEYS),
        "ASKGATE_ADMINS": f"{TEAM}:{world.ids['dan']}",
    }


def browser(world: World) -> aiohttp.ClientSession:
    """A browser: it keeps cookies, and sends those that are for secure origins to this machine (as browsers do)."""
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=[URL(world.url)])
    return aiohttp.ClientSession(cookie_jar=jar)


async def consent(world: World, session: aiohttp.ClientSession) -> tuple[URL, Json]:
    """Open the install page: returns where the consent page is, and what its form holds."""
    async with session.get(f"{world.url}/slack/install") as page:
        assert page.status == 200
        assert "askgate is requesting permission" in await page.text()
    return page.url.with_query(None), {"redirect_uri": "", **page.url.query}


async def install(world: World, place: str = TEAM, answer: str = "allow") -> tuple[int, str]:
    """Install askgate as somebody with a browser; returns the page at the end."""
    async with browser(world) as session:
        url, form = await consent(world, session)
        async with session.post(url, data={**form, "place": place, "answer": answer}) as page:
            return page.status, await page.text()


def asking(channel: str, team: str | None = None, *, approval: bool = False, **more: Any) -> Json:
    pending = {"approvals": [APPROVAL]} if approval else {"calls": [QUESTION]}
    place = {"channel": channel} | ({"team": team} if team else {})
    return {"title": "Cleaning up", "pending": pending, "place": place, **more}


async def test_a_workspace_installs_askgate_and_its_people_decide(many: World) -> None:
    status, page = await install(many)
    assert (status, "Thank you" in page) == (200, True)
    ops = many.slack.add_channel("ops")
    run = await many.api.open(asking(ops))
    await many.shows(run, "Which way?")
    await many.ana.click("Left")
    assert (await many.api.settled(run))["calls"]["q1"]["value"]["answers"] == {"Which way?": "Left"}
    assert many.slack.called("chat.postMessage")


async def test_before_anybody_installs_a_run_is_refused_with_what_to_do(many: World) -> None:
    status, problem = await many.api.call("POST", "/runs", asking(many.ops))
    assert status == 422
    assert problem["type"].endswith("no-workspace")
    assert "/slack/install" in problem["detail"]


async def test_with_several_workspaces_a_run_names_its_own_and_each_token_serves_its_own(many: World) -> None:
    await install(many)
    await install(many, TWO)
    ops, lab = many.slack.add_channel("ops"), many.slack.add_channel("lab", ["lea", "mia"], team=TWO)
    status, problem = await many.api.call("POST", "/runs", asking(lab))
    assert status == 422
    assert "place.team" in problem["detail"]
    status, problem = await many.api.call("POST", "/runs", asking(lab, "T0NONE"))
    assert (status, "T0NONE" in problem["detail"]) == (422, True)
    here, there = await many.api.open(asking(ops, TEAM)), await many.api.open(asking(lab, TWO))
    await many.card(here)
    await many.card(there)
    one, two = many.slack.installation(), many.slack.installation(TWO)
    posted = {call.args["channel"]: call.app for call in many.slack.called("chat.postMessage")}
    assert posted == {ops: one.id, lab: two.id}
    await many.lea.click("Right")
    await many.ben.click("Left")
    assert (await many.api.settled(there))["calls"]["q1"]["by"] == [{"team": TWO, "user": many.ids["lea"]}]
    assert (await many.api.settled(here))["calls"]["q1"]["by"] == [{"team": TEAM, "user": many.ids["ben"]}]


async def test_a_bare_id_means_a_person_of_the_runs_own_workspace_alone(many: World) -> None:
    await install(many)
    await install(many, TWO)
    lab = many.slack.add_channel("lab", ["lea", "mia", "ana"], team=TWO)
    policy = {"approvers": [many.ids["lea"]]}
    run = await many.api.open(asking(lab, TWO, approval=True, policy=policy))
    await many.card(run)
    await many.ana.click("Approve")
    await many.told("ana", "decide", channel=lab)
    await many.lea.click("Approve")
    assert (await many.api.settled(run))["approvals"]["a1"]["by"] == [{"team": TWO, "user": many.ids["lea"]}]


async def test_an_outsider_of_a_shared_channel_decides_only_if_the_policy_names_them(many: World) -> None:
    await install(many)
    ops = many.slack.add_channel("ops")
    run = await many.api.open(asking(ops))
    await many.card(run)
    await many.gus.click("Left")
    await many.told("gus", "decide")
    named = asking(ops, policy={"responders": [f"T0OTHER:{many.ids['gus']}"]})
    run = await many.api.open(named)
    card = await many.card(run)
    await many.gus.click("Left", message=card)
    assert (await many.api.settled(run))["calls"]["q1"]["by"] == [
        {"team": "T0OTHER", "user": many.ids["gus"]}
    ]


async def test_gates_and_the_home_work_in_each_workspace(many: World) -> None:
    await install(many)
    await install(many, TWO)
    lab = many.slack.add_channel("lab", ["lea", "mia"], team=TWO)
    run = await many.api.open(asking(lab, TWO))
    await many.card(run)
    await many.lea.command("/gates", "list", channel=lab)
    assert "Which way?" in many.slack.text_of((many.private("lea", lab))[-1])
    await many.lea.open_home()
    await many.slack.wait_for(lambda: many.lea.home and "Which way?" in many.slack.text_of(many.lea.home), 15)


@pytest.mark.parametrize("how", ["uninstalled", "by the page again"])
async def test_what_waits_where_askgate_is_taken_away_ends_with_slacks_word(many: World, how: str) -> None:
    await install(many)
    await install(many, TWO)
    ops, lab = many.slack.add_channel("ops"), many.slack.add_channel("lab", ["lea"], team=TWO)
    here, there = await many.api.open(asking(ops, TEAM)), await many.api.open(asking(lab, TWO))
    await many.card(here)
    await many.card(there)
    many.slack.uninstall(TWO)
    results = await many.api.settled(there)
    assert results["calls"]["q1"]["outcome"] == "undeliverable"
    assert (await many.api.run(here))["status"] == "waiting"
    assert await many.replicas[0].engine.store.installations.names() == [TEAM]
    status, _ = await many.api.call("POST", "/runs", asking(lab, TWO))
    assert status == 422
    if how == "by the page again":
        assert (await install(many, TWO))[0] == 200
        again = await many.api.open(asking(lab, TWO))
        await many.card(again)
    reasons = [event.get("reason") for event in await many.api.audit(there)]
    assert {"app_uninstalled", "token_revoked"} & set(reasons)


# the doors


async def test_a_state_is_good_once_and_for_the_browser_that_it_was_made_for(many: World) -> None:
    async with browser(many) as first, browser(many) as other:
        url, form = await consent(many, first)
        async with first.post(
            url, data={**form, "place": TEAM, "answer": "allow"}, allow_redirects=False
        ) as page:
            back = page.headers["Location"]
        async with other.get(back) as page:
            assert (page.status, "invalid_browser" in await page.text()) == (400, True)
        assert await many.replicas[0].engine.store.installations.names() == []
        async with first.get(back) as page:
            assert page.status == 200
            assert page.headers["Referrer-Policy"] == "no-referrer"
        async with first.get(back) as page:
            assert page.status in (400, 401)
    assert await many.replicas[0].engine.store.installations.names() == [TEAM]


async def test_who_cancels_installs_nothing_and_is_told(many: World) -> None:
    _, page = await install(many, answer="cancel")
    assert "access_denied" in page
    assert await many.replicas[0].engine.store.installations.names() == []


async def test_no_token_stands_in_the_store_the_logs_or_any_repr(
    many: World, redis: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    await install(many)
    token = many.slack.installation().bot_token
    sealed = await redis.hgetall("ag:installations")
    assert sealed
    assert token not in str(sealed)
    said = caplog.text + "".join(capsys.readouterr())
    assert token not in said
    assert "local-client-secret" not in said
    assert KEYS[0] not in said
    assert KEYS[0] not in repr(many.replicas[0]._settings)
