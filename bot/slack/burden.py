"""What waits for one person, by name."""

from __future__ import annotations

import contextlib
from typing import Final

from core.engine import ResumeEngine
from core.gates import Gate
from core.policy import Person
from core.runs import Run
from core.store.indexes import names_for
from core.waiting import waits_for

MANY: Final = 5
"""With more gates than this, somebody gets one message about all of them instead of one about each."""


async def burden(engine: ResumeEngine, person: Person, most: int) -> list[tuple[Run, Gate]]:
    """The gates that wait for a person whom they name, up to ``most`` of the newest runs'. Raises StoreUnavailable."""
    names = names_for(f"{person.team}:{person.user}", home=engine.home, admins=engine.admins)
    found: list[tuple[Run, Gate]] = []
    async with contextlib.aclosing(engine.gates(only_open=True, names=names)) as gates:
        async for _, run, gate in gates:
            if person in waits_for(run, gate, home=engine.home_of(run), admins=engine.admins):
                found.append((run, gate))
                if len(found) >= most:
                    break
    return found
