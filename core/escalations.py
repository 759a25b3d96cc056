"""Escalation: what happens to a run that nobody has decided in time to do something about it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from core.places import Place
from core.policy import Principal

MAX_TIMEOUT_S = 30 * 24 * 3600
Seconds = Annotated[StrictInt, Field(ge=1, le=MAX_TIMEOUT_S)]


class Escalation(BaseModel):
    """What happens when nobody has decided by then: more approvers, a second place for the card, or both."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    after_s: Seconds
    place: Place | None = None
    approvers: list[Principal] | None = Field(None, min_length=1, max_length=256)

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.place is None and self.approvers is None:
            raise ValueError('wanted "place", "approvers" or both')
        return self
