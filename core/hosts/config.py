"""The TOML file that `ASKGATE_HOSTS` names: one block a host, `[motus.prod]`, whose runs' ``host`` is `motus.prod`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StrictBool,
    ValidationError,
    field_validator,
)

from core.errors import AskgateError
from core.escalations import Escalation, Seconds
from core.places import Place
from core.policy import ChannelId, PolicyRequest, Principal, UserId

_NAME = re.compile(r"[a-z0-9._-]{1,40}")


class HostsError(AskgateError):
    """The file of hosts is wrong."""


def _base_url(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise ValueError("wanted an http or https URL without a query")
    if url.username or url.password:
        raise ValueError("a user or a password does not belong into a URL; wanted api_key")
    return value.rstrip("/")


def _secret(value: SecretStr) -> SecretStr:
    """`@path` stands for the first line of that file, so that the block itself need hold no secret."""
    text = value.get_secret_value()
    if not text.startswith("@"):
        return value
    try:
        lines = Path(text[1:]).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"its file cannot be read ({reason})") from None
    if not lines or not lines[0].strip():
        raise ValueError("the first line of its file is empty")
    return SecretStr(lines[0].strip())


def _signing(value: SecretStr) -> SecretStr:
    if not 16 <= len(value.get_secret_value()) <= 256:
        raise ValueError("wanted the whole signing_secret of the subscription, 16 to 256 characters")
    return value


BaseUrl = Annotated[str, AfterValidator(_base_url)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]


class HostConfig(BaseModel):
    """What every block may say: where cards go, who may decide, until when. ``name`` is the block's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    url: BaseUrl
    api_key: Secret | None = None
    channel: ChannelId | None = None
    user: UserId | None = None
    responders: list[Principal] | None = Field(None, max_length=256)
    approvers: list[Principal] | None = Field(None, max_length=256)
    quorum: int = Field(1, ge=1, le=32)
    reject_quorum: int = Field(1, ge=1, le=32)
    self_approval: StrictBool = False
    reason: Literal["never", "on_reject", "always"] = "never"
    timeout_s: Seconds | None = None
    remind_after_s: list[Seconds] = Field([], max_length=16)
    escalate: Escalation | None = None

    @field_validator("escalate")
    @classmethod
    def _stays(cls, value: Escalation | None) -> Escalation | None:
        if value and value.place and value.place.team:
            raise ValueError("place.team: an escalation stays in its run's workspace; leave team out")
        return value

    @property
    def place(self) -> Place | None:
        """Where a card goes, unless it belongs into a conversation."""
        if self.user:
            return Place(user=self.user)
        return Place(channel=self.channel) if self.channel else None

    @property
    def policy(self) -> PolicyRequest:
        return PolicyRequest(
            responders=self.responders,
            approvers=self.approvers,
            quorum=self.quorum,
            reject_quorum=self.reject_quorum,
            self_approval=self.self_approval,
            reason=self.reason,
        )

    @property
    def asked(self) -> dict[str, Any]:
        """The part of a `RunRequest` that the block says."""
        return {
            "host": self.name,
            "place": self.place,
            "policy": self.policy,
            "timeout_s": self.timeout_s,
            "remind_after_s": self.remind_after_s,
            "escalate": self.escalate,
        }


class MotusConfig(HostConfig):
    """A `motus serve`.

    ``turn_timeout_s`` is the server's own `--timeout`, which it tells nobody: deadlines stay inside it. ``failures``
    are the values that stand for no answer, by the type of a custom interrupt; a turn that waits for another type is
    cancelled then, and its conversation kept. ``talk``: where people can talk with its agent, all conversations that
    the bot is in (true) or these channels.
    """

    turn_timeout_s: Seconds | None = None
    talk: StrictBool | Annotated[list[ChannelId], Field(min_length=1, max_length=256)] = False
    failures: dict[str, JsonValue] = {}


class A13nConfig(HostConfig):
    """A workspace of an a13n Service.

    ``agents``: only what these wait for. ``client_tools``: ask people for the results of client tools too; else runs
    that wait for one are left to the program that runs them. ``poll_s``: how often all that waits is read.
    """

    api_key: Secret
    webhook_secret: Annotated[Secret, AfterValidator(_signing)] | None = None
    agents: list[Annotated[str, Field(min_length=1, max_length=72)]] = Field([], max_length=64)
    client_tools: bool = True
    poll_s: float = Field(30, ge=1, le=3600)


class LooprigConfig(HostConfig):
    """A looprig server: `pkg/serve` (``dialect`` serve) or Factory. ``poll_s``: how often to look for sessions."""

    dialect: Literal["serve", "factory"] = "serve"
    poll_s: float = Field(5, ge=0.1, le=300)


KINDS: dict[str, type[HostConfig]] = {"a13n": A13nConfig, "motus": MotusConfig, "looprig": LooprigConfig}


def load_hosts(path: Path) -> list[HostConfig]:
    """The hosts of a TOML file. Raises HostsError, in one line that says where and what is wanted."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise HostsError(f"{path}: {error}") from None
    found = []
    for kind, blocks in tables.items():
        if kind not in KINDS:
            raise HostsError(f"{path}: there are no hosts [{kind}.…]; wanted {', '.join(KINDS)}")
        if not isinstance(blocks, dict):
            raise HostsError(f"{path}: {kind}: wanted blocks [{kind}.NAME]")
        for name, block in blocks.items():
            where = f"{path}: [{kind}.{name}]"
            if not isinstance(block, dict):
                raise HostsError(
                    f"{path}: [{kind}] {name}: wanted blocks [{kind}.NAME], each with its settings"
                )
            if not _NAME.fullmatch(name):
                raise HostsError(f"{where}: wanted a name of 1 to 40 of a-z 0-9 . _ -")
            found.append(_host(KINDS[kind], where, f"{kind}.{name}", block))
    return found


def _host(model: type[HostConfig], where: str, name: str, block: dict[str, Any]) -> HostConfig:
    if "name" in block:
        raise HostsError(f"{where} name: the block is named by its heading")
    try:
        return model.model_validate({**block, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise HostsError(f"{where} {place}: {said}") from None
