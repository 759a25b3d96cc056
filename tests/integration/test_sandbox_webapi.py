"""The local Slack's Web API through the real slack_sdk: what it takes, what it refuses, how it fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.cards import limits
from bot.sandbox import LocalSlack
from tests.integration.sandbox_app import buttons, entry, modal, section, typed, web_client


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def slack(clock: Clock) -> AsyncIterator[LocalSlack]:
    async with LocalSlack(clock=clock) as slack:
        slack.add_user("ana")
        slack.add_user("ben", admin=True)
        slack.add_channel("general", ["ana", "ben"])
        yield slack


@pytest.fixture
async def client(slack: LocalSlack) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield web_client(slack, session)


def channel(slack: LocalSlack, name: str = "general") -> str:
    return slack.add_channel(name)


async def refusal(awaitable: Any) -> Any:
    """The answer to a call that must be refused."""
    with pytest.raises(SlackApiError) as caught:
        await awaitable
    return caught.value.response


async def test_a_call_says_who_the_app_is(slack: LocalSlack, client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert (answer["team_id"], answer["user_id"]) == ("T0LOCAL", slack.app.bot_user)
    info = await client.bots_info(bot=answer["bot_id"])
    assert info["bot"]["app_id"] == slack.app.id


@pytest.mark.parametrize(("token", "error"), [("", "not_authed"), ("xoxb-wrong", "invalid_auth")])
async def test_a_wrong_token_is_refused(slack: LocalSlack, token: str, error: str) -> None:
    async with aiohttp.ClientSession() as session:
        answer = await refusal(web_client(slack, session, token).auth_test())
        assert answer["error"] == error


async def test_an_unknown_method_is_refused(client: AsyncWebClient) -> None:
    assert (await refusal(client.api_call("chat.shout")))["error"] == "unknown_method"


async def test_tokens_fit_their_methods(client: AsyncWebClient) -> None:
    assert (await refusal(client.apps_connections_open(app_token="xoxb-test")))[
        "error"
    ] == "not_allowed_token_type"
    assert (await refusal(client.auth_test(token="xapp-test")))["error"] == "not_allowed_token_type"


@pytest.mark.parametrize("body", ["{", "[]"])
async def test_a_body_that_is_no_json_object_is_refused(slack: LocalSlack, body: str) -> None:
    headers = {"Authorization": "Bearer xoxb-test", "Content-Type": "application/json"}
    url = slack.api_url + "auth.test"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
        assert await response.json() == {"ok": False, "error": "invalid_json"}


async def test_forms_queries_and_json_say_the_same(slack: LocalSlack) -> None:
    args = {"channel": channel(slack), "text": "hi", "token": "xoxb-test"}
    async with aiohttp.ClientSession() as session:
        url = slack.api_url + "chat.postMessage"
        for request in (
            session.post(url, data=args),
            session.post(url, json=args),
            session.get(url, params=args),
        ):
            async with request as response:
                assert (await response.json())["message"]["text"] == "hi"
    assert len(slack.messages("general")) == 3


async def test_every_call_is_recorded_without_its_token(slack: LocalSlack, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel=channel(slack), text="hi")
    await refusal(client.chat_postMessage(channel="C9", text="hi"))
    posted, refused = slack.called("chat.postMessage")
    assert posted.ok
    assert posted.args == {"channel": channel(slack), "text": "hi"}
    assert posted.time == slack.world.clock()
    assert (refused.ok, refused.error) == (False, "channel_not_found")


# chat


async def test_a_message_is_kept_as_slack_keeps_it(slack: LocalSlack, client: AsyncWebClient) -> None:
    metadata = {"event_type": "card", "event_payload": {"gate": "g1"}}
    answer = await client.chat_postMessage(
        channel="#general", text="hi", blocks=[section("*Hi*"), buttons("Go")], metadata=metadata
    )
    assert answer["channel"] == channel(slack)
    assert answer["message"]["metadata"] == metadata
    first, second = answer["message"]["blocks"]
    assert first["block_id"] != second["block_id"]
    assert first["text"] == {"type": "mrkdwn", "text": "*Hi*", "verbatim": False}
    assert second["elements"][0]["text"]["emoji"] is True


async def test_a_message_to_a_person_opens_the_conversation(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    ana = slack.as_user("ana")
    answer = await client.chat_postMessage(channel=ana.id, text="psst")
    opened = await client.conversations_open(users=ana.id)
    assert answer["channel"] == opened["channel"]["id"] == ana.dm
    assert ana.sees(ana.dm)[0]["text"] == "psst"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"channel": "C9", "text": "a"}, "channel_not_found"),
        ({"channel": "#secret", "text": "a"}, "channel_not_found"),
        ({"channel": "#elsewhere", "text": "a"}, "not_in_channel"),
        ({"channel": "#attic", "text": "a"}, "is_archived"),
        ({"channel": "#general"}, "no_text"),
        ({"channel": "#general", "text": "a", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": "#general", "text": "a", "blocks": "[{"}, "invalid_blocks_format"),
        ({"channel": "#general", "text": "a", "blocks": {"type": "divider"}}, "invalid_blocks_format"),
        ({"channel": "#general", "text": "a", "metadata": {"event_type": "a"}}, "invalid_metadata_format"),
    ],
)
async def test_a_message_that_slack_would_not_post_is_refused(
    slack: LocalSlack, client: AsyncWebClient, args: dict[str, Any], error: str
) -> None:
    slack.add_channel("secret", bot=False, private=True)
    slack.add_channel("elsewhere", bot=False)
    slack.archive(slack.add_channel("attic"))
    assert (await refusal(client.api_call("chat.postMessage", json=args)))["error"] == error


async def test_illegal_blocks_are_refused_with_their_place(slack: LocalSlack, client: AsyncWebClient) -> None:
    blocks = [section("x" * 3001)]
    answer = await refusal(client.chat_postMessage(channel=channel(slack), text="a", blocks=blocks))
    message = "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"
    assert answer["error"] == "invalid_blocks"
    assert answer["errors"] == [message]
    assert answer["response_metadata"]["messages"] == [f"[ERROR] {message}"]


async def test_more_text_than_slack_posts_is_refused_but_may_be_updated(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    most = limits.REFUSED_BYTES
    blocks = [section("x" * (most // 4)) for _ in range(4)]
    legal = await client.chat_postMessage(channel=channel(slack), blocks=blocks, text="a")
    blocks.append(section("x"))
    answer = await refusal(client.chat_postMessage(channel=channel(slack), blocks=blocks, text="a"))
    assert answer["error"] == "msg_blocks_too_long"
    await client.chat_update(channel=channel(slack), ts=legal["ts"], blocks=blocks, text="a")


async def test_a_long_text_is_cut_when_posted_and_refused_when_updated(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    posted = await client.chat_postMessage(channel=channel(slack), text="x" * 40_001)
    assert len(posted["message"]["text"]) == 40_000
    answer = await refusal(client.chat_update(channel=channel(slack), ts=posted["ts"], text="x" * 4001))
    assert answer["error"] == "msg_too_long"


async def test_an_update_replaces_what_it_names(slack: LocalSlack, client: AsyncWebClient) -> None:
    where = channel(slack)
    metadata = {"event_type": "card", "event_payload": {"gate": "g1"}}
    blocks = [buttons("Go")]
    ts = (await client.chat_postMessage(channel=where, text="a", blocks=blocks, metadata=metadata))["ts"]

    await client.chat_update(channel=where, ts=ts, text="b", blocks=[section("done")])
    [message] = slack.messages(where)
    assert slack.text_of(message) == "done"
    assert message["metadata"] == metadata
    assert "edited" not in message

    await client.api_call("chat.update", json={"channel": where, "ts": ts, "metadata": {}})
    [message] = slack.messages(where)
    assert slack.text_of(message) == "done"
    assert "metadata" not in message

    await client.chat_update(channel=where, ts=ts, text="words alone")
    [message] = slack.messages(where)
    assert slack.text_of(message) == "words alone"
    assert "blocks" not in message
    assert message["edited"]["user"] == slack.app.bot_user


async def test_only_an_apps_own_messages_may_be_changed(slack: LocalSlack, client: AsyncWebClient) -> None:
    where = channel(slack)
    said = (await slack.as_user("ana").say(where, "mine")).message
    assert said is not None
    for ts, update, delete in (
        (said["ts"], "cant_update_message", "cant_delete_message"),
        ("1.000001", "message_not_found", "message_not_found"),
    ):
        assert (await refusal(client.chat_update(channel=where, ts=ts, text="x")))["error"] == update
        assert (await refusal(client.chat_delete(channel=where, ts=ts)))["error"] == delete


async def test_a_deleted_message_is_gone_and_one_with_replies_leaves_a_mark(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    where = channel(slack)
    alone = (await client.chat_postMessage(channel=where, text="alone"))["ts"]
    parent = (await client.chat_postMessage(channel=where, text="parent"))["ts"]
    await client.chat_postMessage(channel=where, text="reply", thread_ts=parent)
    await client.chat_delete(channel=where, ts=alone)
    await client.chat_delete(channel=where, ts=parent)
    mark, reply = slack.messages(where)
    assert (mark["subtype"], reply["text"]) == ("tombstone", "reply")
    assert (await refusal(client.chat_update(channel=where, ts=parent, text="x")))[
        "error"
    ] == "message_not_found"


async def test_an_ephemeral_message_is_for_one_person_and_cannot_be_updated(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    where, ana, ben = channel(slack), slack.as_user("ana"), slack.as_user("ben")
    ts = (await client.chat_postEphemeral(channel=where, user=ana.id, text="psst"))["message_ts"]
    assert [m["ephemeral"] for m in ana.sees(where)] == [True]
    assert ben.sees(where) == []
    assert (await client.conversations_history(channel=where))["messages"] == []
    assert (await refusal(client.chat_update(channel=where, ts=ts, text="x")))["error"] == "message_not_found"
    outsider = slack.add_user("cleo")
    answer = await refusal(client.chat_postEphemeral(channel=where, user=outsider, text="psst"))
    assert answer["error"] == "user_not_in_channel"


async def test_a_message_has_a_permalink(slack: LocalSlack, client: AsyncWebClient) -> None:
    where = channel(slack)
    ts = (await client.chat_postMessage(channel=where, text="a"))["ts"]
    link = (await client.chat_getPermalink(channel=where, message_ts=ts))["permalink"]
    assert link == f"{slack.url}/archives/{where}/p{ts.replace('.', '')}"
    answer = await refusal(client.chat_getPermalink(channel=where, message_ts="1.000001"))
    assert answer["error"] == "message_not_found"


# conversations and people


async def test_history_and_replies_page_and_show_metadata_when_asked(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    where = channel(slack)
    metadata = {"event_type": "card", "event_payload": {}}
    posted = [
        (await client.chat_postMessage(channel=where, text=str(n), metadata=metadata))["ts"] for n in range(5)
    ]
    for n in range(3):
        await client.chat_postMessage(
            channel=where, text=f"r{n}", thread_ts=posted[0], reply_broadcast=n == 2
        )

    seen = []
    async for page in await client.conversations_history(channel=where, limit=2, include_all_metadata=True):
        seen += page["messages"]
    assert [m["text"] for m in seen] == ["r2", "4", "3", "2", "1", "0"]
    assert seen[1]["metadata"] == metadata
    assert seen[-1]["reply_count"] == 3

    plainly = await client.conversations_history(
        channel=where, oldest=posted[1], latest=posted[3], inclusive=True
    )
    assert [m["text"] for m in plainly["messages"]] == ["3", "2", "1"]
    assert "metadata" not in plainly["messages"][0]
    narrow = await client.conversations_history(channel=where, oldest=posted[1], latest=posted[3])
    assert [m["text"] for m in narrow["messages"]] == ["2"]

    thread = await client.conversations_replies(channel=where, ts=posted[0])
    assert [m["text"] for m in thread["messages"]] == ["0", "r0", "r1", "r2"]
    answer = await refusal(client.conversations_replies(channel=where, ts="1.000001"))
    assert answer["error"] == "thread_not_found"


async def test_history_needs_membership(slack: LocalSlack, client: AsyncWebClient) -> None:
    where = slack.add_channel("elsewhere", bot=False)
    assert (await refusal(client.conversations_history(channel=where)))["error"] == "not_in_channel"
    await client.conversations_join(channel=where)
    assert (await client.conversations_history(channel=where))["messages"] == []


async def test_channels_and_their_members_are_listed(slack: LocalSlack, client: AsyncWebClient) -> None:
    stranger = slack.add_user("zoe", team="T0OTHER")
    shared = slack.add_channel("shared", ["ana", stranger])
    members = []
    async for page in await client.conversations_members(channel=shared, limit=1):
        members += page["members"]
    assert members == [slack.as_user("ana").id, stranger, slack.app.bot_user]
    info = (await client.conversations_info(channel=shared, include_num_members=True))["channel"]
    assert (info["name"], info["is_member"], info["num_members"], info["is_ext_shared"]) == (
        "shared",
        True,
        3,
        True,
    )
    assert [c["name"] for c in (await client.conversations_list())["channels"]] == ["general", "shared"]
    of_ben = await client.users_conversations(user=slack.as_user("ben").id)
    assert [c["name"] for c in of_ben["channels"]] == ["general"]
    assert (await client.users_info(user=stranger))["user"]["team_id"] == "T0OTHER"
    answer = await refusal(client.conversations_list(types="rooms"))
    assert answer["error"] == "invalid_types"


async def test_people_and_groups_are_looked_up(slack: LocalSlack, client: AsyncWebClient) -> None:
    ana, ben = slack.as_user("ana").id, slack.as_user("ben").id
    group = slack.add_group("oncall", ["ana", "ben"])
    assert (await client.users_info(user=ben))["user"]["is_admin"] is True
    assert (await refusal(client.users_info(user="U9")))["error"] == "user_not_found"
    assert {u["id"] for u in (await client.users_list())["members"]} == {ana, ben, slack.app.bot_user}
    assert (await client.usergroups_users_list(usergroup=group))["users"] == [ana, ben]
    assert (await client.usergroups_list(include_users=True))["usergroups"][0]["users"] == [ana, ben]
    assert (await refusal(client.usergroups_users_list(usergroup="S9")))["error"] == "no_such_subteam"
    assert (await refusal(client.conversations_open(users="U9")))["error"] == "user_not_found"
    assert (await refusal(client.users_list(cursor="x")))["error"] == "invalid_cursor"


# views


def trigger(slack: LocalSlack, name: str = "ana") -> str:
    return slack.world.trigger(slack.app, slack.as_user(name).id)


async def test_a_trigger_opens_one_view_within_three_seconds(
    slack: LocalSlack, client: AsyncWebClient, clock: Clock
) -> None:
    first, second = trigger(slack), trigger(slack)
    clock.now += 3.0
    await client.views_open(trigger_id=first, view=modal(title="Open"))
    assert slack.as_user("ana").modal["title"]["text"] == "Open"  # type: ignore[index]
    again = await refusal(client.views_open(trigger_id=first, view=modal()))
    assert again["error"] == "exchanged_trigger_id"
    clock.now += 0.001
    late = await refusal(client.views_open(trigger_id=second, view=modal()))
    assert late["error"] == "expired_trigger_id"
    never = await refusal(client.views_open(trigger_id="1.2.3", view=modal()))
    assert never["error"] == "invalid_trigger_id"


async def test_an_illegal_view_is_refused_and_leaves_the_trigger(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    once = trigger(slack)
    answer = await refusal(client.views_open(trigger_id=once, view=modal(title="x" * 25)))
    assert answer["error"] == "invalid_arguments"
    assert "[json-pointer:/view/title/text]" in answer["response_metadata"]["messages"][0]
    big = modal(*(section("x" * 3000) for _ in range(90)))
    assert (await refusal(client.views_open(trigger_id=once, view=big)))["error"] == "view_too_large"
    home = {"type": "home", "blocks": []}
    assert (await refusal(client.views_open(trigger_id=once, view=home)))["error"] == "invalid_arguments"
    unread = client.api_call("views.open", data={"trigger_id": once, "view": "{"})
    assert (await refusal(unread))["error"] == "invalid_arguments"
    await client.views_open(trigger_id=once, view=modal())


async def test_three_views_lie_on_each_other_at_most(slack: LocalSlack, client: AsyncWebClient) -> None:
    assert (await refusal(client.views_push(trigger_id=trigger(slack), view=modal())))["error"] == "not_found"
    root = (await client.views_open(trigger_id=trigger(slack), view=modal()))["view"]
    second = (await client.views_push(trigger_id=trigger(slack), view=modal()))["view"]
    third = (await client.views_push(trigger_id=trigger(slack), view=modal()))["view"]
    assert (third["root_view_id"], third["previous_view_id"]) == (root["id"], second["id"])
    answer = await refusal(client.views_push(trigger_id=trigger(slack), view=modal()))
    assert answer["error"] == "push_limit_reached"


async def test_a_view_is_updated_by_its_newest_hash_and_keeps_what_was_typed(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    ana = slack.as_user("ana")
    asks = (entry("Why", typed()), entry("Who", typed()))
    view = (await client.views_open(trigger_id=trigger(slack), view=modal(*asks)))["view"]
    await ana.fill({"Why": "because", "Who": "me"})
    fresh = (await client.views_update(view_id=view["id"], hash=view["hash"], view=modal(asks[0])))["view"]
    assert fresh["state"]["values"] == {"why": {"text": {"type": "plain_text_input", "value": "because"}}}
    answer = await refusal(client.views_update(view_id=view["id"], hash=view["hash"], view=modal()))
    assert answer["error"] == "hash_conflict"
    assert (await refusal(client.views_update(view_id="V9", view=modal())))["error"] == "not_found"


async def test_a_view_is_found_by_its_external_id(slack: LocalSlack, client: AsyncWebClient) -> None:
    await client.views_open(trigger_id=trigger(slack), view=modal(external_id="one"))
    await client.views_update(external_id="one", view=modal(title="Found", external_id="one"))
    assert slack.as_user("ana").modal["title"]["text"] == "Found"  # type: ignore[index]
    answer = await refusal(client.views_open(trigger_id=trigger(slack, "ben"), view=modal(external_id="one")))
    assert answer["error"] == "duplicate_external_id"


async def test_a_home_is_published_for_one_person(slack: LocalSlack, client: AsyncWebClient) -> None:
    ana = slack.as_user("ana")
    first = (await client.views_publish(user_id=ana.id, view={"type": "home", "blocks": [section("one")]}))[
        "view"
    ]
    body = {"type": "home", "blocks": [section("two")]}
    await client.views_publish(user_id=ana.id, view=body, hash=first["hash"])
    assert slack.text_of(ana.home or {}) == "two"
    assert slack.as_user("ben").home is None
    answer = await refusal(client.views_publish(user_id=ana.id, view=body, hash=first["hash"]))
    assert answer["error"] == "hash_conflict"
    assert (await refusal(client.views_publish(user_id="U9", view=body)))["error"] == "user_not_found"
    assert (await refusal(client.views_publish(user_id=ana.id, view=modal())))["error"] == "invalid_arguments"


# faults


async def test_a_method_can_be_rate_limited(slack: LocalSlack, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", status=429, retry_after=2, times=2)
    for _ in range(2):
        answer = await refusal(client.chat_postMessage(channel=channel(slack), text="a"))
        assert (answer.status_code, answer["error"], answer.headers["Retry-After"]) == (
            429,
            "ratelimited",
            "2",
        )
    await client.chat_postMessage(channel=channel(slack), text="a")
    assert [call.error for call in slack.called("chat.postMessage")] == ["ratelimited", "ratelimited", None]


async def test_a_method_can_break_or_refuse_without_doing_anything(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    slack.fail("chat.postMessage", status=500)
    slack.fail("*", error="fatal_error")
    answer = await refusal(client.chat_postMessage(channel=channel(slack), text="a"))
    assert answer.status_code == 500
    assert (await refusal(client.auth_test()))["error"] == "fatal_error"
    assert slack.messages("general") == []


async def test_a_method_can_do_its_work_and_lose_the_answer(
    slack: LocalSlack, client: AsyncWebClient
) -> None:
    slack.fail("chat.postMessage", reset_after_accept=True)
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=channel(slack), text="a")
    assert [m["text"] for m in slack.messages("general")] == ["a"]


async def test_a_method_can_be_slow(slack: LocalSlack) -> None:
    slack.fail("auth.test", delay=30)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.1)) as session:
        with pytest.raises(TimeoutError):
            await web_client(slack, session).auth_test()


async def test_faults_can_be_forgotten_and_must_make_sense(slack: LocalSlack, client: AsyncWebClient) -> None:
    slack.fail("auth.test", error="fatal_error")
    slack.mend()
    await client.auth_test()
    with pytest.raises(ValueError, match="status must be an HTTP error"):
        slack.fail("auth.test", status=200)
    with pytest.raises(ValueError, match="times must be at least 1"):
        slack.fail("auth.test", times=0)
