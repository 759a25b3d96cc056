"""Who was reminded when: nobody is by more than one message within `GAP_MS`, whatever the runs are about.

What has to wait is kept for each person, in a partition that is theirs, with the member `nudge:<person>` on its agenda.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from core.policy import Person
from core.store import lua
from core.store.connect import Client
from core.store.keys import BELL, Keys, leases
from core.store.reach import reachable

if TYPE_CHECKING:
    from core.store.store import Store

GAP_MS: Final = 3_600_000
KEPT_MS: Final = 48 * GAP_MS
"""How long it is remembered when somebody was reminded. It is longer than it counts."""


class Nudges:
    """The reminders of people. Every method raises StoreUnavailable when Redis cannot be reached."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        # decode_responses is on: every reply is text, which redis-py's types (bytes or str) cannot say
        self._redis: Any = client

    async def ask(self, person: Person, run_id: str, *, token: str, after: int, alone: bool) -> bool:
        """Whether somebody may be reminded of a run now, by the message ``token``; else the run waits for the next one.

        ``after``: not before that ms; not ``alone``: it has to wait for a message about all that waits.
        """
        command = {"what": run_id, "token": token, "after": after, "alone": alone}
        return bool(await self._do(lua.NUDGE, person, command))

    async def waiting(self, person: Person) -> list[str]:
        """The runs of which somebody is still to be reminded, oldest first."""
        keys, who = _place(person, self._store.partitions)
        async with reachable():
            return list(await self._redis.zrange(keys.unsaid(who), 0, -1))

    async def take(self, person: Person, *, token: str, after: int) -> tuple[str, int]:
        """Begin a message about what waits. Returns its token (of one that was begun before and not ended), or '' and
        when it may be begun (ms)."""
        found, due = await self._do(lua.TAKE_NUDGES, person, {"token": token, "after": after})
        return str(found), int(due)

    async def end(self, person: Person, run_ids: Sequence[str]) -> None:
        """The message was sent, or there is nothing to say any more about these runs."""
        await self._do(lua.END_NUDGES, person, {"what": list(run_ids)})

    async def _do(self, script: lua.Script, person: Person, command: dict[str, Any]) -> Any:
        keys, who = _place(person, self._store.partitions)
        command |= {"now": self._store.clock.now_ms(), "gap": GAP_MS, "kept": KEPT_MS, "bell": BELL}
        command |= {"member": f"nudge:{who}", "partition": f"{keys.partition:02d}"}
        names = [keys.reminded(who), keys.unsaid(who), keys.agenda, leases(keys.agenda)]
        async with reachable():
            return await script(self._redis, names, [json.dumps(command)])


def _place(person: Person, partitions: int) -> tuple[Keys, str]:
    who = f"{person.team}:{person.user}"
    return Keys(zlib.crc32(who.encode()) % partitions), who
