"""The workspaces that askgate is installed in: which of them something is about, and what serves it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import structlog
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.oauth.installation_store import Installation
from slack_sdk.web.async_client import AsyncWebClient

from bot.app import Authorize
from bot.slack.client import CLICK_TIMEOUT_S, Slack
from bot.slack.directory import SlackDirectory
from bot.slack.errors import TROUBLES, SlackBusy, SlackGone
from bot.slack.installations import INSTALL, UNINSTALLED, Installations, Renewal
from bot.workspace import OF_PEOPLE, OF_RUNS, OF_TALKS, Workspace
from core.agenda import Handler, TryAgain
from core.engine import ResumeEngine
from core.errors import CannotVerify, NotFound, NoWorkspace, StoreUnavailable
from core.policy import Person
from core.runs import Run
from core.sealing import Unsealable
from core.store.store import Store
from core.workspaces import Serving

Make = Callable[[str, AsyncWebClient, SlackDirectory, Authorize], Workspace]
"""Makes what serves a workspace: of its id, its client, its directory and its bot's identity."""

ASKED_S: Final = 60.0
"""How long strangers in an organisation's channels are not looked up again among its workspaces."""
AT_ONCE: Final = 50
"""How many open runs are looked at in one go, when a workspace has left."""

log = structlog.get_logger(__name__)


