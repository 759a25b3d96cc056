"""The demo's agent, the example that people copy: what it says to each answer, and to a refusal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from bot import words
from bot.demo.agent import DemoAgent
from tests.acceptance.world import API_KEY, Json, World

HOSTILE = "Wrong *folders* <!channel> & `none`"


@asynccontextmanager
async def asking(world: World) -> AsyncIterator[None]:
    """The agent, asking in #ops."""
    world.slack.add_app("clean-up", "xoxb-clean-up", "clean-up")
    world.slack.add_channel("ops", ["clean-up"])
    async with aiohttp.ClientSession() as session:
        agent = DemoAgent(
            session,
            api_url=world.url,
            key=API_KEY,
            slack_url=world.slack.api_url,
            slack_token="xoxb-clean-up",
            channel=world.ops,
            approvers=[world.ids["ana"]],
            last_timeout_s=600,
        )
        task = asyncio.create_task(agent.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def newest(world: World, *said: str) -> Json:
    """Wait for the newest message of #ops to say all of this."""

    def there() -> Json | None:
        message = world.slack.messages(world.ops)[-1:]
        text = world.slack.text_of(message[0]) if message else ""
        return message[0] if all(word in text for word in said) else None

    found = await world.slack.wait_for(there, 15)
    assert found
    return found


async def up_to_the_approval(world: World) -> Json:
    await world.ana.click("Focused", message=await newest(world, "How far should the clean-up go?", "Other"))
    card = await newest(world, "Which folders may I look into?", "Submit")
    await world.ana.select(["build", "logs"], message=card)
    await world.ana.click("Submit", message=card)
    return await newest(world, "delete_folders", '"build"', '"logs"', "Approve")


async def test_a_rejected_deletion_deletes_nothing_and_the_reason_is_repeated_as_it_was_written(
    http_world: World,
) -> None:
    world = http_world
    async with asking(world):
        await world.ana.click("Reject with reason", message=await up_to_the_approval(world))
        await world.ana.fill({words.REASON_LABEL: HOSTILE})
        await world.ana.submit()
        await newest(world, "Shall I mail a report?")
        said = [world.slack.text_of(message) for message in world.slack.messages(world.ops)]
        assert f"I deleted nothing: {HOSTILE}" in said
        assert not any("I deleted:" in text for text in said)


async def test_after_the_last_step_the_agent_offers_to_start_over(http_world: World) -> None:
    world = http_world
    async with asking(world):
        await world.ana.click("Approve", message=await up_to_the_approval(world))
        await world.ana.click("No", message=await newest(world, "Shall I mail a report?", "Yes"))
        last = await newest(world, "Shall I start over?", "Again")
        texts = [world.slack.text_of(message) for message in world.slack.messages(world.ops)]
        assert "Approved. I deleted: build, logs." in texts
        titles = [text.splitlines()[0] for text in texts if text.startswith("Nightly clean-up: ")]
        assert len(titles) == len(set(titles)) == 5
        await world.ana.click("Again", message=last)
        await newest(world, "How far should the clean-up go?")
