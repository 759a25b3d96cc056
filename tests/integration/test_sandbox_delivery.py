"""What a person does reaches a real Bolt app, over signed HTTP and over Socket Mode, and its answer shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import freezegun
import pytest
from aiohttp import web
from slack_sdk.signature import SignatureVerifier
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.sandbox import LocalSlack
from bot.sandbox.acts import Impossible
from tests.integration.sandbox_app import (
    Bot,
    button,
    entry,
    modal,
    options,
    plain,
    running,
    section,
    serving,
    typed,
)

Json = dict[str, Any]


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        for name in ("ana", "ben"):
            slack.add_user(name)
        slack.add_channel("general", ["ana", "ben"])
        yield slack


@pytest.fixture(params=["http", "socket"])
async def bot(slack: LocalSlack, request: pytest.FixtureRequest) -> AsyncIterator[Bot]:
    async with running(slack, socket=request.param == "socket") as bot:
        yield bot


async def post(bot: Bot, *blocks: Json, **more: Any) -> str:
    answer = await bot.client.chat_postMessage(channel="#general", text="card", blocks=list(blocks), **more)
    return str(answer["ts"])


def acking(bot: Bot, action_id: str = "go") -> list[Json]:
    """Acknowledge an action and collect its bodies."""
    bodies: list[Json] = []

    async def handle(ack: Any, body: Json) -> None:
        bodies.append(body)
        await ack()

    bot.bolt.action(action_id)(handle)
    return bodies


async def test_a_click_brings_everything_that_slack_sends(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)
    picker = {"type": "static_select", "action_id": "pick", "options": options("Left", "Right")}
    ts = await post(
        bot, section("Which?"), {"type": "actions", "elements": [picker, button("Go", value="7")]}
    )
    acking(bot, "pick")
    ana = slack.as_user("ana")
    await ana.select("Right")
    assert (await ana.click("Go")).ok

    [body] = bodies
    assert body["user"] == {"id": ana.id, "username": "ana", "name": "ana", "team_id": "T0LOCAL"}
    assert body["team"]["id"] == "T0LOCAL"
    assert body["channel"]["name"] == "general"
    assert body["container"] == {
        "type": "message",
        "message_ts": ts,
        "channel_id": body["channel"]["id"],
        "is_ephemeral": False,
    }
    assert slack.text_of(body["message"]) == "Which?\nGo"
    [picks] = body["state"]["values"].values()
    assert picks["pick"]["selected_option"]["text"]["text"] == "Right"
    [action] = body["actions"]
    assert (action["type"], action["action_id"], action["value"]) == ("button", "go", "7")
    assert action["block_id"] in body["state"]["values"]
    assert body["trigger_id"]
    assert body["response_url"].startswith(slack.url)


async def test_what_one_person_picks_is_not_anothers(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot, "many")
    menu = {"type": "multi_static_select", "action_id": "many", "options": options("A", "B", "C")}
    await post(bot, section("Which?", accessory=menu))
    await slack.as_user("ana").select(["A", "C"])
    await slack.as_user("ben").select("B")
    picked = [[o["text"]["text"] for o in body["actions"][0]["selected_options"]] for body in bodies]
    assert picked == [["A", "C"], ["B"]]


async def test_each_kind_of_element_brings_its_value(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot, "e")
    ana, ben = slack.as_user("ana"), slack.as_user("ben")
    for element, words, name, value in (
        ({"type": "radio_buttons", "options": options("A", "B")}, "B", "selected_option", "1"),
        ({"type": "overflow", "options": options("A", "B")}, "A", "selected_option", "0"),
        ({"type": "checkboxes", "options": options("A", "B")}, ["A", "B"], "selected_options", ["0", "1"]),
        ({"type": "users_select"}, "@ben", "selected_user", ben.id),
        ({"type": "multi_users_select"}, ["@ben"], "selected_users", [ben.id]),
    ):
        await post(bot, {"type": "actions", "elements": [{**element, "action_id": "e"}]})
        assert (await ana.select(words)).ok
        [action] = bodies.pop()["actions"]
        shown = action[name]
        if isinstance(shown, dict):
            shown = shown["value"]
        if isinstance(shown, list):
            shown = [o["value"] if isinstance(o, dict) else o for o in shown]
        assert shown == value


async def test_a_click_in_a_thread_says_so(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)
    parent = await post(bot, section("parent"))
    reply = await post(bot, {"type": "actions", "elements": [button("Go")]}, thread_ts=parent)
    await slack.as_user("ana").click("Go")
    assert bodies[0]["container"]["thread_ts"] == parent
    assert bodies[0]["message"]["ts"] == reply


async def test_a_click_on_an_ephemeral_message_brings_no_message(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)
    ana = slack.as_user("ana")
    blocks = [{"type": "actions", "elements": [button("Go")]}]
    await bot.client.chat_postEphemeral(channel="#general", user=ana.id, text="psst", blocks=blocks)
    await ana.click("Go")
    assert bodies[0]["container"]["is_ephemeral"] is True
    assert "message" not in bodies[0]
    with pytest.raises(Impossible, match="ben sees no button 'Go'"):
        await slack.as_user("ben").click("Go")


async def test_a_stale_copy_can_still_be_clicked(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)
    ana = slack.as_user("ana")
    ts = await post(bot, {"type": "actions", "elements": [button("Go")]})
    [old] = ana.sees("general")
    where = old["channel"]
    await bot.client.chat_update(channel=where, ts=ts, text="settled", blocks=[section("settled")])
    with pytest.raises(Impossible):
        await ana.click("Go")
    assert (await ana.click("Go", message=old)).ok
    assert slack.text_of(bodies[0]["message"]) == "settled"
    await bot.client.chat_delete(channel=where, ts=ts)
    with pytest.raises(Impossible, match="sees no such message"):
        await ana.click("Go", message=old)


async def test_a_click_finds_the_newest_button_or_the_one_below_a_text(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot, "a")
    row = {"type": "actions", "elements": [button("✅ Approve…", "a", value="first")]}
    other = {"type": "actions", "elements": [button("Approve", "a", value="second")]}
    await post(bot, section("*delete_file* `/tmp/x`"), row, section("read_file"), other)
    await post(bot, {"type": "actions", "elements": [button(":tada: Approve", "a", value="newest")]})
    ana = slack.as_user("ana")
    for near in (None, "delete_file", "read_file"):
        await ana.click("Approve", near=near)
    clicked = [body["actions"][0]["value"] for body in bodies]
    assert clicked == ["newest", "first", "second"]


async def test_a_button_that_asks_back_is_clicked_with_confirm(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)
    asks = {"title": plain("Sure?"), "text": plain("Really?"), "confirm": plain("Yes"), "deny": plain("No")}
    await post(bot, {"type": "actions", "elements": [button("Go", confirm=asks), button("Stop", "stop")]})
    ana = slack.as_user("ana")
    with pytest.raises(Impossible, match="asks to confirm: pass confirm=True"):
        await ana.click("Go")
    with pytest.raises(Impossible, match="does not ask to confirm"):
        await ana.click("Stop", confirm=True)
    assert bodies == []
    assert (await ana.click("Go", confirm=True)).ok


# modals


def opening(bot: Bot, view: Json, action_id: str = "go") -> None:
    """A click on `action_id` opens `view`."""

    async def handle(ack: Any, body: Json, client: Any) -> None:
        await client.views_open(trigger_id=body["trigger_id"], view=view)
        await ack()

    bot.bolt.action(action_id)(handle)


def answering(bot: Bot, *answers: Json) -> list[Json]:
    """Answer the submissions of the view `form`, one after the other; the bodies are collected."""
    bodies: list[Json] = []

    async def handle(ack: Any, body: Json) -> None:
        bodies.append(body)
        await ack(**answers[len(bodies) - 1])

    bot.bolt.view("form")(handle)
    return bodies


async def open_form(slack: LocalSlack, bot: Bot, view: Json) -> Any:
    opening(bot, view)
    await post(bot, {"type": "actions", "elements": [button("Go")]})
    ana = slack.as_user("ana")
    await ana.click("Go")
    return ana


async def test_a_modal_is_filled_checked_and_submitted(slack: LocalSlack, bot: Bot) -> None:
    pick = {"type": "static_select", "action_id": "pick", "options": options("Left", "Right")}
    view = modal(entry("Why", typed(min_length=3)), entry("Way", pick, optional=True), private_metadata="m")
    bodies = answering(bot, {"response_action": "errors", "errors": {"why": "try again"}}, {})
    ana = await open_form(slack, bot, view)

    assert (await ana.submit()).errors == {"Why": "Please complete this required field."}
    await ana.fill({"Why": "no"})
    assert (await ana.submit()).errors == {"Why": "Please enter at least 3 characters."}
    assert bodies == []

    await ana.fill({"Why": "because", "Way": "Right"})
    refused = await ana.submit()
    assert (refused.ok, refused.errors) == (False, {"Why": "try again"})
    assert refused.modal is not None

    done = await ana.submit()
    assert done.ok
    assert done.modal is None
    shown = bodies[-1]["view"]
    assert shown["private_metadata"] == "m"
    assert shown["state"]["values"]["why"]["text"]["value"] == "because"
    assert shown["state"]["values"]["way"]["pick"]["selected_option"]["value"] == "1"


async def test_a_submission_may_update_push_and_clear(slack: LocalSlack, bot: Bot) -> None:
    answering(
        bot,
        {"response_action": "update", "view": modal(title="Two")},
        {"response_action": "push", "view": modal(title="Three")},
        {"response_action": "clear"},
    )
    ana = await open_form(slack, bot, modal(title="One"))
    assert (await ana.submit()).modal["title"]["text"] == "Two"
    pushed = (await ana.submit()).modal
    assert pushed["title"]["text"] == "Three"
    assert pushed["previous_view_id"] == pushed["root_view_id"]
    assert (await ana.submit()).modal is None


@pytest.mark.parametrize(
    "answer",
    [
        {"response_action": "errors", "errors": {"nowhere": "x"}},
        {"response_action": "update", "view": modal(title="x" * 25)},
        {"response_action": "dance"},
    ],
)
async def test_an_illegal_answer_to_a_submission_shows_an_error(
    slack: LocalSlack, bot: Bot, answer: Json
) -> None:
    answering(bot, answer)
    ana = await open_form(slack, bot, modal())
    result = await ana.submit()
    assert not result.ok
    assert "invalid_response" in result.error
    assert result.modal is not None


@pytest.mark.parametrize("notify", [True, False])
async def test_closing_a_modal_is_told_only_when_asked_for(slack: LocalSlack, bot: Bot, notify: bool) -> None:
    closed = []

    @bot.bolt.view_closed("form")
    async def handle(ack: Any, body: Json) -> None:
        closed.append(body)
        await ack()

    ana = await open_form(slack, bot, modal(notify_on_close=notify))
    assert (await ana.close_modal()).modal is None
    assert [body["is_cleared"] for body in closed] == ([False] if notify else [])


async def test_a_click_in_a_modal_brings_the_view(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot, "inner")
    view = modal(entry("Why", typed()), {"type": "actions", "elements": [button("Inner", "inner")]})
    ana = await open_form(slack, bot, view)
    await ana.fill({"Why": "draft"})
    await ana.click("Inner")
    [body] = bodies
    assert body["container"] == {"type": "view", "view_id": body["view"]["id"]}
    assert body["view"]["state"]["values"]["why"]["text"]["value"] == "draft"
    with pytest.raises(Impossible):
        await ana.click("Go")


async def test_numbers_are_checked_as_the_form_does(slack: LocalSlack, bot: Bot) -> None:
    bounds = {"is_decimal_allowed": False, "min_value": "1", "max_value": "9"}
    view = modal(entry("Many", {"type": "number_input", "action_id": "n", **bounds}))
    bodies = answering(bot, {})
    ana = await open_form(slack, bot, view)
    for typed_in, told in (
        ("two", "Please enter a valid number."),
        ("nan", "Please enter a valid number."),
        ("1.5", "Please enter a valid number."),
        ("0", "Please enter a number of at least 1."),
        ("10", "Please enter a number of at most 9."),
    ):
        await ana.fill({"Many": typed_in})
        assert (await ana.submit()).errors == {"Many": told}
    await ana.fill({"Many": "9"})
    assert (await ana.submit()).ok
    assert bodies[0]["view"]["state"]["values"]["many"]["n"]["value"] == "9"


async def test_a_person_reads_what_was_picked_and_typed(slack: LocalSlack, bot: Bot) -> None:
    people = {"type": "multi_users_select", "action_id": "who", "placeholder": plain("Pick people")}
    ana = await open_form(slack, bot, modal(entry("Why", typed()), entry("Who", people)))
    assert slack.text_of(ana.modal) == "Title\nWhy\nWho\nPick people\nSend"
    await ana.fill({"Why": "because", "Who": ["@ben"]})
    assert slack.text_of(ana.modal) == "Title\nWhy\nbecause\nWho\n@ben\nSend"
    with pytest.raises(Impossible, match="no such person"):
        await ana.fill({"Who": ["@nobody"]})
    with pytest.raises(Impossible, match="sees no field 'When'"):
        await ana.fill({"When": "now"})


async def test_a_stranger_acts_under_their_own_team(slack: LocalSlack, bot: Bot) -> None:
    zoe = slack.as_user(slack.add_user("zoe", team="T0OTHER"))
    slack.add_channel("general", ["zoe"])
    clicks = acking(bot)
    await post(bot, {"type": "actions", "elements": [button("Go")]})
    await zoe.click("Go")
    assert clicks[0]["user"]["team_id"] == "T0OTHER"
    assert clicks[0]["team"]["id"] == "T0LOCAL"


# commands, words, home, shortcuts


async def test_a_command_is_answered_to_one_person_or_to_all(slack: LocalSlack, bot: Bot) -> None:
    @bot.bolt.command("/gates")
    async def handle(ack: Any, command: Json) -> None:
        if command["text"] == "share":
            await ack("for all", response_type="in_channel")
        else:
            await ack(f"{command['user_name']}: {command['text']} in {command['channel_name']}")

    ana, ben = slack.as_user("ana"), slack.as_user("ben")
    assert (await ana.command("/gates", "list", channel="general")).ok
    assert (await ana.command("/gates", "share", channel="general")).ok
    assert [m["text"] for m in ana.sees("general")] == ["ana: list in general", "for all"]
    assert [m["text"] for m in ben.sees("general")] == ["for all"]
    assert "not a valid command" in str((await ana.command("/what", channel="general")).error)


async def test_words_reach_the_app_as_events(slack: LocalSlack, bot: Bot) -> None:
    heard: list[Json] = []

    async def handle(event: Json) -> None:
        heard.append(event)

    bot.bolt.event("message")(handle)
    bot.bolt.event("app_mention")(handle)
    ana = slack.as_user("ana")
    await ana.say("general", "hi @askgate & <you>")
    await slack.quiet()
    await ana.say(ana.dm, "psst")
    await slack.quiet()
    found = {(event["type"], event.get("channel_type"), event["text"]) for event in heard}
    mention = f"hi <@{slack.app.bot_user}> &amp; &lt;you&gt;"
    assert found == {
        ("message", "channel", mention),
        ("app_mention", "channel", mention),
        ("message", "im", "psst"),
    }


async def test_edits_deletions_and_broadcasts_reach_the_app_with_what_was_there_before(
    slack: LocalSlack, bot: Bot
) -> None:
    heard: list[Json] = []

    async def handle(event: Json) -> None:
        heard.append(event)

    bot.bolt.event("message")(handle)
    ana, ben = slack.as_user("ana"), slack.as_user("ben")
    root = (await ana.say("general", "one")).message
    assert root is not None
    await slack.quiet()
    await ana.edit(root, "two & three")
    await slack.quiet()
    await ana.say("general", "for all", root["ts"], broadcast=True)
    await slack.quiet()
    await ana.delete(root)
    await slack.quiet()
    edited, broadcast, deleted = heard[1:]
    assert (edited["subtype"], edited["hidden"], edited["channel_type"]) == (
        "message_changed",
        True,
        "channel",
    )
    assert (edited["previous_message"]["text"], edited["message"]["text"]) == ("one", "two &amp; three")
    assert edited["message"]["edited"]["user"] == ana.id
    assert (broadcast["subtype"], broadcast["thread_ts"]) == ("thread_broadcast", root["ts"])
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", root["ts"])
    assert slack.messages("general")[0]["text"] == "This message was deleted."
    with pytest.raises(Impossible):
        await ben.edit(broadcast | {"channel": heard[0]["channel"]}, "not mine")
    with pytest.raises(Impossible):
        await ana.delete(root)
    with pytest.raises(Impossible):
        await ana.say("general", "not in a thread", broadcast=True)


async def test_opening_home_lets_the_app_publish_it(slack: LocalSlack, bot: Bot) -> None:
    bodies = acking(bot)

    @bot.bolt.event("app_home_opened")
    async def handle(event: Json, client: Any) -> None:
        view = {"type": "home", "blocks": [section("inbox"), {"type": "actions", "elements": [button("Go")]}]}
        await client.views_publish(user_id=event["user"], view=view)

    ana = slack.as_user("ana")
    await ana.open_home()
    home = await slack.wait_for(lambda: ana.home)
    assert slack.text_of(home or {}) == "inbox\nGo"
    await ana.click("Go")
    assert bodies[0]["view"]["type"] == "home"


async def test_shortcuts_reach_the_app(slack: LocalSlack, bot: Bot) -> None:
    got = []

    @bot.bolt.shortcut("use")
    async def handle(ack: Any, body: Json) -> None:
        got.append(body)
        await ack()

    ana = slack.as_user("ana")
    said = (await ana.say("general", "take this")).message
    assert (await ana.shortcut("use")).ok
    assert (await ana.shortcut("use", message=said)).ok
    assert [body["type"] for body in got] == ["shortcut", "message_action"]
    assert got[1]["message"]["text"] == "take this"


# when the app does not answer


async def test_a_failing_app_shows_as_not_worked_and_is_not_asked_twice(slack: LocalSlack) -> None:
    async with running(slack) as bot:

        @bot.bolt.action("go")
        async def handle() -> None:
            raise RuntimeError("broken")

        await post(bot, {"type": "actions", "elements": [button("Go")]})
        await slack.quiet()
        bot.asked.clear()
        result = await slack.as_user("ana").click("Go")
        assert (result.ok, result.error) == (False, "http_500")
        assert len(bot.asked) == 1


async def test_an_app_that_is_away_or_too_slow_shows_as_not_worked(slack: LocalSlack) -> None:
    slack.courier.ack_within_s = 0.1
    forever = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await forever.wait()
        return web.Response()

    async with serving(hang) as url:
        slack.app.request_url = url
        assert (await slack.as_user("ana").command("/gates", channel="general")).error == "no_answer"
        forever.set()
    assert (await slack.as_user("ana").command("/gates", channel="general")).error == "no_connection"
    slack.app.request_url = None
    assert (await slack.as_user("ana").command("/gates", channel="general")).error == "no_answer"


async def test_events_are_tried_four_times_with_the_reason(slack: LocalSlack) -> None:
    asked: list[tuple[str | None, str | None, str]] = []

    async def fail(request: web.Request) -> web.Response:
        body = await request.json()
        headers = request.headers
        asked.append(
            (headers.get("X-Slack-Retry-Num"), headers.get("X-Slack-Retry-Reason"), body["event_id"])
        )
        return web.Response(status=500)

    async with serving(fail) as url:
        slack.app.request_url = url
        await slack.as_user("ana").say("general", "hello")
        await slack.quiet()
    assert [number for number, _, _ in asked] == [None, "1", "2", "3"]
    assert {reason for _, reason, _ in asked} == {None, "http_error"}
    assert len({event_id for _, _, event_id in asked}) == 1


async def test_an_app_can_stop_the_retries_of_an_event(slack: LocalSlack) -> None:
    asked = []

    async def fail(request: web.Request) -> web.Response:
        asked.append(request.headers.copy())
        return web.Response(status=500, headers={"X-Slack-No-Retry": "1"})

    async with serving(fail) as url:
        slack.app.request_url = url
        await slack.as_user("ana").say("general", "hello")
        await slack.quiet()
    assert len(asked) == 1


async def test_requests_are_signed_as_slack_signs_them(slack: LocalSlack) -> None:
    good = []

    async def check(request: web.Request) -> web.Response:
        body = await request.text()
        for secret in (slack.app.signing_secret, "another"):
            good.append(SignatureVerifier(secret).is_valid_request(body, dict(request.headers)))
        return web.Response()

    async with serving(check) as url:
        slack.app.request_url = url
        await slack.as_user("ana").command("/gates", channel="general")
    assert good == [True, False]


async def test_a_request_url_is_verified_by_its_challenge(slack: LocalSlack) -> None:
    async with running(slack):
        assert await slack.verify_url()
    assert not await slack.verify_url()


async def test_a_frozen_clock_is_the_local_slacks_clock_too(slack: LocalSlack) -> None:
    with freezegun.freeze_time("2031-05-06 07:08:09", real_asyncio=True):
        async with running(slack) as bot:
            acking(bot)
            ts = await post(bot, {"type": "actions", "elements": [button("Go")]})
            assert (await slack.as_user("ana").click("Go")).ok
    assert ts.startswith("1935817689.")


# Socket Mode


async def test_a_refreshed_socket_keeps_serving(slack: LocalSlack) -> None:
    async with running(slack, socket=True) as bot:
        bodies = acking(bot)
        await post(bot, {"type": "actions", "elements": [button("Go")]})
        for count in (1, 2):
            assert await slack.disconnect_sockets() == 1
            assert (await slack.as_user("ana").click("Go")).ok
            assert len(bodies) == count


async def test_a_connected_app_is_reached_by_its_socket_and_else_at_its_url(slack: LocalSlack) -> None:
    async with running(slack) as by_url:
        at_url = acking(by_url)
        await post(by_url, {"type": "actions", "elements": [button("Go")]})
        async with running(slack, socket=True) as by_socket:
            over_socket = acking(by_socket)
            await slack.wait_for(lambda: slack.connections() == 1)
            await slack.as_user("ana").click("Go")
            assert (len(at_url), len(over_socket)) == (0, 1)
        await slack.wait_for(lambda: slack.connections() == 0)
        await slack.as_user("ana").click("Go")
        assert (len(at_url), len(over_socket)) == (1, 1)


async def test_each_envelope_goes_to_one_of_the_replicas(slack: LocalSlack) -> None:
    async with running(slack, socket=True) as one, running(slack, socket=True) as two:
        first, second = acking(one), acking(two)
        await post(one, {"type": "actions", "elements": [button("Go")]})
        for _ in range(4):
            assert (await slack.as_user("ana").click("Go")).ok
        assert (len(first), len(second)) == (2, 2)


async def test_an_event_is_retried_over_the_socket(slack: LocalSlack) -> None:
    slack.courier.ack_within_s = 0.05
    async with running(slack, socket=True) as bot:
        tries: list[tuple[Json, Json]] = []

        @bot.bolt.event("message")
        async def handle(request: Any, body: Json) -> None:
            tries.append((body, request.headers))
            if len(tries) == 1:
                raise RuntimeError("broken")

        await slack.as_user("ana").say("general", "hello")
        await slack.quiet()
    assert [headers.get("x-slack-retry-num") for _, headers in tries] == [["0"], ["1"]]
    assert tries[1][1]["x-slack-retry-reason"] == ["http_timeout"]
    assert tries[0][0]["event_id"] == tries[1][0]["event_id"]


async def test_a_link_needs_a_ticket_and_ten_are_the_most(slack: LocalSlack) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{slack.url}/link?ticket=none")
        token = {"Authorization": "Bearer xapp-test"}
        frames, sockets = [], []
        for _ in range(11):
            async with session.post(slack.api_url + "apps.connections.open", headers=token) as response:
                address = (await response.json())["url"]
            sockets.append(await session.ws_connect(address))
            frames.append(await sockets[-1].receive_json())
    assert [frame["type"] for frame in frames] == ["hello"] * 10 + ["disconnect"]
    assert [frame["num_connections"] for frame in frames[:10]] == list(range(1, 11))
    assert frames[10]["reason"] == "too_many_websockets"


# response_url


async def response_url(slack: LocalSlack, bot: Bot) -> str:
    bodies = acking(bot)
    await post(bot, {"type": "actions", "elements": [button("Go")]})
    await slack.as_user("ana").click("Go")
    return str(bodies[-1]["response_url"])


async def test_a_response_url_speaks_to_one_or_all_and_mends_the_message(slack: LocalSlack, bot: Bot) -> None:
    hook = AsyncWebhookClient(await response_url(slack, bot))
    ana, ben = slack.as_user("ana"), slack.as_user("ben")
    await hook.send(text="for you")
    await hook.send(text="for all", response_type="in_channel")
    assert [m["text"] for m in ana.sees("general")] == ["card", "for you", "for all"]
    assert [m["text"] for m in ben.sees("general")] == ["card", "for all"]
    await hook.send(text="changed", replace_original=True)
    assert slack.text_of(ben.sees("general")[0]) == "changed"
    refused = await hook.send(text="x", blocks=[section("")])
    assert (refused.status_code, "invalid_blocks" in refused.body) == (400, True)
    await hook.send_dict({"delete_original": True})
    assert [m["text"] for m in ben.sees("general")] == ["for all"]
    assert "message_not_found" in (await hook.send_dict({"delete_original": True})).body


async def test_a_response_url_works_five_times(slack: LocalSlack, bot: Bot) -> None:
    hook = AsyncWebhookClient(await response_url(slack, bot))
    for _ in range(5):
        assert (await hook.send(text="a")).body == "ok"
    used = await hook.send(text="a")
    assert (used.status_code, "used_url" in used.body) == (404, True)


async def test_a_response_url_works_for_half_an_hour() -> None:
    now = [1_700_000_000.0]
    async with LocalSlack(clock=lambda: now[0]) as slack:
        user = slack.add_user("ana")
        hook = AsyncWebhookClient(
            slack.world.response_url(slack.app, user, slack.add_channel("general", ["ana"]))
        )
        now[0] += 30 * 60
        assert (await hook.send(text="a")).body == "ok"
        now[0] += 1
        assert "expired_url" in (await hook.send(text="a")).body


async def test_a_second_app_has_its_own_messages_and_deliveries(slack: LocalSlack) -> None:
    async with running(slack) as bot, aiohttp.ClientSession() as session:
        heard = []

        @bot.bolt.event("message")
        async def handle(event: Json) -> None:
            heard.append(event["text"])

        other = slack.add_app("agent", "xoxb-agent", "agent")
        slack.add_channel("general", ["agent"])
        args = {"channel": "#general", "text": "I ask", "token": "xoxb-agent"}
        async with session.post(slack.api_url + "chat.postMessage", data=args) as response:
            posted = await response.json()
        await slack.quiet()
        assert posted["message"]["bot_id"] == other.bot_id
        assert heard == ["I ask"]
        args = {"channel": posted["channel"], "ts": posted["ts"], "text": "x", "token": "xoxb-test"}
        async with session.post(slack.api_url + "chat.update", json=args) as response:
            assert (await response.json())["error"] == "cant_update_message"