class Installed:
    """Answers for one process. What it keeps (clients, look-ups) follows the store, which is asked each time."""

    def __init__(
        self, store: Store, installations: Installations, client: AsyncWebClient, renewal: Renewal,
        *, default: str | None,
    ) -> None:  # fmt: skip
        """``client`` has no token; ``default``: the workspace of runs that name none."""
        self._store = store
        self._installations = installations
        self._client = client
        self._renewal = renewal
        self._default = default
        self._looked_up: dict[str, float] = {}
        self._kept: dict[str, tuple[Workspace, Installation]] = {}
        self.make: Make

    # which

    async def serving(self, team: str | None) -> Serving:
        """Raises NoWorkspace: a run has to name its workspace if there are several, and it has to be one of them."""
        names, orgs = await self._store.installations.names(), await self._store.installations.orgs()
        default = self._default or (names[0] if len(names) == 1 else None)
        default = orgs.get(default, default) if default else None
        wanted = orgs.get(team, team) if team and team not in names else team or default
        if wanted is None and names:
            raise NoWorkspace(
                f"askgate is installed in several workspaces: name one in place.team ({', '.join(names)}),"
                " or set ASKGATE_DEFAULT_TEAM."
            )
        if wanted is None:
            raise NoWorkspace(f"askgate is installed in no workspace yet: somebody has to open {INSTALL}.")
        if wanted not in names:
            raise NoWorkspace(f"askgate is not installed in {team or wanted}.")
        return Serving(wanted, default=wanted == default, many=True, orgs=orgs)

    async def of(self, name: str) -> Workspace | None:
        """What serves a workspace, with the token of this moment; None where askgate is not installed.

        Raises StoreUnavailable, Unsealable, or TryAgain while a token that has expired is being renewed.
        """
        found = await self._installations.find(name)
        kept = self._kept.get(name)
        if found is None:
            if kept:
                del self._kept[name]
                await kept[0].close()
            return None
        if found.bot_token_expires_at and found.bot_token_expires_at * 1000 <= self._store.clock.now_ms():
            await self._renewal.rotate(name, 1)
            found = await self._installations.find(name) or found
        if kept is None:
            client = AsyncWebClient(
                base_url=self._client.base_url,
                session=self._client.session,
                retry_handlers=[],
            )
            pace = self._store.pace.of(name)
            teams = partial(self._teams_of, name) if found.is_enterprise_install else None
            directory = SlackDirectory(client, pace=pace, teams=teams)
            kept = self.make(name, client, directory, self._identity(name)), found
        workspace = kept[0]
        workspace.client.token = found.bot_token
        self._kept[name] = (workspace, found)
        return workspace

    async def _teams_of(self, org: str) -> list[str]:
        """Raises SlackBusy as long as Slack has not told."""
        for _ in range(2):
            orgs = await self._store.installations.orgs()
            if teams := sorted(team for team, of in orgs.items() if of == org):
                return teams
            await self.look_up_teams(org)
        raise SlackBusy("teams_unknown")

    def _identity(self, name: str) -> Authorize:
        async def authorize(**_: Any) -> AuthorizeResult:
            """Who the bot is, without asking Slack: it was told when askgate was installed."""
            workspace, found = self._kept[name]
            return AuthorizeResult(
                enterprise_id=found.enterprise_id,
                team_id=found.team_id,
                bot_id=found.bot_id,
                bot_user_id=found.bot_user_id,
                bot_token=workspace.client.token,
                bot_scopes=found.bot_scopes,
            )

        return authorize

    async def slack_of(self, person: Person) -> Slack:
        """The Web API of somebody's own workspace. Raises SlackGone where askgate is not installed."""
        slack = await self.slack_in(person.team)
        if slack is None:
            raise SlackGone("not_installed")
        return slack

    async def slack_in(self, name: str) -> Slack | None:
        """The Web API of a workspace; None where askgate is not installed."""
        workspace = await self.of(name)
        return workspace.slack if workspace else None

    async def close(self) -> None:
        for workspace, _ in self._kept.values():
            await workspace.close()

    async def arrived(self, name: str) -> None:
        """Somebody has installed askgate there."""
        if name.startswith("E"):
            await self.look_up_teams(name)

    async def leave(self, name: str, code: str, since_s: int) -> None:
        """Slack says that askgate is gone from a workspace; unless it was installed again since then."""
        found = await self._installations.find(name)
        if found and since_s < int(found.installed_at):
            log.info("workspace.back_already", team=name)
            return
        await self._installations.remove(name, code)

    # what Slack delivers

    async def dispatch(self, asked: AsyncBoltRequest) -> BoltResponse:
        """Have the workspace's own app take it. An event from where askgate no longer is wants no answer."""
        body = asked.body
        if body.get("type") == "url_verification":
            return BoltResponse(status=200, body={"challenge": body.get("challenge")})
        if body.get("ssl_check") == "1":
            return BoltResponse(status=200, body="")
        name, workspace = "", None
        try:
            for name in _whose(asked):
                workspace = await self._known(name)
                if workspace:
                    break
        except TryAgain:
            return BoltResponse(status=503, body="the token is being renewed")
        except Unsealable as error:
            log.error("workspace.unsealable", team=name, why=error.detail)
            return BoltResponse(status=503, body="the token cannot be read")
        if workspace is None:
            log.warning("workspace.not_installed", team=name, type=body.get("type"))
            return BoltResponse(status=200 if body.get("type") == "event_callback" else 503, body="")
        if asked.context.is_enterprise_install:
            await self._as_of_org(name, body)
        return await workspace.app.async_dispatch(asked)

    async def _known(self, name: str) -> Workspace | None:
        """What serves a workspace. While the store is away, what did so last: whoever clicks is then told."""
        try:
            return await self.of(name)
        except StoreUnavailable:
            if name not in self._kept:
                raise
            return self._kept[name][0]

    async def _as_of_org(self, org: str, body: dict[str, Any]) -> None:
        """Say in a payload that people are of the organisation: in each of its workspaces they are the same.

        Whose team is none of its workspaces is a stranger, of a connected channel.
        """
        teams = {team for team in _teams(body) if team and team.startswith("T")}
        orgs = await self._store.installations.orgs()
        if teams - orgs.keys() and time.monotonic() - self._looked_up.get(org, -ASKED_S) >= ASKED_S:
            await self.look_up_teams(org)
            orgs = await self._store.installations.orgs()
        _say(body, {team: org for team in teams if orgs.get(team) == org})

    async def look_up_teams(self, org: str) -> None:
        """Note which workspaces an organisation has given askgate to (Slack: auth.teams.list)."""
        workspace = await self.of(org)
        if workspace is None:
            return
        self._looked_up[org] = time.monotonic()
        teams: list[str] = []
        try:
            async with asyncio.timeout(CLICK_TIMEOUT_S / 2):
                cursor = None
                while cursor != "":
                    reply = await workspace.client.auth_teams_list(cursor=cursor, limit=200)
                    teams += [str(team["id"]) for team in reply["teams"]]
                    cursor = (reply.get("response_metadata") or {}).get("next_cursor") or ""
        except TROUBLES as error:
            # whoever is of a workspace that is not known counts as a stranger
            log.warning("workspace.teams_unknown", org=org, error=type(error).__name__)
        await self._store.installations.belong(org, teams)

    # the agenda

    def handlers(self, engine: ResumeEngine) -> dict[str, Handler]:
        """The agenda's handlers, each in the workspace that its run, person or conversation is of."""
        return (
            {what: self._about_run(engine, what) for what in OF_RUNS}
            | {what: self._about_person(what) for what in OF_PEOPLE}
            | {what: self._about_talk(engine, what) for what in OF_TALKS}
            | {"rotate": self._renewal.rotate, "leave": self._leave(engine)}
        )

    def _about_run(self, engine: ResumeEngine, what: str) -> Handler:
        async def handle(run_id: str, tries: int) -> None:
            try:
                run = await engine.run(run_id)
            except NotFound:
                return
            team = await self._team_of(run)
            workspace = await self.of(team) if team else None
            if workspace:
                await workspace.handlers[what](run_id, tries)
            elif run.open and run.doc.place:
                await engine.undeliverable(run_id, UNINSTALLED)

        return handle

    async def _team_of(self, run: Run) -> str | None:
        """The workspace of a run; of one that was opened when there was only one, the default."""
        with contextlib.suppress(NoWorkspace):
            return run.doc.team or (await self.serving(None)).team
        return None

    def _about_person(self, what: str) -> Handler:
        async def handle(who: str, tries: int) -> None:
            workspace = await self.of(who.partition(":")[0])
            if workspace:
                await workspace.handlers[what](who, tries)

        return handle

    def _about_talk(self, engine: ResumeEngine, what: str) -> Handler:
        async def handle(talk_id: str, tries: int) -> None:
            talk = await engine.talks.read(talk_id)
            workspace = await self.of(talk.team) if talk else None
            if workspace:
                await workspace.handlers[what](talk_id, tries)
            else:
                await engine.talks.leave(talk_id)

        return handle

    def _leave(self, engine: ResumeEngine) -> Handler:
        async def handle(left: str, _tries: int) -> None:
            """`leave:<name>:<code>`: end what waits in a workspace that is gone, unless it has come back."""
            name, _, code = left.partition(":")
            if name in await self._store.installations.names():
                return
            if kept := self._kept.pop(name, None):
                await kept[0].close()
            await end_runs(engine, name, code)

        return handle


