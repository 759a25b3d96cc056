"""Who is to see a run's card, and sees it in none of its channels: they get copies of their own."""

from __future__ import annotations

import re
from typing import Final

import structlog

from bot.slack.directory import SlackDirectory
from core.copies import FIRST_COPY, places, refusal
from core.engine import ResumeEngine
from core.errors import CannotVerify
from core.gates import Gate, Kind
from core.policy import GROUP, TEAM, USER, Person, can_be_decided, named
from core.runs import Copies, Run

COPIES: Final = 50
"""How many people get a copy of one card at most."""
OF_A_GROUP: Final = 20
"""How many of a group's people do."""

NOBODY: Final = frozenset({"cannot_dm_bot", "user_disabled", "user_not_found"})
"""Slack's words for that there is no such person (any more). Who only takes no DMs can still decide elsewhere."""

_OF_PEOPLE: Final = re.compile(rf"(?:{TEAM}:)?{USER}|{GROUP}|admins")
"""The principals whose people can be told; the others are whoever sees the card, and keys."""

log = structlog.get_logger(__name__)


class Audience:
    """Looks up who gets a copy of a run's card.

    Who is named by an id and is in no channel of the card does. Of a group (or the admins) nobody does if enough of
    them to decide are in a channel: the others need not be disturbed. Else all of them do, up to `OF_A_GROUP`.
    """

    def __init__(self, engine: ResumeEngine, directory: SlackDirectory, *, home: str | None = None) -> None:
        """``home`` is the id of the directory's workspace."""
        self._engine = engine
        self._directory = directory
        self._home = home or engine.home

    async def of(self, run: Run) -> tuple[Copies, bool]:
        """Who gets copies at this moment, and whether some of that cannot be told now."""
        pending = [gate for gate in run.gates if gate.pending]
        principals = dict.fromkeys(
            p for gate in pending for p in gate.policy.deciders if _OF_PEOPLE.fullmatch(p)
        )
        fresh = [principal for principal in principals if principal not in run.copies.seen]
        to, seen, unsure = list(run.copies.to), list(run.copies.seen), False
        # who is named comes before who is one of many
        for principal in sorted(fresh, key=lambda principal: not named([principal], home=self._home)):
            gates = [gate for gate in pending if principal in gate.policy.deciders]
            try:
                missing = await self._outside(run, principal, gates)
            except CannotVerify:
                unsure = True
                continue
            to += [person for person in missing if person not in to]
            seen.append(principal)
        if len(to) > COPIES:
            log.warning("card.copies_left_out", run=run.id, people=len(to) - COPIES)
        return Copies(to=tuple(to[:COPIES]), seen=tuple(seen)), unsure

    async def _outside(self, run: Run, principal: str, gates: list[Gate]) -> list[Person]:
        """Those of a principal's people who are to get a copy. Raises CannotVerify."""
        alone = named([principal], home=self._home)
        people = alone or await self.crowd(principal)
        able = [person for person in people if any(_may(run, gate, person) for gate in gates)]
        outside = [person for person in able if not await self._sees(run, person)]
        needed = max(gate.policy.quorum if gate.doc.kind is Kind.APPROVAL else 1 for gate in gates)
        if not alone and len(able) - len(outside) >= needed:
            return []
        return outside if alone else outside[:OF_A_GROUP]

    async def crowd(self, principal: str) -> list[Person]:
        """The people of a group, or the admins; nobody for what names nobody. Raises CannotVerify."""
        home = self._home
        if principal == "admins":
            found = named(self._engine.admins, home=home)
            groups = [admin for admin in self._engine.admins if re.fullmatch(GROUP, admin)]
        else:
            found, groups = [], [principal] if re.fullmatch(GROUP, principal) else []
        for group in groups:
            found += named(sorted(await self._directory.people_in_group(group)), home=home)
        return list(dict.fromkeys(found))

    async def _sees(self, run: Run, person: Person) -> bool:
        """Whether somebody sees the card in one of the places where it stands. Raises CannotVerify."""
        for copy, place in places(run).items():
            if place.user == person.user:
                return True
            stands = place.channel and not refusal(run, copy)
            if stands and await self._directory.in_channel(place.channel or "", person):
                return True
        return False

    def lost(self, run: Run, gate: Gate) -> str:
        """Slack's word for why there are too few people to decide a gate; empty if there are enough."""
        copies = enumerate(run.copies.to, FIRST_COPY)
        refused = {person: code for copy, person in copies if (code := refusal(run, copy)) in NOBODY}
        unreached = {person for person in refused if all(vote.by != person for vote in gate.votes)}
        if not gate.pending or not unreached:
            return ""

        def reached(principals: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(p for p in principals if not unreached & set(named([p], home=self._home)))

        approval = gate.doc.kind is Kind.APPROVAL
        enough = can_be_decided(
            gate.policy.model_copy(update={"deciders": reached(gate.policy.deciders)}),
            requester=run.doc.requester if approval else None,
            admins=reached(tuple(self._engine.admins)),
            quorum=gate.policy.quorum if approval else 1,
            home=self._home,
            channel=bool(run.doc.place and run.doc.place.channel),
        )
        return "" if enough else next(refused[person] for person in refused if person in unreached)


def _may(run: Run, gate: Gate, person: Person) -> bool:
    """Whether somebody who is named may decide: of an approval, not who asked for it (unless the policy says so)."""
    own = gate.doc.kind is Kind.APPROVAL and person == run.doc.requester
    return not own or gate.policy.self_approval
