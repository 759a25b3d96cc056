"""The routes behind the local Slack's page, and a workspace that outlives its process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from bot.sandbox import LocalSlack
from tests.integration.sandbox_app import button, entry, modal, options, running, section, serving, typed

Json = dict[str, Any]


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        for name in ("ana", "ben"):
            slack.add_user(name)
        slack.add_channel("general", ["ana", "ben"])
        yield slack


class Page:
    """Talks to the routes as the page does, for one person."""

    def __init__(self, slack: LocalSlack, session: aiohttp.ClientSession, name: str = "ana") -> None:
        self.url = slack.url
        self.user = slack.as_user(name).id
        self.session = session

    async def state(self) -> Json:
        async with self.session.get(f"{self.url}/ui/state", params={"user": self.user}) as response:
            assert response.headers["Cache-Control"] == "no-store"
            return dict(await response.json())

    async def post(self, path: str, status: int = 200, /, **body: Any) -> Json:
        async with self.session.post(f"{self.url}/ui/{path}", json={"user": self.user, **body}) as response:
            assert response.status == status
            return dict(await response.json())


@pytest.fixture
async def page(slack: LocalSlack) -> AsyncIterator[Page]:
    async with aiohttp.ClientSession() as session:
        yield Page(slack, session)


async def test_the_page_and_its_files_are_served(page: Page) -> None:
    for path, kind in (
        ("/", "text/html"),
        ("/static/main.js", "text/javascript"),
        ("/static/style.css", "text/css"),
    ):
        async with page.session.get(page.url + path) as response:
            assert response.status == 200
            assert response.content_type == kind
            assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/static/none.js", "/static/%2e%2e/slack.py", "/static/..%2f__init__.py"])
async def test_no_other_file_is_served(page: Page, path: str) -> None:
    async with page.session.get(URL(page.url + path, encoded=True)) as response:
        assert response.status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "[::1"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
async def test_no_other_page_can_drive_this_one(page: Page, headers: dict[str, str]) -> None:
    body = {"user": page.user, "channel": "general", "text": "hi"}
    for request in (
        page.session.post(f"{page.url}/ui/say", json=body, headers=headers),
        page.session.get(f"{page.url}/ui/state", params={"user": page.user}, headers=headers),
    ):
        async with request as response:
            assert response.status == 403


async def test_no_other_page_can_call_the_web_api(slack: LocalSlack, page: Page) -> None:
    args = {"channel": "general", "text": "hi", "token": "xoxb-test"}
    headers = {"Origin": "http://evil.example"}
    async with page.session.post(f"{slack.api_url}chat.postMessage", data=args, headers=headers) as response:
        assert response.status == 403
    async with page.session.post(
        f"{slack.api_url}chat.postMessage", data=args, headers={"Host": "slack"}
    ) as response:
        assert (await response.json())["ok"]
    assert len(slack.messages("general")) == 1


async def test_a_form_is_no_way_in(page: Page) -> None:
    async with page.session.post(f"{page.url}/ui/say", data={"user": page.user}) as response:
        assert response.status == 415


async def test_wrong_input_is_named(page: Page) -> None:
    assert (await page.post("say", 400))["error"] == "missing field: channel"
    assert "not in nowhere" in (await page.post("say", 409, channel="nowhere", text="x"))["error"]
    assert "no such person" in (await page.post("home", 409, user="U9"))["error"]
    async with page.session.post(f"{page.url}/ui/say", json=[]) as response:
        assert response.status == 400
    async with page.session.get(f"{page.url}/ui/state", params={"user": "U9"}) as response:
        assert response.status == 404


async def test_a_person_sees_their_channels_and_private_messages(slack: LocalSlack, page: Page) -> None:
    secret = slack.add_channel("secret", ["ben"], private=True)
    async with running(slack) as bot:
        where = slack.add_channel("general")
        ts = (await bot.client.chat_postMessage(channel=where, text="hi", blocks=[section("hi")]))["ts"]
        await bot.client.chat_postMessage(channel=where, text="reply", thread_ts=ts)
        await bot.client.chat_postEphemeral(channel=where, user=page.user, text="psst")
    state = await page.state()
    assert state["you"] == page.user
    assert secret not in state["messages"]
    [channel] = state["channels"]
    assert (channel["name"], channel["kind"], channel["unread"]) == ("general", "channel", 3)
    first, reply, private = state["messages"][where]
    assert (first["reply_count"], first["latest_reply"], first["bot_name"]) == (1, reply["ts"], "askgate")
    assert reply["thread_ts"] == ts
    assert private["ephemeral"] is True
    assert state["team"] == {"id": "T0LOCAL", "name": "Local"}
    assert {user["name"]: user["is_bot"] for user in state["users"]} == {
        "askgate": True,
        "ana": False,
        "ben": False,
    }
    assert state["commands"][0]["command"] == "/gates"
    assert await page.post("read", channel=where) == {"ok": True}
    assert (await page.state())["channels"][0]["unread"] == 0


async def test_the_page_acts_in_messages_and_modals(slack: LocalSlack, page: Page) -> None:
    async with running(slack) as bot:
        submitted: list[Json] = []

        @bot.bolt.action("go")
        async def go(ack: Any, body: Json, client: Any) -> None:
            view = modal(entry("Why", typed()), notify_on_close=False)
            await client.views_open(trigger_id=body["trigger_id"], view=view)
            await ack()

        @bot.bolt.action("pick")
        async def pick(ack: Any) -> None:
            await ack()

        @bot.bolt.view("form")
        async def form(ack: Any, view: Json) -> None:
            submitted.append(view["state"]["values"])
            if len(submitted) == 1:
                await ack(response_action="errors", errors={"why": "no"})
            else:
                await ack()

        where = slack.add_channel("general")
        picker = {"type": "static_select", "action_id": "pick", "options": options("A", "B")}
        blocks = [{"type": "actions", "block_id": "row", "elements": [button("Go"), picker]}]
        ts = (await bot.client.chat_postMessage(channel=where, text="x", blocks=blocks))["ts"]
        card = {"type": "message", "channel": where, "ts": ts}

        assert await page.post("action", container=card, block_id="row", action_id="pick", value="1") == {
            "ok": True
        }
        [message] = (await page.state())["messages"][where]
        assert message["state"]["row"]["pick"]["selected_option"]["text"]["text"] == "B"
        bad = await page.post("action", 409, container=card, block_id="row", action_id="pick", value="7")
        assert "no such option" in bad["error"]

        assert (await page.post("action", container=card, block_id="row", action_id="go"))["ok"]
        state = await page.state()
        view = state["modal"]
        assert state["modal_depth"] == 1
        spot = {"type": "view", "view_id": view["id"]}
        await page.post("input", container=spot, block_id="why", action_id="text", value="draft")
        assert (await page.state())["modal"]["state"]["values"]["why"]["text"]["value"] == "draft"
        refused = await page.post("submit", view_id=view["id"], values={"why": {"text": "because"}})
        assert refused == {"ok": False, "errors": {"why": "no"}}
        assert await page.post("submit", view_id=view["id"], values={}) == {"ok": True}
        assert [values["why"]["text"]["value"] for values in submitted] == ["because", "because"]
        assert (await page.state())["modal"] is None

        await page.post("action", container=card, block_id="row", action_id="go")
        again = (await page.state())["modal"]["id"]
        assert await page.post("close", view_id=again) == {"ok": True}
        assert "no such modal" in (await page.post("close", 409, view_id=again))["error"]


async def test_the_page_talks_runs_commands_and_opens_home(slack: LocalSlack, page: Page) -> None:
    async with running(slack) as bot:

        @bot.bolt.command("/gates")
        async def gates(ack: Any, command: Json) -> None:
            await ack(f"asked for {command['text']}")

        @bot.bolt.event("message")
        async def message() -> None:
            return None

        @bot.bolt.event("app_home_opened")
        async def home(event: Json, client: Any) -> None:
            await client.views_publish(
                user_id=event["user"], view={"type": "home", "blocks": [section("inbox")]}
            )

        where = slack.add_channel("general")
        said = await page.post("say", channel=where, text="hello")
        await page.post("say", channel=where, text="again", thread_ts=said["ts"])
        await page.post("say", channel=where, text="/gates list")
        dm = (await page.post("dm", 200, **{"with": slack.as_user("ben").id}))["channel"]
        await page.post("home")
        await slack.quiet()
        state = await page.state()
        assert [m["text"] for m in state["messages"][where]] == ["hello", "again", "asked for list"]
        assert {c["id"]: c["name"] for c in state["channels"]}[dm] == "ben"
        assert slack.text_of(state["home"]) == "inbox"


async def test_a_failing_app_is_told_to_the_page(slack: LocalSlack, page: Page) -> None:
    async def fail(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(status=503)

    async with serving(fail) as url:
        slack.app.request_url = url
        answer = await page.post("say", channel=slack.add_channel("general"), text="/gates")
        assert answer == {"ok": False, "error": "http_503"}


async def test_changes_stream_to_the_page(slack: LocalSlack, page: Page) -> None:
    async with page.session.get(f"{page.url}/ui/stream", params={"user": page.user}) as stream:
        assert stream.content_type == "text/event-stream"
        assert await stream.content.readuntil(b"\n\n") == b"retry: 500\n\n"
        await slack.as_user("ben").say("general", "hi")
        frame = await stream.content.readuntil(b"\n\n")
        rev = (await page.state())["rev"]
        assert frame == f'event: changed\ndata: {{"rev": {rev}}}\n\n'.encode()


async def test_a_workspace_outlives_its_process(tmp_path: Path) -> None:
    file = tmp_path / "slack.json"
    async with LocalSlack(persist=file) as slack, running(slack) as bot:
        slack.add_user("ana")
        slack.add_channel("general", ["ana"])
        slack.add_group("oncall", ["ana"])
        ana = slack.as_user("ana")
        blocks = [section("card"), {"type": "actions", "elements": [button("Go")]}]
        metadata = {"event_type": "card", "event_payload": {"gate": "g1"}}
        await bot.client.chat_postMessage(channel="#general", text="a", blocks=blocks, metadata=metadata)
        await bot.client.chat_postMessage(channel=ana.id, text="psst")
        await bot.client.views_publish(user_id=ana.id, view={"type": "home", "blocks": [section("inbox")]})
        before = [slack.messages("general"), ana.sees(ana.dm), ana.home, ana.id]

    async with LocalSlack(persist=file) as slack, running(slack) as bot:
        slack.add_user("ana")
        slack.add_channel("general", ["ana"])
        slack.add_group("oncall", ["ana"])
        ana = slack.as_user("ana")
        assert [slack.messages("general"), ana.sees(ana.dm), ana.home, ana.id] == before
        clicked = []

        @bot.bolt.action("go")
        async def go(ack: Any, body: Json) -> None:
            clicked.append(body["user"]["id"])
            await ack()

        await ana.click("Go")
        assert clicked == [ana.id]
        fresh = await bot.client.chat_postMessage(channel="#general", text="b")
        assert fresh["ts"] > before[0][0]["ts"]  # type: ignore[index]
    assert "xoxb-test" not in file.read_text()


async def test_a_change_is_saved_while_the_workspace_runs(tmp_path: Path) -> None:
    file = tmp_path / "slack.json"
    async with LocalSlack(persist=file) as slack:
        slack.add_user("ana")
        slack.add_channel("general", ["ana"])
        await slack.as_user("ana").say("general", "kept")
        await slack.world.saved()
        assert "kept" in file.read_text()
