"""Takes docs/pictures/demo.png: a thread of the local Slack with a settled question, an open one and an approval.

Run it from the repository with `.venv/bin/python docs/pictures/take.py`; it wants Chromium and the extras.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from playwright.async_api import async_playwright
from slack_sdk.web.async_client import AsyncWebClient

from bot import logs
from bot.demo.demo import free_port
from bot.sandbox.slack import LocalSlack
from bot.service import Service
from core.settings import load_settings

PICTURE = Path(__file__).with_name("demo.png")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
KEY = "a-key-of-this-machine"

SCOPE = {
    "question": "How far should the clean-up go?",
    "header": "Scope",
    "options": [
        {"label": "Focused", "description": "Only what is older than 30 days"},
        {"label": "Broad", "description": "Everything that can be made again"},
    ],
}
FOLDERS = {
    "question": "Which folders may I look into?",
    "header": "Folders",
    "multiSelect": True,
    "options": [
        {"label": "build", "description": "Compiled files, 41 GB"},
        {"label": "cache", "description": "Downloaded packages, 17 GB"},
        {"label": "logs", "description": "Old logs, 9 GB"},
    ],
}
DELETE = {
    "tool_call_id": "delete",
    "tool_name": "delete_folders",
    "args": {"folders": ["build", "cache"], "older_than_days": 30},
    "reason": "The disk is 97% full.",
    "risk": "high",
}


def question(call_id: str, asked: dict[str, Any]) -> dict[str, Any]:
    return {"tool_call_id": call_id, "tool_name": "ask_user_question", "args": {"questions": [asked]}}


TALK = [
    ("ben", "The nightly build failed again: no space left on build-7."),
    ("cho", "Third time this week. Who can free some?"),
    ("ana", "The clean-up agent can. It asks before it deletes anything."),
]


async def main() -> None:
    logs.set_up("error")
    port = free_port(0)
    with TemporaryDirectory() as folder:
        async with LocalSlack(request_url=f"http://127.0.0.1:{port}/slack/events", app_token=None) as slack:
            people = {"ana": "Ana Ruiz", "ben": "Ben Okafor", "cho": "Cho Min-ji"}
            ids = {name: slack.add_user(name, real_name) for name, real_name in people.items()}
            slack.add_app("clean-up agent", "xoxb-agent", "clean-up agent")
            channel = slack.add_channel("clean-up", [*people, "clean-up agent"])
            settings = load_settings(
                {
                    "SLACK_BOT_TOKEN": "xoxb-test",
                    "SLACK_SIGNING_SECRET": "local-signing-secret",
                    "SLACK_API_URL": slack.api_url,
                    "ASKGATE_API_KEYS": f"clean-up={KEY}",
                    "ASKGATE_BIND": f"127.0.0.1:{port}",
                    "ASKGATE_DATA_DIR": folder,
                },
                need_slack=True,
            )
            async with Service(settings):
                thread = await furnish(slack, f"http://127.0.0.1:{port}", channel, ids)
                await take(f"{slack.url}/#as={ids['ana']}&in={channel}&thread={thread}")


async def furnish(slack: LocalSlack, api: str, channel: str, ids: dict[str, str]) -> str:
    """Put three runs into one thread, and let Ana answer the first. Returns the thread."""
    for name, text in TALK:
        await slack.as_user(name).say(channel, text)
    agent = AsyncWebClient(token="xoxb-agent", base_url=slack.api_url)
    said = await agent.chat_postMessage(
        channel=channel, text="The disk of build-7 is 97% full. I can clean up."
    )
    thread = str(said["ts"])
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(api, headers=headers, raise_for_status=True) as session:

        async def ask(**pending: Any) -> None:
            had = len(slack.messages(channel, thread))
            body = {
                "title": "Nightly clean-up",
                "pending": pending,
                "place": {"channel": channel, "thread_ts": thread},
                "policy": {"approvers": [ids["ana"], ids["ben"]]},
                "timeout_s": 3600,
            }
            async with session.post("/api/v1/runs", json=body):
                await slack.wait_for(lambda: len(slack.messages(channel, thread)) > had)

        await ask(calls=[question("scope", SCOPE)])
        await slack.as_user("ana").click("Focused")
        await slack.wait_for(lambda: "nswered" in slack.text_of(slack.messages(channel, thread)[1]))
        await agent.chat_postMessage(channel=channel, thread_ts=thread, text="Thank you. Scope: Focused.")
        await ask(calls=[question("folders", FOLDERS)])
        await ask(approvals=[DELETE])
    return thread


async def take(url: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(viewport={"width": 1280, "height": 1160})
        await page.goto(url)
        await page.get_by_role("button", name="Approve: ").wait_for()
        await page.mouse.move(0, 0)
        await page.screenshot(path=PICTURE)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
