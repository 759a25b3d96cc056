"""Puts the demo together, starts it, and keeps it up until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import aiohttp
import structlog

from bot.demo.agent import GREETING, DemoAgent
from bot.demo.motus_server import motus_server
from bot.manifest import manifest
from bot.sandbox.slack import LocalSlack
from bot.service import Service
from bot.testing.clock import CatchingUp, ahead
from core.ending import end
from core.settings import load_settings

log = structlog.get_logger(__name__)

Host = Literal["api", "motus"]

BOT_TOKEN: Final = "xoxb-demo-askgate"  # noqa: S105  # for a Slack on this machine only
AGENT_TOKEN: Final = "xoxb-demo-agent"  # noqa: S105
SIGNING_SECRET: Final = "demo-signing-secret"  # noqa: S105
API_KEY: Final = "demo-agent-key-0001"
CHANNEL: Final = "clean-up"
PEOPLE: Final = {"ana": "Ana Ruiz", "ben": "Ben Okafor", "cho": "Cho Min-ji"}
APPROVERS: Final = ("ana", "ben")
AGENT: Final = "clean-up agent"
AGENT_RETRY_S: Final = 1.0
HINT: Final = (
    "There is an agent here that you can talk with. Write “@askgate clean up”, and it asks and answers in the thread "
    "of your message; in a direct message with askgate “clean up” will do."
)
GREETED_S: Final = 10.0
"""How long the page's address waits for the thread that it opens."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that runs: its ``page``, and what an agent of one's own needs to join it."""

    page: str
    api: str
    key: str
    channel: str


@contextlib.asynccontextmanager
async def demo(
    data_dir: Path, port: int, api_port: int = 0, *, host: Host = "api", last_timeout_s: int = 60
) -> AsyncIterator[Demo]:
    """The whole demo, running inside the context.

    Everything it knows is in ``data_dir``, so the next start finds what was pending. ``port`` is the page's,
    ``api_port`` askgate's; a free one is taken instead of one in use. ``host``: whose agent it is, a scripted one on
    the HTTP API, or one of a Motus server to talk with. ``last_timeout_s`` is the deadline of the question that nobody
    need answer. Raises DemoError.
    """
    async with contextlib.AsyncExitStack() as stack:
        folder = data_dir / "motus"
        motus = await stack.enter_async_context(motus_server(folder, free_port(0))) if host == "motus" else ""
        bot_port = free_port(api_port)
        slack = LocalSlack(
            port=free_port(port),
            request_url=f"http://127.0.0.1:{bot_port}/slack/events",
            signing_secret=SIGNING_SECRET,
            bot_token=BOT_TOKEN,
            app_token=None,
            persist=data_dir / "slack.json",
        )
        await stack.enter_async_context(slack)
        slack.install(manifest(None))
        ids = {name: slack.add_user(name, real_name) for name, real_name in PEOPLE.items()}
        slack.add_app(AGENT, AGENT_TOKEN, AGENT)
        channel = slack.add_channel(CHANNEL, [*PEOPLE, "askgate", AGENT])
        own = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": slack.api_url,
            "ASKGATE_API_KEYS": f"clean-up={API_KEY}",
            "ASKGATE_BIND": f"127.0.0.1:{bot_port}",
            "ASKGATE_DATA_DIR": str(data_dir),
            "ASKGATE_ADMINS": ids["ben"],
            "ASKGATE_GRACE_S": "2",
        }
        approvers = [ids[name] for name in APPROVERS]
        if motus:
            own["ASKGATE_HOSTS"] = str(_hosts(data_dir / "hosts.toml", motus, channel, approvers))
        settings = load_settings(own, need_slack=True)
        service = await stack.enter_async_context(Service(settings, clock=ahead(slack)))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        assert service.web is not None  # noqa: S101  # it serves the API
        slack.followers.append(CatchingUp(service))
        agent = DemoAgent(
            session,
            api_url=service.web.url,
            key=API_KEY,
            slack_url=slack.api_url,
            slack_token=AGENT_TOKEN,
            channel=channel,
            approvers=approvers,
            last_timeout_s=last_timeout_s,
        )
        if motus:
            if not slack.messages(channel):
                await agent.say(HINT)
            yield Demo(f"{slack.url}/#in={channel}", service.web.url, API_KEY, channel)
            return
        task = asyncio.create_task(_kept_up(agent), name="demo-agent")
        try:
            page = await _page(slack, agent, channel)
            yield Demo(page, service.web.url, API_KEY, channel)
        finally:
            await end([task])


def _hosts(file: Path, url: str, channel: str, approvers: Sequence[str]) -> Path:
    """The file of hosts with the Motus server in it: whoever tries this alone approves what they asked for."""
    block = {
        "url": url,
        "channel": channel,
        "approvers": list(approvers),
        "self_approval": True,
        "talk": True,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in block.items()]
    file.write_text("\n".join(["[motus.demo]", *lines, ""]), encoding="utf-8")
    return file


async def _page(slack: LocalSlack, agent: DemoAgent, channel: str) -> str:
    """The page's address, with the agent's newest thread open as soon as there is one."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GREETED_S):
            await agent.asking.wait()
    threads = [m["ts"] for m in slack.messages(channel) if slack.text_of(m) == GREETING]
    return f"{slack.url}/#in={channel}" + (f"&thread={threads[-1]}" if threads else "")


async def _kept_up(agent: DemoAgent) -> None:
    while True:
        try:
            await agent.run()
        except (aiohttp.ClientError, RuntimeError, TimeoutError) as error:
            log.error("demo.agent_failed", error=str(error))
            await asyncio.sleep(AGENT_RETRY_S)


def free_port(wanted: int) -> int:
    """The wanted port of 127.0.0.1 if nobody listens there, else a free one."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise OSError("127.0.0.1 has no free port")
