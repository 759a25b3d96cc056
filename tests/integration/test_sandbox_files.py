"""Uploading a file to the local Slack: in three steps, as Slack has it, with its refusals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import LocalSlack

DATA = '{"ü": "<b>"}\n'.encode()


@pytest.fixture
async def slack() -> AsyncIterator[LocalSlack]:
    async with LocalSlack() as slack:
        slack.add_user("ana")
        yield slack


@pytest.fixture
async def client(slack: LocalSlack) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(token=slack.app.bot_token, base_url=slack.api_url, session=session)


async def uploaded(client: AsyncWebClient, data: bytes = DATA) -> str:
    """The id of a file whose bytes are there, and that is not shared yet."""
    room = await client.files_getUploadURLExternal(filename="a.json", length=len(data))
    assert client.session
    async with client.session.post(room["upload_url"], data=data) as answer:
        assert (answer.status, await answer.text()) == (200, f"OK - {len(data)}")
    return str(room["file_id"])


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_a_file_is_shared_in_a_thread_and_read_back(slack: LocalSlack, client: AsyncWebClient) -> None:
    channel = slack.add_channel("ops", ["ana"])
    root = (await client.chat_postMessage(channel=channel, text="root"))["ts"]
    file_id = await uploaded(client)
    done = await client.files_completeUploadExternal(
        files=[{"id": file_id, "title": "All of it"}],
        channel_id=channel,
        thread_ts=root,
        initial_comment="Here:",
    )
    assert done["files"] == [{"id": file_id, "title": "All of it"}]
    replies = (await client.conversations_replies(channel=channel, ts=root))["messages"]
    [file] = replies[1]["files"]
    assert (replies[1]["text"], replies[1]["subtype"]) == ("Here:", "file_share")
    assert (file["id"], file["name"], file["title"], file["size"]) == (
        file_id,
        "a.json",
        "All of it",
        len(DATA),
    )
    assert client.session
    async with client.session.get(file["url_private"]) as answer:
        assert (await answer.read(), answer.content_type) == (DATA, "text/plain")
        assert answer.headers["Content-Disposition"] == "attachment"
    assert slack.file(file_id) == DATA
    assert "All of it" in slack.text_of(slack.messages(channel, root)[1])


async def test_the_sdks_own_upload_works(slack: LocalSlack, client: AsyncWebClient) -> None:
    channel = slack.add_channel("ops", ["ana"])
    await client.files_upload_v2(channel=channel, content="hello", filename="hello.txt", title="Hello")
    [file] = slack.messages(channel)[0]["files"]
    assert slack.file(file["id"]) == b"hello"


async def test_what_slack_refuses_is_refused(slack: LocalSlack, client: AsyncWebClient) -> None:
    channel, away = slack.add_channel("ops", ["ana"]), slack.add_channel("away", ["ana"], bot=False)
    ask, share = client.files_getUploadURLExternal, client.files_completeUploadExternal
    assert await refused(ask(filename="a.json", length=0)) == "missing_argument"
    assert await refused(ask(filename="", length=3)) == "invalid_arguments"
    assert await refused(ask(filename="a", length=3, alt_txt="x" * 1001)) == "alt_txt_too_large"
    assert await refused(ask(filename="a", length=2**20 + 1, snippet_type="text")) == "snippet_too_large"
    as_json = client.api_call("files.getUploadURLExternal", json={"filename": "a", "length": 3})
    assert await refused(as_json) == "invalid_arguments"

    empty = (await ask(filename="a.json", length=3))["file_id"]
    assert await refused(share(files=[{"id": empty}], channel_id=channel)) == "file_not_found"
    assert await refused(share(files=[{"id": "F0NOWHERE"}], channel_id=channel)) == "file_not_found"
    assert await refused(share(files=[], channel_id=channel)) == "invalid_arguments"
    files = [{"id": await uploaded(client)}]
    assert await refused(share(files=files, channel_id="C0NOWHERE")) == "channel_not_found"
    assert await refused(share(files=files, channel_id=away)) == "not_in_channel"
    assert await refused(share(files=files, channel_id=channel, thread_ts="1.000001")) == "thread_not_found"
    several = share(files=files, channels=[channel, away], thread_ts="1.000001")
    assert await refused(several) == "not_in_channel"
    root = (await client.chat_postMessage(channel=channel, text="root"))["ts"]
    reply = (await client.chat_postMessage(channel=channel, text="reply", thread_ts=root))["ts"]
    assert await refused(share(files=files, channel_id=channel, thread_ts=reply)) == "invalid_thread_ts"
    slack.archive(channel)
    assert await refused(share(files=files, channel_id=channel)) == "is_archived"
    assert all("files" not in message for message in slack.messages(channel))


async def test_an_upload_takes_the_announced_bytes_once(slack: LocalSlack, client: AsyncWebClient) -> None:
    room = await client.files_getUploadURLExternal(filename="a.json", length=3)
    assert client.session
    for data, status in ((b"long", 400), (b"abc", 200), (b"abc", 404)):
        async with client.session.post(room["upload_url"], data=data) as answer:
            assert answer.status == status
    assert slack.file(room["file_id"]) == b"abc"
    async with client.session.get(f"{slack.url}/files/{room['file_id']}/other.json") as answer:
        assert answer.status == 404


async def test_files_outlast_a_restart(tmp_path: Path) -> None:
    kept = tmp_path / "world.json"
    async with LocalSlack(persist=kept) as slack, aiohttp.ClientSession() as session:
        channel = slack.add_channel("ops")
        client = AsyncWebClient(token=slack.app.bot_token, base_url=slack.api_url, session=session)
        file_id = await uploaded(client)
        await client.files_completeUploadExternal(files=[{"id": file_id}], channel_id=channel)
    async with LocalSlack(persist=kept) as slack:
        assert slack.file(file_id) == DATA
        assert slack.messages(channel)[0]["files"][0]["title"] == "a.json"
