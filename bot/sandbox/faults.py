"""Faults on demand: make a Web API method fail the way Slack and networks do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` calls of `method` (`*` is any method).

    `delay` (seconds) comes first. Then `status` (with `retry_after` seconds for 429) or `error` is
    answered without doing anything; `reset_after_accept` does the work and drops the connection.
    """

    method: str
    status: int | None = None
    retry_after: int | None = None
    error: str | None = None
    delay: float = 0
    reset_after_accept: bool = False
    times: int = 1

    def __post_init__(self) -> None:
        if self.status is not None and not 400 <= self.status <= 599:
            raise ValueError(f"status must be an HTTP error (400..599), not {self.status}")
        if self.status == 429 and self.retry_after is None:
            self.retry_after = 1
        if self.times < 1:
            raise ValueError(f"times must be at least 1, not {self.times}")


class Faults:
    """The faults still to happen, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self.taken = 0
        """How many calls have met one so far."""

    @property
    def waiting(self) -> bool:
        """Whether there are any."""
        return bool(self._waiting)

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, method: str) -> Fault | None:
        """The fault that this call of `method` meets, used up by one."""
        for fault in self._waiting:
            if fault.method in (method, "*"):
                fault.times -= 1
                self.taken += 1
                if fault.times == 0:
                    self._waiting.remove(fault)
                return fault
        return None