async def end_runs(engine: ResumeEngine, team: str, code: str) -> None:
    """End what waits for a workspace that cannot be reached any more as undeliverable, with Slack's word."""
    found: list[str] = []
    async with contextlib.aclosing(engine.store.run_ids(only_open=True)) as ids:
        async for _, run_id in ids:
            found.append(run_id)
    count = 0
    for start in range(0, len(found), AT_ONCE):
        for run in await engine.store.read_all(found[start : start + AT_ONCE]):
            if run.open and run.doc.place and engine.home_of(run) == team:
                count += await engine.undeliverable(run.id, code)
    log.info("workspace.left", team=team, code=code, gates=count)


class Directories:
    """The engine's directory: each person is looked up by their own workspace."""

    def __init__(self, installed: Installed) -> None:
        self._installed = installed

    async def in_channel(self, channel: str, person: Person) -> bool:
        return await (await self._of(person)).in_channel(channel, person)

    async def in_group(self, group: str, person: Person) -> bool:
        return await (await self._of(person)).in_group(group, person)

    async def is_active(self, person: Person) -> bool:
        return await (await self._of(person)).is_active(person)

    async def _of(self, person: Person) -> SlackDirectory:
        """Raises CannotVerify: of whoever is of another workspace, Slack alone knows."""
        try:
            workspace = await self._installed.of(person.team)
        except TryAgain as error:
            raise CannotVerify from error
        if workspace is None:
            raise CannotVerify
        return workspace.directory


def _whose(asked: AsyncBoltRequest) -> list[str]:
    """The names of the installations that a delivery may be for: as Bolt reads it, else whose bot's message was clicked
    on, for a person of a shared channel may click with a team of their own."""
    context, message = asked.context, asked.body.get("message")
    name = context.enterprise_id if context.is_enterprise_install else context.team_id
    bot = message.get("bot_profile") if isinstance(message, Mapping) else None
    author = bot.get("team_id") if isinstance(bot, Mapping) else None
    return [found for found in dict.fromkeys((name, author)) if isinstance(found, str) and found]


def _teams(body: Mapping[str, Any]) -> set[str | None]:
    user, event = body.get("user"), body.get("event")
    found = {body.get("team_id")}
    if isinstance(user, Mapping):
        found.add(user.get("team_id"))
    if isinstance(event, Mapping):
        found |= {event.get("user_team"), event.get("team")}
    return {team for team in found if isinstance(team, str)}


def _say(body: dict[str, Any], orgs: Mapping[str, str]) -> None:
    for part, names in (
        (body, ("team_id",)),
        (body.get("user"), ("team_id",)),
        (body.get("event"), ("user_team", "team")),
    ):
        if isinstance(part, dict):
            part.update({name: orgs[part[name]] for name in names if part.get(name) in orgs})
