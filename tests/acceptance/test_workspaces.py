"""Several workspaces install askgate, and leave it: each has its own token, people and cards."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis
from structlog.testing import capture_logs
from yarl import URL

from bot.sandbox import payloads
from bot.sandbox.world import TEAM
from bot.testing.clock import CatchingUp, ahead
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


@asynccontextmanager
async def several(mode: str, redis_url: str, folder: Path, **more: str) -> AsyncIterator[World]:
    """A world of two workspaces and an organisation of two more; askgate is installed nowhere yet."""
    async with world_in(mode, redis_url, folder) as world:
        slack = world.slack
        for name, team in (("lea", TWO), ("mia", TWO), ("eli", EAST), ("wes", WEST)):
            world.ids[name] = slack.add_user(name, team=team)
        slack.add_org(ORG, "Org", [EAST, WEST])
        world.clock = ahead(slack)
        await world.start(**oauth(world), **more)
        slack.followers.append(CatchingUp(world.replicas[0]))
        slack.offer(f"{world.url}/slack/oauth_redirect")
        yield world


@pytest.fixture(params=("http", "socket"))
async def many(
    request: pytest.FixtureRequest, redis_url: str, redis: Redis, tmp_path: Path
) -> AsyncIterator[World]:
    async with several(request.param, redis_url, tmp_path) as world:
        yield world


@pytest.fixture
async def many_http(redis_url: str, redis: Redis, tmp_path: Path) -> AsyncIterator[World]:
    """As `many`, for what has nothing to do with how Slack delivers."""
    async with several("http", redis_url, tmp_path) as world:
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


async def test_before_anybody_installs_a_run_is_refused_with_what_to_do(many_http: World) -> None:
    status, problem = await many_http.api.call("POST", "/runs", asking(many_http.ops))
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


async def test_an_admin_of_another_workspace_gets_the_card_there_and_may_approve(many: World) -> None:
    await install(many)
    await install(many, TWO)
    lab = many.slack.add_channel("lab", ["lea"], team=TWO)
    run = await many.api.open(asking(lab, TWO, approval=True))
    await many.card(run, copy=2)
    assert many.parts(run, 2)[0]["channel"] == many.dan.dm
    await many.dan.click("Approve", message=many.parts(run, 2)[0])
    assert (await many.api.settled(run))["approvals"]["a1"]["by"] == [{"team": TEAM, "user": many.ids["dan"]}]
    await many.shows(run, "Approved", copy=2)


async def test_with_one_bot_token_what_waits_ends_too_when_the_app_is_removed(world: World) -> None:
    run = await world.api.open(asking(world.ops))
    await world.card(run)
    world.slack.uninstall()
    assert (await world.api.settled(run))["calls"]["q1"]["outcome"] == "undeliverable"
    status, problem = await world.api.call("POST", "/runs", asking(world.ops, TWO))
    assert (status, "no other workspace" in problem["detail"]) == (422, True)


async def test_an_event_from_before_a_new_installation_removes_nothing(many_http: World) -> None:
    await install(many_http)
    app, slack = many_http.slack.installation(), many_http.slack
    late = payloads.event_json(slack.world, app, {"type": "app_uninstalled"})
    late["event_time"] -= 3600
    await slack.courier._deliver(app, late)
    assert await many_http.replicas[0].engine.store.installations.names() == [TEAM]
    await slack.courier._deliver(app, payloads.event_json(slack.world, app, {"type": "app_uninstalled"}))
    assert await many_http.replicas[0].engine.store.installations.names() == []


# organisations


async def in_org(many: World) -> str:
    """askgate in an organisation; a channel of its east with people of both."""
    assert (await install(many, ORG))[0] == 200
    return many.slack.add_channel("east", ["eli", "wes"], team=EAST)


async def test_an_organisation_installs_askgate_once_for_all_its_workspaces(many: World) -> None:
    channel = await in_org(many)
    assert await many.replicas[0].engine.store.installations.names() == [ORG]
    for team in (None, EAST, WEST, ORG):
        run = await many.api.open(asking(channel, team))
        card = await many.card(run)
        await many.wes.click("Left", message=card)
        assert (await many.api.settled(run))["calls"]["q1"]["by"] == [{"team": ORG, "user": many.ids["wes"]}]
    await many.eli.command("/gates", "list", channel=channel)
    assert many.private("eli", channel)
    await many.eli.open_home()
    await many.slack.wait_for(lambda: many.eli.home is not None, 15)


async def test_in_an_organisation_a_person_is_one_whichever_workspace_they_are_named_by(many: World) -> None:
    channel = await in_org(many)
    eli, wes = many.ids["eli"], many.ids["wes"]
    policy = {"approvers": [f"{WEST}:{eli}", f"{WEST}:{wes}"]}
    asked_by = {"team": WEST, "user": eli}
    run = await many.api.open(asking(channel, EAST, approval=True, policy=policy, requester=asked_by))
    card = await many.card(run)
    await many.eli.click("Approve", message=card)
    await many.told("eli", "You asked for this", channel=channel)
    await many.wes.click("Approve", message=card)
    assert (await many.api.settled(run))["approvals"]["a1"]["by"] == [{"team": ORG, "user": wes}]


async def test_a_group_of_one_of_an_organisations_workspaces_decides(many_http: World) -> None:
    channel = await in_org(many_http)
    group = many_http.slack.add_group("west-ops", ["wes"], team=WEST)
    run = await many_http.api.open(asking(channel, EAST, approval=True, policy={"approvers": [group]}))
    card = await many_http.card(run)
    await many_http.eli.click("Approve", message=card)
    await many_http.told("eli", "decide", channel=channel)
    await many_http.wes.click("Approve", message=card)
    await many_http.api.settled(run)


async def test_a_stranger_in_an_organisations_channel_is_of_their_own_team(many_http: World) -> None:
    channel = await in_org(many_http)
    many_http.slack.world.channels[channel].members.append(many_http.ids["lea"])
    run = await many_http.api.open(asking(channel))
    card = await many_http.card(run)
    await many_http.lea.click("Left", message=card)
    await many_http.told("lea", "decide", channel=channel)


# tokens that end


async def test_a_token_is_renewed_before_it_ends_once_over_all_processes(many: World) -> None:
    many.slack.app.manifest["settings"]["token_rotation_enabled"] = True
    await many.start(**oauth(many))
    await install(many)
    ops = many.slack.add_channel("ops")
    first = many.slack.installation().bot_token
    await many.slack.skip(9 * 3600)
    assert len(many.slack.called("oauth.v2.access")) == 1
    await many.slack.skip(1.5 * 3600)
    await many.slack.wait_for(lambda: many.slack.installation().bot_token != first, 15)
    assert len(many.slack.called("oauth.v2.access")) == 2
    await many.slack.skip(2 * 3600)  # past the end of the first
    run = await many.api.open(asking(ops))
    await many.card(run)
    await many.ana.click("Left")
    await many.api.settled(run)
    assert len(many.slack.called("oauth.v2.access")) == 2


async def test_a_token_that_ended_while_nothing_ran_is_renewed_at_its_next_use(many_http: World) -> None:
    many_http.slack.app.manifest["settings"]["token_rotation_enabled"] = True
    await install(many_http)
    ops = many_http.slack.add_channel("ops")
    await many_http.stop()
    many_http.slack.followers.clear()
    await many_http.slack.skip(13 * 3600)
    await many_http.start(**oauth(many_http))
    run = await many_http.api.open(asking(ops))
    await many_http.card(run)
    await many_http.ana.click("Left")
    await many_http.api.settled(run)


async def test_a_refresh_that_slack_refuses_is_said_without_the_token(many_http: World) -> None:
    many_http.slack.app.manifest["settings"]["token_rotation_enabled"] = True
    await install(many_http)
    many_http.slack.fail("oauth.v2.access", error="invalid_refresh_token")
    with capture_logs() as said:
        await many_http.slack.skip(10.5 * 3600)
    told = [line for line in said if line["event"] == "installation.not_renewed"]
    assert [line["code"] for line in told][:1] == ["invalid_refresh_token"]
    assert many_http.slack.installation().refresh_token not in str(said)


# the doors


async def test_a_state_is_good_once_and_for_the_browser_that_it_was_made_for(many_http: World) -> None:
    async with browser(many_http) as first, browser(many_http) as other:
        url, form = await consent(many_http, first)
        async with first.post(
            url, data={**form, "place": TEAM, "answer": "allow"}, allow_redirects=False
        ) as page:
            back = page.headers["Location"]
        async with other.get(back) as page:
            assert (page.status, "invalid_browser" in await page.text()) == (400, True)
        assert await many_http.replicas[0].engine.store.installations.names() == []
        async with first.get(back) as page:
            assert page.status == 200
            assert page.headers["Referrer-Policy"] == "no-referrer"
        async with first.get(back) as page:
            assert page.status in (400, 401)
    assert await many_http.replicas[0].engine.store.installations.names() == [TEAM]


async def test_who_cancels_installs_nothing_and_is_told(many_http: World) -> None:
    _, page = await install(many_http, answer="cancel")
    assert "access_denied" in page
    assert await many_http.replicas[0].engine.store.installations.names() == []


async def test_no_token_stands_in_the_store_the_logs_or_any_repr(
    many_http: World, redis: Any, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    await install(many_http)
    token = many_http.slack.installation().bot_token
    sealed = await redis.hgetall("ag:installations")
    assert sealed
    assert token not in str(sealed)
    said = caplog.text + "".join(capsys.readouterr())
    assert token not in said
    assert "local-client-secret" not in said
    assert KEYS[0] not in said
    assert KEYS[0] not in repr(many_http.replicas[0]._settings)
