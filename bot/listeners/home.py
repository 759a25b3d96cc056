"""The App Home: opened, turned and clicked in by a person, drawn by the agenda whenever something of theirs changes."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncApp

from bot import words
from bot.cards.home import LIVE, OVERVIEWED, WORST, Overview, home_view, is_mine
from bot.cards.queries import FOR_ADMINS, Query, Which
from bot.listeners.inbox import SHOWN, Inbox
from bot.slack.client import Slack, SlackBusy, SlackGone, SlackRefused
from core.agenda import TryAgain
from core.engine import ResumeEngine
from core.errors import CannotVerify, NotFound
from core.gates import speaker
from core.ids import partition_of
from core.policy import GROUP, Person
from core.runs import Run
from core.store.indexes import name_for, names_for

SOON_MS: Final = 3600 * 1000
"""What expires within an hour expires soon."""
GATHER_MS: Final = 400
"""How long changes of others are gathered, so that a burst of them is drawn once."""
_BROAD: Final = re.compile(rf"channel|anyone|{GROUP}")
_OF_ADMINS: Final = frozenset((*FOR_ADMINS, Which.ALL, Which.EXPIRING))
_FIRST: Final = Query(Which.MINE)

log = structlog.get_logger(__name__)


class Home:
    """Notes who looks at what. What is clicked is committed first; `HomeDrawing` then shows it."""

    def __init__(self, engine: ResumeEngine) -> None:
        self._homes = engine.store.homes

    def register(self, app: AsyncApp) -> None:
        app.event("app_home_opened")(self.handle)

    async def handle(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        """Somebody opens it. A store that is away is raised: Slack then brings the event again."""
        if event.get("tab") == "messages":
            return
        who = speaker(Person(team=body["team_id"], user=event["user"]))
        shown = await self._homes.shown(who)
        # what Slack has of it may be gone, so it is drawn whether it has changed or not
        query = Query.load(shown.query).first if shown else _FIRST
        await self._homes.choose(who, query.dump())
        await self._homes.opened(who)
        await self._homes.due(who)

    async def turn(self, person: Person, query: Query) -> None:
        """Show another tab, filter or page. Raises StoreUnavailable."""
        await self._homes.choose(speaker(person), query.dump())
        await self.again(person)

    async def again(self, person: Person) -> None:
        """Draw it again at once, for who has just done something there. Raises StoreUnavailable."""
        await self._homes.due(speaker(person))


class HomeDrawing:
    """The agenda's handlers for `home:<run>` (who may have it on their list) and `person:<team>:<user>`."""

    def __init__(self, engine: ResumeEngine, slack: Slack, inbox: Inbox) -> None:
        self._engine = engine
        self._slack = slack
        self._inbox = inbox

    async def changed(self, run_id: str, _tries: int) -> None:
        """A run has changed: draw the Homes of those whom it concerns."""
        store = self._engine.store
        try:
            partition, run = partition_of(run_id, store.partitions), await self._engine.run(run_id)
        except NotFound:
            return
        for who in await store.homes.watchers(partition):
            team, _, user = who.partition(":")
            if await self._concerns(run, Person(team=team, user=user)):
                await store.homes.due(who, GATHER_MS)

    async def _concerns(self, run: Run, person: Person) -> bool:
        """Whether a run may stand, or have stood, on a list of somebody's."""
        who, engine = speaker(person), self._engine
        names = {name_for(who), *names_for(who, home=engine.home, admins=engine.admins)}
        if names & set(run.index) or any(vote.by == person for gate in run.gates for vote in gate.votes):
            return True
        try:
            for gate in run.gates:
                if any(_BROAD.fullmatch(p) for p in gate.policy.deciders) and await engine.may_decide(
                    run, gate, person
                ):
                    return True
        except CannotVerify:
            return True
        shown = await engine.store.homes.shown(who)
        if shown is None or Query.load(shown.query).which not in _OF_ADMINS:
            return False
        return await self._inbox.is_admin(person)

    async def draw(self, who: str, _tries: int) -> None:
        """Draw somebody's Home as things are, unless it shows that already. Raises TryAgain if Slack is busy."""
        team, _, user = who.partition(":")
        homes = self._engine.store.homes
        shown = await homes.shown(who)
        query = Query.load(shown.query) if shown else _FIRST
        view = await self._view(Person(team=team, user=user), query)
        digest = hashlib.sha256(json.dumps(view, ensure_ascii=False).encode()).hexdigest()[:16]
        if shown and shown.drawn == digest:
            return
        try:
            await self._slack.publish_home(user, view)
        except SlackBusy as busy:
            raise TryAgain(busy.in_ms) from busy
        except (SlackGone, SlackRefused) as error:
            log.warning("home.not_published", code=error.code)
            return
        if shown:
            await homes.drawn(who, digest)

    async def _view(self, person: Person, query: Query) -> dict[str, Any]:
        admin = await self._inbox.is_admin(person)
        if query.which is Which.OVERVIEW and admin:
            overview = await self._overview(person)
            return home_view(query, (), (), admin=True, further=None, overview=overview)
        if query.which in _OF_ADMINS and not is_mine(query) and not admin:
            query = _FIRST
        most = LIVE if is_mine(query) else SHOWN
        found = await self._inbox.of(person, query, most=most)
        empty = words.HOME_EMPTY if query.first == _FIRST else words.EMPTY[query.which]
        return home_view(query, found.waiting, found.notes(empty), admin=admin, further=found.further)

    async def _overview(self, person: Person) -> Overview:
        counts = await self._engine.store.lists.counts(SOON_MS)
        oldest = None
        if counts.oldest:
            for run in await self._engine.store.read_all([counts.oldest[1]]):
                pending = [(run, gate) for gate in run.gates if gate.pending][:1]
                oldest = next(iter(await self._inbox.linked(pending, person)), None)
        first = {}
        for which in OVERVIEWED:
            first[which] = (await self._inbox.of(person, Query(which), most=WORST)).waiting
        return Overview(counts, oldest, first)
