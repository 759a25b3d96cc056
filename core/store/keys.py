"""Every key there is. All keys of a partition bear one hash tag, so a script touches one slot."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

BELL = "ag:bell"
"""Pub/sub channel that wakes workers and waiters after a commit. Each line of a message is a ring: `due PP`,
`queue PP HOST`, `run PP RUN…`."""

INSTALLATIONS = "ag:installations"
"""Hash: the sealed record of each workspace (or organisation) that askgate is installed in, by its id."""

ORGS = "ag:installations:orgs"
"""Hash: the organisation of each workspace that askgate serves by being installed in one."""

META = "ag:meta"
"""Hash of what is fixed for the life of a store: the number of partitions."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one partition."""

    partition: int

    @property
    def base(self) -> str:
        return _base(self.partition)

    def run(self, run_id: str) -> str:
        """Hash: the run, its gates, votes, drafts and decisions."""
        return f"{self.base}:run:{run_id}"

    def trail(self, run_id: str) -> str:
        """List: the ids of the run's audit events after those that opened it. Apart, for refusals can make it long."""
        return f"{self.base}:trail:{run_id}"

    def state(self, run_id: str) -> str:
        """String: the host's opaque state, apart from the run because only a claim reads it."""
        return f"{self.base}:state:{run_id}"

    @property
    def agenda(self) -> str:
        """Sorted set: what else falls due, `<what>:<id>` by due ms."""
        return f"{self.base}:agenda"

    @property
    def expiries(self) -> str:
        """Sorted set: the runs with a pending gate, by the ms of their earliest deadline."""
        return f"{self.base}:expiries"

    def queue(self, host: str) -> str:
        """Sorted set: settled runs for a host to take up again, by due ms."""
        return f"{self.base}:queue:{host}"

    @property
    def dead(self) -> str:
        """Sorted set: the dead letters, runs that failed or were lost, by the ms when that was."""
        return f"{self.base}:dead"

    @property
    def audit(self) -> str:
        """Stream: the audit events. Ids are the engine's ms, never going back."""
        return f"{self.base}:audit"

    @property
    def audit_head(self) -> str:
        """Hash: ``digest`` of the newest event, ``link``: of the newest trimmed one, ``ms`` before which none comes."""
        return f"{self.base}:audit:head"

    def troubles(self, name: str) -> str:
        """List: what admins are to hear of, oldest first, as JSON."""
        return f"{self.base}:troubles:{name}"

    @property
    def runs(self) -> str:
        """Sorted set: every run that is kept, by the ms it was made."""
        return f"{self.base}:runs"

    @property
    def open(self) -> str:
        """Sorted set: the runs with a pending gate, by the ms they were made."""
        return f"{self.base}:open"

    def index(self, name: str) -> str:
        """Sorted set: those of them that stand in an index (`indexes.py`), by the ms they were made."""
        return f"{self.base}:open:{name}"

    def said(self, who: str) -> str:
        """Sorted set: the newest gates that somebody (`T1:U1`, `key:ci`) has had a word on, by the ms of it."""
        return f"{self.base}:said:{who}"

    @property
    def undeliverable(self) -> str:
        """Sorted set: the runs that are kept of which a gate could be shown to nobody, by the ms when that was."""
        return f"{self.base}:undeliverable"

    @property
    def homes(self) -> str:
        """Sorted set: the people (`T1:U1`) who opened their Home within a day, by the ms when. Gone when nobody did."""
        return f"{self.base}:homes"

    def home(self, who: str) -> str:
        """Hash: which list somebody's Home is to show (``query``) and the digest of what was ``drawn``; for a day."""
        return f"{self.base}:home:{who}"

    def talk(self, talk_id: str) -> str:
        """Hash: a conversation with a host's agent."""
        return f"{self.base}:talk:{talk_id}"

    def talks(self, team: str, channel: str) -> str:
        """Sorted set: the conversations of a workspace's channel, by the ms when something last happened there."""
        return f"{self.base}:talks:{team}:{channel}"

    def session(self, host: str, session: str) -> str:
        """String: the conversation that a host's session is of. The text is hashed, so any of it will do."""
        return f"{self.base}:session:{_hashed(host, session)}"

    def begun(self, host: str, session: str) -> str:
        """String: when the last turn of a host's session began, in ms, for as long as a turn may last there."""
        return f"{self.base}:begun:{_hashed(host, session)}"

    def met(self, host: str) -> str:
        """Sorted set: the sessions of a host that were met, by the ms when they last were."""
        return f"{self.base}:met:{host}"

    @property
    def mark(self) -> str:
        """String, empty: written behind a write that waits for replicas, so that there is one to wait for."""
        return f"{self.base}:mark"

    @property
    def settled(self) -> str:
        """Sorted set: the settled runs that are kept, by the ms they were settled."""
        return f"{self.base}:settled"

    def reminded(self, who: str) -> str:
        """Hash: from when on a person (`T1:U1`) may be reminded again, and by which message they were."""
        return f"{self.base}:reminded:{who}"

    def unsaid(self, who: str) -> str:
        """Sorted set: the runs of which a person (`T1:U1`) is still to be reminded, by the ms when that fell due."""
        return f"{self.base}:unsaid:{who}"

    def heard(self, token: str) -> str:
        """String: that a call was heard, for a minute, so that it is not done twice when its reply was lost."""
        return f"{self.base}:heard:{token}"

    def idempotency(self, scope: str, key: str) -> str:
        """String: what an Idempotency-Key made. The text is hashed, so any of it will do."""
        return f"{self.base}:idem:{_hashed(scope, key)}"


def _hashed(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:40]


@lru_cache(maxsize=1024)
def _base(partition: int) -> str:
    return f"ag:{{{partition:02d}}}"


def event_key(event: str) -> str:
    """String: who does an event of the chat system, or that it was done. By itself: no script touches it."""
    return f"ag:event:{event}"


def pace_key(*parts: str) -> str:
    """String: a part of the pace at which the outside is called, in ms. All in one slot: a script touches several."""
    return ":".join(("ag:{pace}", *parts))


def state_key(state: str) -> str:
    """String: when somebody began to install askgate; gone once Slack has brought them back. By itself."""
    return f"ag:oauth:{hashlib.sha256(state.encode()).hexdigest()[:40]}"


def lease_key(name: str) -> str:
    """String: who renews the token of an installation at this moment. By itself."""
    return f"ag:renewing:{name}"


def tally_key(name: str) -> str:
    """String: how often something was done lately; it is gone after a while. By itself."""
    return f"ag:tally:{name}"


def leases(queue: str) -> str:
    """Hash beside an agenda or a queue: who works on which member until when, and how often it was tried."""
    return f"{queue}:leases"


WORK = ("remind", "escalate", "card", "callback", "home", "follow")
"""What the agenda may have to do about a run: the members are `<what>:<run>`."""
