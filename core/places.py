"""A place: where a card goes."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from core.policy import ChannelId, TeamId, UserId


class Place(BaseModel):
    """Where the card goes: a channel (and a thread there), or a person's DM; and in which workspace, where it has to be
    said."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    channel: ChannelId | None = None
    thread_ts: Annotated[str, StringConstraints(pattern=r"^\d{1,12}\.\d{6}$")] | None = None
    user: UserId | None = None
    team: TeamId | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.channel is None) == (self.user is None):
            raise ValueError('wanted either "channel" or "user"')
        if self.thread_ts and not self.channel:
            raise ValueError('"thread_ts" goes with "channel"')
        return self
