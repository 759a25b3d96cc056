"""One workspace as askgate serves it: its client, and all that calls Slack or hears from it, bound to that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.app import Authorize, build_app
from bot.listeners.home import HomeDrawing
from bot.listeners.inbox import Inbox
from bot.listeners.leaving import Leave
from bot.slack.attachments import Attachments
from bot.slack.audience import Audience
from bot.slack.client import Slack
from bot.slack.delivery import Delivery, Note
from bot.slack.digests import Digests
from bot.slack.directory import SlackDirectory
from bot.slack.doors import Others
from bot.slack.quiet import QuietHours
from bot.slack.reminders import Reminders
from bot.slack.talking import Talking
from core.agenda import Handler
from core.engine import ResumeEngine
from core.hosts.desks import Desks
from core.quiet import Quiet
from core.store.pace import Pace

OF_RUNS: Final = ("card", "remind", "home")
"""What the agenda does in a workspace about a run."""
OF_PEOPLE: Final = ("nudge", "person")
"""What it does there about a person."""
OF_TALKS: Final = ("talk",)
"""What it does there about a conversation with an agent."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace. ``handlers`` are the agenda's, `OF_RUNS`, `OF_PEOPLE` and `OF_TALKS`.

    ``app`` hears what Slack delivers from there.
    """

    client: AsyncWebClient
    slack: Slack
    directory: SlackDirectory
    app: AsyncApp
    handlers: Mapping[str, Handler]

    async def close(self) -> None:
        await self.directory.close()


def workspace(
    engine: ResumeEngine,
    client: AsyncWebClient,
    directory: SlackDirectory,
    *,
    home: str | None,
    pace: Pace,
    note: Note,
    quiet: Quiet | None,
    signing_secret: str | None,
    leave: Leave,
    desks: Desks,
    others: Others | None = None,
    authorize: Authorize | None = None,
) -> Workspace:
    """All of it. ``home`` is the workspace's id; ``note`` is told of cards that are refused, ``leave`` of the end."""
    slack = Slack(client, pace)
    audience = Audience(engine, directory, home=home)
    delivery = Delivery(engine, slack, audience, note, others)
    hours = QuietHours(quiet, slack, engine.store.clock)
    drawing = HomeDrawing(engine, slack, Inbox(engine, slack))
    handlers: dict[str, Handler] = {
        "card": Attachments(engine, slack, delivery.card, others).card,
        "remind": Reminders(engine, slack, hours, others).remind,
        "nudge": Digests(engine, slack, hours).nudge,
        "home": drawing.changed,
        "person": drawing.draw,
        "talk": Talking(engine, slack, desks).talk,
    }
    app = build_app(
        engine,
        client,
        signing_secret=signing_secret,
        leave=leave,
        hosts=desks.talking_in,
        authorize=authorize,
    )
    return Workspace(client, slack, directory, app, handlers)
