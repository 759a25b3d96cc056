"""Workspaces: in which of those that askgate serves a run takes place, and how their people are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from core.errors import NoWorkspace
from core.policy import TEAM, USER, Person

_NAMED: Final = re.compile(rf"(?:({TEAM}):)?({USER})")


@dataclass(frozen=True, slots=True)
class Serving:
    """The workspace of a run: its team id, or that of the organisation for which askgate is installed as a whole.

    ``default``: a run that names none takes place there, so the channels of the settings are channels there. ``many``:
    there may be others, so a bare user id is stored with its team. ``orgs`` has the organisation of each workspace that
    is one of an organisation's: in there a person is the same in each of them.
    """

    team: str | None
    default: bool = True
    many: bool = False
    orgs: Mapping[str, str] = field(default_factory=dict)

    def person(self, person: Person) -> Person:
        """Somebody, by the team that tells who they are."""
        return Person(team=self.orgs.get(person.team, person.team), user=person.user)

    def principals(self, principals: Iterable[str]) -> list[str]:
        """Principals as they are stored."""
        return [self._principal(principal) for principal in principals]

    def _principal(self, principal: str) -> str:
        found = _NAMED.fullmatch(principal)
        if found is None or not self.many:
            return principal
        team = found[1] or self.team
        return f"{self.orgs.get(team, team)}:{found[2]}" if team else principal


ANYWHERE: Final = Serving(None)
"""Where it is not known which workspace is served."""


class Workspaces(Protocol):
    """The workspaces that there are."""

    async def serving(self, team: str | None) -> Serving:
        """That of a run whose caller names it by ``team``, or names none. Raises NoWorkspace or StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class OneWorkspace:
    """The one whose bot token is set; its id is not known where there is no Slack."""

    home: str | None

    async def serving(self, team: str | None) -> Serving:
        if team and self.home and team != self.home:
            raise NoWorkspace(f"place.team: askgate serves {self.home} and no other workspace.")
        return Serving(self.home or team)
